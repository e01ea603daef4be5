//! Where commands are answered: one message of a client at a time, its commands in their order.

use std::sync::Arc;

use domain::UnixTime;
use serde_json::value::RawValue;

use super::allowance::{Allowance, Verdict};
use super::{Shared, hello};
use crate::counters::CommandRefusal;
use crate::hub::{CommandError, ConnRef, Identity, Refusal};
use crate::operators;
use crate::outbox::Outbox;
use crate::protocol::{
    CloseCode, Command, CommandKind, ConnectReply, ErrorReply, Frame, Message, Request, lines, read_message,
};
use crate::settings::RoomAccess;
use crate::token::Rejected;

/// What is known of a connection.
#[derive(Debug)]
pub(super) struct Member {
    seat: Seat,
    pub(super) expires_at: Option<UnixTime>,
    client: Box<str>,
}

/// Who somebody is.
#[derive(Debug)]
enum Seat {
    Person(ConnRef),
    Operator(operators::Seat),
}

impl Member {
    /// The person's connection; none if it is an operator's.
    pub(super) fn person(&self) -> Option<ConnRef> {
        match &self.seat {
            Seat::Person(conn) => Some(*conn),
            Seat::Operator(_) => None,
        }
    }
}

/// What a message is answered with and by, taken from the session for as long as that takes.
pub(super) struct Desk {
    pub(super) shared: Arc<Shared>,
    pub(super) outbox: Arc<Outbox>,
    /// Who it is, once they have said so.
    pub(super) member: Option<Box<Member>>,
    pub(super) allowance: Arc<Allowance>,
}

/// How a command ended.
enum Done {
    /// With this result.
    Result(Box<RawValue>),
    /// With a frame of its own, which is in the outbox.
    Answered,
    /// Refused.
    Error(ErrorReply),
    /// With the end of the connection.
    Close(CloseCode),
}

impl From<CommandError> for Done {
    fn from(error: CommandError) -> Self {
        let plain = |message| ErrorReply {
            code: error.code(),
            message,
            detail: "",
            is_temporary: error.is_temporary(),
        };
        Done::Error(match error {
            CommandError::Internal => plain("internal server error"),
            CommandError::PermissionDenied => plain("permission denied"),
            CommandError::MethodNotFound => plain("method not found"),
            CommandError::LimitExceeded => plain("limit exceeded"),
            CommandError::BadRequest(detail) => plain("bad request").with(detail),
            CommandError::NotAvailable => plain("not available"),
            CommandError::TooManyRequests => plain("too many requests"),
        })
    }
}

impl From<Result<Box<RawValue>, CommandError>> for Done {
    fn from(result: Result<Box<RawValue>, CommandError>) -> Self {
        result.map_or_else(Done::from, Done::Result)
    }
}

impl From<Result<(), CommandError>> for Done {
    fn from(result: Result<(), CommandError>) -> Self {
        result.map_or_else(Done::from, |()| Done::Result(nothing()))
    }
}

impl Desk {
    /// Answers everything in a message. Gives the desk back, and why the connection must end, if it must.
    pub(super) async fn serve(mut self, text: String) -> (Desk, Option<CloseCode>) {
        for line in lines(&text) {
            let ended = match read_message(line) {
                Ok(Message::Pong) => self.allow_pong(),
                Ok(Message::Command(command)) => self.answer(command).await,
                Err(_) => Some(CloseCode::BadRequest),
            };
            if ended.is_some() {
                return (self, ended);
            }
        }
        (self, None)
    }

    fn take_one(&self) -> Verdict {
        self.allowance.take(self.shared.started.elapsed(), self.shared.settings.commands_per_s)
    }

    fn allow_pong(&self) -> Option<CloseCode> {
        (self.take_one() == Verdict::Enough).then_some(CloseCode::TooManyRequests)
    }

    async fn answer(&mut self, command: Command<'_>) -> Option<CloseCode> {
        let (id, kind) = (command.id, command.request.kind());
        let done = match self.take_one() {
            Verdict::Granted => self.act(id, command.request).await,
            Verdict::Refused => Done::Error(ErrorReply::TOO_MANY_REQUESTS),
            Verdict::Enough => Done::Close(CloseCode::TooManyRequests),
        };
        let counters = &self.shared.counters.sessions;
        match done {
            Done::Result(result) => {
                counters.commands.increment();
                if id != 0 {
                    self.outbox.reply(result_frame(id, kind, &result));
                }
                None
            }
            Done::Answered => {
                counters.commands.increment();
                None
            }
            Done::Error(error) => {
                counters.commands_refused.count(refusal_of(&error));
                // What wants no answer gets none, not even this one.
                if id != 0 {
                    self.outbox.reply(Frame::error(id, &error));
                }
                None
            }
            Done::Close(code) => {
                counters.commands_refused.count(match code {
                    CloseCode::InvalidToken | CloseCode::Expired => CommandRefusal::Token,
                    CloseCode::TooManyRequests => CommandRefusal::TooMany,
                    CloseCode::PermissionDenied => CommandRefusal::Denied,
                    _ => CommandRefusal::BadRequest,
                });
                Some(code)
            }
        }
    }

