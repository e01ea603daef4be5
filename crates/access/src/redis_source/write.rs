//! Writes keys that differ from their desired value, and publishes the changes.

use std::collections::HashMap;

use keyspace::keys::redis_source::{SOURCE_MARK, copies};
use keyspace::{RedisError, read_reply};
use redis::Pipeline;

use super::read::KeyValue;
use super::{Kind, RedisSource, Subject};

/// Changes of a kind published one by one; more of them are published as one empty message, which requests a scan.
const PUBLISHED_SINGLY_MAX: usize = 1000;

/// `COUNT` of `SSCAN`.
const COPIES_STEP: usize = 1000;

/// A key's desired value: the torrent's id, the user's id or the client's name; none if the key should not exist.
pub(super) type DesiredKey = (Subject, Option<String>);

/// Which keys may be written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteScope {
    /// Missing keys and copies of the database. The site's own keys are not changed.
    Copies,
    /// All keys, for an operator's command. They are not recorded as copies, so they stay until an operator removes them.
    All,
    /// None; the summary is that of [`WriteScope::All`].
    DryRun,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteSummary {
    pub(super) written: u64,
    pub(super) removed: u64,
    pub(super) unchanged: u64,
    /// Keys of the site's own with another value, which were not changed.
    pub(super) conflicts: u64,
}

impl WriteSummary {
    pub(super) fn add(&mut self, other: WriteSummary) {
        self.written += other.written;
        self.removed += other.removed;
        self.unchanged += other.unchanged;
        self.conflicts += other.conflicts;
    }
}

/// Commands in the order of execution: a copy is recorded before it is written and until it is deleted, so that it is never
/// read as a key of the site's own.
#[derive(Default)]
struct Commands {
    marking: Pipeline,
    writing: Pipeline,
    unmarking: Pipeline,
}

/// Changes to publish.
#[derive(Debug, Default)]
pub(super) struct Notifications(HashMap<Kind, Vec<Subject>>);

impl Notifications {
    pub(super) fn add(&mut self, subject: Subject) {
        let list = self.0.entry(subject.kind()).or_default();
        // One more than the limit records that it is exceeded.
        if list.len() <= PUBLISHED_SINGLY_MAX {
            list.push(subject);
        }
    }
}

impl RedisSource {
    /// Writes the keys that differ from their desired value, and adds them to the notifications.
    pub(super) async fn write_differences(
        &self,
        desired: &[DesiredKey],
        scope: WriteScope,
        notifications: &mut Notifications,
    ) -> Result<WriteSummary, RedisError> {
        let subjects: Vec<Subject> = desired.iter().map(|(subject, _)| *subject).collect();
        let values = self.read(&subjects).await?;
        let copies = self.are_copies(&subjects).await?;
        let mut summary = WriteSummary::default();
        let (mut commands, mut changed) = (Commands::default(), Vec::new());
        for (((subject, wanted), value), is_copy) in desired.iter().zip(values).zip(copies) {
            let is_equal = match (wanted, &value) {
                (None, KeyValue::Missing) => true,
                (Some(wanted), KeyValue::Text(text)) => wanted == text,
                _ => false,
            };
            if is_equal {
                summary.unchanged += 1;
                if wanted.is_none() && is_copy {
                    self.unmark(&mut commands.unmarking, subject);
                }
                continue;
            }
            if value != KeyValue::Missing && !is_copy && scope == WriteScope::Copies {
                summary.conflicts += 1;
                continue;
            }
            match wanted {
                Some(_) => summary.written += 1,
                None => summary.removed += 1,
            }
            match wanted {
                Some(_) if scope == WriteScope::Copies => self.mark(&mut commands.marking, subject),
                Some(_) => {}
                None => self.unmark(&mut commands.unmarking, subject),
            }
            self.write(&mut commands.writing, subject, wanted.as_deref(), value == KeyValue::Other);
            changed.push(*subject);
        }
        if scope != WriteScope::DryRun {
            for pipeline in [commands.marking, commands.writing, commands.unmarking] {
                self.send(&pipeline).await?;
            }
            changed.into_iter().for_each(|subject| notifications.add(subject));
        }
        Ok(summary)
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
        let key = subject.key();
        match (subject, wanted) {
            (_, None) => pipeline.cmd("DEL").arg(key),
            (Subject::User(_), Some(user)) => {
                // Other fields of the hash stay.
                if is_wrong_type {
                    pipeline.cmd("DEL").arg(&key);
                }
                pipeline.cmd("HSET").arg(key).arg("user_id").arg(user)
            }
            (_, Some(value)) => pipeline.cmd("SET").arg(key).arg(value),
        };
    }

    pub(super) async fn remove_malformed(&self, keys: &[String]) -> Result<(), RedisError> {
        let mut pipeline = Pipeline::new();
        for key in keys {
            pipeline.cmd("DEL").arg(key);
        }
        self.send(&pipeline).await
    }

    /// Publishes changes on the channels (M11).
    pub(super) async fn publish(&self, notifications: Notifications) -> Result<(), RedisError> {
        let mut pipeline = Pipeline::new();
        for (kind, subjects) in notifications.0 {
            let channel = self.channel_of(kind);
            if subjects.len() > PUBLISHED_SINGLY_MAX {
                pipeline.cmd("PUBLISH").arg(channel).arg("");
                continue;
            }
            for subject in subjects {
                pipeline.cmd("PUBLISH").arg(channel).arg(subject.text());
            }
        }
        self.send(&pipeline).await
    }

    pub(super) async fn has_copies(&self, kind: Kind) -> Result<bool, RedisError> {
        self.redis.query(redis::cmd("EXISTS").arg(copies(kind.name()))).await
    }

    /// One page of the recorded copies, and the next cursor; zero at the end. A copy may come twice.
    pub(super) async fn scan_copies(
        &self,
        kind: Kind,
        cursor: u64,
    ) -> Result<(u64, Vec<Subject>), RedisError> {
        let mut command = redis::cmd("SSCAN");
        command.arg(copies(kind.name())).arg(cursor).arg("COUNT").arg(COPIES_STEP);
        let (next, members): (u64, Vec<String>) = self.redis.query(&command).await?;
        Ok((next, members.iter().filter_map(|text| Subject::parse(kind, text)).collect()))
    }

    /// Whether Redis still has the mark of [`RedisSource::set_source_mark`]; without it, Redis has lost its data.
    pub(super) async fn has_source_mark(&self) -> Result<bool, RedisError> {
        self.redis.query(redis::cmd("EXISTS").arg(SOURCE_MARK)).await
    }

    pub(super) async fn set_source_mark(&self) -> Result<(), RedisError> {
        self.redis.query(redis::cmd("SET").arg(SOURCE_MARK).arg(1)).await
    }
}
