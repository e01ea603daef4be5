//! Peers that fell silent (M6): an entry in the journal ends them, for every view at once.
//!
//! A message that a timeout ran out, or the sweep, says who may be gone. The last_announce of the peer says whether it is
//! overdue. The entry says since when the peer was silent: should it have announced meanwhile, on any node, every view
//! ignores the entry. So asking twice, or too early, harms nobody; nothing has to be locked.
//!
//! While the mirror is behind the journal, nobody is silent for sure: what they said may be yet to come. Then their
//! timeouts are set anew, and the next message asks again.

mod progress;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::{InfoHash, PeerId, Seconds, TorrentId, UnixTime, UserId};
use journal::backoff::Backoff;
use journal::{AppendToken, Fields, Lane};
use keyspace::read_reply;
use parking_lot::Mutex;
use redis::Pipeline;

use super::Mirror;
use super::last_announce::Timeout;
use super::stored_peer::StoredPeer;
use super::torrents::is_damage;
use crate::error::ViewsError;

/// How far our clock may be behind that of Redis.
const CLOCK_SLACK: Seconds = Seconds(5);
/// How long nobody is reaped again for the same timeout: until the entry has come back through the journal.
const REPEAT_AFTER: Seconds = Seconds(30);
/// Peers remembered for that. With more, all are forgotten, and some may be reaped twice, which is harmless.
const RECENT_MAX: usize = 100_000;
/// Peers checked at in one go.
const AT_ONCE_MAX: usize = 500;
/// How often the journal is asked to take the entries before the sweep has to find the peers again.
const ATTEMPTS_MAX: u32 = 5;
/// When somebody is checked at again peer_keys timeout could not be judged yet.
const RENEW_AFTER: Seconds = Seconds(10);

/// How a silent peer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReapTrigger {
    /// By a message that its timeout ran out.
    Notification,
    /// By the sweep.
    Sweep,
}

/// A user under a peer id on a torrent.
type PeerKey = (TorrentId, PeerId, UserId);

/// What is remembered between calls.
#[derive(Debug)]
pub(super) struct Reaping {
    producer: String,
    /// The number of the last batch. Held while one is stored: one stored after a later one would be taken for a
    /// repetition.
    batches: tokio::sync::Mutex<u64>,
    /// PeerKey timeout was written down, and when.
    recent: Mutex<HashMap<PeerKey, (UnixTime, UnixTime)>>,
    /// The greatest millisecond of an entry that was applied.
    pub(super) applied_ms: AtomicU64,
}

impl Reaping {
    pub(super) fn new(producer: String) -> Self {
        let (batches, recent) = (tokio::sync::Mutex::default(), Mutex::default());
        Reaping { producer, batches, recent, applied_ms: AtomicU64::new(0) }
    }

    /// Whether the timeout since `at` was written down recent; notes it if not.
    fn is_repeated(&self, peer_keys: PeerKey, at: UnixTime, now: UnixTime) -> bool {
        let mut recent = self.recent.lock();
        if recent.get(&peer_keys).is_some_and(|(known, told)| *known == at && now < *told + REPEAT_AFTER) {
            return true;
        }
        if recent.len() >= RECENT_MAX {
            recent.clear();
        }
        recent.insert(peer_keys, (at, now));
        false
    }

    /// The entries were not stored: they may be tried again at once.
    fn forget(&self, peer_keys: &[PeerKey]) {
        let mut recent = self.recent.lock();
        for peer in peer_keys {
            recent.remove(peer);
        }
    }
}

/// Those of some peers who are overdue.
#[derive(Default)]
struct Overdue {
    peer_keys: Vec<PeerKey>,
    entries: Vec<Fields>,
    /// Peers that cannot be judged yet.
    deferred: Vec<(TorrentId, PeerId)>,
}

impl Mirror {
    /// Ends those of these peers that are active and overdue. Returns how many. To be called by the process that keeps
    /// the mirror; by others it does nothing.
    pub async fn reap(&self, peers: &[(TorrentId, PeerId)], trigger: ReapTrigger) -> Result<u64, ViewsError> {
        let mut reaped = 0;
        for peers in peers.chunks(AT_ONCE_MAX) {
            if !self.is_active() {
                break;
            }
            reaped += self.reap_some(peers, trigger).await?;
        }
        Ok(reaped)
    }

