//! Events in packed form.

use domain::{ClientId, RunId, SessionId, TrafficEvent};
use journal::{BadEntry, Fields, PackedEvents, TrafficEntry};
use proptest::prelude::*;

use crate::entry::any_event;
use crate::events::{event, varied_event};

/// Counters without a run are not written.
fn as_written(event: TrafficEvent) -> TrafficEvent {
    if event.session.run != RunId::NONE {
        return event;
    }
    let session = SessionId { client: ClientId(0), run: RunId::NONE };
    TrafficEvent { session, uploaded_total: 0, downloaded_total: 0, ..event }
}

proptest! {
    #[test]
    fn j2_a_packed_event_has_the_same_fields(events in proptest::collection::vec(any_event(), 1..20)) {
        let mut lists: Vec<PackedEvents> = Vec::new();
        for event in &events {
            if !lists.last_mut().is_some_and(|last| last.push(event)) {
                lists.push(PackedEvents::of(event));
            }
        }
        let unpacked: Vec<TrafficEvent> = lists.iter().flat_map(PackedEvents::iter).collect();
        let expected: Vec<TrafficEvent> = events.iter().copied().map(as_written).collect();
        prop_assert_eq!(&unpacked, &expected);
        for (unpacked, event) in unpacked.into_iter().zip(&events) {
            let (read, written) = (Fields::of_event(unpacked), TrafficEntry::fields_of(event));
            prop_assert_eq!(TrafficEntry::parse(&read), TrafficEntry::parse(&written));
            prop_assert_eq!(TrafficEntry::node_of(&read), TrafficEntry::node_of(&written));
            prop_assert_eq!(read, written);
        }
    }
}

/// Whatever the fields say is an error in either form.
#[test]
fn l4_an_event_with_an_impossible_absence_is_malformed_in_either_form() {
    let event = TrafficEvent { since_last: domain::Seconds(u32::MAX), ..event(1) };
    let written = TrafficEntry::parse(&TrafficEntry::fields_of(&event)).unwrap_err();
    assert!(matches!(written, BadEntry::Malformed { field: "dt", .. }));
    assert_eq!(TrafficEntry::parse(&Fields::of_event(event)), Err(written));
}

#[test]
fn fields_of_an_event_can_be_extended() {
    let mut fields = Fields::of_event(varied_event(3));
    fields.push("group", "g");
    let mut written = TrafficEntry::fields_of(&varied_event(3));
    written.push("group", "g");
    assert_eq!(fields, written);
}
