//! Which user and torrent an entry is of, and where risks are reported.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use access::redis_source::{RedisSourceReader, Subject};
use access::{FollowCounters, Gate};
use async_trait::async_trait;
use domain::clock::{Clock, SystemClock};
use domain::{InfoHash, Passkey, RiskEvent, TorrentId, UserId};
use journal::risk::RiskThrottle;
use journal::{Arrival, Batch, EntryId, Queue, Rejected, View, ViewError};
use ledger::RiskSink;
use tokio::sync::oneshot;

/// How long an entry of an unknown user or torrent waits for the gate, at the most.
const CATCH_UP_MAX: Duration = Duration::from_secs(3);
/// How often it is looked whether the gate has caught up.
const CATCH_UP_POLL: Duration = Duration::from_millis(10);
/// An entry that is older than this need not wait: the gate is never that far behind while the database answers.
/// Longer than clocks of servers differ, so that a backlog of unknown entries is not slowed down.
const SURELY_KNOWN_MS: u64 = 10_000;

/// Finds users by passkeys and torrents by infohashes (L1): in the gate, and where it knows nothing yet, in every source
/// that lets clients announce.
#[derive(Clone)]
pub struct Resolver {
    gate: Arc<Gate>,
    follow: Arc<FollowCounters>,
    site: Option<RedisSourceReader>,
}

impl Resolver {
    /// `site` reads the site's keys in Redis, if there are any.
    pub fn new(gate: &Arc<Gate>, follow: Arc<FollowCounters>, site: Option<RedisSourceReader>) -> Self {
        Resolver { gate: Arc::clone(gate), follow, site }
    }

    /// Waits until the gate has read what was in the database when this was called. False if that takes too long: the
    /// entry must then be retried, not rejected. A slow poll is not a failed one, so failures are not asked.
    async fn follow(&self, written_ms: u64) -> bool {
        let failures = || self.follow.failures_in_a_row.load(Ordering::Relaxed);
        if written_ms + SURELY_KNOWN_MS < SystemClock.now_ms() && failures() == 0 {
            return true;
        }
        two_polls(&self.follow, CATCH_UP_MAX).await
    }

    /// A view whose entries are resolved before it applies them.
    pub fn before(&self, view: Arc<dyn View>) -> Arc<dyn View> {
        Arc::new(Resolved { view, resolver: self.clone() })
    }

    /// Looks for users and torrents of entries by other producers that the gate does not know: in the site's keys, the
    /// whitelist and at the verify endpoint, as for an announce.
    async fn learn(&self, arrivals: &[Arrival]) {
        let unnumbered = || arrivals.iter().map(|arrival| &arrival.entry);
        let passkeys = unnumbered().filter(|entry| entry.user.is_none()).filter_map(|entry| entry.passkey);
        let mut passkeys: Vec<Passkey> =
            passkeys.filter(|passkey| self.gate.user_of(passkey).is_none()).collect();
        let hashes = unnumbered().filter(|entry| entry.torrent.is_none()).map(|entry| entry.info_hash);
        let mut hashes: Vec<InfoHash> = hashes.filter(|hash| self.gate.torrent_of(hash).is_none()).collect();
        passkeys.sort_unstable();
        passkeys.dedup();
        hashes.sort_unstable();
        hashes.dedup();
        if let Some(site) = &self.site {
            let users = passkeys.iter().copied().map(Subject::User);
            site.read(users.chain(hashes.into_iter().map(Subject::Torrent)).collect()).await;
        }
        self.verify(passkeys).await;
    }

    /// Waits until each of these is verified or refused.
    async fn verify(&self, passkeys: Vec<Passkey>) {
        let Some(verification) = self.gate.unknown_passkeys().filter(|_| !passkeys.is_empty()) else {
            return;
        };
        let mut answers = Vec::with_capacity(passkeys.len());
        for passkey in passkeys {
            let (sender, answer) = oneshot::channel::<()>();
            let from = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            verification.request(passkey, from, Box::new(move || drop(sender)));
            answers.push(answer);
        }
        let waiting = async {
            for answer in answers {
                let _ = answer.await;
            }
        };
        let _ = tokio::time::timeout(verification.answer_timeout() + Duration::from_secs(1), waiting).await;
    }
}

/// Two, because one may be running that has read before. False after `limit`.
async fn two_polls(follow: &FollowCounters, limit: Duration) -> bool {
    let polls = || follow.polls.load(Ordering::Relaxed);
    let expected = polls() + 2;
    let caught_up = async {
        while polls() < expected {
            tokio::time::sleep(CATCH_UP_POLL).await;
        }
    };
    tokio::time::timeout(limit, caught_up).await.is_ok()
}

#[async_trait]
impl ledger::Directory for Resolver {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.gate.user_of(passkey)
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.gate.torrent_of(info_hash)
    }

    async fn catch_up(&self, written_ms: u64) -> bool {
        self.follow(written_ms).await
    }
}

#[async_trait]
impl views::mirror::Directory for Resolver {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.gate.user_of(passkey)
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)> {
        self.gate.torrent(info_hash).map(|grant| (grant.id, grant.info_hash))
    }

    fn is_removed(&self, torrent: TorrentId, info_hash: &InfoHash) -> bool {
        self.gate.is_torrent_removed(torrent, info_hash)
    }

    async fn catch_up(&self, written_ms: u64) {
        self.follow(written_ms).await;
    }
}

/// A view whose entries are resolved first.
struct Resolved {
    view: Arc<dyn View>,
    resolver: Resolver,
}

#[async_trait]
impl View for Resolved {
    fn name(&self) -> &'static str {
        self.view.name()
    }

    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        self.resolver.learn(batch.arrivals).await;
        self.view.apply(batch).await
    }

    async fn fence(&self, consumer: &str) -> Result<(), ViewError> {
        self.view.fence(consumer).await
    }

    async fn forget(&self, consumer: &str) -> Result<(), ViewError> {
        self.view.forget(consumer).await
    }

    async fn resume_after(&self) -> Result<Option<EntryId>, ViewError> {
        self.view.resume_after().await
    }
}

/// Puts the ledger's risk events into the queue that also takes the tracker's.
pub struct QueuedRisks {
    queue: Arc<Queue>,
    throttle: RiskThrottle,
}

impl QueuedRisks {
    pub fn new(queue: Arc<Queue>) -> Self {
        QueuedRisks { queue, throttle: RiskThrottle::default() }
    }
}

impl RiskSink for QueuedRisks {
    fn report(&self, risk: &RiskEvent) {
        if let Some(unreported) = self.throttle.admit(risk.user, risk.kind, risk.at) {
            self.queue.report(&RiskEvent { unreported, ..*risk });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_gate_that_is_slow_to_poll_has_not_caught_up() {
        let follow = FollowCounters::default();
        let limit = Duration::from_millis(50);
        assert!(!two_polls(&follow, limit).await, "no poll, and no failure either");
        let polling = async {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                follow.polls.fetch_add(1, Ordering::Relaxed);
            }
        };
        assert!(tokio::join!(two_polls(&follow, CATCH_UP_MAX), polling).0);
    }
}
