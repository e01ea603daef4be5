//! What nodes tell each other beside records: things that happen and are not kept.
//!
//! The text form begins with its version and its kind. What a node does not know it counts and ignores, so that nodes of
//! different versions can run side by side.

use domain::UserId;
use presence::DeviceId;

/// One message from node to node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Somebody types to somebody, or has stopped.
    Typing {
        /// Who.
        from: UserId,
        /// To whom.
        to: UserId,
        /// Whether they type.
        on: bool,
    },
    /// A device is signed out: its connections are to be closed.
    SignOut {
        /// Whose.
        user: UserId,
        /// Which.
        device: DeviceId,
    },
    /// A device that lives by heartbeats over HTTP said goodbye.
    Goodbye {
        /// Whose.
        user: UserId,
        /// Which.
        device: DeviceId,
    },
    /// Somebody's connections are to be closed.
    Disconnect {
        /// Whose.
        user: UserId,
        /// Those of one device; all of them if there is none.
        device: Option<DeviceId>,
        /// Whether their clients may come back by themselves.
        reconnect: bool,
    },
    /// Something for those in a room here.
    Room {
        /// Which room.
        room: Box<str>,
        /// What, in the form that the gateways agree on.
        body: Box<str>,
    },
}

/// The version of the text form.
const VERSION: &str = "1";

impl Message {
    /// Its text.
    pub fn to_text(&self) -> String {
        match self {
            Message::Typing { from, to, on } => format!("{VERSION} typing {from} {to} {}", u8::from(*on)),
            Message::SignOut { user, device } => format!("{VERSION} sign_out {user} {device}"),
            Message::Goodbye { user, device } => format!("{VERSION} goodbye {user} {device}"),
            Message::Disconnect { user, device, reconnect } => {
                let device = device.as_ref().map(DeviceId::as_str).unwrap_or_default();
                format!("{VERSION} disconnect {user} {} {device}", u8::from(*reconnect))
            }
            Message::Room { room, body } => format!("{VERSION} room {} {room}{body}", room.len()),
        }
    }

    /// The message of a text; none if it is not known or malformed.
    pub fn from_text(text: &str) -> Option<Message> {
        let (kind, rest) = text.strip_prefix(VERSION)?.strip_prefix(' ')?.split_once(' ')?;
        let (first, rest) = rest.split_once(' ')?;
        match kind {
            "typing" => {
                let (to, on) = rest.split_once(' ')?;
                Some(Message::Typing { from: first.parse().ok()?, to: to.parse().ok()?, on: flag(on)? })
            }
            "disconnect" => {
                let (reconnect, device) = rest.split_once(' ')?;
                let device = match device {
                    "" => None,
                    name => Some(DeviceId::new(name)?),
                };
                Some(Message::Disconnect { user: first.parse().ok()?, device, reconnect: flag(reconnect)? })
            }
            "sign_out" => Some(Message::SignOut { user: first.parse().ok()?, device: DeviceId::new(rest)? }),
            "goodbye" => Some(Message::Goodbye { user: first.parse().ok()?, device: DeviceId::new(rest)? }),
            "room" => {
                let (room, body) = rest.split_at_checked(first.parse().ok()?)?;
                Some(Message::Room { room: room.into(), body: body.into() })
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
            Message::Typing { from: user, to: other, on: true },
            Message::Typing { from: other, to: user, on: false },
            Message::SignOut { user, device: device.clone() },
            Message::Goodbye { user, device: device.clone() },
            Message::Disconnect { user, device: Some(device), reconnect: false },
            Message::Disconnect { user, device: None, reconnect: true },
            Message::Room { room: "lobby ☕ 7".into(), body: " {\"a\":\n1}".into() },
            Message::Room { room: "".into(), body: "".into() },
        ] {
            assert_eq!(Message::from_text(&message.to_text()), Some(message));
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
            assert_eq!(Message::from_text(text), None, "{text}");
        }
    }
}
