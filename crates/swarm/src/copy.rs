//! Swarms as bytes, for the snapshot: the contents of a shard, swarm by swarm.
//!
//! All numbers are little-endian. A swarm is its infohash, its snatches (4 bytes), the number of its peers (4 bytes)
//! and the peers. A peer is its user, totals (8 bytes each), peer id (20), key, last announce, run and flags (4 bytes
//! each); then its IPv4 address (6) and its IPv6 address (18), if the flags have them.
//!
//! # Deliberately absent
//!
//! Checksums, versions and files: these are up to the caller. Malformed bytes are an error, never a panic.

use domain::{ClientKey, InfoHash, PeerId, RunId, Seconds, UnixTime, UserId};

use crate::members::Addresses;
use crate::packed_state::PackedState;
use crate::peer::Peer;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a copy of a shard")]
pub struct BadCopy;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub swarms: u64,
    pub peers: u64,
    /// Peers without capacity, or that existed already.
    pub left_out: u64,
}

const IS_SEEDER: u32 = 1 << 0;
const HAS_COMPLETED: u32 = 1 << 1;
const LAST_WAS_V6: u32 = 1 << 2;
const IS_REMOTE: u32 = 1 << 3;
const HAS_V4: u32 = 1 << 4;
const HAS_V6: u32 = 1 << 5;
/// Allowed silence, if longer than the default, in steps of ten minutes; else zero.
const SILENCE_SHIFT: u32 = 6;
const SILENCE_STEPS_MAX: u32 = 0x3ff;
const SILENCE_STEP_S: u32 = 600;
/// The upper half holds the seconds since the last announce over the other address family; all ones mean never.
const OTHER_FAMILY_SHIFT: u32 = 16;
const OTHER_FAMILY_NEVER: u32 = 0xffff;

/// Header before the peers of a swarm.
pub(crate) struct SwarmHead {
    pub(crate) info_hash: InfoHash,
    pub(crate) snatches: u32,
    pub(crate) peers: u32,
}

impl SwarmHead {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.info_hash.0);
        out.extend_from_slice(&self.snatches.to_le_bytes());
        out.extend_from_slice(&self.peers.to_le_bytes());
    }

    pub(crate) fn read(bytes: &mut Bytes<'_>) -> Result<SwarmHead, BadCopy> {
        Ok(SwarmHead { info_hash: InfoHash(bytes.take()?), snatches: bytes.u32()?, peers: bytes.u32()? })
    }
}

pub(crate) struct PeerCopy {
    pub(crate) peer: Peer,
    pub(crate) addresses: Addresses,
    pub(crate) is_seeder: bool,
    /// Allowed silence, if longer than the default; else zero.
    pub(crate) silence_max: Seconds,
}

impl PeerCopy {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let PeerCopy { peer, addresses, is_seeder, silence_max } = self;
        let packed = peer.packed;
        let flag = |holds: bool, bit: u32| if holds { bit } else { 0 };
        let flags = flag(*is_seeder, IS_SEEDER)
            | flag(packed.has_completed(), HAS_COMPLETED)
            | flag(packed.last_was_v6(), LAST_WAS_V6)
            | flag(packed.is_remote(), IS_REMOTE)
            | flag(addresses.v4.is_some(), HAS_V4)
            | flag(addresses.v6.is_some(), HAS_V6)
            | silence_max.0.div_ceil(SILENCE_STEP_S).min(SILENCE_STEPS_MAX) << SILENCE_SHIFT
            | packed.other_family_s().unwrap_or(OTHER_FAMILY_NEVER) << OTHER_FAMILY_SHIFT;
        for number in [peer.user.get(), peer.uploaded, peer.downloaded] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&peer.peer_id.0);
        for number in [peer.key.0, peer.last_announce.0, peer.run.0, flags] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend(addresses.v4.iter().flatten());
        out.extend(addresses.v6.iter().flatten());
    }

    pub(crate) fn read(bytes: &mut Bytes<'_>, swarm: u32) -> Result<PeerCopy, BadCopy> {
        let user = UserId::new(bytes.u64()?).ok_or(BadCopy)?;
        let (uploaded, downloaded) = (bytes.u64()?, bytes.u64()?);
        let peer_id = PeerId(bytes.take()?);
        let (key, last_announce, run) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
        let flags = bytes.u32()?;
        let addresses = Addresses {
            v4: if flags & HAS_V4 > 0 { Some(bytes.take()?) } else { None },
            v6: if flags & HAS_V6 > 0 { Some(bytes.take()?) } else { None },
        };
        let peer = Peer {
            user,
            uploaded,
            downloaded,
            packed: packed_state_of(flags, swarm),
            peer_id,
            key: ClientKey(key),
            last_announce: UnixTime(last_announce),
            run: RunId(run),
        };
        let silence_max = Seconds((flags >> SILENCE_SHIFT & SILENCE_STEPS_MAX) * SILENCE_STEP_S);
        Ok(PeerCopy { peer, addresses, is_seeder: flags & IS_SEEDER > 0, silence_max })
    }
}

fn packed_state_of(flags: u32, swarm: u32) -> PackedState {
    let mut packed = PackedState::in_swarm(swarm);
    if flags & HAS_COMPLETED > 0 {
        packed.set_completed();
    }
    packed.set_last_was_v6(flags & LAST_WAS_V6 > 0);
    packed.set_remote(flags & IS_REMOTE > 0);
    let other_family_s = flags >> OTHER_FAMILY_SHIFT;
    packed.set_other_family_s((other_family_s != OTHER_FAMILY_NEVER).then_some(other_family_s));
    packed
}

/// A reader from the front.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadCopy> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(BadCopy)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, BadCopy> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadCopy> {
        self.take().map(u64::from_le_bytes)
    }
}
