//! The register: the common book in Redis of who is here, and at which gateway.
//!
//! Every gateway is a node of it. A person's record is a set of parts, one for each node at which they have sessions,
//! and what belongs to the person: what they declared, when they were last seen, two versions, until when they are
//! pending. A node writes its own part only; what is shown of the person follows from the record.
//!
//! # Layout
//!
//! - [`register`]: joining, staying, leaving; [`node`]: who a node is; [`settings`]: how long things may take
//! - [`record`]: what is written and read; `publish`, `watch`, `reap`: writing, reading, clearing up after others
//! - [`inbox`]: what other nodes tell; [`message`]: what else than records they tell
//! - `telling`: telling others; `due`: the sets of what is due
//! - [`shards`]: which node clears up what
//! - `encoding`, `reply`: texts in Redis to values and back
//! - [`counters`]: what is counted
//!
//! # Guarantees
//!
//! - Devices at different nodes add up, in whatever order nodes write. A node that was declared dead writes no more.
//! - Whoever is interested in a person is told each change, or learns by a gap that something may be missing.
//! - A node that dies between two steps leaves what another finds: its people become pending, then leave.
//! - Time is Redis's own. What comes out is how long something still lasts, so clocks need not agree.
//! - What is malformed in Redis counts as absent, and is counted.
//!
//! # Deliberately absent
//!
//! Searching for keys, and channels that everybody hears. Any memory of people: that is the gateway's, and SQL's.

pub mod counters;
mod due;
mod encoding;
pub mod inbox;
pub mod message;
pub mod node;
mod publish;
mod reap;
pub mod record;
pub mod register;
mod reply;
pub mod settings;
pub mod shards;
mod telling;
mod watch;

pub use counters::RegisterCounters;
pub use inbox::{Heard, Inbox};
pub use keyspace::Trouble;
pub use message::Message;
pub use node::NodeName;
pub use record::{Change, Outcome, PartOf, Published, Record, Standing, Update, Watched};
pub use register::Register;
pub use settings::RegisterSettings;
