//! Error and close codes of the Centrifuge protocol.

use crate::counters::{CommandRefusal, Ending};

/// Why a command is not done. The texts are sent to the client: they never contain input, nor data of other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// A failure of this server; the same may work later.
    #[error("internal server error")]
    Internal,
    #[error("permission denied")]
    PermissionDenied,
    #[error("method not found")]
    MethodNotFound,
    /// More than is allowed; nothing was changed.
    #[error("limit exceeded")]
    LimitExceeded,
    /// Cannot be read, or makes no sense.
    #[error("bad request: {0}")]
    BadRequest(&'static str),
    /// Not offered by this server, or not there.
    #[error("not available")]
    NotAvailable,
    /// The client may get another token.
    #[error("token expired")]
    TokenExpired,
    /// The same may work later.
    #[error("too many requests")]
    TooManyRequests,
}

impl CommandError {
    /// Its number on the wire.
    pub const fn code(self) -> u32 {
        match self {
            CommandError::Internal => 100,
            CommandError::PermissionDenied => 103,
            CommandError::MethodNotFound => 104,
            CommandError::LimitExceeded => 106,
            CommandError::BadRequest(_) => 107,
            CommandError::NotAvailable => 108,
            CommandError::TokenExpired => 109,
            CommandError::TooManyRequests => 111,
        }
    }

    /// Whether the same may work later.
    pub const fn is_temporary(self) -> bool {
        matches!(self, CommandError::Internal | CommandError::TooManyRequests)
    }

    pub(crate) const fn refusal(self) -> CommandRefusal {
        match self {
            CommandError::Internal => CommandRefusal::Internal,
            CommandError::PermissionDenied => CommandRefusal::Denied,
            CommandError::MethodNotFound => CommandRefusal::UnknownMethod,
            CommandError::LimitExceeded => CommandRefusal::Limit,
            CommandError::BadRequest(_) => CommandRefusal::BadRequest,
            CommandError::NotAvailable => CommandRefusal::NotAvailable,
            CommandError::TokenExpired => CommandRefusal::Token,
            CommandError::TooManyRequests => CommandRefusal::TooMany,
        }
    }
}

/// The codes, each with its number on the wire, its reason, and what is counted.
macro_rules! close_codes {
    ($($(#[$about:meta])* $variant:ident = $code:literal, $reason:literal, $ending:ident;)+) => {
        /// Why a connection is closed. From 3500 on, and with 1009, SDKs do not reconnect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CloseCode { $($(#[$about])* $variant,)+ }

        impl CloseCode {
            pub const ALL: &[CloseCode] = &[$(CloseCode::$variant),+];

            /// Its number on the wire.
            pub const fn code(self) -> u16 {
                match self { $(CloseCode::$variant => $code),+ }
            }

            /// Never empty and never JSON: an SDK reconnects after a close without a reason, whatever the code, and
            /// parses a JSON reason as advice.
            pub const fn reason(self) -> &'static str {
                match self { $(CloseCode::$variant => $reason),+ }
            }

            pub const fn ending(self) -> Ending {
                match self { $(CloseCode::$variant => Ending::$ending),+ }
            }
        }
    };
}

close_codes! {
    /// The frames break RFC 6455.
    ProtocolViolation = 1002, "protocol violation", BadRequest;
    /// A text that is not UTF-8.
    NotText = 1007, "not utf-8", BadRequest;
    /// A message longer than allowed.
    TooLong = 1009, "message too long", BadRequest;
    /// Nothing is wrong: the connection is no longer needed.
    Normal = 3000, "connection closed", SignedOut;
    /// The server stops; the client reconnects.
    Shutdown = 3001, "shutdown", Shutdown;
    ServerError = 3004, "internal server error", Failed;
    /// The token expired and was not refreshed.
    Expired = 3005, "connection expired", Expired;
    /// The client does not read.
    Slow = 3008, "slow", Slow;
    /// The client does not answer pings.
    NoPong = 3012, "no pong", NoPong;
    /// Far too many commands; temporary.
    TooManyRequests = 3013, "too many requests", Limit;
    InvalidToken = 3500, "invalid token", InvalidToken;
    /// Malformed input, or commands in the wrong order.
    BadRequest = 3501, "bad request", BadRequest;
    /// The client uses another encoding than JSON.
    NotJson = 3501, "bad request: only centrifuge-json is supported, not centrifuge-protobuf", BadRequest;
    /// No `connect` in time.
    Stale = 3502, "stale", Stale;
    ForceNoReconnect = 3503, "force disconnect", SignedOut;
    /// Too many connections or devices of this user.
    ConnectionLimit = 3504, "connection limit", Limit;
    PermissionDenied = 3507, "permission denied", PermissionDenied;
}
