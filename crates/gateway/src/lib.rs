//! WebSocket gateway: sessions, commands, presence feeds, rooms, webhooks; presence across gateways on Redis.
//!
//! # Layout
//!
//! - [`gateway`]: the whole: parts, start, drain
//! - [`accept`]: WebSocket handshake, connection limits
//! - [`session`]: one connection: reads frames, handles commands, writes the outbox
//! - [`protocol`]: the Centrifuge client protocol: commands, replies, codes
//! - `commands`: the RPC commands
//! - [`token`], [`mint`]: verifies connect and room tokens; makes tokens for tests and operators
//! - [`outbox`]: frames and statuses that wait to be written to one connection
//! - [`hub`]: composes the parts below; [`hub::Users`]: users in memory, in shards; their connections and watchers
//! - `watch`: the task that reads friends and privacy, and maintains the watchers
//! - [`feed`]: the JSON of a user in a feed
//! - `rooms`: members of rooms; `typing`: typing notifications
//! - [`torrent_counts`]: seeding and leeching counts beside the status
//! - [`cluster`]: records of users in Redis: publish, watch, inbox, lease, reap
//! - [`cluster_sync`]: keeps the users and the cluster in sync
//! - `gateway_messages`: messages between gateways that are not records
//! - [`leader_lease`]: work that one gateway does at a time
//! - `presence_writer`: writes presence and history to SQL
//! - [`webhooks`]: posts arrivals and departures to the site
//! - [`recent_events`]: recent presence events, for operators
//! - [`counters`], [`settings`]: figures for the metrics page; settings as plain values
//!
//! # Who owns what
//!
//! | part | state | lock |
//! |---|---|---|
//! | [`hub::Users`] | 64 shards: presence table, connections, watchers and visibility of each user | one per shard |
//! | `cluster_sync::ShardSync` | what is to be published of a user, and what is known of other gateways | its shard's |
//! | `ShardContext` | connection numbers, queues of the presence writer and of torrent counts, recent events | one each |
//! | `rooms::Rooms` | members of rooms | 16 shards |
//! | `typing::Typing` | typing users with their targets, and until when | one |
//! | [`outbox::Outbox`] | what waits for one connection | one per connection |
//! | `watch::WatchTask` | changes that are not applied, requests that wait | none: one task |
//! | `cluster_sync::ClusterSync` | contact with Redis; `Publisher`, `RecordReader` | atomics |
//! | [`cluster::ClusterStore`] | this node's name and lease, calls without an answer | one each |
//! | `session::Session` | one connection | none: one task |
//!
//! A shard's lock may be held while the lock of an outbox, of the connection table or of a queue is taken, never the
//! other way round, and never with another shard's. Rooms and typing receive a changed visibility after the
//! shard's lock was released (`Users::change`).
//!
//! # The path of a presence change
//!
//! 1. `session/read.rs` decodes a frame (or notices that the connection ended) and calls [`Hub`].
//! 2. `hub/users.rs` locks the user's shard; `hub/shard.rs` passes the input to the presence table and applies its
//!    effects: it puts the new status into the outboxes of the user's devices and watchers.
//! 3. `outbox.rs` merges it with what waits; `session/write.rs` writes it to each watcher's socket.
//! 4. Without a cluster, `presence_writer.rs` saves the state and the history, and `webhooks.rs` posts from the
//!    history.
//! 5. With a cluster, `cluster_sync/dirty.rs` marks the user, `cluster_sync/publisher.rs` reads the entry and
//!    `cluster/publish.rs` writes it to Redis by one script. If the record changed, `cluster/notify.rs` appends it to
//!    the inbox of each gateway that watches the user, and `cluster_sync/record_change.rs` saves state and history.
//! 6. At another gateway, `cluster/inbox.rs` reads the entry, and `cluster_sync/receive.rs` applies it to its
//!    presence table: from there on it is step 2.

pub mod accept;
pub mod cluster;
pub mod cluster_sync;
mod commands;
pub mod counters;
pub mod feed;
pub mod gateway;
mod gateway_messages;
pub mod hub;
pub mod leader_lease;
pub mod mint;
pub mod outbox;
mod presence_writer;
pub mod protocol;
pub mod recent_events;
mod rooms;
pub mod session;
pub mod settings;
pub mod token;
pub mod torrent_counts;
mod typing;
mod watch;
pub mod webhooks;

pub use accept::Acceptor;
pub use cluster_sync::SyncSettings;
pub use counters::GatewayCounters;
pub use gateway::{Gateway, GatewayParts};
pub use hub::{
    CommandError, ConnRef, ConnectAccepted, ConnectRefusal, Hub, HubError, HubParts, HubSettings, Identity,
    IsDisabled, OnlineCount,
};
pub use outbox::{FeedUser, Outbox};
pub use recent_events::RecentEvent;
pub use settings::{GatewaySettings, RoomAccess};
pub use token::Tokens;
pub use torrent_counts::{NoTorrentCounts, TorrentCount, TorrentCountError, TorrentCountSource};
