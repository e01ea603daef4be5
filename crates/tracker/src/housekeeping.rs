//! A few times a second: peers that vanished or have to leave, certificates that changed, now and then a line in the
//! log.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::info;

use crate::ending::{Orders, Phase};
use crate::http::tls::Certificate;
use crate::pipeline::Tracker;

/// How often this thread wakes up. A change made by the site takes effect within a second, all in all.
const ROUND: Duration = Duration::from_millis(200);
/// How often certificate files are looked at, in rounds.
const CERTIFICATES_EVERY: u64 = 25;
/// How often the log tells what happened, if something did, in rounds.
const SUMMARY_EVERY: u64 = 1500;

/// Starts the thread that does it.
pub(crate) fn start(
    tracker: Arc<Tracker>,
    certificate: Option<Arc<Certificate>>,
    orders: Arc<Orders>,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("housekeeping".into()).spawn(move || {
        let mut told = (0, 0);
        for round in 1_u64.. {
            thread::park_timeout(ROUND);
            if let Phase::End(_) = orders.phase() {
                break;
            }
            tracker.evict_ordered();
            tracker.expire_peers();
            if let Some(certificate) = certificate.as_ref().filter(|_| round % CERTIFICATES_EVERY == 0) {
                certificate.reload_if_changed();
            }
            let happened = (tracker.counters().announces(), tracker.counters().refused.total());
            if round % SUMMARY_EVERY == 0 && happened != told {
                told = happened;
                log_summary(&tracker);
            }
        }
    })
}

/// One line that says what the tracker has done since its start.
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
