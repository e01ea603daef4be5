//! Detects a change of master, also while the old master still answers.
//!
//! After a failover from a live master, the old master accepts writes for some seconds and then discards them. So the
//! sentinels are asked for the master every second; when the answer changes, every earlier connection becomes invalid.
//!
//! Writes between the failover and the next poll can still be lost. Only Redis can prevent that:
//! `min-replicas-to-write 1`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::dial::Dialer;
use crate::settings::Node;

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The master last named by the sentinels.
#[derive(Default)]
pub(crate) struct MasterWatch {
    master: Mutex<Option<Node>>,
    /// Incremented with every change of master. A connection is valid in the epoch in which it was made.
    epoch: AtomicU64,
    is_polling: AtomicBool,
}

impl MasterWatch {
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Sets the master. The first call starts the poller, which ends when this is dropped.
    pub(crate) fn set_and_poll(self: &Arc<Self>, dialer: &Arc<Dialer>, node: Node) {
        self.set(node);
        if !self.is_polling.swap(true, Ordering::AcqRel) {
            tokio::spawn(poll_sentinels(Arc::downgrade(self), dialer.clone()));
        }
    }

    fn set(&self, node: Node) {
        let mut master = self.master.lock();
        if master.as_ref() == Some(&node) {
            return;
        }
        if let Some(old) = master.replace(node.clone()) {
            tracing::warn!(%old, new = %node, "redis master changed");
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }
}

async fn poll_sentinels(watch: Weak<MasterWatch>, dialer: Arc<Dialer>) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        // Without an answer the master stays.
        let master = dialer.ask_sentinels().await;
        match (watch.upgrade(), master) {
            (None, _) => return,
            (Some(watch), Ok(master)) => watch.set(master),
            (Some(_), Err(_)) => {}
        }
    }
}
