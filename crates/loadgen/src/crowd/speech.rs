//! What a client says: the upgrade, the connect command with its token, and how the server's lines are told apart.

use domain::clock::{Clock, SystemClock};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::{Deserialize, Serialize};

use crate::error::LoadError;

/// Where the gateway takes connections.
pub const PATH: &str = "/connection/websocket";
/// Longer than any run.
const TOKEN_LIFETIME_S: u32 = 6 * 60 * 60;
/// The head of a refusal is not longer.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The language of a server.
#[derive(Clone)]
pub enum Speech {
    /// Centrifuge protocol, version 2: a token first, then pings that want an answer.
    Centrifuge(TokenKey),
    /// Nothing but messages.
    Plain,
}

/// What tokens are signed with (HS256).
#[derive(Clone)]
pub struct TokenKey(EncodingKey);

#[derive(Serialize)]
struct Claims {
    sub: String,
    exp: u32,
}

impl TokenKey {
    /// The secret of `gateway.token_hmac_secret`.
    pub fn new(secret: &str) -> TokenKey {
        TokenKey(EncodingKey::from_secret(secret.as_bytes()))
    }

    /// A token of this user.
    pub fn token(&self, user: u64) -> Result<String, LoadError> {
        let claims = Claims { sub: user.to_string(), exp: SystemClock.now().0 + TOKEN_LIFETIME_S };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.0)
            .map_err(|error| LoadError::Unreadable { what: "a token".to_owned(), why: error.to_string() })
    }

    /// The first command: who this is, and on which device.
    pub fn connect_command(&self, user: u64, device: u32) -> Result<String, LoadError> {
        let token = self.token(user)?;
        Ok(format!(
            r#"{{"id":1,"connect":{{"token":"{token}","data":{{"device":"d{device}","platform":"web"}}}}}}"#
        ))
    }
}

/// Asks a server to speak WebSocket. The key may be any, for who does not check the answer to it.
pub fn upgrade_request(host: &str) -> String {
    format!(
        "GET {PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// What a server answered to the upgrade.
#[derive(Debug, PartialEq, Eq)]
pub enum Upgraded {
    /// Not all of the answer is here.
    NotYet,
    /// WebSocket from this byte on.
    From(usize),
    /// Refused, with this HTTP status.
    Refused(u16),
}

impl Upgraded {
    /// Reads the answer.
    pub fn read(bytes: &[u8]) -> Result<Upgraded, LoadError> {
        let Some(head_bytes) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
            return if bytes.len() < HEAD_BYTES_MAX {
                Ok(Upgraded::NotYet)
            } else {
                Err(LoadError::NotAReply(format!("a head of more than {HEAD_BYTES_MAX} bytes")))
            };
        };
        let status = bytes.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        match status {
            Some(101) => Ok(Upgraded::From(head_bytes + 4)),
            Some(status) => Ok(Upgraded::Refused(status)),
            None => Err(LoadError::NotAReply(String::from_utf8_lossy(&bytes[..head_bytes]).into_owned())),
        }
    }
}

/// What one line of the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Wants a pong.
    Ping,
    /// The answer to a command; whether it is a refusal.
    Reply {
        /// The number of the command.
        id: u32,
        /// Whether it was refused.
        is_error: bool,
    },
    /// What was not asked for.
    Push,
}

#[derive(Deserialize)]
struct ReplyHead {
    #[serde(default)]
    id: u32,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

impl Line {
    /// Tells the lines of the Centrifuge protocol apart, looking no closer than needed.
    pub fn of(line: &[u8]) -> Result<Line, LoadError> {
        if line == b"{}" {
            return Ok(Line::Ping);
        }
        // The common case first, for which nothing has to be parsed.
        if line.starts_with(br#"{"push":"#) {
            return Ok(Line::Push);
        }
        let head: ReplyHead = serde_json::from_slice(line)
            .map_err(|error| LoadError::NotAReply(format!("{}: {error}", String::from_utf8_lossy(line))))?;
        Ok(match head.id {
            0 => Line::Push,
            id => Line::Reply { id, is_error: head.error.is_some() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(Line::of(b"{}").unwrap(), Line::Ping);
        assert_eq!(Line::of(br#"{"push":{"channel":"feed:#7","pub":{}}}"#).unwrap(), Line::Push);
        assert_eq!(Line::of(br#"{"id":3,"rpc":{}}"#).unwrap(), Line::Reply { id: 3, is_error: false });
        let refused = br#"{"error":{"code":107,"message":"x"},"id":4}"#;
        assert_eq!(Line::of(refused).unwrap(), Line::Reply { id: 4, is_error: true });
        assert!(Line::of(b"{").is_err());
    }

    #[test]
    fn an_upgrade_is_read_once_it_is_all_there() {
        let yes = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n\x81";
        assert_eq!(Upgraded::read(yes).unwrap(), Upgraded::From(yes.len() - 1));
        assert_eq!(Upgraded::read(&yes[..40]).unwrap(), Upgraded::NotYet);
        let no = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(Upgraded::read(no).unwrap(), Upgraded::Refused(503));
        assert!(Upgraded::read(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
    }

    #[test]
    fn a_token_names_its_user() {
        let key = TokenKey::new("0123456789abcdef0123456789abcdef");
        let command = key.connect_command(7, 2).unwrap();
        let json: serde_json::Value = serde_json::from_str(&command).unwrap();
        assert_eq!(json["connect"]["data"]["device"], "d2");
        let token = json["connect"]["token"].as_str().unwrap();
        assert_eq!(token.split('.').count(), 3);
    }
}
