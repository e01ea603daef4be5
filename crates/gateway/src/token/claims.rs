//! Claims of a token.

use std::sync::Arc;

use domain::{UnixTime, UserId};
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;

use super::Rejected;

/// `info` is kept in memory for as long as the connection lasts.
const INFO_BYTES_MAX: usize = 1024;

/// The claims used here.
#[derive(Deserialize)]
pub(super) struct Claims {
    sub: Option<String>,
    exp: Option<Number>,
    nbf: Option<Number>,
    pub(super) channel: Option<String>,
    info: Option<Box<RawValue>>,
}

impl Claims {
    /// The claim `sub`: an id in canonical form.
    pub(super) fn user(&self) -> Result<UserId, Rejected> {
        let text = self.sub.as_deref().ok_or(Rejected::Invalid)?;
        let user: UserId = text.parse().map_err(|_| Rejected::Invalid)?;
        if user.to_string() == text { Ok(user) } else { Err(Rejected::Invalid) }
    }

    pub(super) fn expires_at(&self) -> Result<Option<UnixTime>, Rejected> {
        self.exp.as_ref().map(moment).transpose()
    }

    pub(super) fn not_before(&self) -> Result<Option<UnixTime>, Rejected> {
        self.nbf.as_ref().map(moment).transpose()
    }

    /// The claim `info`, without line breaks: on the wire a line is a message.
    pub(super) fn info(self) -> Result<Option<Arc<RawValue>>, Rejected> {
        let Some(info) = self.info else { return Ok(None) };
        let info = compact(info.get());
        if info.len() > INFO_BYTES_MAX {
            return Err(Rejected::Invalid);
        }
        RawValue::from_string(info).map(|info| Some(Arc::from(info))).map_err(|_| Rejected::Invalid)
    }
}

/// Removes whitespace between tokens; numbers and the order of fields stay unchanged.
fn compact(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |letter: &char| {
        if is_text {
            (is_text, is_escaped) = (is_escaped || *letter != '"', !is_escaped && *letter == '\\');
            return true;
        }
        is_text = *letter == '"';
        !letter.is_ascii_whitespace()
    };
    json.chars().filter(is_kept).collect()
}

/// A moment as tokens have it: seconds since 1970, from some programs with a fraction.
fn moment(number: &Number) -> Result<UnixTime, Rejected> {
    if let Some(seconds) = number.as_u64() {
        return Ok(UnixTime(u32::try_from(seconds).unwrap_or(u32::MAX)));
    }
    match number.as_f64() {
        Some(seconds) if seconds >= 0.0 => Ok(UnixTime(seconds as u32)),
        _ => Err(Rejected::Invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_room_is_shown_is_one_line_and_otherwise_as_it_was_written() {
        let token = r#"{"info":{
            "name" : "a \"b\" \\",
            "big": 12345678901234567890123 ,
            "list": [ 1,  2 ], "last\\": " \n "
        }}"#;
        let claims: Claims = serde_json::from_str(token).unwrap();
        let expected = r#"{"name":"a \"b\" \\","big":12345678901234567890123,"list":[1,2],"last\\":" \n "}"#;
        assert_eq!(claims.info().unwrap().unwrap().get(), expected);
        let wide = format!(r#"{{"info":{{{}"a":1}}}}"#, "\n".repeat(INFO_BYTES_MAX));
        assert!(serde_json::from_str::<Claims>(&wide).unwrap().info().unwrap().is_some());
        let long = format!(r#"{{"info":"{}"}}"#, "x".repeat(INFO_BYTES_MAX));
        assert!(serde_json::from_str::<Claims>(&long).unwrap().info().is_err());
    }
}
