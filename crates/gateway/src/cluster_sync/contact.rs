//! Whether Redis answers, and since when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use presence::WallTime;
use tokio::sync::Notify;

const RENEWALS_PER_LEASE: u128 = 5;

pub(super) struct Contact {
    /// When the store last answered that all is well. Milliseconds.
    at_ms: AtomicU64,
    /// Last contact before an outage so long that others may have declared this gateway dead; zero for none.
    /// Milliseconds.
    outage_at_ms: AtomicU64,
    is_lost: AtomicBool,
    /// The store fenced a write: membership is lost, whatever the list of nodes says.
    is_fenced: AtomicBool,
    fenced: Notify,
}

impl Contact {
    pub(super) fn since(now: WallTime) -> Contact {
        Contact {
            at_ms: AtomicU64::new(now.0),
            outage_at_ms: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            is_fenced: AtomicBool::new(false),
            fenced: Notify::new(),
        }
    }

    pub(super) fn at(&self) -> WallTime {
        WallTime(self.at_ms.load(Ordering::Relaxed))
    }

    pub(super) fn outage_at(&self) -> WallTime {
        WallTime(self.outage_at_ms.load(Ordering::Relaxed))
    }

    /// Whether the store does not answer.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// The store answered. Returns whether it did not before.
    pub(super) fn regain(&self, at: WallTime, renew: Duration) -> bool {
        let before_ms = self.at_ms.swap(at.0, Ordering::Relaxed);
        if u128::from(at.0.saturating_sub(before_ms)) > renew.as_millis() * RENEWALS_PER_LEASE {
            self.outage_at_ms.store(before_ms, Ordering::Relaxed);
        }
        self.is_lost.swap(false, Ordering::Relaxed)
    }

    /// Returns whether the store answered before.
    pub(super) fn lose(&self) -> bool {
        !self.is_lost.swap(true, Ordering::Relaxed)
    }

    /// This gateway has a new incarnation.
    pub(super) fn rejoined(&self, at: WallTime) {
        self.is_fenced.store(false, Ordering::Release);
        self.is_lost.store(false, Ordering::Relaxed);
        self.at_ms.store(at.0, Ordering::Relaxed);
    }

    pub(super) fn fence(&self) {
        self.is_fenced.store(true, Ordering::Release);
        self.fenced.notify_one();
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.is_fenced.load(Ordering::Acquire)
    }

    /// Returns when a write was fenced.
    pub(super) async fn fenced(&self) {
        self.fenced.notified().await;
    }

    pub(super) fn step_back(&self, by_ms: u64) {
        step_back(&self.at_ms, by_ms);
        step_back(&self.outage_at_ms, by_ms);
    }
}

/// Zero is for never.
pub(super) fn step_back(at_ms: &AtomicU64, by_ms: u64) {
    let earlier = |at: u64| (at > 0).then(|| at.saturating_sub(by_ms).max(1));
    let _ = at_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, earlier);
}