    async fn reap_some(
        &self,
        peers: &[(TorrentId, PeerId)],
        trigger: ReapTrigger,
    ) -> Result<u64, ViewsError> {
        let overdue = self.find_overdue(peers).await?;
        self.renew_timeouts(&overdue.deferred).await;
        if overdue.entries.is_empty() {
            return Ok(0);
        }
        self.append(&overdue.entries).await.inspect_err(|_| self.reaping.forget(&overdue.peer_keys))?;
        let counter = match trigger {
            ReapTrigger::Notification => &self.counting.reaped_by_message,
            ReapTrigger::Sweep => &self.counting.reaped_by_sweep,
        };
        let count = overdue.peer_keys.len() as u64;
        counter.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }

    async fn find_overdue(&self, peers: &[(TorrentId, PeerId)]) -> Result<Overdue, ViewsError> {
        let mut pipeline = Pipeline::new();
        for (torrent, peer) in peers {
            pipeline.cmd("HMGET").arg(self.names().state(*torrent)).arg("h").arg(format!("p{peer}"));
        }
        let replies = self.redis().pipeline(&pipeline).await;
        let now = self.parts.clock.steady();
        let mut frontier = None;
        let mut overdue = Overdue::default();
        for ((torrent, peer), reply) in peers.iter().zip(replies) {
            let (info_hash, stored_text) = match read_reply::<(Option<String>, Option<String>)>(reply) {
                // Of one torrent: no reason to hold up all others.
                Err(error) if is_damage(&error) => continue,
                found => found?,
            };
            let info_hash = info_hash.and_then(|text| text.parse::<InfoHash>().ok());
            let (Some(info_hash), Some(stored_text)) = (info_hash, stored_text) else { continue };
            for stored in StoredPeer::parse_all(&stored_text).iter().filter(|stored| stored.is_active) {
                let deadline = stored.deadline();
                let Some(last_announce) =
                    stored.last_announce.as_ref().filter(|_| now + CLOCK_SLACK >= deadline)
                else {
                    continue;
                };
                if !self.has_applied_until(deadline, &mut frontier).await? {
                    overdue.deferred.push((*torrent, *peer));
                    continue;
                }
                let peer_keys = (*torrent, *peer, stored.user);
                if self.reaping.is_repeated(peer_keys, stored.last, now) {
                    continue;
                }
                // It happened when the timeout became too long. A later announce is later in the journal, too.
                let at = now.min(deadline).max(stored.last);
                let (torrent, user, since) = (*torrent, stored.user, stored.last);
                let date = self.date_of(at);
                let timeout = Timeout { torrent, info_hash: &info_hash, peer, user, since, at, date };
                overdue.entries.push(last_announce.timeout_entry(&timeout));
                overdue.peer_keys.push(peer_keys);
            }
        }
        Ok(overdue)
    }

    /// Sets timeouts anew, so that another message comes; none that an announce has set meanwhile.
    async fn renew_timeouts(&self, peers: &[(TorrentId, PeerId)]) {
        if peers.is_empty() {
            return;
        }
        self.counting.timeouts_deferred(peers.len() as u64);
        let mut pipeline = Pipeline::new();
        for (torrent, peer) in peers {
            pipeline.cmd("SET").arg(self.names().peer_timeout(*torrent, peer)).arg("1");
            pipeline.arg("EX").arg(RENEW_AFTER.0).arg("NX");
        }
        if let Some(Err(reason)) = self.redis().pipeline(&pipeline).await.into_iter().find(Result::is_err) {
            tracing::debug!(%reason, "timeouts could not be set anew; the sweep finds the peers");
        }
    }

    /// Stores the entries, under one token however often it is tried.
    async fn append(&self, entries: &[Fields]) -> Result<(), ViewsError> {
        let mut batches = self.reaping.batches.lock().await;
        *batches += 1;
        let token = AppendToken { producer: self.reaping.producer.clone(), number: *batches };
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        for _ in 1..ATTEMPTS_MAX {
            if self.parts.journal.append(Lane::Traffic, entries, &token).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(backoff.pause()).await;
        }
        Ok(self.parts.journal.append(Lane::Traffic, entries, &token).await?)
    }
}
