//! Arguments of commands, parsed strictly.

use std::fmt;

use domain::{UnixTime, UserId};
use presence::{AppState, Audience, Declaration, Declared, Privacy};
use serde::de::{self, DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::hub::CommandError;

/// A user id: a decimal text, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(pub(super) UserId);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = Id;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a user id")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                text.parse().map(Id).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
                UserId::new(number).map(Id).ok_or_else(|| E::custom("not a user id"))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// Reads arguments, which are an object.
pub(super) fn read<T: DeserializeOwned>(data: Option<&RawValue>) -> Result<T, CommandError> {
    let json = data.map_or("null", RawValue::get);
    // An array would be read as the fields in their order.
    if !json.trim_ascii_start().starts_with('{') {
        return Err(CommandError::BadRequest("the arguments must be an object"));
    }
    serde_json::from_str(json)
        .map_err(|_| CommandError::BadRequest("a field is missing, unknown or of the wrong type"))
}

/// Nothing, null, or an empty object.
pub(super) fn none(data: Option<&RawValue>) -> Result<(), CommandError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    match data.map(RawValue::get) {
        None | Some("null") => Ok(()),
        Some(_) => read::<Nothing>(data).map(drop),
    }
}

/// `status.set`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusArguments {
    status: String,
    text: Option<String>,
    until: Option<u32>,
}

impl StatusArguments {
    pub(super) fn declaration(
        self,
        text_bytes_max: usize,
        now: UnixTime,
    ) -> Result<Declaration, CommandError> {
        let status = Declared::from_name(&self.status)
            .ok_or(CommandError::BadRequest("a status is online, away, busy or invisible"))?;
        let text = self.text.filter(|text| !text.is_empty());
        if text.as_ref().is_some_and(|text| text.len() > text_bytes_max) {
            return Err(CommandError::LimitExceeded);
        }
        let until = self.until.map(UnixTime);
        if until.is_some_and(|until| until <= now) {
            return Err(CommandError::BadRequest("\"until\" is in the past"));
        }
        Ok(Declaration { status, text: text.map(String::into_boxed_str), until })
    }
}

/// `status.get`, `track`, `untrack`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsersArguments {
    users: Vec<Id>,
}

impl UsersArguments {
    /// Sorted, without duplicates.
    pub(super) fn users(self, max: usize) -> Result<Vec<UserId>, CommandError> {
        let mut users: Vec<UserId> = self.users.into_iter().map(|id| id.0).collect();
        users.sort_unstable();
        users.dedup();
        if users.len() > max { Err(CommandError::LimitExceeded) } else { Ok(users) }
    }
}

/// `app.state`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AppStateArguments {
    state: String,
}

impl AppStateArguments {
    pub(super) fn state(&self) -> Result<AppState, CommandError> {
        AppState::from_name(&self.state)
            .ok_or(CommandError::BadRequest("a state is foreground, background or inactive"))
    }
}

/// `typing`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypingArguments {
    pub(super) to: Option<Id>,
    /// The room's name, without `room:`.
    pub(super) room: Option<String>,
    pub(super) on: bool,
}

/// `devices.sign_out`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceArguments {
    pub(super) device: String,
}

/// `privacy.set`. Missing fields stay unchanged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrivacyArguments {
    status: Option<String>,
    last_seen: Option<String>,
    never: Option<Vec<Id>>,
}

pub(super) struct PrivacyChange {
    status: Option<Audience>,
    last_seen: Option<Audience>,
    never: Option<Vec<UserId>>,
}

impl PrivacyArguments {
    pub(super) fn check(self, me: UserId, never_max: usize) -> Result<PrivacyChange, CommandError> {
        let visibility = |name: Option<String>| match name {
            None => Ok(None),
            Some(name) => Audience::from_name(&name)
                .map(Some)
                .ok_or(CommandError::BadRequest("an audience is everyone, friends or nobody")),
        };
        let never = self.never.map(|never| UsersArguments { users: never }.users(never_max)).transpose()?;
        if never.as_ref().is_some_and(|never| never.contains(&me)) {
            return Err(CommandError::BadRequest("a user cannot be on their own never list"));
        }
        Ok(PrivacyChange { status: visibility(self.status)?, last_seen: visibility(self.last_seen)?, never })
    }
}

impl PrivacyChange {
    pub(super) fn apply_to(self, privacy: &mut Privacy) {
        privacy.status = self.status.unwrap_or(privacy.status);
        privacy.last_seen = self.last_seen.unwrap_or(privacy.last_seen);
        if let Some(never) = self.never {
            privacy.never = never;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn ids_are_decimal_texts_or_numbers_and_nothing_else() {
        let good: UsersArguments = read(Some(&raw(r#"{"users":["7",8,"7"]}"#))).unwrap();
        assert_eq!(good.users(10).unwrap().len(), 2);
        for bad in [
            r#"{"users":[0]}"#,
            r#"{"users":["-1"]}"#,
            r#"{"users":[1.5]}"#,
            r#"{"users":["9223372036854775808"]}"#,
            r#"{"users":[null]}"#,
            r#"{"users":7}"#,
            r#"{"users":[7],"x":1}"#,
            "[[7]]",
            "null",
        ] {
            assert!(read::<UsersArguments>(Some(&raw(bad))).is_err(), "{bad}");
        }
        let many: UsersArguments = read(Some(&raw(r#"{"users":[1,2,3]}"#))).unwrap();
        assert_eq!(many.users(2), Err(CommandError::LimitExceeded));
    }

    #[test]
    fn a_status_is_taken_whole_or_not_at_all() {
        let declaration = |json: &str| {
            read::<StatusArguments>(Some(&raw(json)))
                .and_then(|arguments| arguments.declaration(5, UnixTime(100)))
        };
        assert!(declaration(r#"{"status":"busy","text":"lunch","until":101}"#).is_ok());
        assert!(declaration(r#"{"status":"busy","text":null}"#).is_ok());
        assert_eq!(declaration(r#"{"status":"busy","text":"lunch!"}"#), Err(CommandError::LimitExceeded));
        for bad in [
            r#"{"status":"offline"}"#,
            r#"{"status":"busy","until":100}"#,
            r#"{"status":"busy","until":-1}"#,
            r#"{"text":"x"}"#,
        ] {
            assert!(matches!(declaration(bad), Err(CommandError::BadRequest(_))), "{bad}");
        }
    }
}
