//! Swarms in memory: the peers of every torrent, and what each peer moved since its last announce.
//!
//! # Layout
//!
//! - [`swarms`]: the public interface: shards behind short locks
//! - [`announce`]: what an announce is granted, and its result
//! - [`mod@copy`]: swarms as bytes, for the snapshot
//! - [`remote`]: an entry of another node, and what it changed here
//! - `shard`: the swarms of one shard, and how peers join, continue and leave; `clients`: finding a user's clients
//! - `peer`: one peer's state, in one cache line; the rules for deltas
//! - `packed_state`: position and flags of a peer, in eight bytes
//! - `runs`: numbers for the runs of clients
//! - [`leech_counts`]: how many torrents a user leeches at once, and the limits on it
//! - `members`: one swarm's addresses, contiguous, seeders first
//! - `selection`: a uniform random choice of peers
//! - [`peer_info`]: peers as shown to operators
//! - `slab`: records at stable slots, without slack; `slot_index`: their slots by hash
//!
//! # Guarantees
//!
//! - An announce takes one lock, once; in steady state it allocates nothing.
//! - Choosing peers costs time proportional to the number wanted, not to the size of the swarm.
//! - A dual-stack client is one peer; what it moved counts once.
//! - Entries of several nodes lead to the same swarms on each, in any order.
//! - Expiry costs time proportional to what is due ([`domain::wheel`]).
//!
//! # Deliberately absent
//!
//! Admission (crate `access`) and sockets (crate `tracker`). Nothing is kept of a peer that has left: what outlives it
//! is in the journal and the ledger.
//!
//! # Memory of a peer
//!
//! A shard holds a slab of `Swarm`, a slab of `Peer`, two indexes of 4-byte slots (by infohash; of large swarms by
//! swarm and user) and a timing wheel. A peer has two records:
//!
//! - `Peer`, 64 bytes, one cache line: what an announce of this peer touches. User, totals, peer id, key, time, run,
//!   `PackedState`. Its size is asserted at compile time.
//! - `Member`, 12 bytes: what announces of other peers touch. The slot, IPv4 address and port, seven bits of a hash of
//!   the user, and where the IPv6 address is, if there is one: these are in a list of their own, 21 bytes each. The
//!   members of a swarm are contiguous, seeders first, so choosing fifty peers reads one range of memory, and "leechers
//!   only" is a slice.
//!
//! Each points at the other; a removal moves the last member into the gap and corrects one position. `PackedState`
//! packs swarm (22 bits), position (24 bits), the age of the other address family (14 bits) and four flags into eight
//! bytes. A shard holds four million torrents and four million peers, a swarm half a million peers. A user's clients on
//! a torrent are found by the seven bits among up to 32 members, and in a larger swarm by an index of swarm and user, not
//! by peer id: one short walk finds the client by peer id or key, counts the user's clients, and yields the peers that
//! this user must not receive. So an announce on a small torrent reads three records: the swarm, its members, the peer.
//! Slabs grow in chunks of 128 without moving a record. Hashes are seeded per process. The budget is 96 bytes per peer;
//! docs/benchmarks.md has what is measured.
//!
//! # Deltas
//!
//! Totals become `du`, `dd` and `dt` in `peer`:
//!
//! - A known peer: the difference of the totals, up to the ceiling, and the seconds since its last announce.
//! - An unknown peer: the totals are the starting point; nothing is credited.
//! - Totals that go back: the client restarted. A new run begins at the new totals; nothing is credited.
//! - Totals that grow implausibly also begin a new run, so that the ledger limits the difference by the time in
//!   between.
//! - Lower totals over the other address family, or where another node received the last announce, within 30 seconds
//!   and without `started`, are the older half of a dual-stack announce: they change no totals.
//! - A client is the same if its peer id is, or else its `key`. `stopped` goes by peer id only, so that a late one does
//!   not remove the restarted client. `started` under another peer id begins a new run.
//! - "Too soon" is evaluated per address family. A first `completed`, every `stopped`, and peers last received by
//!   another node are exempt.
//!
//! # Replication
//!
//! Entries of other nodes give the same swarms in any order and however often. Of each client the latest entry counts;
//! within a run the highest totals; of each address family the latest address. A `stopped` removes a peer unless
//! something later was received; a timeout only if nothing was received since the silence began. Recent `stopped` are
//! stored, so that a late entry does not add the peer again. Limits do not apply: another node has admitted the client.
//! A node adopts the run of a remote announce, so that one client has one run on all nodes.
//!
//! # Leech slots
//!
//! A user's count is the number of torrents that any of their clients leeches, over all shards, in sixteen small tables
//! with a lock each, taken last, under the lock of the shard. Checking and taking a slot are one step. While no limit
//! exists nothing is counted; counting begins with one pass over all peers.

pub mod announce;
pub mod copy;
pub mod leech_counts;
mod members;
mod packed_state;
mod peer;
pub mod peer_info;
pub mod remote;
mod runs;
mod selection;
mod shard;
mod slab;
mod slot_index;
pub mod swarms;

pub use announce::{
    AnnounceError, CLIENTS_PER_USER_MAX, Claim, Departure, Outcome, PeerLists, Rules, SwarmCounts, Terms,
    WANTED_MAX,
};
pub use copy::{BadCopy, Restored};
pub use leech_counts::SlotLimits;
pub use peer_info::PeerInfo;
pub use remote::{RemoteAnnounce, RemoteOutcome, RemoteTotals};
pub use swarms::{SwarmTotals, Swarms};
