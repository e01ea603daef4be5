//! Connections of people: WebSocket, feeds, rooms, webhooks.
//!
//! # Layout
//!
//! - [`gateway`]: the whole of it: start and end
//! - [`door`]: where connections come in
//! - [`session`]: one connection
//! - [`token`], [`mint`]: who somebody is; tokens to try things out
//! - [`protocol`]: the Centrifuge client protocol
//! - [`operators`], [`occurrences`]: who looks on, and what they are told
//! - [`outbox`]: what waits to be written to one connection
//! - [`hub`]: everybody who is here, and everybody who watches them
//! - [`sharing`]: many gateways, one register
//! - `watch`: who watches whom: reads friends and privacy, applies changes of them
//! - [`feed`]: what a person looks like in a feed
//! - `rooms`, `typing`, `commands`: what people do over their connections
//! - [`traffic`]: what people's torrent clients do
//! - `keeper`: writes down what a restart must not forget
//! - [`webhooks`]: tells the site who comes and goes
//! - `between`: what gateways say to each other
//! - [`turn`]: what one of many gateways does at a time
//! - [`counters`]: what is counted
//! - [`settings`]: what can be set

pub mod accounts;
mod between;
mod commands;
pub mod counters;
pub mod door;
pub mod feed;
pub mod gateway;
pub mod hub;
mod keeper;
pub mod mint;
pub mod occurrences;
pub mod operators;
pub mod outbox;
pub mod protocol;
mod rooms;
pub mod session;
pub mod settings;
pub mod sharing;
pub mod token;
pub mod traffic;
pub mod turn;
mod typing;
mod watch;
pub mod webhooks;

pub use accounts::IsDisabled;
pub use counters::GatewayCounters;
pub use door::Door;
pub use gateway::{Gateway, GatewayParts};
pub use hub::{
    CommandError, ConnRef, Hub, HubError, HubParts, HubSettings, Identity, OnlineCount, Refusal, Welcome,
};
pub use occurrences::Happening;
pub use operators::{FeedToken, Operators};
pub use outbox::{FeedUser, Outbox};
pub use settings::{GatewaySettings, RoomAccess};
pub use sharing::SharingSettings;
pub use token::Tokens;
pub use traffic::{NoTraffic, TrafficCount, TrafficCounts, TrafficUnknown};
