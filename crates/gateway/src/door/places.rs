//! Places for connections: how many there are, and who has them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::counters::{DoorRefusal, GatewayCounters};
use crate::outbox::Outbox;
use crate::settings::ConnectionSettings;

/// Places for connections.
pub(super) struct Places {
    taken: Mutex<Taken>,
    emptied: Notify,
    counters: Arc<GatewayCounters>,
}

#[derive(Default)]
struct Taken {
    is_shut: bool,
    last: u64,
    by_number: HashMap<u64, Arc<Outbox>>,
    by_address: HashMap<IpAddr, u32>,
    /// Connections that turned out to be operators', which have no place of people.
    operators: usize,
}

/// A place that is taken; dropping it makes room for another.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    address: IpAddr,
    is_operators: bool,
}

impl Places {
    pub(super) fn new(counters: Arc<GatewayCounters>) -> Places {
        Places { taken: Mutex::default(), emptied: Notify::new(), counters }
    }

    pub(super) fn count(&self) -> usize {
        self.taken.lock().by_number.len()
    }

    /// Takes a place, if there is one.
    pub(super) fn take(
        self: &Arc<Self>,
        from: IpAddr,
        settings: &ConnectionSettings,
        outbox: &Arc<Outbox>,
    ) -> Result<Place, DoorRefusal> {
        let address = network_of(from);
        let mut taken = self.taken.lock();
        if taken.is_shut {
            return Err(DoorRefusal::Stopping);
        }
        if taken.by_number.len() - taken.operators >= settings.connections_max {
            return Err(DoorRefusal::Full);
        }
        let max = settings.connections_per_address_max;
        let from_address = taken.by_address.entry(address).or_insert(0);
        if max > 0 && *from_address >= max {
            return Err(DoorRefusal::AddressFull);
        }
        *from_address += 1;
        taken.last += 1;
        let number = taken.last;
        taken.by_number.insert(number, Arc::clone(outbox));
        self.counters.door.open.rise();
        Ok(Place { places: Arc::clone(self), number, address, is_operators: false })
    }

    /// Gives no more places. Who has one is given back.
    pub(super) fn shut(&self) -> Vec<Arc<Outbox>> {
        let mut taken = self.taken.lock();
        taken.is_shut = true;
        taken.by_number.values().cloned().collect()
    }

    /// Done when no place is taken.
    pub(super) async fn emptied(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Taken {
    fn leave_address(&mut self, address: IpAddr) {
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

impl Place {
    /// Whoever has it is an operator: it is free for a person. They are still sent away at the end.
    pub(crate) fn leave_to_people(&mut self) {
        if std::mem::replace(&mut self.is_operators, true) {
            return;
        }
        let mut taken = self.places.taken.lock();
        taken.operators += 1;
        taken.leave_address(self.address);
        drop(taken);
        self.places.counters.door.open.fall();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.by_number.remove(&self.number);
        if self.is_operators {
            taken.operators -= 1;
        } else {
            taken.leave_address(self.address);
        }
        let is_empty = taken.by_number.is_empty();
        drop(taken);
        if !self.is_operators {
            self.places.counters.door.open.fall();
        }
        if is_empty {
            self.places.emptied.notify_waiters();
        }
    }
}

/// Whoever has one IPv6 address has a whole network of them.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_and_come_back() {
        let counters = Arc::new(GatewayCounters::default());
        let places = Arc::new(Places::new(Arc::clone(&counters)));
        let settings = ConnectionSettings {
            connections_max: 3,
            connections_per_address_max: 2,
            ..ConnectionSettings::default()
        };
        let outbox = Outbox::new(&settings, Arc::clone(&counters));
        let take = |address: &str| places.take(address.parse().unwrap(), &settings, &outbox);
        let first = take("2001:db8::1").unwrap();
        let _second = take("2001:db8::2").unwrap();
        assert_eq!(take("2001:db8::3").err(), Some(DoorRefusal::AddressFull));
        let mut third = take("10.0.0.1").unwrap();
        assert_eq!(take("10.0.0.2").err(), Some(DoorRefusal::Full));
        drop(first);
        assert_eq!((places.count(), counters.door.open.get()), (2, 2));
        let _fourth = take("::ffff:10.0.0.1").unwrap();
        third.leave_to_people();
        assert_eq!((places.count(), counters.door.open.get()), (3, 2), "an operator has no place of people");
        let _sixth = take("10.0.0.1").unwrap();
        drop(third);
        assert_eq!((places.count(), counters.door.open.get()), (3, 3));
        assert_eq!(take("10.0.0.2").err(), Some(DoorRefusal::Full));
        assert_eq!(places.shut().len(), 3);
        assert_eq!(take("10.0.0.2").err(), Some(DoorRefusal::Stopping));
    }
}
