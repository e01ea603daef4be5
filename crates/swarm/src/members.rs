//! One swarm's addresses, contiguous, seeders first, so that choosing peers reads one range of memory.
//!
//! Most peers have an IPv4 address only: IPv6 addresses are in a list of their own, in no order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use domain::{Families, UnixTime, UserId};

use crate::announce::{NO_ADDRESS, PeerLists};

/// Lower ports are not returned: no client listens there, and returning them would allow attacks on other services.
const LOWEST_PORT: u16 = 1024;

/// Bits of a slot in a [`Member`].
pub(crate) const SLOT_BITS: u32 = 22;
const TAG_BITS: u32 = 7;
const TAG_MASK: u32 = ((1 << TAG_BITS) - 1) << SLOT_BITS;
/// Of the index in the list of IPv6 addresses; the lower ones are a field of their own.
const UPPER_V6_BITS: u32 = 3;
const _: () = assert!(SLOT_BITS + TAG_BITS + UPPER_V6_BITS == u32::BITS);

/// Peers per shard.
pub(crate) const SLOTS_MAX: usize = 1 << SLOT_BITS;
/// Peers per swarm: each may have an IPv6 address, and zero means none.
pub(crate) const PEERS_PER_SWARM_MAX: usize = (1 << (UPPER_V6_BITS + u16::BITS)) - 1;

/// Up to so many members are searched for a user one by one; of larger swarms the users are in the shard's index.
const SEARCHED_MAX: usize = 32;
/// A smaller swarm leaves the index.
const INDEXED_MIN: usize = SEARCHED_MAX / 2;

/// The addresses of a peer as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v4: Option<[u8; 6]>,
    pub(crate) v6: Option<[u8; 18]>,
}

impl Addresses {
    /// None for a port below [`LOWEST_PORT`].
    pub(crate) fn at(ip: IpAddr, port: u16) -> Self {
        match ip {
            IpAddr::V4(ip) => Addresses { v4: reachable(ip.octets(), port), v6: None },
            IpAddr::V6(ip) => Addresses { v4: None, v6: reachable(ip.octets(), port) },
        }
    }

    /// The IPv4 address, else the IPv6 address, else `0.0.0.0:0`.
    pub(crate) fn first(&self) -> SocketAddr {
        self.socket_v4().or_else(|| self.socket_v6()).unwrap_or(NO_ADDRESS)
    }

    pub(crate) fn socket_v4(&self) -> Option<SocketAddr> {
        let (ip, port) = split::<4>(self.v4.as_ref()?);
        Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))
    }

    pub(crate) fn socket_v6(&self) -> Option<SocketAddr> {
        let (ip, port) = split::<16>(self.v6.as_ref()?);
        Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(ip)), port))
    }
}

/// Address and port as sent; none for a port below [`LOWEST_PORT`].
#[inline]
fn reachable<const IP: usize, const ALL: usize>(ip: [u8; IP], port: u16) -> Option<[u8; ALL]> {
    let mut address = [0; ALL];
    address[..IP].copy_from_slice(&ip);
    address[IP..].copy_from_slice(&port.to_be_bytes());
    (port >= LOWEST_PORT).then_some(address)
}

fn split<const IP: usize>(address: &[u8]) -> ([u8; IP], u16) {
    let (ip, port) = address.split_at(IP);
    (ip.try_into().expect("as many were split off"), u16::from_be_bytes([port[0], port[1]]))
}

/// What the announces of other peers read of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Slot, tag of the user, upper bits of the index in the list of IPv6 addresses.
    link: u32,
    /// All zero if there is none.
    v4: [u8; 6],
    v6_low: u16,
}

const _: () = assert!(size_of::<Member>() == 12);

/// An IPv6 address, and the position of its member.
#[derive(Clone, Copy, Debug)]
struct V6Member {
    address: [u8; 18],
    position: [u8; 3],
}

const _: () = assert!(PEERS_PER_SWARM_MAX < 1 << 24);

impl V6Member {
    fn position(&self) -> u32 {
        let [low, middle, high] = self.position;
        u32::from_le_bytes([low, middle, high, 0])
    }

    fn set_position(&mut self, position: u32) {
        let [low, middle, high, _] = position.to_le_bytes();
        self.position = [low, middle, high];
    }
}

#[derive(Debug, Default)]
struct V6Members(Vec<V6Member>);

/// Tells most users of a swarm apart. Users do not choose their ids.
fn tag_of(user: UserId) -> u32 {
    (user.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - TAG_BITS)) as u32
}

