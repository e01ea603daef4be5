//! Rate limits and bounds per address and per user.
//!
//! All tables have a fixed size: an attacker with many addresses can displace entries, not grow them.

pub mod flood;
pub mod recent;
pub mod shared;
pub mod users;

use std::hash::Hasher;
use std::net::IpAddr;

use net::proxy::network_of;
use siphasher::sip::SipHasher13;

pub use flood::{FloodLimiter, Sender};
pub use recent::RecentAddresses;
pub use shared::SharedAddresses;
pub use users::UserLimiter;

/// Busy keys of a rate limiter: half a mebibyte.
const BUSY_KEYS: usize = 65_536;
/// Cells that a key may use, so that two busy keys seldom displace each other.
const WAYS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub struct AddressHash(u64);

/// Keyed, so that no client can target another's cell.
#[derive(Clone, Copy, Debug)]
struct AddressHasher([u64; 2]);

impl AddressHasher {
    fn new(secret: [u64; 2]) -> Self {
        AddressHasher(secret)
    }

    /// `kind` separates counters of the same address.
    fn hash(&self, ip: IpAddr, kind: u8) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0[0], self.0[1]);
        match network_of(ip) {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()[..8]),
        }
        hasher.write_u8(kind);
        hasher.finish()
    }
}
