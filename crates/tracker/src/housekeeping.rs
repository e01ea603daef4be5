//! Once a second: peers that vanished, certificates that changed, now and then a line in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::info;

use crate::http::tls::Certificate;
use crate::pipeline::Tracker;

/// How often certificate files are looked at.
const CERTIFICATES_EVERY_S: u64 = 5;
/// How often the log tells what happened, if something did.
const SUMMARY_EVERY_S: u64 = 300;

/// Starts the thread that does it.
pub(crate) fn start(
    tracker: Arc<Tracker>,
    certificate: Option<Arc<Certificate>>,
    stop: Arc<AtomicBool>,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("housekeeping".into()).spawn(move || {
        let mut announces_told = 0;
        for second in 1_u64.. {
            thread::park_timeout(Duration::from_secs(1));
            if stop.load(Ordering::Acquire) {
                break;
            }
            tracker.expire_peers();
            if let Some(certificate) = certificate.as_ref().filter(|_| second % CERTIFICATES_EVERY_S == 0) {
                certificate.reload_if_changed();
            }
            if second % SUMMARY_EVERY_S == 0 && tracker.counters().announces() != announces_told {
                announces_told = tracker.counters().announces();
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
        expired = counters.peers_expired.get(),
        uploaded_bytes = counters.uploaded_bytes.get(),
        downloaded_bytes = counters.downloaded_bytes.get(),
        refused = refused.join(" "),
        "since start"
    );
}