impl Member {
    pub(crate) fn new(slot: u32, user: UserId) -> Self {
        Member { link: slot | tag_of(user) << SLOT_BITS, v4: [0; 6], v6_low: 0 }
    }

    pub(crate) fn slot(&self) -> u32 {
        self.link & (SLOTS_MAX as u32 - 1)
    }

    fn has_v4(&self) -> bool {
        self.v4[4..] != [0, 0]
    }

    fn v6_index(&self) -> Option<usize> {
        let number = self.link >> (SLOT_BITS + TAG_BITS) << u16::BITS | u32::from(self.v6_low);
        (number as usize).checked_sub(1)
    }

    fn set_v6_index(&mut self, index: Option<usize>) {
        let number = index.map_or(0, |index| index as u32 + 1);
        let rest = self.link & ((1 << (SLOT_BITS + TAG_BITS)) - 1);
        self.link = rest | number >> u16::BITS << (SLOT_BITS + TAG_BITS);
        self.v6_low = number as u16;
    }
}

/// A member whose position has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) slot: u32,
    pub(crate) to: u32,
}

/// Members to choose from, and what a requester can use of them.
#[derive(Clone, Copy)]
pub(crate) struct Candidates<'a> {
    members: &'a [Member],
    uses_v4: bool,
    /// Empty if the requester cannot use them.
    v6: &'a [V6Member],
}

impl Candidates<'_> {
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn append_all(&self, except: &[u32], lists: &mut PeerLists) {
        for member in self.members {
            self.append_member(member, except, lists);
        }
    }

    /// Appends the addresses of a candidate. False if it has none for the requester, if it is one of `except`, or if
    /// there is no such candidate.
    #[inline]
    pub(crate) fn append(&self, index: usize, except: &[u32], lists: &mut PeerLists) -> bool {
        self.members.get(index).is_some_and(|member| self.append_member(member, except, lists))
    }

    #[inline(always)]
    fn append_member(&self, member: &Member, except: &[u32], lists: &mut PeerLists) -> bool {
        // Nearly every requester has one client on a torrent.
        let is_excepted = match except {
            [slot] => *slot == member.slot(),
            slots => slots.contains(&member.slot()),
        };
        if is_excepted {
            return false;
        }
        let gives_v4 = self.uses_v4 && member.has_v4();
        if gives_v4 {
            lists.v4.extend_from_slice(&member.v4);
        }
        gives_v4 | (!self.v6.is_empty() && self.append_v6(member, lists))
    }

    // Not inlined: most swarms have no IPv6 address.
    #[inline(never)]
    fn append_v6(&self, member: &Member, lists: &mut PeerLists) -> bool {
        let Some(index) = member.v6_index() else { return false };
        lists.v6.extend_from_slice(&self.v6[index].address);
        true
    }
}

/// The members of one swarm: `[seeders… | leechers…]`.
#[derive(Debug, Default)]
pub(crate) struct Members {
    all: Vec<Member>,
    /// None if there are none.
    v6: Option<Box<V6Members>>,
    /// Seeders; the highest bit is [`INDEXED`].
    seeders: u32,
    /// When a leecher last left or became a seeder; zero for never.
    pub(crate) leecher_ended: UnixTime,
}

/// Whether the users are in the shard's index.
const INDEXED: u32 = 1 << 31;

impl Members {
    pub(crate) fn all(&self) -> &[Member] {
        &self.all
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// All members, or only the leechers, for a requester of these address families.
    pub(crate) fn candidates(&self, only_leechers: bool, families: Families) -> Candidates<'_> {
        let first = if only_leechers { self.seeder_count() as usize } else { 0 };
        let v6 = self.v6.as_ref().filter(|_| families != Families::V4);
        Candidates {
            members: &self.all[first..],
            uses_v4: families != Families::V6,
            v6: v6.map_or(&[], |v6| &v6.0),
        }
    }

    /// Slots that may be those of this user, for a swarm that is not indexed.
    pub(crate) fn slots_like(&self, user: UserId) -> impl Iterator<Item = u32> {
        let tag = tag_of(user) << SLOT_BITS;
        self.all.iter().filter(move |member| member.link & TAG_MASK == tag).map(Member::slot)
    }

    pub(crate) fn is_indexed(&self) -> bool {
        self.seeders & INDEXED != 0
    }

