//! The journal's queue as a traffic sink.

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
        self.put_in_turn(event, on_stored);
    }

    fn hand_over(&self) {
        Queue::hand_over(self);
    }

    fn record_blocking(&self, event: &TrafficEvent) {
        self.put_blocking(event);
    }

    fn report(&self, risk: &RiskEvent) {
        Queue::report(self, risk);
    }
}
