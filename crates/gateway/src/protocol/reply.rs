//! Replies and pushes.

use std::sync::Arc;

use domain::UserId;
use serde_json::value::RawValue;
use wire::websocket::{write_pong, write_text};

use super::code::CommandError;

/// A message with its WebSocket header. Shared between connections: clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(Arc<[u8]>);

impl Frame {
    /// A message of this JSON text.
    pub fn text(json: &str) -> Frame {
        let mut bytes = Vec::with_capacity(json.len() + 10);
        write_text(&mut bytes, json);
        Frame(bytes.into())
    }

    /// The answer to a ping of the WebSocket.
    pub(crate) fn pong(payload: &[u8]) -> Frame {
        let mut bytes = Vec::with_capacity(payload.len() + 2);
        write_pong(&mut bytes, payload);
        Frame(bytes.into())
    }

    /// The bytes to be written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The answer to a command: `result` is a JSON object.
    pub fn reply(id: u32, command: &str, result: &str) -> Frame {
        Frame::text(&format!(r#"{{"id":{id},"{command}":{result}}}"#))
    }

    /// The answer to a command that is refused.
    pub fn error(id: u32, error: CommandError) -> Frame {
        let (code, message) = (error.code(), quoted(&error.to_string()));
        let temporary = if error.is_temporary() { r#","temporary":true"# } else { "" };
        Frame::text(&format!(r#"{{"id":{id},"error":{{"code":{code},"message":{message}{temporary}}}}}"#))
    }

    /// `data` is JSON.
    pub fn publication(channel: &str, data: &str) -> Frame {
        let channel = quoted(channel);
        Frame::text(&format!(r#"{{"push":{{"channel":{channel},"pub":{{"data":{data}}}}}}}"#))
    }
}

/// A connection, as others in a room see it.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    pub client: Arc<str>,
    pub user: UserId,
    /// The claim `info` of the token, visible to all members.
    pub info: Option<Arc<RawValue>>,
}

impl ClientInfo {
    pub fn to_json(&self) -> String {
        let (user, client) = (self.user, quoted(&self.client));
        match &self.info {
            None => format!(r#"{{"user":"{user}","client":{client}}}"#),
            Some(info) => format!(r#"{{"user":"{user}","client":{client},"conn_info":{}}}"#, info.get()),
        }
    }

    /// The text of a push: the client joined a room (`"join"`), or left it (`"leave"`).
    pub fn push(&self, channel: &str, what: &str) -> String {
        format!(r#"{{"push":{{"channel":{},"{what}":{{"info":{}}}}}}}"#, quoted(channel), self.to_json())
    }

    /// The result of `presence`.
    pub fn presence(all: &[ClientInfo]) -> String {
        let each: Vec<String> =
            all.iter().map(|one| format!("{}:{}", quoted(&one.client), one.to_json())).collect();
        format!(r#"{{"presence":{{{}}}}}"#, each.join(","))
    }
}

/// How many are in a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceStats {
    pub clients: u32,
    pub users: u32,
}

impl PresenceStats {
    /// As the result of `presence_stats`.
    pub fn to_json(self) -> String {
        format!(r#"{{"num_clients":{},"num_users":{}}}"#, self.clients, self.users)
    }
}

/// The reply to `connect`.
#[derive(Clone, Debug)]
pub struct ConnectReply<'a> {
    pub client: &'a str,
    /// The user's feed, subscribed implicitly.
    pub feed: &'a str,
    /// How long their token is good for; none means for ever.
    pub ttl_s: Option<u32>,
    pub ping_s: u32,
}

impl ConnectReply<'_> {
    /// The answer to the `connect` of this number.
    pub fn to_frame(&self, id: u32) -> Frame {
        let (client, feed) = (quoted(self.client), quoted(self.feed));
        let version = concat!("rollcall ", env!("CARGO_PKG_VERSION"));
        let expires = expiry(self.ttl_s);
        let ping_s = self.ping_s;
        let result = format!(
            r#"{{"client":{client},"version":"{version}"{expires},"subs":{{{feed}:{{}}}},"ping":{ping_s},"pong":true}}"#
        );
        Frame::reply(id, "connect", &result)
    }

    /// The answer to the `refresh` of this number.
    pub(crate) fn refreshed(id: u32, client: &str, ttl_s: Option<u32>) -> Frame {
        let version = concat!("rollcall ", env!("CARGO_PKG_VERSION"));
        let result = format!(r#"{{"client":{},"version":"{version}"{}}}"#, quoted(client), expiry(ttl_s));
        Frame::reply(id, "refresh", &result)
    }
}

/// When to refresh the token.
pub(crate) fn expiry(ttl_s: Option<u32>) -> String {
    ttl_s.map(|ttl_s| format!(r#","expires":true,"ttl":{ttl_s}"#)).unwrap_or_default()
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(frame: &Frame) -> String {
        String::from_utf8(frame.as_bytes()[2..].to_vec()).unwrap()
    }

    #[test]
    fn answers_have_the_fields_that_sdks_read() {
        let reply = ConnectReply { client: "c\"1", feed: "feed:#7", ttl_s: Some(60), ping_s: 25 };
        let frame = reply.to_frame(1);
        // A head of four bytes: the text is longer than 125.
        let text = std::str::from_utf8(&frame.as_bytes()[4..]).unwrap();
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(value["id"], 1);
        let connect = &value["connect"];
        assert_eq!(
            (&connect["client"], &connect["ping"], &connect["pong"]),
            (&"c\"1".into(), &25.into(), &true.into())
        );
        assert_eq!((&connect["expires"], &connect["ttl"]), (&true.into(), &60.into()));
        assert!(connect["subs"]["feed:#7"].is_object());
        let expected = r#"{"id":2,"error":{"code":111,"message":"too many requests","temporary":true}}"#;
        assert_eq!(json(&Frame::error(2, CommandError::TooManyRequests)), expected);
        let client = ClientInfo { client: "c".into(), user: UserId::new(7).unwrap(), info: None };
        let expected = r#"{"push":{"channel":"room:x","join":{"info":{"user":"7","client":"c"}}}}"#;
        assert_eq!(client.push("room:x", "join"), expected);
        assert_eq!(ClientInfo::presence(&[client]), r#"{"presence":{"c":{"user":"7","client":"c"}}}"#);
        let stats = PresenceStats { clients: 2, users: 1 };
        assert_eq!(stats.to_json(), r#"{"num_clients":2,"num_users":1}"#);
    }
}
