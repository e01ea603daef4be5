//! Messages between nodes that are not records: events that are not stored.
//!
//! The text form begins with a version and a kind. A node counts and ignores unknown kinds, so nodes of different
//! versions can run side by side.

use domain::UserId;
use presence::DeviceId;

/// One message from node to node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayMessage {
    /// One user types to another, or has stopped.
    Typing { from: UserId, to: UserId, on: bool },
    /// A device is signed out: its connections are to be closed.
    SignOut { user: UserId, device: DeviceId },
    /// A device that sends heartbeats over HTTP signed off.
    Goodbye { user: UserId, device: DeviceId },
    /// Close a user's connections.
    Disconnect {
        user: UserId,
        /// Only this device; all devices if none.
        device: Option<DeviceId>,
        /// Whether their clients may reconnect.
        reconnect: bool,
    },
    /// For the members of a room.
    Room {
        room: Box<str>,
        /// [`crate::rooms::remote_member::RoomMessage`] as text.
        body: Box<str>,
    },
}

/// The version of the text form.
const VERSION: &str = "1";

impl GatewayMessage {
    pub fn to_text(&self) -> String {
        match self {
            GatewayMessage::Typing { from, to, on } => {
                format!("{VERSION} typing {from} {to} {}", u8::from(*on))
            }
            GatewayMessage::SignOut { user, device } => format!("{VERSION} sign_out {user} {device}"),
            GatewayMessage::Goodbye { user, device } => format!("{VERSION} goodbye {user} {device}"),
            GatewayMessage::Disconnect { user, device, reconnect } => {
                let device = device.as_ref().map(DeviceId::as_str).unwrap_or_default();
                format!("{VERSION} disconnect {user} {} {device}", u8::from(*reconnect))
            }
            GatewayMessage::Room { room, body } => format!("{VERSION} room {} {room}{body}", room.len()),
        }
    }

    /// The message of a text; none if it is not known or malformed.
    pub fn from_text(text: &str) -> Option<GatewayMessage> {
        let (kind, rest) = text.strip_prefix(VERSION)?.strip_prefix(' ')?.split_once(' ')?;
        let (first, rest) = rest.split_once(' ')?;
        match kind {
            "typing" => {
                let (to, on) = rest.split_once(' ')?;
                Some(GatewayMessage::Typing {
                    from: first.parse().ok()?,
                    to: to.parse().ok()?,
                    on: flag(on)?,
                })
            }
            "disconnect" => {
                let (reconnect, device) = rest.split_once(' ')?;
                let device = match device {
                    "" => None,
                    name => Some(DeviceId::new(name)?),
                };
                Some(GatewayMessage::Disconnect {
                    user: first.parse().ok()?,
                    device,
                    reconnect: flag(reconnect)?,
                })
            }
            "sign_out" => {
                Some(GatewayMessage::SignOut { user: first.parse().ok()?, device: DeviceId::new(rest)? })
            }
            "goodbye" => {
                Some(GatewayMessage::Goodbye { user: first.parse().ok()?, device: DeviceId::new(rest)? })
            }
            "room" => {
                let (room, body) = rest.split_at_checked(first.parse().ok()?)?;
                Some(GatewayMessage::Room { room: room.into(), body: body.into() })
            }
            _ => None,
        }
    }
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let (user, other) = (UserId::new(7).unwrap(), UserId::new(u64::MAX >> 1).unwrap());
        let device = DeviceId::new("a:b~\"{}").unwrap();
        for message in [
            GatewayMessage::Typing { from: user, to: other, on: true },
            GatewayMessage::Typing { from: other, to: user, on: false },
            GatewayMessage::SignOut { user, device: device.clone() },
            GatewayMessage::Goodbye { user, device: device.clone() },
            GatewayMessage::Disconnect { user, device: Some(device), reconnect: false },
            GatewayMessage::Disconnect { user, device: None, reconnect: true },
            GatewayMessage::Room { room: "lobby ☕ 7".into(), body: " {\"a\":\n1}".into() },
            GatewayMessage::Room { room: "".into(), body: "".into() },
        ] {
            assert_eq!(GatewayMessage::from_text(&message.to_text()), Some(message));
        }
        for text in [
            "",
            "1",
            "2 typing 1 2 1",
            "1 what 1 2",
            "1 typing 0 2 1",
            "1 typing 1 2 3",
            "1 disconnect 7 2 x",
            "1 disconnect 7 1",
            "1 room 9 ab",
            "1 room 1 é",
        ] {
            assert_eq!(GatewayMessage::from_text(text), None, "{text}");
        }
    }
}
