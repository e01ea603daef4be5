//! Where traffic events go.

use domain::TrafficEvent;
use tracing::debug;

/// Takes what the tracker has to say about each accepted announce and each peer that vanished.
///
/// Called on the announce path: an implementer queues, counts or drops, but never waits.
pub trait TrafficSink: Send + Sync {
    /// Takes one event.
    fn record(&self, event: &TrafficEvent);
}

/// Writes each event to the log, at level `debug` under the target `traffic`; costs next to nothing while
/// that is off.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogSink;

impl TrafficSink for LogSink {
    fn record(&self, event: &TrafficEvent) {
        debug!(
            target: "traffic",
            passkey = event.passkey.map(|passkey| tracing::field::display(passkey.redacted())),
            user = event.user.get(),
            infohash = %event.info_hash,
            peer_id = %event.peer_id,
            ip = %event.ip,
            port = event.port,
            af = event.address_family(),
            du = event.uploaded_delta,
            dd = event.downloaded_delta,
            left = event.left,
            event = event.event.name(),
            ts = event.at.0,
            dt = event.since_last.0,
            interval = event.interval.0,
            min_interval = event.min_interval.0,
            node = %event.node,
            sid = %event.session,
            up = event.uploaded_total,
            down = event.downloaded_total,
            cause = event.cause.name(),
            "traffic"
        );
    }
}
