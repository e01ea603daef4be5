//! What keys say.

use domain::{Passkey, UserId};
use keyspace::keys::site::copies;
use keyspace::scan::common_pattern;
use keyspace::{RedisError, Reply, Scan, read_reply};
use redis::Pipeline;

use super::{Kind, SiteKeys, Subject};
use crate::error::AccessError;

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is no such key, or it does not say what it is for.
    Missing,
    /// The torrent's number, the user's number or the client's name.
    Text(String),
    /// Something of another type.
    Other,
    /// A copy of our database, whatever it holds. Only [`SiteKeys::read_site`] tells it apart.
    Copy,
}

/// A key that a scan met.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Met {
    /// One of the site's.
    Subject(Subject),
    /// One that looks like the site's, and whose name nobody understands.
    Unfit(Kind, String),
}

/// All keys of some kinds, page by page.
pub(super) struct Pages {
    scan: Scan,
    kinds: Vec<Kind>,
}

impl SiteKeys {
    /// The user id in the site's own key of this passkey, if there is one.
    pub async fn user_of(&self, passkey: &Passkey) -> Result<Option<UserId>, AccessError> {
        let found = self.read_site(&[Subject::User(*passkey)]).await?;
        Ok(found.into_iter().find_map(|found| match found {
            Found::Text(text) => text.parse().ok(),
            _ => None,
        }))
    }

    /// Reads what these keys say, in the same order. Fails as a whole: half an answer would look like keys that are gone.
    pub(super) async fn read(&self, subjects: &[Subject]) -> Result<Vec<Found>, RedisError> {
        let mut pipeline = Pipeline::new();
        for subject in subjects {
            let key = self.key_of(subject);
            match subject {
                Subject::Torrent(_) | Subject::Client(_) => pipeline.cmd("GET").arg(key),
                Subject::User(_) => pipeline.cmd("HGET").arg(key).arg("user_id"),
            };
        }
        self.redis.pipeline(&pipeline).await.into_iter().map(found_of).collect()
    }

    /// Like [`SiteKeys::read`], but tells our copies from keys of the site's own.
    pub(super) async fn read_site(&self, subjects: &[Subject]) -> Result<Vec<Found>, RedisError> {
        let found = self.read(subjects).await?;
        let copies = self.are_copies(subjects).await?;
        let told = found.into_iter().zip(copies).map(|(found, is_copy)| match found {
            Found::Text(_) | Found::Other if is_copy => Found::Copy,
            found => found,
        });
        Ok(told.collect())
    }

    /// Whether the keys of these subjects are copies of our database, as far as they exist.
    pub(super) async fn are_copies(&self, subjects: &[Subject]) -> Result<Vec<bool>, RedisError> {
        let mut pipeline = Pipeline::new();
        for subject in subjects {
            pipeline.cmd("SISMEMBER").arg(copies(subject.kind().name())).arg(subject.text());
        }
        self.redis.pipeline(&pipeline).await.into_iter().map(read_reply).collect()
    }

    /// All keys of these kinds.
    pub(super) fn pages(&self, kinds: &[Kind]) -> Pages {
        let patterns: Vec<String> = kinds.iter().map(|kind| self.names.pattern(kind.key())).collect();
        Pages { scan: self.redis.scan(common_pattern(&patterns)), kinds: kinds.to_vec() }
    }

    /// What a key of these kinds is about; none if it is none of them.
    fn meet(&self, kinds: &[Kind], key: &str) -> Option<Met> {
        kinds.iter().find_map(|kind| {
            let text = self.names.parse_subject(kind.key(), key)?;
            let subject = Subject::parse(*kind, text);
            // In another spelling it would not be found when asked for.
            let fit = subject.filter(|subject| self.key_of(subject) == key);
            Some(fit.map_or_else(|| Met::Unfit(*kind, key.to_owned()), Met::Subject))
        })
    }
}

impl Pages {
    /// Some more; none at the end. One key may come twice.
    pub(super) async fn next(&mut self, keys: &SiteKeys) -> Result<Option<Vec<Met>>, RedisError> {
        let page = self.scan.next_page().await?;
        Ok(page.map(|page| page.iter().filter_map(|key| keys.meet(&self.kinds, key)).collect()))
    }
}

fn found_of(reply: Reply) -> Result<Found, RedisError> {
    match read_reply::<Option<Vec<u8>>>(reply) {
        Ok(None) => Ok(Found::Missing),
        Ok(Some(bytes)) => Ok(String::from_utf8(bytes).map_or(Found::Other, Found::Text)),
        Err(RedisError::WrongType { .. }) => Ok(Found::Other),
        Err(trouble) => Err(trouble),
    }
}
