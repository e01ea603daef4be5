//! The client protocol: upgrade, connect command with token, and kinds of lines.

use std::sync::Arc;

use domain::UserId;
use domain::clock::{Clock, SystemClock};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::connection::Identity;
use crate::error::SimulationError;
use crate::plan::TokenIssuer;

const PATH: &str = "/connection/websocket";
const TOKEN_LIFETIME_S: u32 = 6 * 60 * 60;
/// Longest head of a refusal.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The protocol of a server.
#[derive(Clone)]
pub enum Protocol {
    /// Centrifuge protocol, version 2.
    Centrifuge(TokenIssuer),
    /// Messages only.
    Plain,
}

#[derive(Serialize)]
struct Claims {
    sub: String,
    exp: u32,
}

/// Issues tokens signed with the secret of `gateway.token_hmac_secret`.
pub fn tokens_signed_with(secret: &str) -> TokenIssuer {
    let key = EncodingKey::from_secret(secret.as_bytes());
    Arc::new(move |user: UserId| {
        let claims = Claims { sub: user.to_string(), exp: SystemClock.now().0 + TOKEN_LIFETIME_S };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).ok()
    })
}

/// The connect command, with user and device.
pub(super) fn connect_command(tokens: &TokenIssuer, identity: &Identity) -> Result<String, SimulationError> {
    let user = identity.user;
    let token = UserId::new(user).and_then(|user| tokens(user)).ok_or(SimulationError::NoToken(user))?;
    let data = json!({ "device": identity.device, "platform": identity.platform });
    Ok(json!({ "id": 1, "connect": { "token": token, "data": data } }).to_string())
}

/// A WebSocket upgrade. The key is constant, since the reply to it is not checked.
pub fn upgrade_request(host: &str) -> String {
    format!(
        "GET {PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// The reply to the upgrade.
#[derive(Debug, PartialEq, Eq)]
pub enum Upgraded {
    /// Incomplete.
    NotYet,
    /// WebSocket data from this byte on.
    From(usize),
    /// Refused, with this HTTP status.
    Refused(u16),
}

impl Upgraded {
    pub fn read(bytes: &[u8]) -> Result<Upgraded, SimulationError> {
        let Some(head_bytes) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
            return if bytes.len() < HEAD_BYTES_MAX {
                Ok(Upgraded::NotYet)
            } else {
                Err(SimulationError::NotAReply(format!("a head of more than {HEAD_BYTES_MAX} bytes")))
            };
        };
        let status = bytes.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        match status {
            Some(101) => Ok(Upgraded::From(head_bytes + 4)),
            Some(status) => Ok(Upgraded::Refused(status)),
            None => Err(SimulationError::not_a_reply(&bytes[..head_bytes])),
        }
    }
}

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// To be answered with a pong.
    Ping,
    Reply {
        /// The number of the command.
        id: u32,
        is_error: bool,
    },
    /// A push.
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
    /// Distinguishes lines of the Centrifuge protocol with as little parsing as possible.
    pub fn of(line: &[u8]) -> Result<Line, SimulationError> {
        if line == b"{}" {
            return Ok(Line::Ping);
        }
        // The common case first, without parsing.
        if line.starts_with(br#"{"push":"#) {
            return Ok(Line::Push);
        }
        let head: ReplyHead = serde_json::from_slice(line).map_err(|error| {
            SimulationError::NotAReply(format!("{}: {error}", String::from_utf8_lossy(line)))
        })?;
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
    fn a_connect_command_names_user_and_device() {
        let tokens = tokens_signed_with("0123456789abcdef0123456789abcdef");
        let identity = Identity { user: 7, device: "d2".into(), platform: "web" };
        let json: serde_json::Value =
            serde_json::from_str(&connect_command(&tokens, &identity).unwrap()).unwrap();
        assert_eq!(json["connect"]["data"]["device"], "d2");
        assert_eq!(json["connect"]["token"].as_str().unwrap().split('.').count(), 3);
        assert!(connect_command(&tokens, &Identity { user: 0, ..identity }).is_err());
    }
}
