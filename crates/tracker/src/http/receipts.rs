//! Receipts: whether an event was stored, which a reply waits for.
//!
//! The journal stores many events at once. Their receipts are handed to the thread whose replies wait, which is woken
//! once and completes them: to wake a thread for each would cost a system call each.

use std::sync::Arc;

use domain::Histogram;
use domain::clock::Stopwatch;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::traffic::OnStored;

/// Resolves to whether the event was stored; the reply waits for it.
pub(super) type Receipt = oneshot::Receiver<bool>;

/// The outcomes for one thread. At most one for each event in the queue.
#[derive(Default)]
struct Outcomes {
    arrived: Mutex<Vec<(oneshot::Sender<bool>, bool)>>,
    is_filled: Notify,
}

thread_local! {
    static OF_THREAD: Arc<Outcomes> = Arc::default();
}

/// A callback for the journal, and the receipt that it completes on this thread. Waits that end well are recorded.
pub(super) fn await_storage(waits: Arc<Histogram>) -> (OnStored, Receipt) {
    let (stored, receipt) = oneshot::channel();
    let (waiting, outcomes) = (Stopwatch::start(), OF_THREAD.with(Arc::clone));
    let on_stored = move |is_stored| {
        if is_stored {
            waits.record(waiting.elapsed());
        }
        let is_first = {
            let mut arrived = outcomes.arrived.lock();
            arrived.push((stored, is_stored));
            arrived.len() == 1
        };
        if is_first {
            outcomes.is_filled.notify_one();
        }
    };
    (Box::new(on_stored), receipt)
}

/// Completes the receipts of this thread, as long as it serves.
pub(super) async fn complete() {
    let outcomes = OF_THREAD.with(Arc::clone);
    loop {
        outcomes.is_filled.notified().await;
        for (stored, is_stored) in std::mem::take(&mut *outcomes.arrived.lock()) {
            // The receiver is gone if the client disconnected.
            let _ = stored.send(is_stored);
        }
    }
}
