//! What the site asks and does, over all gateways.

use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use friends::{FriendStore, PresenceEventId, RecordedEvent};
use presence::{DeviceId, NodeDevice, Platform, UserCounts, View};

use super::HubError;
use super::users::Users;
use crate::cluster::{ClusterCounters, ClusterStore, GatewayMessage, Record, RedisError};
use crate::cluster_sync::ClusterSync;
use crate::feed;

/// Time limit of a read of the cluster store.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

fn store_unreachable(error: &RedisError) -> HubError {
    tracing::debug!(%error, "cannot read the cluster store");
    HubError::Unavailable
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnlineCount {
    /// Users by own status, and sessions.
    pub tally: UserCounts,
    /// Connections by platform, in the order of [`Platform::ALL`].
    pub connections: [u64; Platform::ALL.len()],
}

/// Queries and actions of the site.
pub struct Admin {
    pub(super) users: Arc<Users>,
    pub(super) friend_store: FriendStore,
    /// None without a cluster.
    pub(super) sync: Option<Arc<ClusterSync>>,
}

impl Admin {
    /// Public views, in the order of `users`; also of users that are not in memory. Privacy settings are not applied:
    /// the site must do that.
    pub async fn status(&self, users: &[UserId]) -> Result<Vec<View>, HubError> {
        let mut views: Vec<Option<View>> = Vec::with_capacity(users.len());
        for user in users {
            let shard = self.users.shard(*user);
            views.push(shard.is_current(*user).then(|| shard.roster.public_view(*user)));
        }
        let absent: Vec<UserId> =
            users.iter().zip(&views).filter(|(_, view)| view.is_none()).map(|(user, _)| *user).collect();
        let elsewhere = match &self.sync {
            Some(sync) => sync.records.lookup(&absent).await,
            None => Default::default(),
        };
        let absent: Vec<UserId> = absent.into_iter().filter(|user| !elsewhere.contains_key(user)).collect();
        for (user, view) in users.iter().zip(&mut views).filter(|(_, view)| view.is_none()) {
            *view = elsewhere.get(user).cloned();
        }
        if let Some(first) = absent.first() {
            // The viewer does not matter: only the last known state is read.
            let mut found = self.friend_store.view_users(*first, &absent).await?.into_iter();
            for view in views.iter_mut().filter(|view| view.is_none()) {
                *view = found.next().map(|one| {
                    let last = self.users.context.writer.newest(one.user, one.last);
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
            let shard = self.users.shard(user);
            if shard.is_current(user) {
                return Ok(shard.roster.own_view(user));
            }
        }
        let views = self.status(&[user]).await?;
        Ok(views.into_iter().next().unwrap_or_else(|| View::unknown(user)))
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
        let here = self.users.disconnect(user, device, reconnect);
        let Some(store) = self.store() else { return Ok(here) };
        let (own, mut elsewhere) = (store.node(), 0);
        for entry in self.record_of(user).await?.map(|record| record.entries).unwrap_or_default() {
            let fits = |known: &&NodeDevice| device.is_none_or(|device| known.id == *device);
            let devices = entry.entry.devices.iter().filter(fits).count();
            if entry.node == own || devices == 0 {
                continue;
            }
            elsewhere += devices;
            let message = GatewayMessage::Disconnect { user, device: device.cloned(), reconnect };
            store.send(&entry.node, &[message]).await.map_err(|error| store_unreachable(&error))?;
        }
        Ok(here + elsewhere)
    }

    /// Devices at other gateways, each with the gateway's name.
    pub async fn remote_devices(&self, user: UserId) -> Result<Vec<(String, NodeDevice)>, HubError> {
        let Some(store) = self.store() else { return Ok(Vec::new()) };
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
        self.store().map(|store| store.node().name().to_owned())
    }

    async fn record_of(&self, user: UserId) -> Result<Option<Record>, HubError> {
        let Some(store) = self.store() else { return Ok(None) };
        let users = [user];
        let read = tokio::time::timeout(STORE_TIMEOUT, store.read(&users)).await;
        let record = read.map_err(|_| HubError::Unavailable)?.into_iter().next();
        record.transpose().map(Option::flatten).map_err(|error| store_unreachable(&error))
    }

    fn store(&self) -> Option<&Arc<ClusterStore>> {
        self.sync.as_ref().map(|sync| sync.store())
    }

    /// Over all gateways; only this one if the others cannot be read.
    pub async fn online_count(&self) -> OnlineCount {
        match &self.sync {
            Some(sync) => sync.online_count().await,
            None => self.users.online_count(),
        }
    }

    /// None without a cluster.
    pub fn cluster_counters(&self) -> Option<Arc<ClusterCounters>> {
        self.store().map(|store| Arc::clone(store.counters()))
    }

    /// Seconds since the last successful contact with Redis; none without a cluster.
    pub fn since_contact_s(&self) -> Option<u64> {
        self.sync.as_ref().map(|sync| sync.since_contact_s())
    }

    /// As far as this gateway knows; at least 1.
    pub fn nodes_alive(&self) -> u64 {
        self.store().map_or(1, |store| store.counters().nodes.get().max(1))
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
