//! What the site asks, and does to people.

use domain::UserId;
use people::{OccurrenceId, Recorded};
use presence::{
    ConnId, DeviceId, Hello, Input, PartDevice, Platform, Policy, SessionView, Status, Tally, View,
};
use register::{Message, Record, Trouble};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

use super::{Hub, HubError};
use crate::between::Errand;
use crate::feed;
use crate::protocol::CloseCode;
use crate::watch::Request;

/// How often somebody is brought into memory for one heartbeat. They stay for a minute, so once is enough.
const RECALLS_MAX: usize = 3;

/// How long the register may take to say where somebody is.
const REGISTER_TIME: Duration = Duration::from_secs(2);

fn unreachable(trouble: &Trouble) -> HubError {
    tracing::debug!(%trouble, "other gateways cannot be asked");
    HubError::Unavailable
}

/// How many are here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnlineCount {
    /// People by their own status, and sessions.
    pub tally: Tally,
    /// Connections by platform, in the order of [`Platform::ALL`].
    pub connections: [u64; Platform::ALL.len()],
}

impl Hub {
    /// What everybody may see of these people, one for each, in their order; also of those who are not in memory. What
    /// a person shows to whom is not looked at: this is for the site, which is to keep to it.
    pub async fn status(&self, users: &[UserId]) -> Result<Vec<View>, HubError> {
        let mut views: Vec<Option<View>> = Vec::with_capacity(users.len());
        for user in users {
            let shard = self.shard(*user);
            views.push(shard.is_current(*user).then(|| shard.roster.public_view(*user)));
        }
        let absent: Vec<UserId> =
            users.iter().zip(&views).filter(|(_, view)| view.is_none()).map(|(user, _)| *user).collect();
        let elsewhere = self.look_elsewhere(&absent).await;
        let absent: Vec<UserId> = absent.into_iter().filter(|user| !elsewhere.contains_key(user)).collect();
        for (user, view) in users.iter().zip(&mut views).filter(|(_, view)| view.is_none()) {
            *view = elsewhere.get(user).cloned();
        }
        if let Some(first) = absent.first() {
            // Whoever looks may be anybody: only what was last known is read.
            let mut found = self.people.sights(*first, &absent).await?.into_iter();
            for view in views.iter_mut().filter(|view| view.is_none()) {
                *view = found.next().map(|one| {
                    let last = self.outside.keeper.newest(one.user, one.last);
                    feed::absent(one.user, &last)
                });
            }
        }
        Ok(users.iter().zip(views).map(|(user, view)| view.unwrap_or_else(|| View::unknown(*user))).collect())
    }

    /// What a person's own devices see of them: also what they hide. Of somebody who is not in the memory of this
    /// gateway, what everybody sees.
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

    /// How many are here. Costs the same however many they are.
    pub fn online_count(&self) -> OnlineCount {
        let mut count = OnlineCount::default();
        for shard in &self.shards {
            let tally = shard.lock().roster.online();
            for status in Status::ALL {
                count.tally.persons[status as usize] += tally.of(status);
            }
            count.tally.connections += tally.connections;
            count.tally.without_connection += tally.without_connection;
        }
        for (place, platform) in self.outside.platforms.iter().enumerate() {
            count.connections[place] = platform.load(Ordering::Relaxed);
        }
        count
    }

    /// When silence means away, and when gone: what is in force now.
    pub fn policy(&self) -> Policy {
        self.settings.load().policy.clone()
    }

    /// A person's sessions, hidden or not.
    pub fn devices(&self, user: UserId) -> Vec<SessionView> {
        self.shard(user).roster.sessions(user).collect()
    }

