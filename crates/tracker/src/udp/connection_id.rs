//! Stateless connection ids: a keyed hash of the client's address and the time.
//!
//! An id is valid in the window it was issued in and in the next one: two to four minutes (BEP 15 asks for two).

use std::fmt;
use std::hash::Hasher;
use std::net::IpAddr;

use domain::UnixTime;
use siphasher::sip::SipHasher13;
use wire::udp::ConnectionId;

const WINDOW_S: u32 = 120;

#[derive(Clone, Copy)]
pub struct ConnectionIds {
    secret: [u64; 2],
}

/// Does not show the secret.
impl fmt::Debug for ConnectionIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionIds").finish_non_exhaustive()
    }
}

impl ConnectionIds {
    /// Ids issued under another secret are invalid.
    pub fn new(secret: [u64; 2]) -> Self {
        ConnectionIds { secret }
    }

    /// For a process that takes over: clients' ids stay valid.
    pub fn secret(&self) -> [u64; 2] {
        self.secret
    }

    pub fn issue(&self, ip: IpAddr, now: UnixTime) -> ConnectionId {
        self.of_window(ip, now.0 / WINDOW_S)
    }

    pub fn is_valid(&self, id: ConnectionId, ip: IpAddr, now: UnixTime) -> bool {
        let window = now.0 / WINDOW_S;
        id == self.of_window(ip, window) || id == self.of_window(ip, window.wrapping_sub(1))
    }

    fn of_window(&self, ip: IpAddr, window: u32) -> ConnectionId {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        match ip {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write(&window.to_be_bytes());
        ConnectionId(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_valid_for_two_to_four_minutes_and_one_address() {
        let ids = ConnectionIds::new([1, 2]);
        let ip = IpAddr::from([10, 0, 0, 1]);
        for second in 0..WINDOW_S {
            let given = UnixTime(1_700_000_000 + second);
            let id = ids.issue(ip, given);
            assert!(ids.is_valid(id, ip, UnixTime(given.0 + 120)));
            assert!(!ids.is_valid(id, ip, UnixTime(given.0 + 241)));
            assert!(!ids.is_valid(id, IpAddr::from([10, 0, 0, 2]), given));
            assert!(!ConnectionIds::new([1, 3]).is_valid(id, ip, given));
        }
    }
}
