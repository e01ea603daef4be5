//! Commands of clients.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug)]
pub enum Request<'a> {
    Connect(ConnectRequest<'a>),
    Refresh {
        token: Cow<'a, str>,
    },
    Subscribe {
        channel: Cow<'a, str>,
        /// The token for it; empty for none.
        token: Cow<'a, str>,
    },
    Unsubscribe {
        channel: Cow<'a, str>,
    },
    /// A newer token for a room.
    SubRefresh {
        channel: Cow<'a, str>,
        token: Cow<'a, str>,
    },
    Presence {
        channel: Cow<'a, str>,
    },
    /// How many are in a room.
    PresenceStats {
        channel: Cow<'a, str>,
    },
    /// Never available.
    History,
    /// Never allowed.
    Publish,
    Rpc {
        method: Cow<'a, str>,
        /// `null` for none.
        data: &'a RawValue,
    },
    /// A message without a reply.
    Send,
    /// Unknown to this server.
    Unknown,
}

impl Request<'_> {
    /// Its name on the wire; also the name of its answer.
    pub fn name(&self) -> &'static str {
        match self {
            Request::Connect(_) => "connect",
            Request::Refresh { .. } => "refresh",
            Request::Subscribe { .. } => "subscribe",
            Request::Unsubscribe { .. } => "unsubscribe",
            Request::SubRefresh { .. } => "sub_refresh",
            Request::Presence { .. } => "presence",
            Request::PresenceStats { .. } => "presence_stats",
            Request::History => "history",
            Request::Publish => "publish",
            Request::Rpc { .. } => "rpc",
            Request::Send => "send",
            Request::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConnectRequest<'a> {
    /// The token; empty for none.
    #[serde(borrow)]
    pub token: Cow<'a, str>,
    /// The device's description of itself.
    #[serde(borrow)]
    pub data: Option<&'a RawValue>,
}

/// A command with its number, which its answer carries.
#[derive(Debug)]
pub struct Command<'a> {
    /// Zero if no reply is expected.
    pub id: u32,
    pub request: Request<'a>,
}

#[derive(Debug)]
pub enum Message<'a> {
    /// The answer to a ping.
    Pong,
    Command(Command<'a>),
}

/// Input that is not the protocol. It is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a command of the protocol")]
pub struct Malformed;

/// A command as it is written: a number, and one of these.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written<'a> {
    id: u32,
    #[serde(borrow)]
    connect: Option<ConnectRequest<'a>>,
    #[serde(borrow)]
    refresh: Option<Credentials<'a>>,
    #[serde(borrow)]
    subscribe: Option<Credentials<'a>>,
    #[serde(borrow)]
    unsubscribe: Option<Credentials<'a>>,
    #[serde(borrow)]
    sub_refresh: Option<Credentials<'a>>,
    #[serde(borrow)]
    presence: Option<Credentials<'a>>,
    #[serde(borrow)]
    presence_stats: Option<Credentials<'a>>,
    history: Option<Ignored>,
    publish: Option<Ignored>,
    #[serde(borrow)]
    rpc: Option<Rpc<'a>>,
    send: Option<Ignored>,
}

/// A room's channel, a token, or both.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Credentials<'a> {
    #[serde(borrow)]
    channel: Cow<'a, str>,
    #[serde(borrow)]
    token: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rpc<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// An object of which nothing matters.
#[derive(Deserialize)]
struct Ignored {}

/// Whether a whole frame is the answer to a ping, and nothing more.
pub fn is_pong(text: &str) -> bool {
    text.trim_ascii() == "{}"
}

/// Lines that are not empty.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').filter(|line| !line.trim_ascii().is_empty())
}

/// The message in a line. Unknown fields are ignored: newer SDKs send more of them.
pub(crate) fn read_message(line: &str) -> Result<Message<'_>, Malformed> {
    // An array would be read as the fields in their order; a command is an object.
    if !line.trim_ascii_start().starts_with('{') {
        return Err(Malformed);
    }
    let written: Written<'_> = serde_json::from_str(line).map_err(|_| Malformed)?;
    let id = written.id;
    let request = one_of(written)?;
    match (id, request) {
        (0, None) => Ok(Message::Pong),
        (0, Some(Request::Send)) => Ok(Message::Command(Command { id, request: Request::Send })),
        // Its reply could not be distinguished from a push.
        (0, Some(_)) => Err(Malformed),
        (id, request) => Ok(Message::Command(Command { id, request: request.unwrap_or(Request::Unknown) })),
    }
}

