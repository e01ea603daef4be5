//! Errors and reasons to close, as numbers that every published SDK knows.

use std::borrow::Cow;

/// What kind of error a command ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// Something here does not work; to be tried again.
    Internal,
    /// Not for this person.
    PermissionDenied,
    /// No such command.
    MethodNotFound,
    /// Is subscribed already.
    AlreadySubscribed,
    /// More than is allowed.
    LimitExceeded,
    /// Cannot be read, or makes no sense.
    BadRequest,
    /// Not offered by this server.
    NotAvailable,
    /// The token has expired: bring another one.
    TokenExpired,
    /// Too many commands; to be tried again later.
    TooManyRequests,
}

impl ErrorCode {
    /// Its number on the wire.
    pub const fn code(self) -> u32 {
        match self {
            ErrorCode::Internal => 100,
            ErrorCode::PermissionDenied => 103,
            ErrorCode::MethodNotFound => 104,
            ErrorCode::AlreadySubscribed => 105,
            ErrorCode::LimitExceeded => 106,
            ErrorCode::BadRequest => 107,
            ErrorCode::NotAvailable => 108,
            ErrorCode::TokenExpired => 109,
            ErrorCode::TooManyRequests => 111,
        }
    }

    /// Whether the same command may work later.
    pub const fn is_temporary(self) -> bool {
        matches!(self, ErrorCode::Internal | ErrorCode::TooManyRequests)
    }

    /// What it says when nothing more is to be said.
    pub const fn message(self) -> &'static str {
        match self {
            ErrorCode::Internal => "internal server error",
            ErrorCode::PermissionDenied => "permission denied",
            ErrorCode::MethodNotFound => "method not found",
            ErrorCode::AlreadySubscribed => "already subscribed",
            ErrorCode::LimitExceeded => "limit exceeded",
            ErrorCode::BadRequest => "bad request",
            ErrorCode::NotAvailable => "not available",
            ErrorCode::TokenExpired => "token expired",
            ErrorCode::TooManyRequests => "too many requests",
        }
    }
}

/// Why a command is refused, as the client is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({})", .code.code())]
pub struct CommandError {
    /// What kind of error.
    pub code: ErrorCode,
    /// In words, for whoever writes the client. Never what was sent, nor anything of another person.
    pub message: Cow<'static, str>,
}

impl CommandError {
    /// An error in words of its own.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        CommandError { code, message: message.into() }
    }
}

impl From<ErrorCode> for CommandError {
    fn from(code: ErrorCode) -> Self {
        CommandError::new(code, code.message())
    }
}

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The answer to `connect` is this error. The SDK comes back if it is temporary.
    Error(CommandError),
    /// The connection is closed.
    Close(CloseCode),
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        Refusal::Error(error)
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Refusal::Error(code.into())
    }
}

/// Why a connection is closed. From 3500 on, and with 1009, SDKs do not come back by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCode {
    /// The frames break RFC 6455.
    ProtocolViolation,
    /// A text that is not UTF-8.
    NotText,
    /// A message longer than allowed.
    TooLong,
    /// Nothing is wrong: the connection is no longer needed.
    Normal,
    /// The server stops; another one, or the next one, is there.
    Shutdown,
    /// Something here does not work.
    ServerError,
    /// The token expired and was not refreshed.
    Expired,
    /// The client does not read what it asked for.
    Slow,
    /// The client does not answer pings.
    NoPong,
    /// The token is not valid.
    InvalidToken,
    /// What was sent is not the protocol, or in the wrong order.
    BadRequest,
    /// Nobody said who they are in time.
    Stale,
    /// Signed out, or far too many commands.
    ForceNoReconnect,
    /// Too many connections or devices of this person.
    ConnectionLimit,
    /// May not connect.
    PermissionDenied,
}

impl CloseCode {
    /// Every reason.
    pub const ALL: [CloseCode; 15] = [
        CloseCode::ProtocolViolation,
        CloseCode::NotText,
        CloseCode::TooLong,
        CloseCode::Normal,
        CloseCode::Shutdown,
        CloseCode::ServerError,
        CloseCode::Expired,
        CloseCode::Slow,
        CloseCode::NoPong,
        CloseCode::InvalidToken,
        CloseCode::BadRequest,
        CloseCode::Stale,
        CloseCode::ForceNoReconnect,
        CloseCode::ConnectionLimit,
        CloseCode::PermissionDenied,
    ];

    /// Its number on the wire.
    pub const fn code(self) -> u16 {
        match self {
            CloseCode::ProtocolViolation => 1002,
            CloseCode::NotText => 1007,
            CloseCode::TooLong => 1009,
            CloseCode::Normal => 3000,
            CloseCode::Shutdown => 3001,
            CloseCode::ServerError => 3004,
            CloseCode::Expired => 3005,
            CloseCode::Slow => 3008,
            CloseCode::NoPong => 3012,
            CloseCode::InvalidToken => 3500,
            CloseCode::BadRequest => 3501,
            CloseCode::Stale => 3502,
            CloseCode::ForceNoReconnect => 3503,
            CloseCode::ConnectionLimit => 3504,
            CloseCode::PermissionDenied => 3507,
        }
    }

    /// The reason on the wire. Never empty and never JSON: an SDK comes back after a close without a reason, whatever
    /// the code, and takes what reads as JSON for advice.
    pub const fn reason(self) -> &'static str {
        match self {
            CloseCode::ProtocolViolation => "protocol violation",
            CloseCode::NotText => "not utf-8",
            CloseCode::TooLong => "message too long",
            CloseCode::Normal => "connection closed",
            CloseCode::Shutdown => "shutdown",
            CloseCode::ServerError => "internal server error",
            CloseCode::Expired => "connection expired",
            CloseCode::Slow => "slow",
            CloseCode::NoPong => "no pong",
            CloseCode::InvalidToken => "invalid token",
            CloseCode::BadRequest => "bad request",
            CloseCode::Stale => "stale",
            CloseCode::ForceNoReconnect => "force disconnect",
            CloseCode::ConnectionLimit => "connection limit",
            CloseCode::PermissionDenied => "permission denied",
        }
    }

    /// The name under which it is counted.
    pub const fn label(self) -> &'static str {
        match self {
            CloseCode::ProtocolViolation => "protocol_violation",
            CloseCode::NotText => "not_text",
            CloseCode::TooLong => "too_long",
            CloseCode::Normal => "normal",
            CloseCode::Shutdown => "shutdown",
            CloseCode::ServerError => "server_error",
            CloseCode::Expired => "expired",
            CloseCode::Slow => "slow",
            CloseCode::NoPong => "no_pong",
            CloseCode::InvalidToken => "invalid_token",
            CloseCode::BadRequest => "bad_request",
            CloseCode::Stale => "stale",
            CloseCode::ForceNoReconnect => "force_no_reconnect",
            CloseCode::ConnectionLimit => "connection_limit",
            CloseCode::PermissionDenied => "permission_denied",
        }
    }

    /// Whether nobody wanted it: neither the person, nor an operator, nor the site.
    pub const fn is_abnormal(self) -> bool {
        !matches!(
            self,
            CloseCode::Normal | CloseCode::Shutdown | CloseCode::Expired | CloseCode::ForceNoReconnect
        )
    }
}
