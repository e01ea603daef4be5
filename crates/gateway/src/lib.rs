//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`hub`]: everybody who is here, and everybody who watches them
//! - `watch`: who watches whom: reads friends and privacy, applies changes of them
//! - [`feed`]: what a person looks like in a feed
//! - `rooms`, `typing`, `commands`: what people do over their connections
//! - [`traffic`]: what people's torrent clients do
//! - `keeper`: writes down what a restart must not forget
//! - [`protocol`]: the Centrifuge client protocol
//! - [`outbox`]: what waits to be written to one connection
//! - [`counters`]: what is counted
//! - [`settings`]

mod commands;
pub mod counters;
pub mod feed;
pub mod hub;
mod keeper;
pub mod outbox;
pub mod protocol;
mod rooms;
pub mod settings;
pub mod traffic;
mod typing;
mod watch;

pub use counters::GatewayCounters;
pub use hub::{
    CommandError, ConnRef, Hub, HubError, HubParts, HubSettings, Identity, OnlineCount, Refusal, Welcome,
};
pub use outbox::{FeedUser, Outbox};
pub use settings::{GatewaySettings, RoomAccess};
pub use traffic::{NoTraffic, TrafficCount, TrafficCounts, TrafficUnknown};
