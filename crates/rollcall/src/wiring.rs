//! How a server is assembled from the other crates, according to its roles and settings.
//!
//! # Layout
//!
//! - [`server`]: everything together, in the order of the start; and the shutdown
//! - [`stores`]: opens journal, ledger, activity lists, whitelist and friends: in the data folder, or in Redis and SQL
//! - [`gate`]: the followers that keep the gate current, and the copy of the database for readers of the Redis source
//! - [`verification`]: unknown passkeys: whitelist and verify endpoint
//! - [`resolver`]: user and torrent of an entry; [`risks`]: risk events of the ledger
//! - [`background`]: the queue into the journal, the views, and [`periodic`] tasks
//! - [`redis_mirror`]: the keys `t:*` in Redis
//! - [`sites`]: the tables of an existing site
//! - [`tracker`]: the tracker and its evictions; [`swarms`]: restore, replication, snapshots
//! - [`site`], [`gateway`], [`readiness`]: HTTP API, WebSocket gateway, `/readyz`
//! - [`tracker_settings`], [`site_settings`], [`gateway_settings`]: settings of these parts, made from the configuration

pub mod background;
pub mod gate;
pub mod gateway;
mod gateway_settings;
mod periodic;
mod readiness;
pub mod redis_mirror;
pub mod resolver;
mod risks;
pub mod server;
pub mod site;
mod site_settings;
pub mod sites;
pub mod stores;
pub mod swarms;
pub mod tracker;
pub mod tracker_settings;
pub mod verification;
