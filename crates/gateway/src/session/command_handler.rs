//! Handles commands: one message of a client at a time, its commands in order.

use std::sync::Arc;

use domain::UnixTime;
use serde_json::value::RawValue;

use super::rate_limit::{CommandRateLimit, RateVerdict};
use super::{SessionShared, connect_data};
use crate::counters::CommandRefusal;
use crate::hub::{ConnRef, ConnectRefusal, Identity};
use crate::outbox::Outbox;
use crate::protocol::{
    CloseCode, Command, CommandError, ConnectReply, Frame, Message, Request, lines, read_message,
};
use crate::settings::RoomAccess;
use crate::token::Rejected;

/// A client after a successful `connect`.
#[derive(Debug)]
pub(super) struct ConnectedClient {
    pub(super) conn: ConnRef,
    pub(super) expires_at: Option<UnixTime>,
    client: Box<str>,
}

/// State taken from the session while a message is handled.
pub(super) struct CommandHandler {
    pub(super) shared: Arc<SessionShared>,
    pub(super) outbox: Arc<Outbox>,
    /// Set by `connect`.
    pub(super) client_state: Option<Box<ConnectedClient>>,
    pub(super) rate_limit: Arc<CommandRateLimit>,
}

enum CommandOutcome {
    Result(Box<RawValue>),
    /// The reply is in the outbox already.
    Answered,
    Error(CommandError),
    Close(CloseCode),
}

impl From<Result<Box<RawValue>, CommandError>> for CommandOutcome {
    fn from(result: Result<Box<RawValue>, CommandError>) -> Self {
        result.map_or_else(CommandOutcome::Error, CommandOutcome::Result)
    }
}

impl From<Result<(), CommandError>> for CommandOutcome {
    fn from(result: Result<(), CommandError>) -> Self {
        result.map_or_else(CommandOutcome::Error, |()| CommandOutcome::Result(nothing()))
    }
}