    /// Ends a person's connections, all or those of one device, at whichever gateway they are. Who may not reconnect
    /// (3503) also loses sessions without a connection; who may (3000) comes back by themselves. Gives how many
    /// sessions that were; of other gateways, how many devices.
    pub async fn disconnect(
        &self,
        user: UserId,
        device: Option<&DeviceId>,
        reconnect: bool,
    ) -> Result<usize, HubError> {
        let here = self.disconnect_here(user, device, reconnect);
        let Some(register) = self.register() else { return Ok(here) };
        let (own, mut elsewhere) = (register.node(), 0);
        for part in self.record_of(user).await?.map(|record| record.parts).unwrap_or_default() {
            let fits = |known: &&PartDevice| device.is_none_or(|device| known.id == *device);
            let devices = part.part.devices.iter().filter(fits).count();
            if part.node == own || devices == 0 {
                continue;
            }
            elsewhere += devices;
            let message = Message::Disconnect { user, device: device.cloned(), reconnect };
            register.send(&part.node, &[message]).await.map_err(|trouble| unreachable(&trouble))?;
        }
        Ok(here + elsewhere)
    }

    /// A person's devices at other gateways, each with the gateway's name.
    pub async fn devices_elsewhere(&self, user: UserId) -> Result<Vec<(String, PartDevice)>, HubError> {
        let Some(register) = self.register() else { return Ok(Vec::new()) };
        let own = register.node();
        let parts = self.record_of(user).await?.map(|record| record.parts).unwrap_or_default();
        let others = parts.into_iter().filter(|part| part.node != own);
        let named = others.flat_map(|part| {
            let name = part.node.name().to_owned();
            part.part.devices.into_iter().map(move |device| (name.clone(), device))
        });
        Ok(named.collect())
    }

    /// The name of this gateway among others, if there are any.
    pub fn node_name(&self) -> Option<String> {
        self.register().map(|register| register.node().name().to_owned())
    }

    async fn record_of(&self, user: UserId) -> Result<Option<Record>, HubError> {
        let Some(register) = self.register() else { return Ok(None) };
        let users = [user];
        let read = tokio::time::timeout(REGISTER_TIME, register.read(&users)).await;
        let record = read.map_err(|_| HubError::Unavailable)?.into_iter().next();
        record.transpose().map(Option::flatten).map_err(|trouble| unreachable(&trouble))
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
            self.tell(user, Input::SignOut { device });
        }
        count
    }

    /// Closes a connection, if it is still this user's.
    pub(crate) fn close_connection(&self, user: UserId, conn: ConnId, code: CloseCode) {
        let table = self.outside.table.read();
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
        self.outside.counters.hub.http_heartbeats.increment();
        for _ in 0..RECALLS_MAX {
            let now = self.now();
            {
                // In one step: who is forgotten in between would begin anew, with versions that were given already.
                let mut shard = self.shard(user);
                if self.is_disabled(user) {
                    return Err(HubError::Disabled);
                }
                if shard.knows(user) {
                    let after = shard.input(now, user, Input::Heartbeat { hello }, &self.outside)?;
                    drop(shard);
                    self.finish(after);
                    return Ok(());
                }
            }
            let (reply, answer) = oneshot::channel();
            self.ask(Request::Recall { user, reply }).await.map_err(|_| HubError::Unavailable)?;
            answer.await.map_err(|_| HubError::Unavailable)?.map_err(|_| HubError::Unavailable)?;
        }
        Err(HubError::Unavailable)
    }

    /// The end of such a device's session.
    pub fn http_goodbye(&self, user: UserId, device: DeviceId) {
        if !self.is_stopping() {
            // Its heartbeats may have come to several gateways.
            let message = Message::Goodbye { user, device: device.clone() };
            self.say(Errand::WhereverIs(user, message));
            self.tell(user, Input::Goodbye { device });
        }
    }

    /// What happened to somebody, newest first. What happened within the last second may be missing.
    pub async fn history(
        &self,
        user: UserId,
        before: Option<OccurrenceId>,
        limit: u32,
    ) -> Result<Vec<Recorded>, HubError> {
        Ok(self.people.history(user, before, limit).await?)
    }
}
