//! Following the master: a failover is noticed though the old master still answers.
//!
//! When sentinels let a replica take over from a master that is alive, the old one goes on accepting writes for some
//! seconds, and then throws them away. So the sentinels are asked every second who is master; once the answer differs,
//! every connection made before is of no use any more.
//!
//! Between the change and the next question such writes can still be lost. Only Redis can close that gap:
//! `min-replicas-to-write 1`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::dial::Dialer;
use crate::settings::Node;

/// How often the sentinels are asked.
const FOLLOW_PERIOD: Duration = Duration::from_secs(1);

/// Who is master, as far as we know.
#[derive(Default)]
pub(crate) struct Follow {
    master: Mutex<Option<Node>>,
    /// Raised with every change of master.
    epoch: AtomicU64,
    is_running: AtomicBool,
}

impl Follow {
    /// The epoch that a connection made now belongs to.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Takes note of the master. From the first time on, the sentinels are asked, until nobody needs it any more.
    pub(crate) fn note(self: &Arc<Self>, dialer: &Arc<Dialer>, node: Node) {
        self.set(node);
        if !self.is_running.swap(true, Ordering::AcqRel) {
            tokio::spawn(ask_again_and_again(Arc::downgrade(self), dialer.clone()));
        }
    }

    fn set(&self, node: Node) {
        let mut master = self.master.lock();
        if master.as_ref() == Some(&node) {
            return;
        }
        if let Some(old) = master.replace(node.clone()) {
            tracing::warn!(%old, new = %node, "redis has another master");
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }
}

async fn ask_again_and_again(follow: Weak<Follow>, dialer: Arc<Dialer>) {
    loop {
        tokio::time::sleep(FOLLOW_PERIOD).await;
        // Sentinels that do not answer change nothing.
        let master = dialer.ask_sentinels().await;
        match (follow.upgrade(), master) {
            (None, _) => return,
            (Some(follow), Ok(master)) => follow.set(master),
            (Some(_), Err(_)) => {}
        }
    }
}
