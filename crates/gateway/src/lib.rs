//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`counters`]: what is counted
//! - [`mint`]: makes tokens, to try things out
//! - [`settings`]

pub mod counters;
pub mod mint;
pub mod settings;

pub use counters::GatewayCounters;
pub use settings::RoomAccess;
