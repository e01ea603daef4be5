//! Permits for connections: the limits in total and by address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::counters::{GatewayCounters, UpgradeRefusal};
use crate::outbox::Outbox;
use crate::settings::ConnectionSettings;

pub(super) struct ConnectionPermits {
    table: Mutex<PermitTable>,
    emptied: Notify,
    counters: Arc<GatewayCounters>,
}

#[derive(Default)]
struct PermitTable {
    is_closed: bool,
    last: u64,
    by_number: HashMap<u64, Arc<Outbox>>,
    by_address: HashMap<IpAddr, u32>,
    /// Connections of operators, which do not count against the users' limit.
    operators: usize,
}

/// Returned when dropped.
pub(crate) struct ConnectionPermit {
    permits: Arc<ConnectionPermits>,
    number: u64,
    address: IpAddr,
    is_operators: bool,
}

impl ConnectionPermits {
    pub(super) fn new(counters: Arc<GatewayCounters>) -> ConnectionPermits {
        ConnectionPermits { table: Mutex::default(), emptied: Notify::new(), counters }
    }

    pub(super) fn count(&self) -> usize {
        self.table.lock().by_number.len()
    }

    pub(super) fn take(
        self: &Arc<Self>,
        from: IpAddr,
        settings: &ConnectionSettings,
        outbox: &Arc<Outbox>,
    ) -> Result<ConnectionPermit, UpgradeRefusal> {
        let address = network_of(from);
        let mut table = self.table.lock();
        if table.is_closed {
            return Err(UpgradeRefusal::Stopping);
        }
        if table.by_number.len() - table.operators >= settings.connections_max {
            return Err(UpgradeRefusal::Full);
        }
        let max = settings.connections_per_address_max;
        let from_address = table.by_address.entry(address).or_insert(0);
        if max > 0 && *from_address >= max {
            return Err(UpgradeRefusal::AddressFull);
        }
        *from_address += 1;
        table.last += 1;
        let number = table.last;
        table.by_number.insert(number, Arc::clone(outbox));
        self.counters.accept.open.rise();
        Ok(ConnectionPermit { permits: Arc::clone(self), number, address, is_operators: false })
    }

    /// Issues no more permits. Returns the outboxes of open connections.
    pub(super) fn close(&self) -> Vec<Arc<Outbox>> {
        let mut table = self.table.lock();
        table.is_closed = true;
        table.by_number.values().cloned().collect()
    }

    /// Returns when no permit is in use.
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

impl PermitTable {
    fn leave_address(&mut self, address: IpAddr) {
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

impl ConnectionPermit {
    /// The connection is an operator's: it no longer counts against the users' limits, but is still closed at
    /// shutdown.
    pub(crate) fn release_user_permit(&mut self) {
        if std::mem::replace(&mut self.is_operators, true) {
            return;
        }
        let mut table = self.permits.table.lock();
        table.operators += 1;
        table.leave_address(self.address);
        drop(table);
        self.permits.counters.accept.open.fall();
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut table = self.permits.table.lock();
        table.by_number.remove(&self.number);
        if self.is_operators {
            table.operators -= 1;
        } else {
            table.leave_address(self.address);
        }
        let is_empty = table.by_number.is_empty();
        drop(table);
        if !self.is_operators {
            self.permits.counters.accept.open.fall();
        }
        if is_empty {
            self.permits.emptied.notify_waiters();
        }
    }
}

/// IPv6 addresses count by /64.
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
    fn permits_are_limited_and_returned() {
        let counters = Arc::new(GatewayCounters::default());
        let permits = Arc::new(ConnectionPermits::new(Arc::clone(&counters)));
        let settings = ConnectionSettings {
            connections_max: 3,
            connections_per_address_max: 2,
            ..ConnectionSettings::default()
        };
        let outbox = Outbox::new(&settings, Arc::clone(&counters));
        let take = |address: &str| permits.take(address.parse().unwrap(), &settings, &outbox);
        let first = take("2001:db8::1").unwrap();
        let _second = take("2001:db8::2").unwrap();
        assert_eq!(take("2001:db8::3").err(), Some(UpgradeRefusal::AddressFull));
        let mut third = take("10.0.0.1").unwrap();
        assert_eq!(take("10.0.0.2").err(), Some(UpgradeRefusal::Full));
        drop(first);
        assert_eq!((permits.count(), counters.accept.open.get()), (2, 2));
        let _fourth = take("::ffff:10.0.0.1").unwrap();
        third.release_user_permit();
        assert_eq!((permits.count(), counters.accept.open.get()), (3, 2), "an operator has no user permit");
        let _sixth = take("10.0.0.1").unwrap();
        drop(third);
        assert_eq!((permits.count(), counters.accept.open.get()), (3, 3));
        assert_eq!(take("10.0.0.2").err(), Some(UpgradeRefusal::Full));
        assert_eq!(permits.close().len(), 3);
        assert_eq!(take("10.0.0.2").err(), Some(UpgradeRefusal::Stopping));
    }
}
