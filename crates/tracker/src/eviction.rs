//! Peers to remove because they are no longer admitted.
//!
//! Orders are collected: disabling a thousand users costs one pass over the peers, not a thousand.

use std::collections::HashSet;

use domain::{InfoHash, UserId};
use parking_lot::Mutex;

/// What is no longer admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// All peers of the user.
    User(UserId),
    /// All peers of the torrent.
    Torrent(InfoHash),
    /// All peers whose client program the current rules forbid.
    ForbiddenClients,
    /// All peers that listen on a banned port.
    BannedPorts,
}

/// Orders of one pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordered {
    pub(crate) users: HashSet<UserId>,
    pub(crate) torrents: HashSet<InfoHash>,
    pub(crate) clients: bool,
    pub(crate) ports: bool,
}

impl Ordered {
    fn is_empty(&self) -> bool {
        self.users.is_empty() && self.torrents.is_empty() && !self.clients && !self.ports
    }
}

/// Each order is carried out in two passes: an announce may have passed the gate just before the change.
#[derive(Debug, Default)]
pub(crate) struct Evictions(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    new: Ordered,
    /// Carried out in one pass so far.
    again: Ordered,
}

impl Evictions {
    pub(crate) fn order(&self, eviction: Eviction) {
        let mut pending = self.0.lock();
        match eviction {
            Eviction::User(user) => drop(pending.new.users.insert(user)),
            Eviction::Torrent(info_hash) => drop(pending.new.torrents.insert(info_hash)),
            Eviction::ForbiddenClients => pending.new.clients = true,
            Eviction::BannedPorts => pending.new.ports = true,
        }
    }

    /// Orders that no pass has carried out yet.
    pub(crate) fn pending(&self) -> usize {
        let new = &self.0.lock().new;
        new.users.len() + new.torrents.len() + usize::from(new.clients) + usize::from(new.ports)
    }

    /// New orders and those of the previous pass; none if there are none.
    pub(crate) fn take_due(&self) -> Option<Ordered> {
        let mut pending = self.0.lock();
        let new = std::mem::take(&mut pending.new);
        let mut due = std::mem::replace(&mut pending.again, new.clone());
        due.users.extend(new.users);
        due.torrents.extend(new.torrents);
        due.clients |= new.clients;
        due.ports |= new.ports;
        (!due.is_empty()).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_carried_out_twice_and_then_forgotten() {
        let evictions = Evictions::default();
        let user = |number| UserId::new(number).unwrap();
        evictions.order(Eviction::User(user(1)));
        assert_eq!(evictions.pending(), 1);
        assert_eq!(evictions.take_due().unwrap().users.len(), 1);
        evictions.order(Eviction::User(user(2)));
        assert_eq!(evictions.take_due().unwrap().users.len(), 2);
        assert!(evictions.take_due().unwrap().users.contains(&user(2)));
        assert!(evictions.take_due().is_none());
        assert_eq!(evictions.pending(), 0);
    }
}
