//! One swarm's addresses, contiguous, seeders first, so that choosing peers reads one range of memory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use domain::UnixTime;

use domain::Families;

use crate::announce::{NO_ADDRESS, PeerLists};

/// Lower ports are not returned: no client listens there, and returning them would allow attacks on other services.
const LOWEST_PORT: u16 = 1024;

/// One peer's addresses as sent. All zero if there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Member {
    pub(crate) slot: u32,
    pub(crate) v4: [u8; 6],
    pub(crate) v6: [u8; 18],
}

impl Member {
    /// The slot is set later.
    pub(crate) fn at(ip: IpAddr, port: u16) -> Self {
        let mut member = Member::default();
        member.set_address(ip, port);
        member
    }

    /// Sets the address for the family of `ip`; a port below [`LOWEST_PORT`] clears it.
    pub(crate) fn set_address(&mut self, ip: IpAddr, port: u16) {
        let reachable = port >= LOWEST_PORT;
        match ip {
            IpAddr::V4(ip) => {
                self.v4 = [0; 6];
                if reachable {
                    self.v4[..4].copy_from_slice(&ip.octets());
                    self.v4[4..].copy_from_slice(&port.to_be_bytes());
                }
            }
            IpAddr::V6(ip) => {
                self.v6 = [0; 18];
                if reachable {
                    self.v6[..16].copy_from_slice(&ip.octets());
                    self.v6[16..].copy_from_slice(&port.to_be_bytes());
                }
            }
        }
    }

    pub(crate) fn clear_address(&mut self, v6: bool) {
        if v6 {
            self.v6 = [0; 18];
        } else {
            self.v4 = [0; 6];
        }
    }

    /// The IPv4 address, else the IPv6 address, else `0.0.0.0:0`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address_v4().or_else(|| self.address_v6()).unwrap_or(NO_ADDRESS)
    }

    pub(crate) fn address_v4(&self) -> Option<SocketAddr> {
        let [a, b, c, d, port @ ..] = self.v4;
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), u16::from_be_bytes(port));
        self.has_v4().then_some(address)
    }

    pub(crate) fn address_v6(&self) -> Option<SocketAddr> {
        let (ip, port) = self.v6.split_at(16);
        let octets: [u8; 16] = ip.try_into().expect("sixteen bytes were split off");
        let address =
            SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)), u16::from_be_bytes([port[0], port[1]]));
        self.has_v6().then_some(address)
    }

    /// Appends the addresses that the requester can use; false if there is none.
    pub(crate) fn append_to(&self, families: Families, lists: &mut PeerLists) -> bool {
        let give_v4 = families != Families::V6 && self.has_v4();
        let give_v6 = families != Families::V4 && self.has_v6();
        if give_v4 {
            lists.v4.extend_from_slice(&self.v4);
        }
        if give_v6 {
            lists.v6.extend_from_slice(&self.v6);
        }
        give_v4 || give_v6
    }

    pub(crate) fn has_v4(&self) -> bool {
        self.v4[4..] != [0, 0]
    }

    pub(crate) fn has_v6(&self) -> bool {
        self.v6[16..] != [0, 0]
    }
}

/// A member whose position has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) slot: u32,
    pub(crate) to: u32,
}

/// The members of one swarm: `[seeders… | leechers…]`.
#[derive(Debug, Default)]
pub(crate) struct Members {
    all: Vec<Member>,
    seeders: u32,
    /// When a leecher last left or became a seeder; zero for never.
    pub(crate) leecher_ended: UnixTime,
}

impl Members {
    pub(crate) fn all(&self) -> &[Member] {
        &self.all
    }

    pub(crate) fn leechers(&self) -> &[Member] {
        &self.all[self.seeders as usize..]
    }

    pub(crate) fn seeder_count(&self) -> u32 {
        self.seeders
    }

    pub(crate) fn leecher_count(&self) -> u32 {
        self.all.len() as u32 - self.seeders
    }

    pub(crate) fn is_seeder(&self, position: u32) -> bool {
        position < self.seeders
    }

    pub(crate) fn member_mut(&mut self, position: u32) -> &mut Member {
        &mut self.all[position as usize]
    }

    /// Adds a member as a leecher, at the end.
    pub(crate) fn push(&mut self, member: Member) -> u32 {
        if self.all.len() == self.all.capacity() {
            // Grows by an eighth rather than twofold: most swarms stay small.
            self.all.reserve_exact(2.max(self.all.len() / 8));
        }
        self.all.push(member);
        self.all.len() as u32 - 1
    }

    /// Swaps a member across the border between seeders and leechers; returns both new positions.
    pub(crate) fn set_seeder(&mut self, position: u32, seeder: bool) -> Option<[Moved; 2]> {
        if self.is_seeder(position) == seeder {
            return None;
        }
        let border = if seeder { self.seeders } else { self.seeders - 1 };
        self.all.swap(position as usize, border as usize);
        self.seeders = if seeder { self.seeders + 1 } else { self.seeders - 1 };
        Some([self.at(position), self.at(border)])
    }

    /// Removes a leecher; the last one moves into the gap. Seeders must be made leechers first.
    pub(crate) fn remove_leecher(&mut self, position: u32) -> Option<Moved> {
        debug_assert!(!self.is_seeder(position), "seeders are made leechers before they leave");
        self.all.swap_remove(position as usize);
        if self.all.is_empty() {
            self.all = Vec::new();
        } else if self.all.capacity() > 16 + 2 * self.all.len() {
            self.all.shrink_to(self.all.len() + 2.max(self.all.len() / 8));
        }
        (position < self.all.len() as u32).then(|| self.at(position))
    }

    fn at(&self, position: u32) -> Moved {
        Moved { slot: self.all[position as usize].slot, to: position }
    }
}
