//! Errors and reasons to close, as numbers that every published SDK knows.

use crate::counters::Ending;

/// Why a command is refused, as the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// Its number on the wire.
    pub code: u32,
    /// In words, for whoever writes the client. Never what was sent, nor anything of another person.
    pub message: &'static str,
    /// Words that follow the message.
    pub detail: &'static str,
    /// Whether the same command may work later.
    pub is_temporary: bool,
}

impl ErrorReply {
    /// No such command.
    pub const METHOD_NOT_FOUND: ErrorReply = ErrorReply::lasting(104, "method not found");
    /// Not for this person.
    pub const PERMISSION_DENIED: ErrorReply = ErrorReply::lasting(103, "permission denied");
    /// Cannot be read, or makes no sense.
    pub const BAD_REQUEST: ErrorReply = ErrorReply::lasting(107, "bad request");
    /// Not offered by this server.
    pub const NOT_AVAILABLE: ErrorReply = ErrorReply::lasting(108, "not available");
    /// The token has expired: bring another one.
    pub const TOKEN_EXPIRED: ErrorReply = ErrorReply::lasting(109, "token expired");
    /// Something here does not work; to be tried again.
    pub const INTERNAL: ErrorReply = ErrorReply::passing(100, "internal server error");
    /// Too many commands; to be tried again later.
    pub const TOO_MANY_REQUESTS: ErrorReply = ErrorReply::passing(111, "too many requests");

    const fn lasting(code: u32, message: &'static str) -> ErrorReply {
        ErrorReply { code, message, detail: "", is_temporary: false }
    }

    const fn passing(code: u32, message: &'static str) -> ErrorReply {
        ErrorReply { code, message, detail: "", is_temporary: true }
    }

    /// The same with words that say more.
    pub const fn with(self, detail: &'static str) -> ErrorReply {
        ErrorReply { detail, ..self }
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
    /// Signed out.
    ForceNoReconnect,
    /// Far too many commands, for now: whoever comes back later is welcome.
    TooManyRequests,
    /// Too many connections or devices of this person.
    ConnectionLimit,
    /// May not connect.
    PermissionDenied,
}

impl CloseCode {
    /// Every reason.
    pub const ALL: [CloseCode; 16] = [
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
        CloseCode::TooManyRequests,
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
            CloseCode::TooManyRequests => 3013,
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
            CloseCode::TooManyRequests => "too many requests",
            CloseCode::ConnectionLimit => "connection limit",
            CloseCode::PermissionDenied => "permission denied",
        }
    }

    /// As what it is counted.
    pub const fn ending(self) -> Ending {
        match self {
            CloseCode::ProtocolViolation
            | CloseCode::NotText
            | CloseCode::TooLong
            | CloseCode::BadRequest => Ending::BadRequest,
            CloseCode::Normal | CloseCode::ForceNoReconnect => Ending::SignedOut,
            CloseCode::Shutdown => Ending::Shutdown,
            CloseCode::ServerError => Ending::Failed,
            CloseCode::Expired => Ending::Expired,
            CloseCode::Slow => Ending::Slow,
            CloseCode::NoPong => Ending::NoPong,
            CloseCode::InvalidToken => Ending::InvalidToken,
            CloseCode::Stale => Ending::Stale,
            CloseCode::TooManyRequests | CloseCode::ConnectionLimit => Ending::Limit,
            CloseCode::PermissionDenied => Ending::PermissionDenied,
        }
    }
}
