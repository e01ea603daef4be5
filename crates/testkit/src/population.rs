//! Simulated clients with known totals and activity, against a [`Server`].

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use domain::{InfoHash, Passkey, UserId};
use simulate::ServerAddresses;
pub use simulate::stepped::Plan;
use simulate::stepped::{Identities, SteppedClients};
pub use simulate::{ActivityLists, Moved, Truth};

use crate::server::{Server, test_passkey};
use crate::{Family, eventually};

/// Timeout until a change of users and torrents is known.
const CHANGE_LIMIT: Duration = Duration::from_secs(20);

/// Where a population announces.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    /// Over IPv4, HTTP and UDP.
    pub v4: SocketAddr,
    /// Over IPv6, HTTP and UDP.
    pub v6: SocketAddr,
}

impl From<&Server> for Destination {
    fn from(server: &Server) -> Self {
        Destination { v4: server.addr(Family::V4), v6: server.addr(Family::V6) }
    }
}

impl From<Destination> for ServerAddresses {
    fn from(Destination { v4, v6 }: Destination) -> Self {
        ServerAddresses { http: vec![v4, v6], udp: vec![v4, v6], site: None }
    }
}

pub struct Population(SteppedClients);

impl Deref for Population {
    type Target = SteppedClients;

    fn deref(&self) -> &SteppedClients {
        &self.0
    }
}

impl DerefMut for Population {
    fn deref_mut(&mut self) -> &mut SteppedClients {
        &mut self.0
    }
}

impl Population {
    pub fn new(plan: Plan) -> Self {
        Population(SteppedClients::new(plan, Identities { passkey_of, info_hash_of }))
    }

    /// SQL that inserts users and torrents, as a site would write it, for all databases.
    pub fn registration(&self) -> String {
        let users =
            self.users().iter().map(|(id, passkey)| format!("({id}, '{passkey}')")).collect::<Vec<_>>();
        let torrents =
            self.torrents().iter().map(|(id, hash)| format!("({id}, '{hash}')")).collect::<Vec<_>>();
        format!(
            "INSERT INTO users (id, passkey) VALUES {}; INSERT INTO torrents (id, infohash) VALUES {};",
            users.join(", "),
            torrents.join(", ")
        )
    }

    /// Waits until a server knows all users and torrents.
    #[track_caller]
    pub fn wait_known(&self, server: &Server) {
        eventually("users and torrents to be known", CHANGE_LIMIT, || {
            self.users()
                .iter()
                .all(|(_, passkey)| server.try_scrape(passkey, &info_hash_of(1)).is_ok())
                .then_some(())
        });
        let passkey = passkey_of(1);
        eventually("torrents to be known", CHANGE_LIMIT, || {
            let is_known = |hash: &InfoHash| matches!(server.try_scrape(&passkey, hash), Ok(Some(_)));
            self.torrents().iter().all(|(_, hash)| is_known(hash)).then_some(())
        });
    }
}

/// The passkey of a user.
pub fn passkey_of(user: u64) -> Passkey {
    test_passkey(UserId::new(user).expect("a user id is positive"))
}

/// The infohash of a torrent.
pub fn info_hash_of(torrent: u64) -> InfoHash {
    let mut bytes = [0xd5; 20];
    bytes[12..].copy_from_slice(&torrent.to_be_bytes());
    InfoHash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_torrents_are_registered_by_sql() {
        let (clients, at_once, crashes, pause) = (50, 4, false, Duration::ZERO);
        let plan = Plan { seed: 1, users: 3, torrents: 2, clients, at_once, crashes, pause };
        let sql = Population::new(plan).registration();
        assert_eq!(sql.matches("INSERT").count(), 2);
        assert!(sql.contains(&format!("(3, '{}')", passkey_of(3))));
        assert!(sql.contains(&format!("(2, '{}')", info_hash_of(2))));
    }
}
