//! Queries and actions of the site.

use crate::cluster::{GatewayMessage, Record, RedisError};
use domain::UserId;
use friends::{PresenceEventId, RecordedEvent};
use presence::{
    ConnId, DeviceId, Hello, Input, NodeDevice, Platform, Policy, SessionView, Status, UserCounts, View,
};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

use super::{Hub, HubError};
use crate::feed;
use crate::gateway_messages::OutgoingMessage;
use crate::protocol::CloseCode;
use crate::watch::Request;

/// Attempts to load a user for one heartbeat. Users stay in memory for a minute, so one is enough.
const LOADS_MAX: usize = 3;

/// Time limit of a read of the cluster store.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

fn store_unreachable(trouble: &RedisError) -> HubError {
    tracing::debug!(%trouble, "cannot read the cluster store");
    HubError::Unavailable
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnlineCount {
    /// Users by own status, and sessions.
    pub tally: UserCounts,
    /// Connections by platform, in the order of [`Platform::ALL`].
    pub connections: [u64; Platform::ALL.len()],
}

impl Hub {
    /// Public views, in the order of `users`; also of users that are not in memory. Privacy settings are not applied:
    /// the site must do that.
    pub async fn status(&self, users: &[UserId]) -> Result<Vec<View>, HubError> {
        let mut views: Vec<Option<View>> = Vec::with_capacity(users.len());
        for user in users {
            let shard = self.shard(*user);
            views.push(shard.is_current(*user).then(|| shard.roster.public_view(*user)));
        }
        let absent: Vec<UserId> =
            users.iter().zip(&views).filter(|(_, view)| view.is_none()).map(|(user, _)| *user).collect();
        let elsewhere = self.lookup_remote(&absent).await;
        let absent: Vec<UserId> = absent.into_iter().filter(|user| !elsewhere.contains_key(user)).collect();
        for (user, view) in users.iter().zip(&mut views).filter(|(_, view)| view.is_none()) {
            *view = elsewhere.get(user).cloned();
        }
        if let Some(first) = absent.first() {
            // The viewer does not matter: only the last known state is read.
            let mut found = self.friend_store.view_users(*first, &absent).await?.into_iter();
            for view in views.iter_mut().filter(|view| view.is_none()) {
                *view = found.next().map(|one| {
                    let last = self.context.writer.newest(one.user, one.last);
                    feed::offline_view(one.user, &last)
                });
            }
        }
        Ok(users.iter().zip(views).map(|(user, view)| view.unwrap_or_else(|| View::unknown(*user))).collect())
    }

    /// The view of the user's own devices, which includes the invisible status. For a user that is not in memory, the
    /// public view.
    pub async fn own_status(&self, user: UserId) -> Result<View, HubError> {
        {
            let shard = self.shard(user);
            if shard.is_current(user) {
                return Ok(shard.roster.own_view(user));
            }
        }
        let views = self.status(&[user]).await?;
        Ok(views.into_iter().next().unwrap_or_else(|| View::unknown(user)))
    }

    /// Constant time.
    pub fn online_count(&self) -> OnlineCount {
        let mut count = OnlineCount::default();
        for shard in &self.shards {
            let tally = shard.lock().roster.counts();
            for status in Status::ALL {
                count.tally.users[status as usize] += tally.of(status);
            }
            count.tally.connections += tally.connections;
            count.tally.without_connection += tally.without_connection;
        }
        for (place, platform) in self.context.platforms.iter().enumerate() {
            count.connections[place] = platform.load(Ordering::Relaxed);
        }
        count
    }

    /// The current policy.
    pub fn policy(&self) -> Policy {
        self.settings.load().policy.clone()
    }

    /// Sessions at this gateway, invisible or not.
    pub fn devices(&self, user: UserId) -> Vec<SessionView> {
        self.shard(user).roster.sessions(user).collect()
    }

    /// Closes a user's connections, all or those of one device, at all gateways. Without `reconnect` (3503) HTTP
    /// sessions end as well; with it (3000) clients reconnect. Returns the number of local sessions plus remote
    /// devices.
    pub async fn disconnect(
        &self,
        user: UserId,
        device: Option<&DeviceId>,
        reconnect: bool,
    ) -> Result<usize, HubError> {
        let here = self.disconnect_here(user, device, reconnect);
        let Some(store) = self.cluster_store() else { return Ok(here) };
        let (own, mut elsewhere) = (store.node(), 0);
        for entry in self.record_of(user).await?.map(|record| record.entries).unwrap_or_default() {
            let fits = |known: &&NodeDevice| device.is_none_or(|device| known.id == *device);
            let devices = entry.entry.devices.iter().filter(fits).count();
            if entry.node == own || devices == 0 {
                continue;
            }
            elsewhere += devices;
            let message = GatewayMessage::Disconnect { user, device: device.cloned(), reconnect };
            store.send(&entry.node, &[message]).await.map_err(|trouble| store_unreachable(&trouble))?;
        }
        Ok(here + elsewhere)
    }

    /// Devices at other gateways, each with the gateway's name.
    pub async fn remote_devices(&self, user: UserId) -> Result<Vec<(String, NodeDevice)>, HubError> {
        let Some(store) = self.cluster_store() else { return Ok(Vec::new()) };
        let own = store.node();
        let entries = self.record_of(user).await?.map(|record| record.entries).unwrap_or_default();
        let others = entries.into_iter().filter(|entry| entry.node != own);
        let named = others.flat_map(|entry| {
            let name = entry.node.name().to_owned();
            entry.entry.devices.into_iter().map(move |device| (name.clone(), device))
        });
        Ok(named.collect())
    }

    /// None without a cluster.
    pub fn node_name(&self) -> Option<String> {
        self.cluster_store().map(|store| store.node().name().to_owned())
    }

    async fn record_of(&self, user: UserId) -> Result<Option<Record>, HubError> {
        let Some(store) = self.cluster_store() else { return Ok(None) };
        let users = [user];
        let read = tokio::time::timeout(STORE_TIMEOUT, store.read(&users)).await;
        let record = read.map_err(|_| HubError::Unavailable)?.into_iter().next();
        record.transpose().map(Option::flatten).map_err(|trouble| store_unreachable(&trouble))
    }

    /// The same, at this gateway only.
    pub(crate) fn disconnect_here(&self, user: UserId, device: Option<&DeviceId>, reconnect: bool) -> usize {
        let mut sessions = self.devices(user);
        sessions.retain(|session| device.is_none_or(|device| session.device == *device));
        if reconnect {
            sessions.retain(|session| session.conn.is_some());
            for conn in sessions.iter().filter_map(|session| session.conn) {
                self.close_connection(user, conn, CloseCode::Normal);
            }
            return sessions.len();
        }
        let count = sessions.len();
        let mut devices: Vec<DeviceId> = sessions.into_iter().map(|session| session.device).collect();
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            self.apply_input(user, Input::SignOut { device });
        }
        count
    }

    /// Closes a connection, if it is still this user's.
    pub(crate) fn close_connection(&self, user: UserId, conn: ConnId, code: CloseCode) {
        let table = self.context.table.read();
        if table.user(conn) == Some(user)
            && let Some(outbox) = table.outbox(conn)
        {
            outbox.close(code);
        }
    }

    /// A heartbeat over HTTP, of a device that holds no connection.
    pub async fn http_heartbeat(&self, user: UserId, hello: Hello) -> Result<(), HubError> {
        if self.is_stopping() {
            return Err(HubError::Unavailable);
        }
        self.context.counters.hub.http_heartbeats.increment();
        for _ in 0..LOADS_MAX {
            let now = self.now();
            {
                // In one step: a user dropped in between would restart with versions that were used already.
                let mut shard = self.shard(user);
                if self.is_disabled(user) {
                    return Err(HubError::Disabled);
                }
                if shard.knows(user) {
                    let after = shard.input(now, user, Input::Heartbeat { hello }, &self.context)?;
                    drop(shard);
                    self.finish(after);
                    return Ok(());
                }
            }
            let (reply, answer) = oneshot::channel();
            self.ask(Request::Load { user, reply }).await.map_err(|_| HubError::Unavailable)?;
            answer.await.map_err(|_| HubError::Unavailable)?.map_err(|_| HubError::Unavailable)?;
        }
        Err(HubError::Unavailable)
    }

    /// The end of such a device's session.
    pub fn http_goodbye(&self, user: UserId, device: DeviceId) {
        if !self.is_stopping() {
            // Its heartbeats may have come to several gateways.
            let message = GatewayMessage::Goodbye { user, device: device.clone() };
            self.send_message(OutgoingMessage::ToUser(user, message));
            self.apply_input(user, Input::Goodbye { device });
        }
    }

    /// Newest first. Events of the last second may be missing.
    pub async fn history(
        &self,
        user: UserId,
        before: Option<PresenceEventId>,
        limit: u32,
    ) -> Result<Vec<RecordedEvent>, HubError> {
        Ok(self.friend_store.history(user, before, limit).await?)
    }
}
