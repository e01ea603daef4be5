//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`gateway`]: the whole of it: start and end
//! - [`door`]: where connections come in
//! - [`session`]: one connection
//! - [`token`], [`mint`]: who somebody is; tokens to try things out
//! - [`protocol`]: the Centrifuge client protocol
//! - [`outbox`]: what waits to be written to one connection
//! - [`hub`]: everybody who is here, and everybody who watches them
//! - [`watch`], [`feed`], [`rooms`], [`typing`], [`commands`], [`traffic`], [`keeper`]: the parts of the hub
//! - [`webhooks`]: tells the site who comes and goes
//! - [`counters`]: what is counted
//! - [`settings`]

pub mod commands;
pub mod counters;
pub mod door;
pub mod feed;
pub mod gateway;
pub mod hub;
pub mod keeper;
pub mod mint;
pub mod outbox;
pub mod protocol;
pub mod rooms;
pub mod session;
pub mod settings;
pub mod token;
pub mod traffic;
pub mod typing;
pub mod watch;
pub mod webhooks;

pub use counters::GatewayCounters;
pub use door::Door;
pub use gateway::{Gateway, GatewayParts};
pub use hub::Hub;
pub use outbox::{FeedUser, Outbox};
pub use settings::{GatewaySettings, RoomAccess};
pub use token::Tokens;
