//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`counters`]: what is counted
//! - [`settings`]

pub mod counters;
pub mod settings;

pub use counters::GatewayCounters;
pub use settings::RoomAccess;
