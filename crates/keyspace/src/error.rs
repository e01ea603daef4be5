//! Errors, each with its remedy, and which are retryable.

use redis::{ErrorKind, ServerError};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisError {
    /// Invalid configuration. The reason contains the remedy.
    #[error("{reason}")]
    Settings { reason: String },
    /// No connection. Nothing was sent.
    #[error("Redis cannot be reached: {reason}")]
    Unavailable { reason: String },
    /// Sent, but not answered: it may or may not have been executed.
    #[error("Redis did not answer: {reason}")]
    Unanswered { reason: String },
    /// Redis refused, for now or until an operator acts. Nothing was executed.
    #[error("Redis refuses: {reason}")]
    Refused {
        /// The error code of Redis, such as `READONLY`.
        code: String,
        /// Cause and remedy.
        reason: String,
    },
    /// A key holds a value of another type. Nothing was executed.
    #[error("a key in Redis holds a value of another type: {reason}")]
    WrongType { reason: String },
    /// The consumer group does not exist. Nothing was executed.
    #[error("Redis has no such consumer group: {reason}")]
    NoGroup { reason: String },
    /// Any other error reply, or a malformed reply. An error reply means that nothing was executed.
    #[error("Redis replied {code}: {reason}")]
    Other { code: String, reason: String },
}

impl RedisError {
    /// Whether the same call can succeed later. True for a key of the wrong type: an operator can rename it while
    /// callers retry.
    pub fn is_retryable(&self) -> bool {
        !matches!(self, RedisError::Settings { .. } | RedisError::NoGroup { .. } | RedisError::Other { .. })
    }

    /// The error code of Redis; empty without an error reply.
    pub fn code(&self) -> &str {
        match self {
            RedisError::Refused { code, .. } | RedisError::Other { code, .. } => code,
            RedisError::WrongType { .. } => "WRONGTYPE",
            RedisError::NoGroup { .. } => "NOGROUP",
            _ => "",
        }
    }

    pub(crate) fn settings(reason: impl Into<String>) -> Self {
        RedisError::Settings { reason: reason.into() }
    }

    pub(crate) fn unavailable(reason: impl Into<String>) -> Self {
        RedisError::Unavailable { reason: reason.into() }
    }

    pub(crate) fn malformed_reply(reason: impl ToString) -> Self {
        RedisError::Other { code: "a malformed reply".to_owned(), reason: reason.to_string() }
    }

    pub fn from_reply(error: &ServerError) -> Self {
        let details = error.details().unwrap_or_default();
        match error.code() {
            "WRONGTYPE" => RedisError::WrongType { reason: details.to_owned() },
            "NOGROUP" => RedisError::NoGroup { reason: details.to_owned() },
            code => match remedy(code, details) {
                Some(reason) => RedisError::Refused { code: code.to_owned(), reason },
                None => RedisError::Other { code: code.to_owned(), reason: details.to_owned() },
            },
        }
    }

    /// An error while connecting: no command was sent.
    pub(crate) fn from_connect(to: &str, error: &redis::RedisError) -> Self {
        match (error.kind(), first_reply(error)) {
            (_, Some(reply)) => match RedisError::from_reply(&reply) {
                RedisError::Other { code, reason } => {
                    RedisError::Refused { code, reason: format!("{to} refused the connection: {reason}") }
                }
                error => error,
            },
            (ErrorKind::AuthenticationFailed, None) => RedisError::Refused {
                code: "WRONGPASS".to_owned(),
                reason: format!("{to} does not accept the user or the password; {PASSWORD_REMEDY}"),
            },
            _ => RedisError::unavailable(format!("{to}: {error}")),
        }
    }

    /// An error after a command was sent.
    pub(crate) fn from_send(to: &str, error: &redis::RedisError) -> Self {
        match first_reply(error) {
            Some(reply) => RedisError::from_reply(&reply),
            None => RedisError::Unanswered { reason: format!("{to}: {error}") },
        }
    }
}

/// The first error reply, preferring the cause of an aborted transaction to `EXECABORT`.
fn first_reply(error: &redis::RedisError) -> Option<ServerError> {
    let replies = error.clone().into_server_errors()?;
    let cause = replies.iter().find(|(_, reply)| reply.code() != "EXECABORT");
    cause.or(replies.first()).map(|(_, reply)| reply.clone())
}

const PASSWORD_REMEDY: &str = "set them in redis.url, or the password in REDIS_PASSWORD";

/// Cause and remedy of a refusal; none if the code is not one.
fn remedy(code: &str, details: &str) -> Option<String> {
    Some(match code {
        "READONLY" => "this server is a replica and takes no writes: wait for the failover to end, or point \
                       redis.url to the master"
            .to_owned(),
        "OOM" => {
            "Redis is out of memory: raise maxmemory (maxmemory-policy must be noeviction), or let the views \
                  catch up so that the stream can be trimmed"
                .to_owned()
        }
        "LOADING" => "Redis is loading its data: wait until it has finished".to_owned(),
        "MASTERDOWN" => "the replica has lost its master: wait for the failover to end".to_owned(),
        "CLUSTERDOWN" => "the cluster does not serve all slots: bring the missing nodes back".to_owned(),
        "TRYAGAIN" | "ASK" | "MOVED" => {
            "a slot of the cluster is migrating: wait until that has finished".to_owned()
        }
        "MISCONF" => format!("Redis cannot save its data and refuses writes: {details}"),
        "NOREPLICAS" => "Redis has fewer replicas than min-replicas-to-write: bring them back".to_owned(),
        "NOAUTH" | "WRONGPASS" => format!("Redis requires a user or a password; {PASSWORD_REMEDY}"),
        "NOPERM" => format!("the Redis user lacks a permission: {details}"),
        "BUSY" => "a script has been running for too long: SCRIPT KILL ends it".to_owned(),
        "EXECABORT" | "UNBLOCKED" => details.to_owned(),
        "ERR" if details.starts_with("max number of clients") => {
            "Redis has reached its maximum number of clients: raise maxclients".to_owned()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(reply: &str) -> RedisError {
        let value = redis::parse_redis_value(reply.as_bytes()).unwrap();
        match value {
            redis::Value::ServerError(error) => RedisError::from_reply(&error),
            other => panic!("{other:?} is not an error"),
        }
    }

    #[test]
    fn out_of_memory_is_retryable_and_names_the_remedy() {
        let error = error_of("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        assert!(error.is_retryable());
        assert!(error.to_string().contains("raise maxmemory"), "{error}");
    }

    #[test]
    fn refusals_are_retryable_and_invalid_commands_are_not() {
        for refusal in ["READONLY no", "LOADING x", "NOAUTH x", "NOPERM x", "CLUSTERDOWN x", "MISCONF x"] {
            let error = error_of(&format!("-{refusal}\r\n"));
            assert!(matches!(error, RedisError::Refused { .. }), "{refusal}: {error:?}");
        }
        assert!(matches!(error_of("-WRONGTYPE x\r\n"), RedisError::WrongType { .. }));
        assert!(!error_of("-NOGROUP No such key\r\n").is_retryable());
        assert!(!error_of("-ERR unknown command\r\n").is_retryable());
    }
}
