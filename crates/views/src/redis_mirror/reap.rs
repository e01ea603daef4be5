//! Expired peers (M6): ended by an entry in the journal, for every view.
//!
//! An expired event of Redis, or the sweep, names a peer; its stored deadline decides whether it is overdue. The entry
//! has the time of the peer's last announce: if the peer has announced since, on any node, every view ignores the
//! entry. So an early or repeated entry is harmless, and no lock is needed.
//!
//! While the mirror lags, later announces may be unread. Then timeouts are renewed, and their next expiry checks again.

mod progress;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use domain::{Backoff, InfoHash, PeerId, Seconds, TorrentId, UnixTime, UserId};
use journal::{AppendToken, Fields, Lane};
use keyspace::read_reply;
use parking_lot::Mutex;
use redis::Pipeline;

use super::RedisMirror;
use super::last_announce::Timeout;
use super::stored_peer::StoredPeer;
use super::torrents::is_damage;
use crate::error::ViewsError;

/// Tolerated difference to the clock of Redis.
const CLOCK_SLACK: Seconds = Seconds(5);
/// No second entry for the same timeout within this time, in which the first returns through the journal.
const REPEAT_AFTER: Seconds = Seconds(30);
/// Bound of `recent`. Beyond it all are dropped; a repeated entry is harmless.
const RECENT_MAX: usize = 100_000;
/// Peers per pipeline.
const AT_ONCE_MAX: usize = 500;
/// Appends tried before the sweep has to find the peers again.
const ATTEMPTS_MAX: u32 = 5;
/// Time to live of a renewed timeout.
const RENEW_AFTER: Seconds = Seconds(10);

/// How an overdue peer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReapTrigger {
    /// By an expired event of Redis.
    Notification,
    Sweep,
}

/// A user under a peer id on a torrent.
type PeerKey = (TorrentId, PeerId, UserId);

/// State between calls.
#[derive(Debug)]
pub(super) struct Reaping {
    producer: String,
    /// Number of the last appended batch. Held while appending: a batch appended after a later one would count as
    /// repeated.
    batches: tokio::sync::Mutex<u64>,
    /// Last announce of peers with a recent timeout entry, and when it was appended.
    recent: Mutex<HashMap<PeerKey, (UnixTime, UnixTime)>>,
    /// Highest millisecond of an applied entry.
    pub(super) applied_ms: AtomicU64,
}

impl Reaping {
    pub(super) fn new(producer: String) -> Self {
        let (batches, recent) = (tokio::sync::Mutex::default(), Mutex::default());
        Reaping { producer, batches, recent, applied_ms: AtomicU64::new(0) }
    }

    /// Whether there is a recent entry for the timeout since `at`; records it if not.
    fn is_repeated(&self, peer: PeerKey, at: UnixTime, now: UnixTime) -> bool {
        let mut recent = self.recent.lock();
        if recent.get(&peer).is_some_and(|(known, appended)| *known == at && now < *appended + REPEAT_AFTER) {
            return true;
        }
        if recent.len() >= RECENT_MAX {
            recent.clear();
        }
        recent.insert(peer, (at, now));
        false
    }

    /// The append failed: the peers may be tried again at once.
    fn clear(&self, peer_keys: &[PeerKey]) {
        let mut recent = self.recent.lock();
        for peer in peer_keys {
            recent.remove(peer);
        }
    }
}

#[derive(Default)]
struct Overdue {
    peer_keys: Vec<PeerKey>,
    entries: Vec<Fields>,
    /// Peers that cannot be decided while the mirror lags.
    deferred: Vec<(TorrentId, PeerId)>,
}

impl RedisMirror {
    /// Ends the overdue ones of these peers. Returns their number. Does nothing without the lease.
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
        self.append(&overdue.entries).await.inspect_err(|_| self.reaping.clear(&overdue.peer_keys))?;
        let counter = match trigger {
            ReapTrigger::Notification => &self.counters.reaped_by_message,
            ReapTrigger::Sweep => &self.counters.reaped_by_sweep,
        };
        let count = overdue.peer_keys.len() as u64;
        counter.add(count);
        Ok(count)
    }

    async fn find_overdue(&self, peers: &[(TorrentId, PeerId)]) -> Result<Overdue, ViewsError> {
        let mut pipeline = Pipeline::new();
        for (torrent, peer) in peers {
            pipeline.cmd("HMGET").arg(self.names().state(*torrent)).arg("h").arg(format!("p{peer}"));
        }
        let replies = self.redis().pipeline(&pipeline).await;
        let now = self.parts.clock.steady();
        let mut first_unapplied = None;
        let mut overdue = Overdue::default();
        for ((torrent, peer), reply) in peers.iter().zip(replies) {
            let (info_hash, stored_text) = match read_reply::<(Option<String>, Option<String>)>(reply) {
                // Affects one torrent only.
                Err(error) if is_damage(&error) => continue,
                found => found?,
            };
            let info_hash = info_hash.and_then(|text| text.parse::<InfoHash>().ok());
            let (Some(info_hash), Some(stored_text)) = (info_hash, stored_text) else { continue };
            for stored in StoredPeer::parse_all(&stored_text).iter().filter(|stored| stored.is_active) {
                let deadline = stored.deadline();
                let is_due = now + CLOCK_SLACK >= deadline;
                let Some(last_announce) = stored.last_announce().filter(|_| is_due) else {
                    continue;
                };
                if !self.has_applied_until(deadline, &mut first_unapplied).await? {
                    overdue.deferred.push((*torrent, *peer));
                    continue;
                }
                let peer_key = (*torrent, *peer, stored.user);
                if self.reaping.is_repeated(peer_key, stored.last, now) {
                    continue;
                }
                // Dated to the deadline. A later announce is also later in the journal.
                let at = now.min(deadline).max(stored.last);
                let (torrent, user, since) = (*torrent, stored.user, stored.last);
                let date = self.date_of(at);
                let timeout = Timeout { torrent, info_hash: &info_hash, peer, user, since, at, date };
                overdue.entries.push(last_announce.timeout_entry(&timeout));
                overdue.peer_keys.push(peer_key);
            }
        }
        Ok(overdue)
    }

    /// Renews timeouts, so that they expire again, unless an announce has set them meanwhile.
    async fn renew_timeouts(&self, peers: &[(TorrentId, PeerId)]) {
        if peers.is_empty() {
            return;
        }
        self.counters.timeouts_deferred(peers.len() as u64);
        let mut pipeline = Pipeline::new();
        for (torrent, peer) in peers {
            pipeline.cmd("SET").arg(self.names().peer_timeout(*torrent, peer)).arg("1");
            pipeline.arg("EX").arg(RENEW_AFTER.0).arg("NX");
        }
        if let Some(Err(reason)) = self.redis().pipeline(&pipeline).await.into_iter().find(Result::is_err) {
            tracing::debug!(%reason, "cannot renew timeouts; the sweep will find the peers");
        }
    }

    /// Appends the entries; all attempts use one token.
    async fn append(&self, entries: &[Fields]) -> Result<(), ViewsError> {
        let mut batches = self.reaping.batches.lock().await;
        *batches += 1;
        let token = AppendToken { producer: self.reaping.producer.clone(), number: *batches };
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        for _ in 1..ATTEMPTS_MAX {
            if self.parts.journal.append(Lane::Traffic, entries, &token).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
        Ok(self.parts.journal.append(Lane::Traffic, entries, &token).await?)
    }
}
