//! Permits for sessions: limits in total and by address, and the outboxes to close at shutdown.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use net::permits::TooMany;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::counters::{GatewayCounters, UpgradeRefusal};
use crate::outbox::Outbox;
use crate::settings::ConnectionSettings;

pub(super) struct SessionPermits {
    connections: Arc<net::ConnectionPermits>,
    table: Mutex<PermitTable>,
    emptied: Notify,
    counters: Arc<GatewayCounters>,
}

#[derive(Default)]
struct PermitTable {
    is_closed: bool,
    last: u64,
    by_number: HashMap<u64, Arc<Outbox>>,
}

/// Returned when dropped.
pub(crate) struct SessionPermit {
    permits: Arc<SessionPermits>,
    number: u64,
    _connection: net::ConnectionPermit,
}

impl SessionPermits {
    pub(super) fn new(counters: Arc<GatewayCounters>) -> SessionPermits {
        SessionPermits {
            connections: Arc::default(),
            table: Mutex::default(),
            emptied: Notify::new(),
            counters,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.table.lock().by_number.len()
    }

    pub(super) fn take(
        self: &Arc<Self>,
        from: IpAddr,
        settings: &ConnectionSettings,
        outbox: &Arc<Outbox>,
    ) -> Result<SessionPermit, UpgradeRefusal> {
        let mut table = self.table.lock();
        if table.is_closed {
            return Err(UpgradeRefusal::Stopping);
        }
        let connection = self
            .connections
            .take(from.to_canonical(), settings.connections_max, settings.connections_per_address_max)
            .map_err(|reason| match reason {
                TooMany::Connections => UpgradeRefusal::Full,
                TooMany::FromAddress => UpgradeRefusal::AddressFull,
            })?;
        table.last += 1;
        let number = table.last;
        table.by_number.insert(number, Arc::clone(outbox));
        self.counters.accept.open.rise();
        Ok(SessionPermit { permits: Arc::clone(self), number, _connection: connection })
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

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut table = self.permits.table.lock();
        table.by_number.remove(&self.number);
        let is_empty = table.by_number.is_empty();
        drop(table);
        self.permits.counters.accept.open.fall();
        if is_empty {
            self.permits.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_and_returned() {
        let counters = Arc::new(GatewayCounters::default());
        let permits = Arc::new(SessionPermits::new(Arc::clone(&counters)));
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
        let third = take("10.0.0.1").unwrap();
        assert_eq!(take("10.0.0.2").err(), Some(UpgradeRefusal::Full));
        drop(first);
        assert_eq!((permits.count(), counters.accept.open.get()), (2, 2));
        let _fourth = take("::ffff:10.0.0.1").unwrap();
        drop(third);
        assert_eq!((permits.count(), counters.accept.open.get()), (2, 2));
        let _fifth = take("10.0.0.1").unwrap();
        assert_eq!(take("10.0.0.2").err(), Some(UpgradeRefusal::Full));
        assert_eq!(permits.close().len(), 3);
        assert_eq!(take("10.0.0.2").err(), Some(UpgradeRefusal::Stopping));
    }
}
