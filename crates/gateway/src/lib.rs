//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`counters`]: what is counted
//! - [`mint`]: makes tokens, to try things out
//! - [`webhooks`]: tells the site who comes and goes
//! - [`settings`]

pub mod counters;
pub mod mint;
pub mod settings;
pub mod webhooks;

pub use counters::GatewayCounters;
pub use settings::RoomAccess;
