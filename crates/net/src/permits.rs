//! Permits for open connections: limits in total and by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::proxy::{ProxySettings, network_of};

/// Bounded by the maximum in total.
#[derive(Debug, Default)]
pub struct ConnectionPermits(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    Connections,
    FromAddress,
}

impl TooMany {
    /// Label of the refusal counter.
    pub fn label(self) -> &'static str {
        match self {
            TooMany::Connections => "too_many_connections",
            TooMany::FromAddress => "too_many_connections_from_address",
        }
    }
}

/// Released on drop.
#[derive(Debug)]
pub struct ConnectionPermit {
    permits: Arc<ConnectionPermits>,
    ip: IpAddr,
}

impl ConnectionPermits {
    pub fn count(&self) -> usize {
        self.0.lock().total
    }

    /// Addresses with an open connection.
    pub fn address_count(&self) -> usize {
        self.0.lock().by_address.len()
    }

    /// Like [`ConnectionPermits::take`]; a trusted proxy carries connections of many clients, and has no limit per
    /// address.
    pub fn admit(
        self: &Arc<Self>,
        ip: IpAddr,
        proxies: &ProxySettings,
        max: usize,
        per_address_max: u32,
    ) -> Result<ConnectionPermit, TooMany> {
        self.take(ip, max, if proxies.is_trusted(ip) { 0 } else { per_address_max })
    }

    /// A per-address maximum of zero means no limit.
    pub fn take(
        self: &Arc<Self>,
        ip: IpAddr,
        max: usize,
        per_address_max: u32,
    ) -> Result<ConnectionPermit, TooMany> {
        let ip = network_of(ip);
        let mut open = self.0.lock();
        if open.total >= max {
            return Err(TooMany::Connections);
        }
        let from_address = open.by_address.entry(ip).or_default();
        if per_address_max > 0 && *from_address >= per_address_max {
            return Err(TooMany::FromAddress);
        }
        *from_address += 1;
        open.total += 1;
        Ok(ConnectionPermit { permits: Arc::clone(self), ip })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.permits.0.lock();
        open.total -= 1;
        if let Some(count) = open.by_address.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_and_returned() {
        let permits = Arc::new(ConnectionPermits::default());
        let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = permits.take(here, 3, 2).unwrap();
        let _second = permits.take(here, 3, 2).unwrap();
        assert_eq!(permits.take(here, 3, 2).unwrap_err(), TooMany::FromAddress);
        let _third = permits.take(there, 3, 2).unwrap();
        assert_eq!(permits.take(there, 3, 2).unwrap_err(), TooMany::Connections);
        assert_eq!((permits.count(), permits.address_count()), (3, 2));
        let in_one_network = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, last]);
        let others = Arc::new(ConnectionPermits::default());
        let _held: Vec<_> = (0..2).map(|last| others.take(in_one_network(last), 9, 2).unwrap()).collect();
        assert_eq!(others.take(in_one_network(3), 9, 2).unwrap_err(), TooMany::FromAddress);
        drop(first);
        assert!(permits.take(here, 3, 2).is_ok());
    }
}
