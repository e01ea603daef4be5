//! Peers that fell silent (M6): an entry in the journal ends them, for every view at once.
//!
//! A message that a timeout ran out, or the sweep, says who may be gone. The record of the peer says whether it is
//! overdue. The entry says since when the peer was silent: should it have announced meanwhile, on any node, every view
//! ignores the entry. So asking twice, or too early, harms nobody; nothing has to be locked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::{InfoHash, PeerId, Seconds, TorrentId, UnixTime};
use journal::backoff::Backoff;
use journal::{AppendToken, Fields, Lane};
use keyspace::read_reply;
use parking_lot::Mutex;
use redis::Pipeline;

use super::Mirror;
use super::record::Record;
use crate::error::ViewsError;

/// How far our clock may be behind that of Redis.
const CLOCK_SLACK: Seconds = Seconds(5);
/// How long nobody is reaped again for the same silence: until the entry has come back through the journal.
const AGAIN_AFTER: Seconds = Seconds(30);
/// Peers remembered for that. With more, all are forgotten, and some may be reaped twice, which is harmless.
const REMEMBERED_MAX: usize = 100_000;
/// Peers looked at in one go.
const AT_ONCE_MAX: usize = 500;
/// How often the journal is asked to take the entries before the sweep has to find the peers again.
const ATTEMPTS_MAX: u32 = 5;

/// How a silent peer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// By a message that its timeout ran out.
    ByMessage,
    /// By the sweep.
    BySweep,
}

/// What is remembered between calls.
#[derive(Debug)]
pub(super) struct Reaping {
    producer: String,
    batches: AtomicU64,
    /// Whose silence was written down, and when.
    lately: Mutex<HashMap<(TorrentId, PeerId), (UnixTime, UnixTime)>>,
}

impl Reaping {
    pub(super) fn new(producer: String) -> Self {
        Reaping { producer, batches: AtomicU64::new(0), lately: Mutex::default() }
    }

    /// Whether the silence since `at` was written down lately; notes it if not.
    fn is_repeated(&self, whose: (TorrentId, PeerId), at: UnixTime, now: UnixTime) -> bool {
        let mut lately = self.lately.lock();
        if lately.get(&whose).is_some_and(|(known, told)| *known == at && now < *told + AGAIN_AFTER) {
            return true;
        }
        if lately.len() >= REMEMBERED_MAX {
            lately.clear();
        }
        lately.insert(whose, (at, now));
        false
    }

    /// The entries were not stored: they may be tried again at once.
    fn forget(&self, whose: &[(TorrentId, PeerId)]) {
        let mut lately = self.lately.lock();
        for peer in whose {
            lately.remove(peer);
        }
    }
}

impl Mirror {
    /// Ends those of these peers that are active and overdue. Returns how many. To be called by the process that keeps
    /// the mirror; by others it does nothing.
    pub async fn reap(&self, peers: &[(TorrentId, PeerId)], found: Found) -> Result<u64, ViewsError> {
        let mut reaped = 0;
        for peers in peers.chunks(AT_ONCE_MAX) {
            if !self.is_active() {
                break;
            }
            reaped += self.reap_some(peers, found).await?;
        }
        Ok(reaped)
    }

    async fn reap_some(&self, peers: &[(TorrentId, PeerId)], found: Found) -> Result<u64, ViewsError> {
        let mut pipeline = Pipeline::new();
        for (torrent, peer) in peers {
            pipeline.cmd("HMGET").arg(self.names().own(*torrent)).arg("h").arg(format!("p{peer}"));
        }
        let now = self.parts.clock.now();
        let (mut overdue, mut entries) = (Vec::new(), Vec::new());
        for (whose, reply) in peers.iter().zip(self.redis().pipeline(&pipeline).await) {
            let (info_hash, record) = read_reply::<(Option<String>, Option<String>)>(reply)?;
            let info_hash = info_hash.and_then(|text| text.parse::<InfoHash>().ok());
            let record = record.and_then(|text| Record::parse(&text));
            let (Some(info_hash), Some(record)) = (info_hash, record) else { continue };
            let is_overdue = now + CLOCK_SLACK >= record.at + self.settings.reap_after;
            if is_overdue && !self.reaping.is_repeated(*whose, record.at, now) {
                entries.push(record.timeout_entry((whose.0, &info_hash), &whose.1, now));
                overdue.push(*whose);
            }
        }
        if entries.is_empty() {
            return Ok(0);
        }
        self.append(&entries).await.inspect_err(|_| self.reaping.forget(&overdue))?;
        let counter = match found {
            Found::ByMessage => &self.counting.reaped_by_message,
            Found::BySweep => &self.counting.reaped_by_sweep,
        };
        counter.fetch_add(overdue.len() as u64, Ordering::Relaxed);
        self.publish(&overdue).await;
        Ok(overdue.len() as u64)
    }

    /// Stores the entries, under one token however often it is tried.
    async fn append(&self, entries: &[Fields]) -> Result<(), ViewsError> {
        let number = self.reaping.batches.fetch_add(1, Ordering::AcqRel) + 1;
        let token = AppendToken { producer: self.reaping.producer.clone(), number };
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        for _ in 1..ATTEMPTS_MAX {
            if self.parts.journal.append(Lane::Traffic, entries, &token).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(backoff.pause()).await;
        }
        Ok(self.parts.journal.append(Lane::Traffic, entries, &token).await?)
    }

    /// Tells the site who was reaped (M11). Whoever does not listen misses it; the keys tell the same.
    async fn publish(&self, peers: &[(TorrentId, PeerId)]) {
        let mut pipeline = Pipeline::new();
        for (torrent, peer) in peers {
            pipeline.cmd("PUBLISH").arg(&self.settings.channel_expired).arg(format!("{torrent}:{peer}"));
        }
        if let Some(Err(reason)) = self.redis().pipeline(&pipeline).await.into_iter().find(Result::is_err) {
            tracing::debug!(%reason, "the end of peers could not be told on the channel");
        }
    }
}
