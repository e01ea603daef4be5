//! What can go wrong with Redis, each with what to do about it.

use redis::{ErrorKind, ServerError};

/// Why Redis did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisError {
    /// What was configured cannot be used.
    #[error("{reason}")]
    Settings {
        /// What is wrong with it, and what to write instead.
        reason: String,
    },
    /// Nothing was sent: there is no connection.
    #[error("Redis cannot be reached: {reason}")]
    Unavailable {
        /// What the system says.
        reason: String,
    },
    /// Something was sent, and nobody knows whether it happened.
    #[error("Redis did not answer: {reason}")]
    Unanswered {
        /// What is known.
        reason: String,
    },
    /// Redis works but does not do it now; nothing happened. Waiting, or an operator, helps.
    #[error("Redis refuses: {reason}")]
    Refused {
        /// Redis's own word for it, such as `READONLY`.
        code: String,
        /// What it means, and what to do.
        reason: String,
    },
    /// A key holds something of another type. Nothing happened.
    #[error("a key in Redis holds something else than expected: {reason}")]
    WrongType {
        /// What Redis says.
        reason: String,
    },
    /// There is no such consumer group. Nothing happened.
    #[error("Redis has no such group: {reason}")]
    NoGroup {
        /// What Redis says.
        reason: String,
    },
    /// Anything else Redis says: we asked for something it does not understand. Nothing happened.
    #[error("Redis says {code}: {reason}")]
    Other {
        /// Redis's own word for it.
        code: String,
        /// What it says.
        reason: String,
    },
}

impl RedisError {
    /// Whether the same call can succeed later, without anybody changing what is asked.
    ///
    /// A wrong-typed key also counts: an operator can put it right while everything waits.
    pub fn is_retryable(&self) -> bool {
        !matches!(self, RedisError::Settings { .. } | RedisError::NoGroup { .. } | RedisError::Other { .. })
    }

    /// Redis's own word for it, where it said one.
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

    /// A reply that is not of the shape it should have.
    pub(crate) fn unexpected(reason: impl ToString) -> Self {
        RedisError::Other { code: "a reply nobody expected".to_owned(), reason: reason.to_string() }
    }

    /// What an error reply means.
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

    /// What an error means that came while connecting: nothing has been asked yet.
    pub(crate) fn from_connect(to: &str, error: &redis::RedisError) -> Self {
        match (error.kind(), first_reply(error)) {
            (_, Some(reply)) => match RedisError::from_reply(&reply) {
                RedisError::Other { code, reason } => {
                    RedisError::Refused { code, reason: format!("{to} does not let us in: {reason}") }
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

    /// What an error means that came after something was sent.
    pub(crate) fn from_send(to: &str, error: &redis::RedisError) -> Self {
        match first_reply(error) {
            Some(reply) => RedisError::from_reply(&reply),
            None => RedisError::Unanswered { reason: format!("{to}: {error}") },
        }
    }
}

/// The first thing Redis itself said, if it said anything.
fn first_reply(error: &redis::RedisError) -> Option<ServerError> {
    let replies = error.clone().into_server_errors()?;
    // That a transaction was given up says less than why.
    let telling = replies.iter().find(|(_, reply)| reply.code() != "EXECABORT");
    telling.or(replies.first()).map(|(_, reply)| reply.clone())
}

const PASSWORD_REMEDY: &str = "set them in redis.url, or the password in REDIS_PASSWORD";

/// What a refusal means and what to do; none if it is no refusal.
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
            "a slot of the cluster is being moved: wait until it has been".to_owned()
        }
        "MISCONF" => format!("Redis cannot save its data and takes no writes: {details}"),
        "NOREPLICAS" => "Redis has fewer replicas than min-replicas-to-write: bring them back".to_owned(),
        "NOAUTH" | "WRONGPASS" => format!("Redis wants a user or a password; {PASSWORD_REMEDY}"),
        "NOPERM" => format!("the Redis user lacks a permission: {details}"),
        "BUSY" => "a script of somebody's has been running for too long: SCRIPT KILL ends it".to_owned(),
        "EXECABORT" | "UNBLOCKED" => details.to_owned(),
        "ERR" if details.starts_with("max number of clients") => {
            "Redis has as many clients as it takes: raise maxclients".to_owned()
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
            other => panic!("{other:?} is no error"),
        }
    }

    #[test]
    fn a_full_redis_says_what_to_raise() {
        let error = error_of("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        assert!(error.is_retryable());
        assert!(error.to_string().contains("raise maxmemory"), "{error}");
    }

    #[test]
    fn refusals_can_be_waited_out_and_nonsense_cannot() {
        for refusal in ["READONLY no", "LOADING x", "NOAUTH x", "NOPERM x", "CLUSTERDOWN x", "MISCONF x"] {
            let error = error_of(&format!("-{refusal}\r\n"));
            assert!(matches!(error, RedisError::Refused { .. }), "{refusal}: {error:?}");
        }
        assert!(matches!(error_of("-WRONGTYPE x\r\n"), RedisError::WrongType { .. }));
        assert!(!error_of("-NOGROUP No such key\r\n").is_retryable());
        assert!(!error_of("-ERR unknown command\r\n").is_retryable());
    }
}
