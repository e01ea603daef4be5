//! Errors in a target or query.

use domain::Passkey;

/// Why a request is refused. `Display` is sent to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("unknown path, expected /<passkey>/announce or /<passkey>/scrape")]
    UnknownPath,
    /// A required parameter.
    #[error("{parameter} is missing")]
    Missing { parameter: &'static str },
    /// A `%` that is not followed by two hexadecimal digits.
    #[error("{parameter} has a bad %-escape")]
    BadEscape { parameter: &'static str },
    /// A hash or id of another length, once decoded.
    #[error("{parameter} must be 20 bytes")]
    WrongLength { parameter: &'static str },
    #[error("{parameter} must be a decimal number")]
    NotANumber { parameter: &'static str },
    /// A number beyond its type.
    #[error("{parameter} is too large")]
    TooLarge { parameter: &'static str },
    #[error("passkey must be {min} to {max} hexadecimal digits", min = Passkey::MIN_DIGITS, max = Passkey::MAX_DIGITS)]
    NotAPasskey,
    #[error("no passkey: use the announce URL that your site gives you, with the passkey in it")]
    NoPasskey,
}

impl QueryError {
    /// Label for a counter.
    pub const fn label(&self) -> &'static str {
        match self {
            QueryError::UnknownPath => "unknown_path",
            QueryError::Missing { .. } => "missing_parameter",
            QueryError::BadEscape { .. } => "bad_escape",
            QueryError::WrongLength { .. } => "wrong_length",
            QueryError::NotANumber { .. } => "not_a_number",
            QueryError::TooLarge { .. } => "too_large",
            QueryError::NotAPasskey => "not_a_passkey",
            QueryError::NoPasskey => "no_passkey",
        }
    }
}
