//! Makes keys say what they should, and tells others of it.

use std::collections::HashMap;

use keyspace::keys::site::{SOURCE_MARK, copies};
use keyspace::{RedisError, read_reply};
use redis::Pipeline;

use super::read::Found;
use super::{Kind, SiteKeys, Subject};

/// Changes of a kind that are told one by one; more are told as "look at all of them".
const TOLD_ONE_BY_ONE_MAX: usize = 1000;

/// Copies that are listed at a time.
const COPIES_STEP: usize = 1000;

/// What a key should say: the torrent's number, the user's number, the client's name; none if it should not be there.
pub(super) type Line = (Subject, Option<String>);

/// Which keys may be written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those that are missing or copies of our database. Keys of the site's own are left alone.
    Copies,
    /// All of them: an operator loads the keys. What is written is no copy: it stays until an operator removes it.
    All,
    /// None: says what [`Reach::All`] would do.
    Nothing,
}

/// What was found and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) written: u64,
    pub(super) removed: u64,
    pub(super) unchanged: u64,
    /// Keys of the site's own that say something else, and were left alone.
    pub(super) left_alone: u64,
}

impl Settled {
    pub(super) fn add(&mut self, other: Settled) {
        self.written += other.written;
        self.removed += other.removed;
        self.unchanged += other.unchanged;
        self.left_alone += other.left_alone;
    }
}

/// Commands in the order in which they must be done: a key is marked as a copy before it is written and until it is gone,
/// so that a copy is never taken for a key of the site's own.
#[derive(Default)]
struct Work {
    marking: Pipeline,
    writing: Pipeline,
    unmarking: Pipeline,
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
    /// Makes these keys say what they should. Only what differs is written, and added to the news.
    pub(super) async fn settle(
        &self,
        lines: &[Line],
        reach: Reach,
        news: &mut News,
    ) -> Result<Settled, RedisError> {
        let subjects: Vec<Subject> = lines.iter().map(|(subject, _)| *subject).collect();
        let found = self.read(&subjects).await?;
        let copies = self.are_copies(&subjects).await?;
        let (mut settled, mut work, mut changed) = (Settled::default(), Work::default(), Vec::new());
        for (((subject, wanted), found), is_copy) in lines.iter().zip(found).zip(copies) {
            let is_right = match (wanted, &found) {
                (None, Found::Missing) => true,
                (Some(wanted), Found::Text(text)) => wanted == text,
                _ => false,
            };
            if is_right {
                settled.unchanged += 1;
                if wanted.is_none() && is_copy {
                    self.unmark(&mut work.unmarking, subject);
                }
                continue;
            }
            if found != Found::Missing && !is_copy && reach == Reach::Copies {
                settled.left_alone += 1;
                continue;
            }
            match wanted {
                Some(_) => settled.written += 1,
                None => settled.removed += 1,
            }
            match wanted {
                Some(_) if reach == Reach::Copies => self.mark(&mut work.marking, subject),
                Some(_) => {}
                None => self.unmark(&mut work.unmarking, subject),
            }
            self.write(&mut work.writing, subject, wanted.as_deref(), found == Found::Other);
            changed.push(*subject);
        }
        if reach != Reach::Nothing {
            for pipeline in [work.marking, work.writing, work.unmarking] {
                self.send(&pipeline).await?;
            }
            changed.into_iter().for_each(|subject| news.add(subject));
        }
        Ok(settled)
    }

    async fn send(&self, pipeline: &Pipeline) -> Result<(), RedisError> {
        for reply in self.redis.pipeline(pipeline).await {
            read_reply::<redis::Value>(reply)?;
        }
        Ok(())
    }

    fn mark(&self, pipeline: &mut Pipeline, subject: &Subject) {
        pipeline.cmd("SADD").arg(copies(subject.kind().name())).arg(subject.text());
    }

    fn unmark(&self, pipeline: &mut Pipeline, subject: &Subject) {
        pipeline.cmd("SREM").arg(copies(subject.kind().name())).arg(subject.text());
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
    pub(super) async fn remove_unfit(&self, keys: &[String]) -> Result<(), RedisError> {
        let mut pipeline = Pipeline::new();
        for key in keys {
            pipeline.cmd("DEL").arg(key);
        }
        self.send(&pipeline).await
    }

    /// Tells the news on the channels (M11).
    pub(super) async fn tell(&self, news: News) -> Result<(), RedisError> {
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
        self.send(&pipeline).await
    }

    /// Whether there is any copy of this kind.
    pub(super) async fn has_copies(&self, kind: Kind) -> Result<bool, RedisError> {
        self.redis.query(redis::cmd("EXISTS").arg(copies(kind.name()))).await
    }

    /// Some copies of this kind, and where to go on; zero at the end. One may come twice.
    pub(super) async fn some_copies(
        &self,
        kind: Kind,
        cursor: u64,
    ) -> Result<(u64, Vec<Subject>), RedisError> {
        let mut command = redis::cmd("SSCAN");
        command.arg(copies(kind.name())).arg(cursor).arg("COUNT").arg(COPIES_STEP);
        let (next, members): (u64, Vec<String>) = self.redis.query(&command).await?;
        Ok((next, members.iter().filter_map(|text| Subject::parse(kind, text)).collect()))
    }

    /// Whether Redis still has the mark that was set when the site's keys were read.
    pub(super) async fn has_source_mark(&self) -> Result<bool, RedisError> {
        self.redis.query(redis::cmd("EXISTS").arg(SOURCE_MARK)).await
    }

    /// Sets that mark.
    pub(super) async fn set_source_mark(&self) -> Result<(), RedisError> {
        self.redis.query(redis::cmd("SET").arg(SOURCE_MARK).arg(1)).await
    }
}
