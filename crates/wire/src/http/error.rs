//! What can be wrong with a target or query.

use domain::Passkey;

/// Why a request is refused. `Display` is what the client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The path is none of ours.
    #[error("unknown path, expected /<passkey>/announce or /<passkey>/scrape")]
    UnknownPath,
    /// A parameter without which there is no answer.
    #[error("{parameter} is missing")]
    Missing { parameter: &'static str },
    /// A `%` that two hexadecimal digits do not follow.
    #[error("{parameter} has a bad %-escape")]
    BadEscape { parameter: &'static str },
    /// A hash or id of another length, once decoded.
    #[error("{parameter} must be 20 bytes")]
    WrongLength { parameter: &'static str },
    /// Something else where a decimal number is due.
    #[error("{parameter} must be a decimal number")]
    NotANumber { parameter: &'static str },
    /// A number that is larger than its kind allows.
    #[error("{parameter} is too large")]
    TooLarge { parameter: &'static str },
    /// What stands where the passkey is due cannot be one.
    #[error("passkey must be {min} to {max} hexadecimal digits", min = Passkey::MIN_DIGITS, max = Passkey::MAX_DIGITS)]
    NotAPasskey,
}

impl QueryError {
    /// The name of the cause, for a counter.
    pub const fn label(&self) -> &'static str {
        match self {
            QueryError::UnknownPath => "unknown_path",
            QueryError::Missing { .. } => "missing_parameter",
            QueryError::BadEscape { .. } => "bad_escape",
            QueryError::WrongLength { .. } => "wrong_length",
            QueryError::NotANumber { .. } => "not_a_number",
            QueryError::TooLarge { .. } => "too_large",
            QueryError::NotAPasskey => "not_a_passkey",
        }
    }
}
