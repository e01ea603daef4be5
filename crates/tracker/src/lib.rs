//! The tracker: it receives announces over HTTP and UDP, answers them from memory, and records one traffic event for
//! each.
//!
//! # Layout
//!
//! - `server`: starts the listeners, reloads, drains
//! - `bound_sockets`: the sockets, bound or inherited from another process
//! - `pipeline`: the path of an announce, the same for every protocol; `departures`: peers that expire or are evicted
//! - `refusal`: why a request is refused; the one type whose text is sent to clients
//! - `http`: one single-threaded runtime per core; own request loop
//! - `udp`: batches of packets, connection ids without state
//! - `eviction`: peers to remove because they are no longer admitted
//! - `limits`: rate limits per address and user, recent addresses, addresses shared by users
//! - `waiting_packets`: bounds the UDP packets that wait for verification
//! - `risks`: risk events that only the tracker can detect
//! - `replication`: entries of other nodes, read from the journal into the swarms
//! - [`snapshot`]: the swarms in a file, for the next start
//! - `housekeeping`: expiry and evictions every 200 ms, certificates, a log line
//! - `traffic`: the sink of traffic events and its guarantees
//! - `counters`: counters for metrics
//! - `secrets`: keys of hashes, drawn at the start
//! - [`settings`]: settings as plain values
//!
//! # Guarantees
//!
//! An announce never waits for the network or a database: the gate and the swarms are in memory. The one exception is
//! the first announce with an unknown passkey: its connection waits, within a limit, until the passkey is verified;
//! over UDP the packet is set aside. Malformed input is answered with a readable reason, and state changes only once
//! everything about the request has been accepted.
//!
//! # What is recorded
//!
//! One `TrafficEvent` per accepted announce, after the swarm has changed. Refusals are not recorded; they are counted
//! by reason, and the first of each reason is logged. An expired or evicted peer is a `stopped` with cause `timeout`
//! or `removal`. A repeated `completed`, and that of a client that never leeched, is recorded as a regular announce; a
//! leecher's announce with nothing left is recorded as `completed`. A leecher that stops with nothing left is the one
//! announce that makes two entries. An event that is dropped by a panic or a closed connection is queued by its
//! destructor.
//!
//! # Limits and risks
//!
//! Requests of an address and announces of a user have leaky buckets; peer ids and early peer lists have a budget per
//! user and torrent. An IPv6 /64 counts as one address. UDP packets without a valid connection id have a bucket of
//! their own, and connects have none: their sender is only claimed. The tracker reports what only it sees (upload
//! without leechers, shared addresses, many peer ids); the ledger reports what it withholds. Each user is reported at
//! most once a minute per kind.
//!
//! A known user's `stopped` is never refused for its torrent or client: some clients repeat a refused one forever.
//!
//! # Several nodes
//!
//! `replication` reads the journal after a cursor, sleeps 25 to 200 ms at its end, and applies entries of other nodes, one
//! shard lock per entry. A peer last received elsewhere expires five seconds later than one received here, so that
//! usually the node that received it records the timeout. While the journal cannot be read, such peers do not expire.
//! If entries are missing after the cursor, the last interval + grace is read again.
//!
//! The snapshot has a head with the journal's cursor, the shards, and a checksum; it is written under another name,
//! flushed and renamed. A damaged, foreign or outdated one is renamed. A start reads snapshot, journal, then
//! completed counts from the ledger; a journal that does not answer for three seconds, or takes longer than ten, is
//! left for later.
//!
//! Swarms, `dt`, limits and run numbers use steady time, which no step of the wall clock changes; only dates are wall
//! time.

mod bound_sockets;
mod counters;
mod eviction;
mod housekeeping;
mod http;
mod limits;
mod pipeline;
mod refusal;
mod replication;
mod risks;
mod secrets;
mod server;
pub mod settings;
pub mod snapshot;
mod traffic;
mod udp;
mod waiting_packets;

pub use bound_sockets::{BoundSockets, InheritedSockets};
pub use counters::Counters;
pub use eviction::Eviction;
pub use limits::Sender;
pub use pipeline::{Accepted, Tracker};
pub use refusal::Refusal;
pub use replication::{CaughtUp, Replication};
pub use secrets::Secrets;
pub use server::{Addresses, Prepared, Running, StartError};
pub use settings::Settings;
pub use traffic::{OnStored, TrafficSink};
pub use udp::ConnectionIds;
