//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`settings`]

pub mod settings;

pub use settings::RoomAccess;
