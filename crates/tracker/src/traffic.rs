//! The sink of traffic events.
//!
//! A queue slot is reserved before an announce changes anything, so that an accepted announce can always be recorded.

mod journal;

use domain::{RiskEvent, TrafficEvent};
use tracing::debug;

/// Called with true once the event is stored, with false if it will not be. May run on any thread; must not block.
pub type OnStored = Box<dyn FnOnce(bool) + Send>;

/// Receives one event per accepted announce and per departed peer.
///
/// Called on the announce path: implementations queue, count or drop, but never block, except in
/// [`TrafficSink::record_blocking`].
pub trait TrafficSink: Send + Sync {
    /// Reserves a slot for one event; false if none is free.
    fn reserve(&self) -> bool;

    /// Releases an unused slot.
    fn release(&self);

    /// Uses a reserved slot. The event is handed over at the end of the thread's turn.
    fn record(&self, event: &TrafficEvent, on_stored: Option<OnStored>);

    /// Called by a thread at the end of a turn in which it recorded events, before it sleeps: once for all of them.
    fn hand_over(&self) {}

    /// Waits for a free slot; for the housekeeping thread only.
    fn record_blocking(&self, event: &TrafficEvent);

    /// Throttled by the caller. May be dropped, but is then counted.
    fn report(&self, risk: &RiskEvent);
}

/// Logs at level `debug`, target `traffic`; nearly free while that is off.
pub fn log(event: &TrafficEvent) {
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

/// A reserved slot; released on drop if unused.
pub(crate) struct QueueSlot<'s>(Option<&'s dyn TrafficSink>);

impl<'s> QueueSlot<'s> {
    /// None if the sink is full.
    pub(crate) fn reserve(sink: &'s dyn TrafficSink) -> Option<Self> {
        // Not `then_some`: it would build, then drop, a slot that was never reserved.
        sink.reserve().then(|| QueueSlot(Some(sink)))
    }

    fn fill(mut self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        if let Some(sink) = self.0.take() {
            sink.record(event, on_stored);
        }
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.0.take() {
            sink.release();
        }
    }
}

/// The event of an accepted announce that is not recorded yet.
#[must_use = "an accepted announce must be recorded"]
pub struct UnrecordedEvent<'s> {
    slot: Option<QueueSlot<'s>>,
    event: TrafficEvent,
    is_awaited: bool,
}

impl<'s> UnrecordedEvent<'s> {
    pub(crate) fn new(slot: QueueSlot<'s>, event: TrafficEvent, is_awaited: bool) -> Self {
        UnrecordedEvent { slot: Some(slot), event, is_awaited }
    }

    /// Whether the reply must wait until the event is stored.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    pub fn record(mut self, on_stored: Option<OnStored>) {
        self.record_once(on_stored);
    }

    fn record_once(&mut self, on_stored: Option<OnStored>) {
        if let Some(slot) = self.slot.take() {
            log(&self.event);
            slot.fill(&self.event, on_stored);
        }
    }
}

impl Drop for UnrecordedEvent<'_> {
    /// The swarm has changed already, so the event is recorded even after a panic or a closed connection.
    fn drop(&mut self) {
        self.record_once(None);
    }
}
