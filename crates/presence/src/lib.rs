//! Presence of users: sessions and devices in, status out.
//!
//! Pure: time is an argument, effects are return values. One [`PresenceTable`] holds the users of a shard; its owner
//! passes inputs to it, calls it about once a second, and carries out the effects.
//!
//! # Layout
//!
//! - [`status`]: statuses, and what a user can declare
//! - [`device`]: device ids, platforms, app states
//! - [`privacy`]: privacy settings, and what a viewer may see
//! - [`policy`]: timeouts and limits
//! - [`state_machine`]: the state machine of a session (P9)
//! - [`remote`]: the same user's sessions at other gateways
//! - [`input`], [`view`]: inputs, effects, and what can be read
//! - [`table`]: the users of a shard; `user_presence` aggregates `session`s, each with its `heartbeat_state`, stored in
//!   `slab`
//! - [`wall_time`]: wall-clock time and monotonic time
//!
//! # Deliberately absent
//!
//! Friends, watchers and privacy: a table reports what changed, not which users are notified. I/O, clocks, locks.

pub mod device;
mod heartbeat_state;
pub mod input;
pub mod policy;
pub mod privacy;
pub mod remote;
mod session;
mod slab;
pub mod state_machine;
pub mod status;
pub mod table;
mod user_presence;
pub mod view;
pub mod wall_time;

pub use device::{AppState, DeviceId, Platform};
pub use input::{Cause, CloseCause, CloseKind, ConnId, Effect, Hello, Input, Refused};
pub use policy::Policy;
pub use privacy::{Audience, Privacy, Visibility};
pub use remote::{NodeDevice, NodeEntry, RemoteSessions};
pub use status::{Declaration, Declared, Status};
pub use table::PresenceTable;
pub use view::{DeviceView, LastKnown, SessionView, StoredPresence, TableSize, UserCounts, View};
pub use wall_time::WallTime;
