//! Error and close codes of the Centrifuge protocol.

use crate::counters::Ending;

/// An error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// Its number on the wire.
    pub code: u32,
    /// For the client's developer. Never contains input, nor data of other users.
    pub message: &'static str,
    /// Appended to the message.
    pub detail: &'static str,
    /// Whether the same command may work later.
    pub is_temporary: bool,
}

impl ErrorReply {
    pub const METHOD_NOT_FOUND: ErrorReply = ErrorReply::lasting(104, "method not found");
    pub const PERMISSION_DENIED: ErrorReply = ErrorReply::lasting(103, "permission denied");
    /// Cannot be read, or makes no sense.
    pub const BAD_REQUEST: ErrorReply = ErrorReply::lasting(107, "bad request");
    /// Not offered by this server.
    pub const NOT_AVAILABLE: ErrorReply = ErrorReply::lasting(108, "not available");
    /// The token has expired: bring another one.
    pub const TOKEN_EXPIRED: ErrorReply = ErrorReply::lasting(109, "token expired");
    /// Server error; temporary.
    pub const INTERNAL: ErrorReply = ErrorReply::passing(100, "internal server error");
    /// Too many commands; to be tried again later.
    pub const TOO_MANY_REQUESTS: ErrorReply = ErrorReply::passing(111, "too many requests");

    const fn lasting(code: u32, message: &'static str) -> ErrorReply {
        ErrorReply { code, message, detail: "", is_temporary: false }
    }

    const fn passing(code: u32, message: &'static str) -> ErrorReply {
        ErrorReply { code, message, detail: "", is_temporary: true }
    }

    pub const fn with(self, detail: &'static str) -> ErrorReply {
        ErrorReply { detail, ..self }
    }
}

/// Why a connection is closed. From 3500 on, and with 1009, SDKs do not reconnect.
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
    /// The server stops; the client reconnects.
    Shutdown,
    /// Server error.
    ServerError,
    /// The token expired and was not refreshed.
    Expired,
    /// The client does not read.
    Slow,
    /// The client does not answer pings.
    NoPong,
    /// The token is not valid.
    InvalidToken,
    /// Malformed input, or commands in the wrong order.
    BadRequest,
    /// The client uses another encoding than JSON.
    NotJson,
    /// No `connect` in time.
    Stale,
    ForceNoReconnect,
    /// Far too many commands; temporary.
    TooManyRequests,
    /// Too many connections or devices of this user.
    ConnectionLimit,
    PermissionDenied,
}

impl CloseCode {
    pub const ALL: [CloseCode; 17] = [
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
        CloseCode::NotJson,
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
            CloseCode::BadRequest | CloseCode::NotJson => 3501,
            CloseCode::Stale => 3502,
            CloseCode::ForceNoReconnect => 3503,
            CloseCode::ConnectionLimit => 3504,
            CloseCode::PermissionDenied => 3507,
        }
    }

    /// Never empty and never JSON: an SDK reconnects after a close without a reason, whatever the code, and parses a
    /// JSON reason as advice.
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
            CloseCode::NotJson => "bad request: only centrifuge-json is supported, not centrifuge-protobuf",
            CloseCode::Stale => "stale",
            CloseCode::ForceNoReconnect => "force disconnect",
            CloseCode::TooManyRequests => "too many requests",
            CloseCode::ConnectionLimit => "connection limit",
            CloseCode::PermissionDenied => "permission denied",
        }
    }

    pub const fn ending(self) -> Ending {
        match self {
            CloseCode::ProtocolViolation
            | CloseCode::NotText
            | CloseCode::TooLong
            | CloseCode::BadRequest
            | CloseCode::NotJson => Ending::BadRequest,
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
