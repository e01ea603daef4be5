//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`protocol`]: the Centrifuge client protocol
//! - [`outbox`]: what waits to be written to one connection
//! - [`counters`]: what is counted
//! - [`mint`]: makes tokens, to try things out
//! - [`webhooks`]: tells the site who comes and goes
//! - [`settings`]

pub mod counters;
pub mod mint;
pub mod outbox;
pub mod protocol;
pub mod settings;
pub mod webhooks;

pub use counters::GatewayCounters;
pub use outbox::{FeedUser, Outbox};
pub use settings::{GatewaySettings, RoomAccess};
