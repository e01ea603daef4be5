//! People and their devices: who is here, and what is shown of them.
//!
//! Pure: time comes in as an argument, effects come out as values. One [`Roster`] holds the persons of a shard; its owner
//! feeds it what happens, calls it about once a second, and does what it says.
//!
//! # Layout
//!
//! - [`status`]: what can be said of a person, and what a person can say of themselves
//! - [`device`]: what a device says of itself
//! - [`privacy`]: who may see what
//! - [`policy`]: how long things may take
//! - [`machine`]: the document's state machine
//! - [`elsewhere`]: the same person's sessions at other gateways
//! - [`input`], [`view`]: what goes into a roster, what comes out, what can be read
//! - [`roster`]: the persons of a shard; inside, `person` adds up `session`s, each with its `pulse`, kept in `slots`
//! - [`moment`]: time by the clock, and time that never goes back
//!
//! # Deliberately absent
//!
//! Friends, watchers and privacy: a roster says what changed and what is seen in general, not who is told. I/O, clocks,
//! locks.

pub mod device;
pub mod elsewhere;
pub mod input;
pub mod machine;
pub mod moment;
mod person;
pub mod policy;
pub mod privacy;
mod pulse;
pub mod roster;
mod session;
mod slots;
pub mod status;
pub mod view;

pub use device::{AppState, DeviceId, Platform};
pub use elsewhere::{Elsewhere, Part, PartDevice};
pub use input::{Cause, CloseCause, ConnId, Effect, Goodbye, Hello, Input, Refused};
pub use moment::Moment;
pub use policy::Policy;
pub use privacy::{Privacy, Sight, Visibility};
pub use roster::Roster;
pub use status::{Declaration, Declared, Status};
pub use view::{DeviceView, LastKnown, Load, Remembered, SessionView, Tally, View};
