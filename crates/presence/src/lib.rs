//! People and their devices: who is here, and what is shown of them.
//!
//! Pure: time comes in as an argument, effects come out as values.
//!
//! # Layout
//!
//! - [`status`]: what can be said of a person, and what a person can say of themselves
//! - [`device`]: what a device says of itself
//! - [`privacy`]: who may see what

pub mod device;
pub mod privacy;
pub mod status;

pub use device::{AppState, DeviceId, Platform};
pub use privacy::{Privacy, Sight, Visibility};
pub use status::{Declaration, Declared, Status};
