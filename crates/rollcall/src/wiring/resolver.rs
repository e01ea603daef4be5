//! Finds user and torrent of an entry.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use access::redis_source::{RedisSourceReader, Subject};
use access::{FollowCounters, Gate};
use async_trait::async_trait;
use domain::clock::{Clock, SystemClock};
use domain::{InfoHash, Passkey, TorrentId, UserId};
use journal::{Batch, DeliveredEntry, EntryId, Rejected, View, ViewError};
use tokio::sync::oneshot;

/// Longest wait of an entry with an unknown user or torrent for the gate to catch up.
const CATCH_UP_MAX: Duration = Duration::from_secs(3);
const CATCH_UP_POLL: Duration = Duration::from_millis(10);
/// An older entry need not wait: the gate is never that far behind while the database answers. Longer than the clocks
/// of servers differ, so that a backlog of unknown entries is not slowed down.
const GATE_DELAY_MAX_MS: u64 = 10_000;

/// Users by passkey and torrents by infohash (L1): from the gate, then from every source that admits announces.
#[derive(Clone)]
pub struct Resolver {
    gate: Arc<Gate>,
    follow: Arc<FollowCounters>,
    site: Option<RedisSourceReader>,
}

impl Resolver {
    /// `site` reads the Redis source, if there is one.
    pub fn new(gate: &Arc<Gate>, follow: Arc<FollowCounters>, site: Option<RedisSourceReader>) -> Self {
        Resolver { gate: Arc::clone(gate), follow, site }
    }

    /// Waits until the gate has read everything that was in the database at the time of the call. False if that
    /// takes too long: the entry must then be retried, not rejected. A slow poll is not a failed one.
    async fn follow(&self, written_ms: u64) -> bool {
        let failures = || self.follow.failures_in_a_row.load(Ordering::Relaxed);
        if written_ms + GATE_DELAY_MAX_MS < SystemClock.now_ms() && failures() == 0 {
            return true;
        }
        two_polls(&self.follow, CATCH_UP_MAX).await
    }

    /// Wraps a view so that users and torrents are resolved before it applies entries.
    pub fn resolving(&self, view: Arc<dyn View>) -> Arc<dyn View> {
        Arc::new(Resolved { view, resolver: self.clone() })
    }

    /// Looks up unknown users and torrents of entries by other producers, as for an announce: in the Redis source,
    /// the whitelist and at the verify endpoint.
    async fn learn(&self, arrivals: &[DeliveredEntry]) {
        let entries = || arrivals.iter().map(|arrival| &arrival.entry);
        let passkeys = entries().filter(|entry| entry.user.is_none()).filter_map(|entry| entry.passkey);
        let mut passkeys: Vec<Passkey> =
            passkeys.filter(|passkey| self.gate.user_of(passkey).is_none()).collect();
        let hashes = entries().filter(|entry| entry.torrent.is_none()).map(|entry| entry.info_hash);
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

    /// Waits until each passkey is verified or refused.
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
impl views::redis_mirror::Directory for Resolver {
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

struct Resolved {
    view: Arc<dyn View>,
    resolver: Resolver,
}

#[async_trait]
impl View for Resolved {
    fn name(&self) -> &'static str {
        self.view.name()
    }

    fn is_active(&self) -> bool {
        self.view.is_active()
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
