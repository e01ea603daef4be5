//! Bounds on what strangers can take: requests and connections from one address.
//!
//! Tables here have a fixed size: an attacker with many addresses can make them forget, never make them grow.

pub mod connections;
pub mod flood;
pub mod recent;

use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher13;

pub use connections::{ConnectionPermit, Connections};
pub use flood::FloodLimiter;
pub use recent::RecentAddresses;

/// Cells that one address may use, so that two busy addresses seldom push each other out.
const WAYS: usize = 4;

/// Hashes addresses with a secret, so that nobody can aim at another's cell.
#[derive(Clone, Copy, Debug)]
struct AddressHasher([u64; 2]);

impl AddressHasher {
    fn new(secret: [u64; 2]) -> Self {
        AddressHasher(secret)
    }

    /// Of IPv6, one network (/64) counts as one address: a single customer has all of it.
    fn hash(&self, ip: IpAddr) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0[0], self.0[1]);
        match ip {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()[..8]),
        }
        hasher.finish()
    }
}