/// The one request that a command is to have.
fn one_of(written: Written<'_>) -> Result<Option<Request<'_>>, Malformed> {
    let Written { connect, refresh, subscribe, unsubscribe, sub_refresh, .. } = written;
    let Written { presence, presence_stats, history, publish, rpc, send, .. } = written;
    let mut requests = [
        connect.map(Request::Connect),
        refresh.map(|given| Request::Refresh { token: given.token }),
        subscribe.map(|given| Request::Subscribe { channel: given.channel, token: given.token }),
        unsubscribe.map(|given| Request::Unsubscribe { channel: given.channel }),
        sub_refresh.map(|given| Request::SubRefresh { channel: given.channel, token: given.token }),
        presence.map(|given| Request::Presence { channel: given.channel }),
        presence_stats.map(|given| Request::PresenceStats { channel: given.channel }),
        history.map(|_| Request::History),
        publish.map(|_| Request::Publish),
        rpc.map(|given| Request::Rpc { method: given.method, data: given.data.unwrap_or(RawValue::NULL) }),
        send.map(|_| Request::Send),
    ]
    .into_iter()
    .flatten();
    let request = requests.next();
    if requests.next().is_some() { Err(Malformed) } else { Ok(request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
        lines(text).map(read_message)
    }

    fn only(text: &str) -> Result<Message<'_>, Malformed> {
        let mut all = messages(text);
        let first = all.next().unwrap();
        assert!(all.next().is_none());
        first
    }

    #[test]
    fn the_frames_of_published_sdks_are_understood() {
        let text = "{\"connect\":{\"token\":\"t\",\"data\":{\"device\":\"d\"},\"name\":\"js\"},\"id\":1}\n\
                    {\"subscribe\":{\"channel\":\"room:x\",\"recover\":true,\"flag\":1},\"id\":2}\n{}\n";
        let all: Vec<_> = messages(text).map(Result::unwrap).collect();
        let [Message::Command(connect), Message::Command(subscribe), Message::Pong] = &all[..] else {
            panic!("{all:?}");
        };
        let Request::Connect(request) = &connect.request else { panic!() };
        assert_eq!(
            (connect.id, &*request.token, request.data.unwrap().get()),
            (1, "t", "{\"device\":\"d\"}")
        );
        assert!(matches!(&subscribe.request, Request::Subscribe { channel, .. } if channel == "room:x"));
    }

    #[test]
    fn data_is_handed_on_as_it_was_written() {
        let Ok(Message::Command(command)) =
            only(r#"{"id":7,"rpc":{"method":"status\u002eset","data":{"status": "busy"}}}"#)
        else {
            panic!();
        };
        let Request::Rpc { method, data } = command.request else { panic!() };
        assert_eq!((&*method, data.get()), ("status.set", r#"{"status": "busy"}"#));
        let Ok(Message::Command(bare)) = only(r#"{"id":8,"rpc":{"method":"status.clear","data":null}}"#)
        else {
            panic!();
        };
        assert!(matches!(bare.request, Request::Rpc { data, .. } if data.get() == "null"));
    }

    #[test]
    fn what_is_not_the_protocol_is_malformed_and_what_is_unknown_is_a_command() {
        let wrong = [
            "x",
            "[]",
            "1",
            "null",
            "\"{}\"",
            "{\"id\":-1}",
            "{\"id\":4294967296,\"rpc\":{}}",
            "{\"rpc\":{}}",
            "{\"id\":1,\"rpc\":{},\"send\":{}}",
            "{\"id\":1,\"rpc\":{},\"rpc\":{}}",
            "{\"id\":1,\"connect\":{\"token\":5}}",
            "{} {}",
        ];
        for text in wrong {
            assert_eq!(only(text).unwrap_err(), Malformed, "{text}");
        }
        assert!(matches!(
            only("{\"id\":3,\"dance\":{}}"),
            Ok(Message::Command(Command { id: 3, request: Request::Unknown }))
        ));
        assert!(matches!(
            only("{\"send\":{\"data\":1}}"),
            Ok(Message::Command(Command { id: 0, request: Request::Send }))
        ));
        assert!(is_pong(" {}\n") && !is_pong("{}\n{}") && !is_pong(""));
    }
}
