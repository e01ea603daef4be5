//! Reads keys.

use domain::{Passkey, UserId};
use keyspace::keys::redis_source::copies;
use keyspace::scan::common_pattern;
use keyspace::{RedisError, Reply, Scan, read_reply};
use redis::Pipeline;

use super::{Kind, RedisSource, Subject};
use crate::error::AccessError;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyValue {
    /// No key, or a hash without `user_id`.
    Missing,
    /// The torrent's id, the user's id or the client's name.
    Text(String),
    /// Another type, or not UTF-8.
    Other,
    /// A copy of the database, with any value. Only [`RedisSource::read_site`] returns it.
    Copy,
}

/// A key found by a scan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ScannedKey {
    Subject(Subject),
    /// Has the prefix of a kind, but a malformed name.
    Malformed(Kind, String),
}

/// A scan of all keys of some kinds, in pages.
pub(super) struct Pages {
    scan: Scan,
    kinds: Vec<Kind>,
}

impl RedisSource {
    /// The user id in the site's own key of this passkey.
    pub async fn user_of(&self, passkey: &Passkey) -> Result<Option<UserId>, AccessError> {
        let values = self.read_site(&[Subject::User(*passkey)]).await?;
        Ok(values.into_iter().find_map(|value| match value {
            KeyValue::Text(text) => text.parse().ok(),
            _ => None,
        }))
    }

    /// Reads keys, in the same order. Fails as a whole: a partial result would look like deleted keys.
    pub(super) async fn read(&self, subjects: &[Subject]) -> Result<Vec<KeyValue>, RedisError> {
        let mut pipeline = Pipeline::new();
        for subject in subjects {
            let key = subject.key();
            match subject {
                Subject::Torrent(_) | Subject::Client(_) => pipeline.cmd("GET").arg(key),
                Subject::User(_) => pipeline.cmd("HGET").arg(key).arg("user_id"),
            };
        }
        self.redis.pipeline(&pipeline).await.into_iter().map(key_value).collect()
    }

    /// Like [`RedisSource::read`], but returns [`KeyValue::Copy`] for copies of the database.
    pub(super) async fn read_site(&self, subjects: &[Subject]) -> Result<Vec<KeyValue>, RedisError> {
        let values = self.read(subjects).await?;
        let copies = self.are_copies(subjects).await?;
        let marked = values.into_iter().zip(copies).map(|(value, is_copy)| match value {
            KeyValue::Text(_) | KeyValue::Other if is_copy => KeyValue::Copy,
            value => value,
        });
        Ok(marked.collect())
    }

    /// Whether each subject is recorded as a copy; its key may be missing.
    pub(super) async fn are_copies(&self, subjects: &[Subject]) -> Result<Vec<bool>, RedisError> {
        let mut pipeline = Pipeline::new();
        for subject in subjects {
            pipeline.cmd("SISMEMBER").arg(copies(subject.kind().name())).arg(subject.text());
        }
        self.redis.pipeline(&pipeline).await.into_iter().map(read_reply).collect()
    }

    pub(super) fn pages(&self, kinds: &[Kind]) -> Pages {
        let patterns: Vec<String> = kinds.iter().map(|kind| kind.key().pattern()).collect();
        Pages { scan: self.redis.scan(common_pattern(&patterns)), kinds: kinds.to_vec() }
    }

    /// None for a key of another kind.
    fn parse_key(&self, kinds: &[Kind], key: &str) -> Option<ScannedKey> {
        kinds.iter().find_map(|kind| {
            let text = kind.key().parse_subject(key)?;
            let subject = Subject::parse(*kind, text);
            // A key in another spelling, such as upper case, is not found when it is read by its subject.
            let canonical = subject.filter(|subject| subject.key() == key);
            Some(canonical.map_or_else(|| ScannedKey::Malformed(*kind, key.to_owned()), ScannedKey::Subject))
        })
    }
}

impl Pages {
    /// The next page; none at the end. A key may come twice.
    pub(super) async fn next(&mut self, source: &RedisSource) -> Result<Option<Vec<ScannedKey>>, RedisError> {
        let page = self.scan.next_page().await?;
        Ok(page.map(|page| page.iter().filter_map(|key| source.parse_key(&self.kinds, key)).collect()))
    }
}

fn key_value(reply: Reply) -> Result<KeyValue, RedisError> {
    match read_reply::<Option<Vec<u8>>>(reply) {
        Ok(None) => Ok(KeyValue::Missing),
        Ok(Some(bytes)) => Ok(String::from_utf8(bytes).map_or(KeyValue::Other, KeyValue::Text)),
        Err(RedisError::WrongType { .. }) => Ok(KeyValue::Other),
        Err(error) => Err(error),
    }
}