    async fn act(&mut self, id: u32, request: Request<'_>) -> Done {
        let Some(member) = &self.member else {
            return match request {
                Request::Connect(request) => self.connect(id, &request.token, request.data).await,
                // Nothing else comes first.
                _ => Done::Close(CloseCode::BadRequest),
            };
        };
        let Some(conn) = member.person() else { return self.act_for_operator(id, &request) };
        let hub = Arc::clone(&self.shared.hub);
        match request {
            Request::Connect(_) => Done::Close(CloseCode::BadRequest),
            Request::Refresh { token } => self.refresh(id, &token),
            Request::Subscribe { channel, token } => match self.may_enter(conn, &channel, &token) {
                Ok(()) => hub.subscribe(conn, &channel).await.into(),
                Err(done) => done,
            },
            Request::SubRefresh { channel, token } => match self.may_enter(conn, &channel, &token) {
                Ok(()) => Done::Result(nothing()),
                Err(done) => done,
            },
            Request::Unsubscribe { channel } => hub.unsubscribe(conn, &channel).await.into(),
            Request::Presence { channel } => hub.presence(conn, &channel).await.into(),
            Request::PresenceStats { channel } => hub.presence_stats(conn, &channel).await.into(),
            Request::Rpc { method, data } => {
                let data = Some(data).filter(|data| data.get() != "null");
                match hub.rpc(conn, &method, data).await {
                    Ok(data) => in_data(&data),
                    Err(error) => error.into(),
                }
            }
            Request::History => Done::Error(ErrorReply::NOT_AVAILABLE),
            Request::Publish => Done::Error(ErrorReply::PERMISSION_DENIED),
            Request::Send => Done::Answered,
            Request::Unknown => Done::Error(ErrorReply::METHOD_NOT_FOUND),
        }
    }

    /// An operator only looks on.
    fn act_for_operator(&mut self, id: u32, request: &Request<'_>) -> Done {
        match request {
            Request::Connect(_) => Done::Close(CloseCode::BadRequest),
            Request::Refresh { token } => self.refresh(id, token),
            Request::Send => Done::Answered,
            Request::Unknown => Done::Error(ErrorReply::METHOD_NOT_FOUND),
            _ => Done::Error(ErrorReply::PERMISSION_DENIED),
        }
    }

    async fn connect(&mut self, id: u32, token: &str, data: Option<&RawValue>) -> Done {
        let identity = match self.shared.tokens.identify(token) {
            Ok(identity) => identity,
            Err(Rejected::Expired) => return Done::Error(ErrorReply::TOKEN_EXPIRED),
            Err(Rejected::Invalid) => return self.connect_operator(id, token),
        };
        let hello = match hello::read(data) {
            Ok(hello) => hello,
            Err(detail) => return Done::Error(ErrorReply::BAD_REQUEST.with(detail)),
        };
        let expires_at = identity.expires_at;
        let hub = Arc::clone(&self.shared.hub);
        let welcome = match hub.connect(identity, hello, Arc::clone(&self.outbox)).await {
            Ok(welcome) => welcome,
            Err(Refusal::Unavailable) => return Done::Error(ErrorReply::INTERNAL),
            Err(Refusal::TooManyDevices) => return Done::Close(CloseCode::ConnectionLimit),
            Err(Refusal::Stopping) => return Done::Close(CloseCode::Shutdown),
            Err(Refusal::Disabled) => return Done::Close(CloseCode::PermissionDenied),
        };
        let reply = ConnectReply {
            client: &welcome.client,
            feed: &welcome.feed,
            ttl_s: expires_at.map(|moment| self.shared.tokens.seconds_left(moment)),
            ping_s: u32::try_from(self.shared.settings.ping.as_secs()).unwrap_or(u32::MAX),
        };
        self.outbox.open(welcome.conn, reply.to_frame(id));
        self.shared.counters.sessions.connected.increment();
        let member = Member { seat: Seat::Person(welcome.conn), expires_at, client: welcome.client.into() };
        self.member = Some(Box::new(member));
        Done::Answered
    }

