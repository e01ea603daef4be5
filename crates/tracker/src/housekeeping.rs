//! Five times a second: evicts and expires peers, reloads changed certificates, logs a summary.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use net::Certificate;
use net::accept_gate::{ListenerState, Phase};
use tracing::info;

use crate::pipeline::Tracker;

/// A change of access takes effect within a second in total.
const ROUND: Duration = Duration::from_millis(200);
/// In rounds.
const CERTIFICATES_EVERY: u64 = 25;
/// In rounds; only if something happened since.
const SUMMARY_EVERY: u64 = 1500;

pub(crate) fn start(
    tracker: Arc<Tracker>,
    certificate: Option<Arc<Certificate>>,
    listener_state: Arc<ListenerState>,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("housekeeping".into()).spawn(move || {
        let mut logged = (0, 0);
        for round in 1_u64.. {
            thread::park_timeout(ROUND);
            if let Phase::ShuttingDown(_) = listener_state.phase() {
                break;
            }
            tracker.evict_ordered();
            tracker.expire_peers();
            if let Some(certificate) = certificate.as_ref().filter(|_| round % CERTIFICATES_EVERY == 0) {
                certificate.reload_if_changed();
            }
            let happened = (tracker.counters().announces(), tracker.counters().refused.total());
            if round % SUMMARY_EVERY == 0 && happened != logged {
                logged = happened;
                log_summary(&tracker);
            }
        }
    })
}

pub(crate) fn log_summary(tracker: &Tracker) {
    let counters = tracker.counters();
    let refused: Vec<String> =
        counters.refused.all().into_iter().map(|(reason, count)| format!("{reason}={count}")).collect();
    info!(
        peers = tracker.swarms().totals().peers,
        announces_http = counters.announces_http.get(),
        announces_udp = counters.announces_udp.get(),
        scrapes = counters.scrapes.get(),
        too_soon = counters.too_soon.get(),
        implausible = counters.implausible.get(),
        expired = counters.peers_expired.get(),
        uploaded_bytes = counters.uploaded_bytes.get(),
        downloaded_bytes = counters.downloaded_bytes.get(),
        refused = refused.join(" "),
        "since start"
    );
}