    /// Whether the swarm has outgrown the search one by one, or no longer needs the index. To be called after a change;
    /// on true the shard indexes or forgets all members.
    pub(crate) fn switches_index(&mut self) -> bool {
        let switches = match self.is_indexed() {
            true => self.all.len() < INDEXED_MIN,
            false => self.all.len() > SEARCHED_MAX,
        };
        if switches {
            self.seeders ^= INDEXED;
        }
        switches
    }

    pub(crate) fn seeder_count(&self) -> u32 {
        self.seeders & !INDEXED
    }

    pub(crate) fn leecher_count(&self) -> u32 {
        self.all.len() as u32 - self.seeder_count()
    }

    pub(crate) fn is_seeder(&self, position: u32) -> bool {
        position < self.seeder_count()
    }

    pub(crate) fn addresses(&self, position: u32) -> Addresses {
        let member = &self.all[position as usize];
        let v6 = member.v6_index().and_then(|index| Some(self.v6.as_ref()?.0[index].address));
        Addresses { v4: member.has_v4().then_some(member.v4), v6 }
    }

    /// Sets the address for the family of `ip`; a port below [`LOWEST_PORT`] clears it.
    pub(crate) fn set_address(&mut self, position: u32, ip: IpAddr, port: u16) {
        match ip {
            IpAddr::V4(ip) => self.set_v4(position, reachable(ip.octets(), port)),
            IpAddr::V6(ip) => self.set_v6(position, reachable(ip.octets(), port)),
        }
    }

    pub(crate) fn clear_address(&mut self, position: u32, v6: bool) {
        if v6 { self.set_v6(position, None) } else { self.set_v4(position, None) }
    }

    fn set_v4(&mut self, position: u32, address: Option<[u8; 6]>) {
        self.all[position as usize].v4 = address.unwrap_or_default();
    }

    fn set_v6(&mut self, position: u32, address: Option<[u8; 18]>) {
        let member = &mut self.all[position as usize];
        match (member.v6_index(), address) {
            (Some(index), Some(address)) => {
                if let Some(v6) = &mut self.v6 {
                    v6.0[index].address = address;
                }
            }
            (None, Some(address)) => {
                let v6 = &mut self.v6.get_or_insert_default().0;
                member.set_v6_index(Some(v6.len()));
                grow(v6);
                let mut added = V6Member { address, position: [0; 3] };
                added.set_position(position);
                v6.push(added);
            }
            (Some(index), None) => {
                member.set_v6_index(None);
                self.remove_v6(index);
            }
            (None, None) => {}
        }
    }

    /// The last address moves into the gap.
    fn remove_v6(&mut self, index: usize) {
        let Some(v6) = &mut self.v6 else { return };
        v6.0.swap_remove(index);
        if let Some(moved) = v6.0.get(index) {
            self.all[moved.position() as usize].set_v6_index(Some(index));
        }
        shrink(&mut v6.0);
        if v6.0.is_empty() {
            self.v6 = None;
        }
    }

    /// Adds a member as a leecher, at the end.
    pub(crate) fn push(&mut self, member: Member, addresses: Addresses) -> u32 {
        grow(&mut self.all);
        self.all.push(member);
        let position = self.all.len() as u32 - 1;
        self.set_v4(position, addresses.v4);
        self.set_v6(position, addresses.v6);
        position
    }

    /// Swaps a member across the border between seeders and leechers; returns both new positions.
    pub(crate) fn set_seeder(&mut self, position: u32, seeder: bool) -> Option<[Moved; 2]> {
        if self.is_seeder(position) == seeder {
            return None;
        }
        let border = if seeder { self.seeder_count() } else { self.seeder_count() - 1 };
        self.all.swap(position as usize, border as usize);
        self.seeders = if seeder { self.seeders + 1 } else { self.seeders - 1 };
        Some([self.moved(position), self.moved(border)])
    }

    /// Removes a leecher; the last one moves into the gap. Seeders must be made leechers first.
    pub(crate) fn remove_leecher(&mut self, position: u32) -> Option<Moved> {
        debug_assert!(!self.is_seeder(position), "seeders are made leechers before they leave");
        self.set_v6(position, None);
        self.all.swap_remove(position as usize);
        shrink(&mut self.all);
        (position < self.all.len() as u32).then(|| self.moved(position))
    }

    fn moved(&mut self, to: u32) -> Moved {
        let member = &self.all[to as usize];
        let (slot, v6_index) = (member.slot(), member.v6_index());
        if let (Some(index), Some(v6)) = (v6_index, &mut self.v6) {
            v6.0[index].set_position(to);
        }
        Moved { slot, to }
    }
}