    /// Who is no person may be an operator.
    fn connect_operator(&mut self, id: u32, token: &str) -> Done {
        let operator = match self.shared.operators.identify(token) {
            Ok(operator) => operator,
            Err(Rejected::Expired) => return Done::Error(ErrorReply::TOKEN_EXPIRED),
            Err(Rejected::Invalid) => return Done::Close(CloseCode::InvalidToken),
        };
        let (expires_at, is_admin) = (operator.expires_at, operator.is_admin);
        let Ok(number) = getrandom::u64() else { return Done::Error(ErrorReply::INTERNAL) };
        let Some(seat) = self.shared.operators.enter(operator, &self.outbox) else {
            return Done::Close(CloseCode::ConnectionLimit);
        };
        let client = format!("operator-{number:016x}");
        let reply = ConnectReply {
            client: &client,
            feed: operators::CHANNEL,
            ttl_s: Some(self.shared.tokens.seconds_left(expires_at)),
            ping_s: u32::try_from(self.shared.settings.ping.as_secs()).unwrap_or(u32::MAX),
        };
        self.outbox.open_for_operator(reply.to_frame(id));
        if let Some(overview) = self.shared.operators.overview(is_admin) {
            self.outbox.overview(overview);
        }
        let expires_at = Some(expires_at);
        self.member =
            Some(Box::new(Member { seat: Seat::Operator(seat), expires_at, client: client.into() }));
        Done::Answered
    }

    fn refresh(&mut self, id: u32, token: &str) -> Done {
        let Some(member) = &mut self.member else { return Done::Close(CloseCode::BadRequest) };
        let renewed = match &member.seat {
            Seat::Person(conn) => {
                let identity = self.shared.tokens.identify(token);
                identity.map(|Identity { user, expires_at, .. }| (user == conn.user).then_some(expires_at))
            }
            Seat::Operator(seat) => self.shared.operators.identify(token).map(|operator| {
                let is_theirs = *operator.key == *seat.key && operator.is_admin == seat.is_admin;
                is_theirs.then_some(Some(operator.expires_at))
            }),
        };
        match renewed {
            // A connection stays whose it is.
            Ok(None) => Done::Close(CloseCode::InvalidToken),
            Ok(Some(expires_at)) => {
                member.expires_at = expires_at;
                let ttl_s = expires_at.map(|moment| self.shared.tokens.seconds_left(moment));
                self.outbox.reply(ConnectReply::refreshed(id, &member.client, ttl_s));
                Done::Answered
            }
            // SDKs take an error here as final; after this end they come back with another token.
            Err(Rejected::Expired) => Done::Close(CloseCode::Expired),
            Err(Rejected::Invalid) => Done::Close(CloseCode::InvalidToken),
        }
    }

    /// Whether somebody may enter a room, by its token where it takes one.
    fn may_enter(&self, conn: ConnRef, channel: &str, token: &str) -> Result<(), Done> {
        // Operators are in it without asking, and nobody else ever is.
        if channel == operators::CHANNEL {
            return Err(Done::Error(ErrorReply::PERMISSION_DENIED));
        }
        if self.shared.room_access == RoomAccess::Everyone {
            return Ok(());
        }
        match self.shared.tokens.admits(token, conn.user, channel) {
            Ok(()) => Ok(()),
            Err(Rejected::Expired) => Err(Done::Error(ErrorReply::TOKEN_EXPIRED)),
            Err(Rejected::Invalid) => Err(Done::Error(ErrorReply::PERMISSION_DENIED)),
        }
    }
}

fn nothing() -> Box<RawValue> {
    in_json("{}".to_owned())
}

fn in_json(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The result of a command of ours.
fn in_data(data: &RawValue) -> Done {
    Done::Result(in_json(format!(r#"{{"data":{}}}"#, data.get())))
}

fn result_frame(id: u32, kind: CommandKind, result: &RawValue) -> Frame {
    Frame::reply(id, kind, result.get())
}

fn refusal_of(error: &ErrorReply) -> CommandRefusal {
    match error.code {
        103 => CommandRefusal::Denied,
        104 => CommandRefusal::UnknownMethod,
        106 => CommandRefusal::Limit,
        107 => CommandRefusal::BadRequest,
        108 => CommandRefusal::NotAvailable,
        109 => CommandRefusal::Token,
        111 => CommandRefusal::TooMany,
        _ => CommandRefusal::Internal,
    }
}
