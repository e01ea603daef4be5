//! Makes keys say what they should, and tells others of it.

use std::collections::HashMap;

use keyspace::keys::site::COPIES_MARK;
use keyspace::{Trouble, read_reply};
use redis::Pipeline;

use super::read::Found;
use super::{Kind, SiteKeys, Subject};

/// Changes of a kind that are told one by one; more are told as "look at all of them".
const TOLD_ONE_BY_ONE_MAX: usize = 1000;

/// What a key should say: the torrent's number, the user's number, the client's name; none if it should not be there.
pub(super) type Line = (Subject, Option<String>);

/// What was found and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) written: u64,
    pub(super) removed: u64,
    pub(super) unchanged: u64,
}

impl Settled {
    pub(super) fn add(&mut self, other: Settled) {
        self.written += other.written;
        self.removed += other.removed;
        self.unchanged += other.unchanged;
    }
}

/// What has to be told on the channels, put together so that nobody is told too much.
#[derive(Debug, Default)]
pub(super) struct News(HashMap<Kind, Vec<Subject>>);

impl News {
    pub(super) fn add(&mut self, subject: Subject) {
        let list = self.0.entry(subject.kind()).or_default();
        // One more than is told shows that there are too many.
        if list.len() <= TOLD_ONE_BY_ONE_MAX {
            list.push(subject);
        }
    }
}

impl SiteKeys {
    /// Makes these keys say what they should. Only what differs is written, and added to the news. With `is_dry`,
    /// nothing is written, and the figures say what would be.
    pub(super) async fn settle(
        &self,
        lines: &[Line],
        is_dry: bool,
        news: &mut News,
    ) -> Result<Settled, Trouble> {
        let subjects: Vec<Subject> = lines.iter().map(|(subject, _)| *subject).collect();
        let found = self.read(&subjects).await?;
        let (mut settled, mut writing) = (Settled::default(), Pipeline::new());
        let mut changed = Vec::new();
        for ((subject, wanted), found) in lines.iter().zip(found) {
            match (wanted, found) {
                (None, Found::Missing) => settled.unchanged += 1,
                (Some(wanted), Found::Text(text)) if *wanted == text => settled.unchanged += 1,
                (wanted, found) => {
                    match wanted {
                        Some(_) => settled.written += 1,
                        None => settled.removed += 1,
                    }
                    self.write(&mut writing, subject, wanted.as_deref(), found == Found::Other);
                    changed.push(*subject);
                }
            }
        }
        if !is_dry {
            for reply in self.redis.pipeline(&writing).await {
                read_reply::<redis::Value>(reply)?;
            }
            changed.into_iter().for_each(|subject| news.add(subject));
        }
        Ok(settled)
    }

    fn write(&self, pipeline: &mut Pipeline, subject: &Subject, wanted: Option<&str>, is_wrong_type: bool) {
        let key = self.key_of(subject);
        match (subject, wanted) {
            (_, None) => pipeline.cmd("DEL").arg(key),
            (Subject::User(_), Some(user)) => {
                // Whatever else the site keeps about a user stays, unless it is no hash.
                if is_wrong_type {
                    pipeline.cmd("DEL").arg(&key);
                }
                pipeline.cmd("HSET").arg(key).arg("user_id").arg(user)
            }
            (_, Some(value)) => pipeline.cmd("SET").arg(key).arg(value),
        };
    }

    /// Removes keys whose names nobody understands.
    pub(super) async fn remove_unfit(&self, keys: &[String]) -> Result<(), Trouble> {
        let mut pipeline = Pipeline::new();
        for key in keys {
            pipeline.cmd("DEL").arg(key);
        }
        for reply in self.redis.pipeline(&pipeline).await {
            read_reply::<redis::Value>(reply)?;
        }
        Ok(())
    }

    /// Tells the news on the channels (M11).
    pub(super) async fn tell(&self, news: News) -> Result<(), Trouble> {
        let mut pipeline = Pipeline::new();
        for (kind, subjects) in news.0 {
            let channel = self.channel_of(kind);
            if subjects.len() > TOLD_ONE_BY_ONE_MAX {
                pipeline.cmd("PUBLISH").arg(channel).arg("");
                continue;
            }
            for subject in subjects {
                pipeline.cmd("PUBLISH").arg(channel).arg(subject.text());
            }
        }
        for reply in self.redis.pipeline(&pipeline).await {
            read_reply::<redis::Value>(reply)?;
        }
        Ok(())
    }

    /// Whether the keys of this kind are a copy of our database, and of nothing else.
    pub(super) async fn is_marked(&self, kind: Kind) -> Result<bool, Trouble> {
        self.redis.query(redis::cmd("HEXISTS").arg(COPIES_MARK).arg(kind.name())).await
    }

    /// Takes note that they are.
    pub(super) async fn mark(&self, kind: Kind) -> Result<(), Trouble> {
        self.redis.query(redis::cmd("HSET").arg(COPIES_MARK).arg(kind.name()).arg(1)).await
    }

    /// Takes note that all of them are the site's.
    pub(super) async fn unmark_all(&self) -> Result<(), Trouble> {
        self.redis.query(redis::cmd("DEL").arg(COPIES_MARK)).await
    }
}