/// Makes room by an eighth rather than twofold: most swarms stay small.
fn grow<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact(2.max(list.len() / 8));
    }
}

/// Gives back what is not used.
fn shrink<T>(list: &mut Vec<T>) {
    if list.is_empty() {
        *list = Vec::new();
    } else if list.capacity() > 16 + 2 * list.len() {
        list.shrink_to(list.len() + 2.max(list.len() / 8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    fn addresses(number: u32, has_v4: bool, has_v6: bool) -> Addresses {
        let [a, b, c, d] = number.to_be_bytes();
        let mut v6 = [7; 18];
        v6[..4].copy_from_slice(&number.to_be_bytes());
        Addresses { v4: has_v4.then_some([a, b, c, d, 4, 4]), v6: has_v6.then_some(v6) }
    }

    /// Joins, leaves, changes of role and of addresses at random, compared with a plain list after each.
    #[test]
    fn every_member_keeps_its_addresses() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut members = Members::default();
        // By position: slot, whether it seeds, addresses.
        let mut plain: Vec<(u32, bool, Addresses)> = Vec::new();
        for step in 0..4_000 {
            let is_growing = step % 400 < 240;
            let position = random.usize(..plain.len().max(1));
            match random.u32(..8) {
                _ if plain.is_empty() => {}
                0 | 1 if !is_growing => {
                    let seeder = plain[position].1;
                    if seeder {
                        let border = members.seeder_count() as usize - 1;
                        members.set_seeder(position as u32, false);
                        plain.swap(position, border);
                        plain[border].1 = false;
                        members.remove_leecher(border as u32);
                        plain.swap_remove(border);
                    } else {
                        members.remove_leecher(position as u32);
                        plain.swap_remove(position);
                    }
                    members.switches_index();
                    continue;
                }
                2 => {
                    let (seeder, seeders) = (plain[position].1, members.seeder_count() as usize);
                    let border = if seeder { seeders - 1 } else { seeders };
                    let moved = members.set_seeder(position as u32, !seeder).unwrap();
                    plain[position].1 = !seeder;
                    plain.swap(position, border);
                    let moved = moved.map(|moved| (moved.to as usize, moved.slot));
                    assert_eq!(moved, [position, border].map(|to| (to, plain[to].0)));
                    continue;
                }
                3 => {
                    let v6 = random.bool();
                    members.clear_address(position as u32, v6);
                    let addresses = &mut plain[position].2;
                    if v6 {
                        addresses.v6 = None
                    } else {
                        addresses.v4 = None
                    }
                    continue;
                }
                4 => {
                    let ip: IpAddr =
                        if random.bool() { [10, 0, 0, 1].into() } else { Ipv6Addr::LOCALHOST.into() };
                    let port = random.u16(1000..1100);
                    members.set_address(position as u32, ip, port);
                    let (new, addresses) = (Addresses::at(ip, port), &mut plain[position].2);
                    if ip.is_ipv6() {
                        addresses.v6 = new.v6
                    } else {
                        addresses.v4 = new.v4
                    }
                    continue;
                }
                _ => {}
            }
            let slot = random.u32(..SLOTS_MAX as u32);
            let addresses = addresses(step, random.bool(), random.u8(..3) == 0);
            members.push(Member::new(slot, user(u64::from(step) + 1)), addresses);
            plain.push((slot, false, addresses));
            members.switches_index();
            assert_eq!(members.is_indexed(), members.is_indexed() && plain.len() >= INDEXED_MIN);
            let positions = 0..plain.len() as u32;
            let of = |position| {
                let slot = members.all()[position as usize].slot();
                (slot, members.is_seeder(position), members.addresses(position))
            };
            assert_eq!(positions.map(of).collect::<Vec<_>>(), plain);
            let v6 = plain.iter().filter(|(_, _, addresses)| addresses.v6.is_some()).count();
            assert_eq!(members.v6.as_ref().map_or(0, |v6| v6.0.len()), v6);
        }
    }

    #[test]
    fn the_index_of_an_ipv6_address_has_nineteen_bits() {
        let mut member = Member::new(SLOTS_MAX as u32 - 1, user(9));
        let tag = member.link & TAG_MASK;
        for index in [None, Some(0), Some(0xfffe), Some(0xffff), Some(PEERS_PER_SWARM_MAX - 1), None] {
            member.set_v6_index(index);
            assert_eq!(
                (member.v6_index(), member.slot(), member.link & TAG_MASK),
                (index, SLOTS_MAX as u32 - 1, tag)
            );
        }
    }
}
