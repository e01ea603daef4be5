//! The journal's queue as the place where traffic events go.

use domain::{RiskEvent, TrafficEvent};
use journal::Queue;

use super::{OnStored, TrafficSink};

impl TrafficSink for Queue {
    fn reserve(&self) -> bool {
        Queue::reserve(self)
    }

    fn release(&self) {
        Queue::release(self);
    }

    fn record(&self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        self.put(event, on_stored);
    }

    fn record_patiently(&self, event: &TrafficEvent) {
        self.put_blocking(event);
    }

    fn report(&self, risk: &RiskEvent) {
        Queue::report(self, risk);
    }
}