impl CommandHandler {
    /// Handles all commands of a message. Returns the handler, and a close code if the connection must end.
    pub(super) async fn serve(mut self, text: String) -> (CommandHandler, Option<CloseCode>) {
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

    fn take_token(&self) -> RateVerdict {
        self.rate_limit.take(self.shared.started.elapsed(), self.shared.settings.commands_per_s)
    }

    fn allow_pong(&self) -> Option<CloseCode> {
        (self.take_token() == RateVerdict::Abusive).then_some(CloseCode::TooManyRequests)
    }

    async fn answer(&mut self, command: Command<'_>) -> Option<CloseCode> {
        let (id, name) = (command.id, command.request.name());
        let done = match self.take_token() {
            RateVerdict::Granted => self.act(id, command.request).await,
            RateVerdict::Refused => CommandOutcome::Error(CommandError::TooManyRequests),
            RateVerdict::Abusive => CommandOutcome::Close(CloseCode::TooManyRequests),
        };
        let counters = &self.shared.counters.sessions;
        match done {
            CommandOutcome::Result(result) => {
                counters.commands.increment();
                if id != 0 {
                    self.outbox.reply(Frame::reply(id, name, result.get()));
                }
                None
            }
            CommandOutcome::Answered => {
                counters.commands.increment();
                None
            }
            CommandOutcome::Error(error) => {
                counters.commands_refused.count(error.refusal());
                // Commands without an id get no reply, also no error.
                if id != 0 {
                    self.outbox.reply(Frame::error(id, error));
                }
                None
            }
            CommandOutcome::Close(code) => {
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

    async fn act(&mut self, id: u32, request: Request<'_>) -> CommandOutcome {
        let Some(client_state) = &self.client_state else {
            return match request {
                Request::Connect(request) => self.connect(id, &request.token, request.data).await,
                // `connect` must be the first command.
                _ => CommandOutcome::Close(CloseCode::BadRequest),
            };
        };
        let conn = client_state.conn;
        let commands = &self.shared.hub.commands;
        match request {
            Request::Connect(_) => CommandOutcome::Close(CloseCode::BadRequest),
            Request::Refresh { token } => self.refresh(id, &token),
            Request::Subscribe { channel, token } => match self.check_room_access(conn, &channel, &token) {
                Ok(()) => commands.subscribe(conn, &channel).await.into(),
                Err(done) => done,
            },
            Request::SubRefresh { channel, token } => match self.check_room_access(conn, &channel, &token) {
                Ok(()) => CommandOutcome::Result(nothing()),
                Err(done) => done,
            },
            Request::Unsubscribe { channel } => commands.unsubscribe(conn, &channel).await.into(),
            Request::Presence { channel } => commands.presence(conn, &channel).await.into(),
            Request::PresenceStats { channel } => commands.presence_stats(conn, &channel).await.into(),
            Request::Rpc { method, data } => {
                let data = Some(data).filter(|data| data.get() != "null");
                match commands.rpc(conn, &method, data).await {
                    Ok(data) => in_data(&data),
                    Err(error) => CommandOutcome::Error(error),
                }
            }
            Request::History => CommandOutcome::Error(CommandError::NotAvailable),
            Request::Publish => CommandOutcome::Error(CommandError::PermissionDenied),
            Request::Send => CommandOutcome::Answered,
            Request::Unknown => CommandOutcome::Error(CommandError::MethodNotFound),
        }
    }

    async fn connect(&mut self, id: u32, token: &str, data: Option<&RawValue>) -> CommandOutcome {
        let identity = match self.shared.tokens.identify(token) {
            Ok(identity) => identity,
            Err(Rejected::Expired) => return CommandOutcome::Error(CommandError::TokenExpired),
            Err(Rejected::Invalid) => return CommandOutcome::Close(CloseCode::InvalidToken),
        };
        let hello = match connect_data::read(data) {
            Ok(hello) => hello,
            Err(detail) => return CommandOutcome::Error(CommandError::BadRequest(detail)),
        };
        let expires_at = identity.expires_at;
        let welcome = match self.shared.hub.connect(identity, hello, Arc::clone(&self.outbox)).await {
            Ok(welcome) => welcome,
            Err(ConnectRefusal::Unavailable) => return CommandOutcome::Error(CommandError::Internal),
            Err(ConnectRefusal::TooManyDevices) => return CommandOutcome::Close(CloseCode::ConnectionLimit),
            Err(ConnectRefusal::Stopping) => return CommandOutcome::Close(CloseCode::Shutdown),
            Err(ConnectRefusal::Disabled) => return CommandOutcome::Close(CloseCode::PermissionDenied),
        };
        let reply = ConnectReply {
            client: &welcome.client,
            feed: &welcome.feed,
            ttl_s: expires_at.map(|moment| self.shared.tokens.seconds_left(moment)),
            ping_s: u32::try_from(self.shared.settings.ping.as_secs()).unwrap_or(u32::MAX),
        };
        self.outbox.open(welcome.conn, reply.to_frame(id));
        self.shared.counters.sessions.connected.increment();
        let client_state = ConnectedClient { conn: welcome.conn, expires_at, client: welcome.client.into() };
        self.client_state = Some(Box::new(client_state));
        CommandOutcome::Answered
    }

    fn refresh(&mut self, id: u32, token: &str) -> CommandOutcome {
        let Some(client_state) = &mut self.client_state else {
            return CommandOutcome::Close(CloseCode::BadRequest);
        };
        match self.shared.tokens.identify(token) {
            // A connection cannot change its user.
            Ok(Identity { user, .. }) if user != client_state.conn.user => {
                CommandOutcome::Close(CloseCode::InvalidToken)
            }
            Ok(Identity { expires_at, .. }) => {
                client_state.expires_at = expires_at;
                let ttl_s = expires_at.map(|moment| self.shared.tokens.seconds_left(moment));
                self.outbox.reply(ConnectReply::refreshed(id, &client_state.client, ttl_s));
                CommandOutcome::Answered
            }
            // SDKs take an error here as final; after this close code they reconnect with a new token.
            Err(Rejected::Expired) => CommandOutcome::Close(CloseCode::Expired),
            Err(Rejected::Invalid) => CommandOutcome::Close(CloseCode::InvalidToken),
        }
    }

    /// By the room token, if rooms need one.
    fn check_room_access(&self, conn: ConnRef, channel: &str, token: &str) -> Result<(), CommandOutcome> {
        if self.shared.room_access == RoomAccess::Everyone {
            return Ok(());
        }
        match self.shared.tokens.admits(token, conn.user, channel) {
            Ok(()) => Ok(()),
            Err(Rejected::Expired) => Err(CommandOutcome::Error(CommandError::TokenExpired)),
            Err(Rejected::Invalid) => Err(CommandOutcome::Error(CommandError::PermissionDenied)),
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
fn in_data(data: &RawValue) -> CommandOutcome {
    CommandOutcome::Result(in_json(format!(r#"{{"data":{}}}"#, data.get())))
}
