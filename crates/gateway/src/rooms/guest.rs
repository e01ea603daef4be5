//! Somebody whom another gateway has in a room, and what gateways tell each other about it.
//!
//! # Guarantees
//!
//! - Who hides is not told of at all; whom somebody never wants to be seen by goes with them, so that every gateway keeps
//!   to it.
//! - What is not understood is nothing: a message of another version, or a value that somebody else wrote.

use std::sync::Arc;

use domain::UserId;
use presence::{Privacy, Visibility};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::hub::person::Shown;
use crate::protocol::ClientInfo;

/// The longest name of a connection that is taken from another gateway.
const CLIENT_BYTES_MAX: usize = 64;

/// Somebody in a room, as one gateway tells of them.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    /// Under which name, and what their token says.
    pub(crate) info: ClientInfo,
    /// How many connections they have there.
    pub(crate) clients: u32,
    /// To whom they show themselves.
    pub(crate) shown: Arc<Shown>,
}

/// A guest as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    /// The name of the connection.
    c: String,
    /// Connections.
    n: u32,
    /// What the token says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    i: Option<Box<RawValue>>,
    /// Who never sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    x: Vec<u64>,
}

impl Guest {
    /// As it is written.
    pub(crate) fn to_text(&self) -> String {
        let written = Written {
            c: self.info.client.to_string(),
            n: self.clients,
            i: self.info.info.as_ref().and_then(|info| RawValue::from_string(info.get().to_owned()).ok()),
            x: self.shown.privacy.never.iter().map(|user| user.get()).collect(),
        };
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// What was written of `user`; none if it is nothing of ours. `epoch` is for what they show.
    pub(crate) fn read(user: UserId, text: &str, epoch: u64) -> Option<Guest> {
        let written: Written = serde_json::from_str(text).ok()?;
        if written.c.is_empty() || written.c.len() > CLIENT_BYTES_MAX || written.n == 0 {
            return None;
        }
        let mut never: Vec<UserId> = written.x.into_iter().filter_map(UserId::new).collect();
        never.sort_unstable();
        never.dedup();
        let privacy = Privacy { status: Visibility::Everyone, last_seen: Visibility::Nobody, never };
        let info = ClientInfo { client: written.c.into(), user, info: written.i.map(Arc::from) };
        let shown = Arc::new(Shown { epoch, is_invisible: false, privacy: Arc::new(privacy) });
        Some(Guest { info, clients: written.n, shown })
    }
}

/// What one gateway tells another of a room.
#[derive(Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub(crate) enum Word {
    /// Who came, went or changed there.
    Part {
        /// The gateway.
        n: String,
        /// The version before.
        p: u64,
        /// The version now.
        v: u64,
        /// Those who are there, as [`Guest::to_text`], and those who are not; none if they are too many: read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        u: Option<Vec<(u64, Option<String>)>>,
    },
    /// Somebody types, or has stopped.
    Typing {
        /// Who.
        from: u64,
        /// Whether they type.
        on: bool,
    },
}

impl Word {
    /// As it is written.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What was written; none if it is nothing that we know.
    pub(crate) fn read(text: &str) -> Option<Word> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    #[test]
    fn a_guest_is_read_as_it_was_written() {
        let token = RawValue::from_string(r#"{"name":"Zoë \""}"#.to_owned()).unwrap();
        let info = ClientInfo { client: "c1".into(), user: user(7), info: Some(token.into()) };
        let privacy = Privacy { never: vec![user(3), user(9)], ..Privacy::default() };
        let shown = Arc::new(Shown { epoch: 1, is_invisible: false, privacy: Arc::new(privacy) });
        let text = Guest { info, clients: 2, shown }.to_text();
        let read = Guest::read(user(7), &text, 5).unwrap();
        assert_eq!((read.clients, &*read.info.client, read.shown.epoch), (2, "c1", 5));
        assert_eq!(read.info.info.as_ref().unwrap().get(), r#"{"name":"Zoë \""}"#);
        assert!(read.shown.is_never(user(9)) && !read.shown.is_never(user(8)) && read.shown.in_rooms());
        assert_eq!(read.to_text(), text);
        for wrong in ["", "{}", r#"{"c":"","n":1}"#, r#"{"c":"x","n":0}"#, "17", r#"{"c":"x","n":-1}"#] {
            assert!(Guest::read(user(7), wrong, 1).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_word_that_is_not_known_is_none() {
        let part = Word::Part { n: "gw.1".into(), p: 1, v: 2, u: Some(vec![(7, None)]) }.to_text();
        assert!(matches!(Word::read(&part), Some(Word::Part { p: 1, v: 2, u: Some(_), .. })));
        assert!(matches!(
            Word::read(r#"{"k":"typing","from":7,"on":true}"#),
            Some(Word::Typing { on: true, .. })
        ));
        for wrong in ["", "{}", r#"{"k":"sing","from":7}"#, r#"{"k":"typing","from":"x","on":true}"#] {
            assert!(Word::read(wrong).is_none(), "{wrong}");
        }
    }
}
