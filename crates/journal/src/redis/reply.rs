//! Parsing of replies from Redis, and encoding of entries.

use std::collections::HashMap;

use keyspace::RedisError;
use redis::{FromRedisValue, Value};

use crate::fields::Fields;
use crate::id::EntryId;
use crate::port::{Stored, Trimmed};

/// Redis stores no entry without fields: one is written with this field, and read without it.
const NO_FIELDS: &[u8] = b"(no fields)";

/// Names and values alternating.
pub(super) fn args_of(fields: &Fields) -> impl Iterator<Item = &[u8]> {
    let placeholder = fields.is_empty().then_some((NO_FIELDS, &b""[..]));
    fields.iter().chain(placeholder).flat_map(|(name, value)| [name, value])
}

/// Parses `[[id, [name, value, …]], …]`.
pub(super) fn entries(reply: Value) -> Result<Vec<Stored>, RedisError> {
    match reply {
        Value::Nil => Ok(Vec::new()),
        Value::Array(entries) => {
            entries.into_iter().filter_map(|entry| entry_of(entry).transpose()).collect()
        }
        other => Err(unexpected(&other)),
    }
}

/// None for a deleted entry.
fn entry_of(entry: Value) -> Result<Option<Stored>, RedisError> {
    let Value::Array(parts) = entry else {
        return if entry == Value::Nil { Ok(None) } else { Err(unexpected(&entry)) };
    };
    match <[Value; 2]>::try_from(parts) {
        Ok([_, Value::Nil]) => Ok(None),
        Ok([id, Value::Array(values)]) => Ok(Some(Stored { id: id_of(&id)?, fields: fields_of(&values)? })),
        Ok([_, other]) => Err(unexpected(&other)),
        Err(parts) => Err(unexpected(&Value::Array(parts))),
    }
}

fn fields_of(values: &[Value]) -> Result<Fields, RedisError> {
    let (pairs, []) = values.as_chunks::<2>() else {
        return Err(RedisError::Other {
            code: "XRANGE".to_owned(),
            reason: "a field without a value".to_owned(),
        });
    };
    if let [[Value::BulkString(name), _]] = pairs
        && name == NO_FIELDS
    {
        return Ok(Fields::new());
    }
    pairs.iter().map(|[name, value]| Ok((bytes_of(name)?, bytes_of(value)?))).collect()
}

fn bytes_of(value: &Value) -> Result<&[u8], RedisError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.as_bytes()),
        other => Err(unexpected(other)),
    }
}

pub(super) fn id_of(id: &Value) -> Result<EntryId, RedisError> {
    let text = std::str::from_utf8(bytes_of(id)?).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| unexpected(id))
}

/// Parses the result of the script `trim`.
pub(super) fn trimmed(reply: Value) -> Result<Trimmed, RedisError> {
    let Value::Array(parts) = &reply else {
        return Err(unexpected(&reply));
    };
    match parts.as_slice() {
        [Value::Int(removed)] => Ok(Trimmed { removed: number(*removed), held_back_by: None }),
        [Value::Int(removed), Value::BulkString(group)] => Ok(Trimmed {
            removed: number(*removed),
            held_back_by: Some(String::from_utf8_lossy(group).into_owned()),
        }),
        _ => Err(unexpected(&reply)),
    }
}

/// One map of an `XINFO` reply.
pub(super) struct Info(HashMap<String, Value>);

impl Info {
    pub(super) fn read(reply: Value) -> Result<Info, RedisError> {
        let pairs = HashMap::<String, Value>::from_redis_value(reply);
        pairs
            .map(Info)
            .map_err(|error| RedisError::Other { code: "XINFO".to_owned(), reason: error.to_string() })
    }

    /// Zero if missing.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.optional_number(name).unwrap_or(0)
    }

    pub(super) fn optional_number(&self, name: &str) -> Option<u64> {
        match self.0.get(name)? {
            Value::Int(value) => Some(number(*value)),
            _ => None,
        }
    }

    pub(super) fn id(&self, name: &str) -> Result<EntryId, RedisError> {
        self.0.get(name).map_or(Ok(EntryId::ZERO), id_of)
    }

    pub(super) fn text(&self, name: &str) -> Result<String, RedisError> {
        let value = self.0.get(name).unwrap_or(&Value::Nil);
        Ok(String::from_utf8_lossy(bytes_of(value)?).into_owned())
    }
}

fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn unexpected(reply: &Value) -> RedisError {
    // Only its kind: the value may contain passkeys.
    let kind = match reply {
        Value::Array(parts) => format!("a list of {}", parts.len()),
        Value::BulkString(bytes) => format!("{} bytes", bytes.len()),
        other => format!("{other:?}").chars().take(60).collect(),
    };
    RedisError::Other { code: "unexpected reply".to_owned(), reason: kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn entries_are_read_and_deleted_ones_left_out() {
        let entry = Value::Array(vec![bulk("5-1"), Value::Array(vec![bulk("a"), bulk("b")])]);
        let deleted = Value::Array(vec![bulk("5-2"), Value::Nil]);
        let read = entries(Value::Array(vec![entry, deleted, Value::Nil])).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].id, read[0].fields.get("a")), (EntryId { ms: 5, seq: 1 }, Some(&b"b"[..])));
    }

    #[test]
    fn an_unexpected_reply_is_an_error_that_does_not_show_it() {
        for nonsense in [Value::Int(1), Value::Array(vec![bulk("0123456789abcdef")])] {
            let text = entries(nonsense).unwrap_err().to_string();
            assert!(!text.contains("0123456789abcdef"), "{text}");
        }
    }
}
