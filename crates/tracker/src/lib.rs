//! The tracker itself: it hears announces over HTTP and UDP, answers them from memory, and writes down one traffic
//! event for each.
//!
//! # Layout
//!
//! - [`server`]: starts the listeners, reloads, drains
//! - [`ports`], [`sockets`]: the sockets it serves, opened or taken over from another process
//! - [`ending`]: how it is told to end
//! - [`pipeline`]: the life of an announce, whatever wire it came over
//! - `terms`: on which terms an announce is answered: intervals, peers or none, slots for leeching
//! - [`halt`]: why a request has no answer, or not yet
//! - [`rejection`]: the one type whose text a client is told
//! - [`http`]: one single-threaded runtime per core; own request loop, TLS, proxies
//! - [`udp`]: batches of packets, connection ids without state
//! - [`eviction`]: who has to leave because the site no longer lets them in
//! - [`limits`]: floods from one address or by one user, connections, addresses seen lately, addresses shared by users
//! - [`risks`]: what is reported as suspicious
//! - [`replication`]: what other nodes heard, read from the journal into the swarms
//! - [`snapshot`]: the swarms in a file, for the next start
//! - [`housekeeping`]: a few times a second: expiry, evictions, certificates, a line in the log
//! - [`traffic`]: where traffic events go, and what is promised about it
//! - [`counters`]: what is counted
//! - [`secrets`]: keys of hashes, drawn at the start
//! - [`settings`]: everything that can be set, as plain values
//!
//! # Guarantees
//!
//! An announce never waits for the network or a database: the gate and the swarms are in memory. The one exception is a
//! stranger's first announce: its connection waits, within a limit, until somebody was asked about the passkey, while
//! all others go on; over UDP the packet is set aside. Whatever bytes
//! arrive, the answer is a reason a person can read, and state changes only once everything has been found good.

pub mod counters;
pub mod ending;
pub mod eviction;
pub mod halt;
pub mod housekeeping;
pub mod http;
pub mod limits;
pub mod pipeline;
pub mod ports;
pub mod rejection;
pub mod replication;
mod request;
pub mod risks;
pub mod secrets;
pub mod server;
mod set_aside;
pub mod settings;
pub mod snapshot;
pub mod sockets;
mod terms;
pub mod traffic;
pub mod udp;

pub use ending::Ending;
pub use eviction::Eviction;
pub use pipeline::Tracker;
pub use rejection::Rejection;
pub use replication::Replication;
pub use server::{Addresses, Running, StartError};
pub use settings::Settings;
