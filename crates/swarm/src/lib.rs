//! Swarms in memory: who has which torrent right now, and what each peer moved since it last spoke.
//!
//! # Layout
//!
//! - [`swarms`]: the public face: shards behind short locks
//! - [`announce`]: what goes into an announce and what comes out
//! - [`mod@copy`]: swarms as bytes, so that they outlive the process
//! - [`heard`]: what another node heard, and what became of it here
//! - `shard`: the swarms of one shard, and the life of a peer in them
//! - `peer`: one peer's accounts, in one cache line; the rules for deltas
//! - `place`: where a peer is, in eight bytes
//! - `runs`: numbers for the runs of clients
//! - [`leeching`]: how many torrents a user leeches at once, and the limits on it
//! - `members`: one swarm's addresses side by side, seeders first
//! - `selection`: a uniform random choice of peers
//! - [`sight`]: peers as an operator sees them
//! - `slab`: records at stable slots, without slack
//!
//! # Guarantees
//!
//! - An announce takes one lock, once; in steady state it allocates nothing.
//! - Choosing peers costs what was asked for, not what the swarm holds.
//! - A dual-stack client is one peer; what it moved counts once.
//! - What several nodes heard leads to the same swarms on each, whatever the order it becomes known in.
//! - Expiry costs what is due ([`domain::wheel`]).
//!
//! # Deliberately absent
//!
//! Whether someone *may* announce (crate `access`), and everything about sockets (crate `tracker`). The memory of a
//! peer ends with the peer: what outlives it is the journal's and the ledger's business.

pub mod announce;
pub mod copy;
pub mod heard;
pub mod leeching;
mod members;
mod peer;
mod place;
mod runs;
mod selection;
mod shard;
pub mod sight;
mod slab;
pub mod swarms;

pub use announce::{
    Announce, AnnounceError, CLIENTS_PER_USER_MAX, Claim, Departure, Families, Outcome, PeerLists, Rules,
    SwarmCounts, WANTED_MAX,
};
pub use copy::{BadCopy, Restored};
pub use heard::{AHEAD_MAX, Heard, HeardTotals, Learnt};
pub use leeching::SlotLimits;
pub use sight::PeerSight;
pub use swarms::{SwarmTotals, Swarms};
