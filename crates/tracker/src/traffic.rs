//! Where traffic events go.
//!
//! A place is reserved before an announce changes anything, so that an accepted announce can always be written down.

mod journal;

use domain::{RiskEvent, TrafficEvent};
use tracing::debug;

/// Called once an event is stored (true), or will not be (false). May be called on any thread; must not wait.
pub type OnStored = Box<dyn FnOnce(bool) + Send>;

/// Takes what the tracker has to say about each accepted announce and each peer that vanished.
///
/// Called on the announce path: an implementer queues, counts or drops, but never waits, except in
/// [`TrafficSink::record_patiently`].
pub trait TrafficSink: Send + Sync {
    /// Keeps a place for one event; false if there is none to give.
    fn reserve(&self) -> bool;

    /// Gives a place back that was not needed.
    fn release(&self);

    /// Takes an event for which a place was reserved.
    fn record(&self, event: &TrafficEvent, on_stored: Option<OnStored>);

    /// Takes an event for which no place was reserved, and waits for one: for the housekeeping thread only.
    fn record_patiently(&self, event: &TrafficEvent);

    /// Takes a claim that nobody can believe. Throttled by the caller; may be dropped, but is then counted.
    fn report(&self, risk: &RiskEvent);
}

/// Writes each event to the log, at level `debug` under the target `traffic`; costs next to nothing while
/// that is off.
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

/// A place at a sink that has been reserved; given back when it goes unused.
pub(crate) struct Place<'s>(Option<&'s dyn TrafficSink>);

impl<'s> Place<'s> {
    /// Reserves one; none if the sink is full.
    pub(crate) fn reserve(sink: &'s dyn TrafficSink) -> Option<Self> {
        sink.reserve().then_some(Place(Some(sink)))
    }

    fn fill(mut self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        if let Some(sink) = self.0.take() {
            sink.record(event, on_stored);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.0.take() {
            sink.release();
        }
    }
}

/// The event of an accepted announce, which has yet to be written down.
#[must_use = "an accepted announce has to be written down"]
pub struct Unwritten<'s> {
    place: Option<Place<'s>>,
    event: TrafficEvent,
    is_awaited: bool,
}

impl<'s> Unwritten<'s> {
    pub(crate) fn new(place: Place<'s>, event: TrafficEvent, is_awaited: bool) -> Self {
        Unwritten { place: Some(place), event, is_awaited }
    }

    /// Whether the client may be answered only once the event is stored.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Writes it down.
    pub fn write(mut self, on_stored: Option<OnStored>) {
        self.write_once(on_stored);
    }

    fn write_once(&mut self, on_stored: Option<OnStored>) {
        if let Some(place) = self.place.take() {
            log(&self.event);
            place.fill(&self.event, on_stored);
        }
    }
}

impl Drop for Unwritten<'_> {
    /// The swarm has changed already: whatever went wrong since, the event is not lost.
    fn drop(&mut self) {
        self.write_once(None);
    }
}
