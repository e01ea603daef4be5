//! Members of a room at another gateway, and the messages between gateways about rooms.
//!
//! # Guarantees
//!
//! - Invisible users are not sent at all; the `never` list of a user is sent with them, so that every gateway applies
//!   it.
//! - Unknown input counts as absent: a message of another version, or a foreign value.

use std::sync::Arc;

use domain::UserId;
use presence::{Audience, Privacy};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::hub::user::VisibilityState;
use crate::protocol::ClientInfo;

/// The longest name of a connection that is taken from another gateway.
const CLIENT_BYTES_MAX: usize = 64;

/// Connections of one user in a room that are accepted from another gateway.
const CLIENTS_MAX: usize = presence::Policy::SESSIONS_MAX as usize;

#[derive(Clone, Debug)]
pub(crate) struct RemoteMember {
    /// At least one.
    pub(crate) clients: Vec<ClientInfo>,
    pub(crate) visibility: Arc<VisibilityState>,
}

/// The JSON of an entry in Redis.
#[derive(Serialize, Deserialize)]
struct RemoteMemberJson {
    /// The name of the first connection.
    c: String,
    /// Number of connections, for older gateways.
    n: u32,
    /// The claim `info` of the first connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    i: Option<Box<RawValue>>,
    /// The other connections, each with its claim `info`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    m: Vec<(String, Option<Box<RawValue>>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    x: Vec<u64>,
}

impl RemoteMember {
    pub(crate) fn to_text(&self) -> String {
        let mut clients = self.clients.iter().map(|info| {
            let token = info.info.as_ref().and_then(|info| RawValue::from_string(info.get().to_owned()).ok());
            (info.client.to_string(), token)
        });
        let Some((c, i)) = clients.next() else { return String::new() };
        let written = RemoteMemberJson {
            c,
            n: u32::try_from(self.clients.len()).unwrap_or(u32::MAX),
            i,
            m: clients.collect(),
            x: self.visibility.privacy.never.iter().map(|user| user.get()).collect(),
        };
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// None if malformed. `epoch` is that of the visibility state.
    pub(crate) fn read(user: UserId, text: &str, epoch: u64) -> Option<RemoteMember> {
        let RemoteMemberJson { c, n, i, m, x } = serde_json::from_str(text).ok()?;
        let is_ours = |client: &str| !client.is_empty() && client.len() <= CLIENT_BYTES_MAX;
        let are_ours = m.iter().all(|(client, _)| is_ours(client)) && m.len() < CLIENTS_MAX;
        if n == 0 || !is_ours(&c) || !are_ours {
            return None;
        }
        let mut never: Vec<UserId> = x.into_iter().filter_map(UserId::new).collect();
        never.sort_unstable();
        never.dedup();
        let privacy = Privacy { status: Audience::Everyone, last_seen: Audience::Nobody, never };
        let info = |(client, token): (String, Option<Box<RawValue>>)| ClientInfo {
            client: client.into(),
            user,
            info: token.map(Arc::from),
        };
        let clients = std::iter::once((c, i)).chain(m).map(info).collect();
        let visibility = Arc::new(VisibilityState { epoch, is_invisible: false, privacy: Arc::new(privacy) });
        Some(RemoteMember { clients, visibility })
    }
}

/// A message about a room.
#[derive(Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub(crate) enum RoomMessage {
    /// Members changed at a gateway.
    #[serde(rename = "part")]
    Members {
        n: String,
        p: u64,
        v: u64,
        /// Present members as [`RemoteMember::to_text`], and absent ones; none if there are too many: read the entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        u: Option<Vec<(u64, Option<String>)>>,
    },
    Typing {
        from: u64,
        on: bool,
    },
}

impl RoomMessage {
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// None if unknown.
    pub(crate) fn read(text: &str) -> Option<RoomMessage> {
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
    fn a_remote_member_is_read_as_it_was_written() {
        let token = RawValue::from_string(r#"{"name":"Zoë \""}"#.to_owned()).unwrap();
        let first = ClientInfo { client: "c1".into(), user: user(7), info: Some(token.into()) };
        let second = ClientInfo { client: "c2".into(), user: user(7), info: None };
        let privacy = Privacy { never: vec![user(3), user(9)], ..Privacy::default() };
        let visibility =
            Arc::new(VisibilityState { epoch: 1, is_invisible: false, privacy: Arc::new(privacy) });
        let text = RemoteMember { clients: vec![first, second], visibility }.to_text();
        let read = RemoteMember::read(user(7), &text, 5).unwrap();
        let clients: Vec<&str> = read.clients.iter().map(|info| &*info.client).collect();
        assert_eq!((clients, read.visibility.epoch), (vec!["c1", "c2"], 5));
        assert_eq!(read.clients[0].info.as_ref().unwrap().get(), r#"{"name":"Zoë \""}"#);
        assert!(
            read.visibility.is_blocked_for(user(9))
                && !read.visibility.is_blocked_for(user(8))
                && read.visibility.is_visible_in_rooms()
        );
        assert_eq!(read.to_text(), text);
        // An older gateway lists only the first connection.
        assert_eq!(RemoteMember::read(user(7), r#"{"c":"x","n":2}"#, 1).unwrap().clients.len(), 1);
        for wrong in ["", "{}", r#"{"c":"","n":1}"#, r#"{"c":"x","n":0}"#, "17", r#"{"c":"x","n":-1}"#] {
            assert!(RemoteMember::read(user(7), wrong, 1).is_none(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_room_message_is_none() {
        let part = RoomMessage::Members { n: "gw.1".into(), p: 1, v: 2, u: Some(vec![(7, None)]) }.to_text();
        assert!(matches!(
            RoomMessage::read(&part),
            Some(RoomMessage::Members { p: 1, v: 2, u: Some(_), .. })
        ));
        assert!(matches!(
            RoomMessage::read(r#"{"k":"typing","from":7,"on":true}"#),
            Some(RoomMessage::Typing { on: true, .. })
        ));
        for wrong in ["", "{}", r#"{"k":"sing","from":7}"#, r#"{"k":"typing","from":"x","on":true}"#] {
            assert!(RoomMessage::read(wrong).is_none(), "{wrong}");
        }
    }
}
