//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`protocol`]: the Centrifuge client protocol
//! - [`outbox`]: what waits to be written to one connection
//! - [`counters`]: what is counted
//! - [`settings`]

pub mod counters;
pub mod outbox;
pub mod protocol;
pub mod settings;

pub use counters::GatewayCounters;
pub use outbox::{FeedUser, Outbox};
pub use settings::{GatewaySettings, RoomAccess};
