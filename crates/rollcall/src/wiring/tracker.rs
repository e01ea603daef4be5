//! The tracker, and what it does when access changes.

use std::sync::Arc;

use access::redis_source::CopyQueue;
use access::{Change, Gate};
use anyhow::Context;
use domain::UserId;
use domain::clock::SystemClock;
use gateway::Gateway;
use tracing::warn;
use tracker::{ConnectionIds, Eviction, Prepared, Secrets, Tracker, TrafficSink};

use super::background::Background;
use crate::config::Config;
use crate::node::Node;

/// A tracker without sockets, and the UDP connection ids that it would issue.
pub fn prepare(
    config: &Config,
    node: &Node,
    gate: &Arc<Gate>,
    background: &Background,
) -> anyhow::Result<(Prepared, ConnectionIds)> {
    let settings = config.tracker_settings();
    for address in settings.http_addresses.iter().filter(|address| !address.ip().is_loopback()) {
        warn!(%address, "tracker.allow_plaintext: passkeys are sent unencrypted to this address");
    }
    let secrets = Secrets::draw().context("cannot read random numbers from the system")?;
    let tracker = Tracker::new(
        Arc::clone(gate),
        Arc::new(SystemClock),
        Arc::clone(background.queue()) as Arc<dyn TrafficSink>,
        settings.live.clone(),
        &secrets,
    );
    let tracker = Arc::new(tracker.with_node_name(node.process().node()));
    Ok((Prepared::new(&settings, tracker)?, secrets.connection_ids()))
}

/// Called for a user whose passkey is no longer valid: evicts the peers, and updates the copy in Redis.
pub fn evict(
    gate: &Arc<Gate>,
    tracker: Option<Arc<Tracker>>,
    copy_notes: Option<CopyQueue>,
) -> impl FnMut(UserId) + use<> {
    let gate = Arc::clone(gate);
    move |user| {
        if let Some(tracker) = &tracker {
            tracker.order_eviction(Eviction::User(user));
        }
        if let (Some(copy_notes), Some(passkey)) = (&copy_notes, gate.passkey_of(user)) {
            copy_notes.push(Change::PasskeyChanged(passkey));
        }
    }
}

/// Evicts peers that are no longer admitted, without waiting for their expiry, and disconnects a removed user from
/// the gateway.
pub fn apply(change: Change, tracker: Option<&Tracker>, gateway: Option<&Gateway>) {
    if let (Change::UserRemoved(user), Some(gateway)) = (change, gateway) {
        gateway.hub.users.disconnect_disabled(user);
    }
    let Some(tracker) = tracker else { return };
    match change {
        Change::UserRemoved(user) => tracker.order_eviction(Eviction::User(user)),
        Change::TorrentRemoved(info_hash) => tracker.order_eviction(Eviction::Torrent(info_hash)),
        Change::ClientsChanged => tracker.order_eviction(Eviction::ForbiddenClients),
        Change::PortsChanged => tracker.order_eviction(Eviction::BannedPorts),
        Change::UserAdmitted(_)
        | Change::TorrentAdmitted(_)
        | Change::PasskeyChanged(_)
        | Change::PasskeyPublished(_)
        | Change::InfoHashChanged(_) => {}
    }
}
