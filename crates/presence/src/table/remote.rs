//! Sessions at other gateways.
//!
//! The gateway that changes a user's record notifies the site and the history. So a received record changes what is
//! shown, and has no other effect.

use domain::{Seconds, UnixTime, UserId};

use super::{Core, PresenceTable};
use crate::input::Effect;
use crate::remote::{NodeDevice, NodeEntry, RemoteSessions};
use crate::session::Session;
use crate::slab::NONE;
use crate::status::{Declaration, Status};
use crate::user_presence::{RemoteDevices, StatusDigest, UserPresence, weight};
use crate::wall_time::{MonotonicTime, WallTime};

impl PresenceTable {
    /// This gateway's report of a user; none without sessions here. Lingering sessions count. With `active_since`, only
    /// sessions with activity at or after it count.
    pub fn node_entry(&self, user: UserId, active_since: Option<WallTime>) -> Option<NodeEntry> {
        let entry = &self.core.users[self.core.find(user)?];
        self.core.node_entry(entry, active_since.map(|at| self.core.clock.monotonic_at(at)))
    }

    /// Whether the user has a session here; lingering ones count.
    pub fn has_local_session(&self, user: UserId) -> bool {
        self.core.find(user).is_some_and(|slot| self.core.users[slot].first != NONE)
    }

    /// The end of the pending time of a user whose gateway is lost now.
    pub fn pending_until(&self, now: WallTime) -> WallTime {
        WallTime(now.0.saturating_add(u64::from(self.core.policy.pending.0) * 1000))
    }

    /// Whether only other gateways have sessions of the user.
    pub fn is_remote_only(&self, user: UserId) -> bool {
        self.core.find(user).is_some_and(|slot| self.core.users[slot].is_remote_only())
    }

    /// The last activity of the user's ended sessions here.
    pub fn last_alive(&self, user: UserId) -> Option<UnixTime> {
        let entry = &self.core.users[self.core.find(user)?];
        Some(entry.last_alive).filter(|at| at.0 > 0)
    }

    /// Replaces what is known from other gateways. Versions never decrease. Returns changes of views only.
    pub fn set_remote(&mut self, now: WallTime, remote: RemoteSessions, effects: &mut Vec<Effect>) {
        let now = self.core.clock.at(now);
        self.core.set_remote(now, remote, effects);
    }

    /// What is known from other gateways expired: a user without sessions here is pending.
    pub fn expire_remote(&mut self, now: WallTime, user: UserId, effects: &mut Vec<Effect>) {
        let now = self.core.clock.at(now);
        if let Some(slot) = self.core.find(user) {
            self.core.expire_remote(now, slot, effects);
        }
    }
}

impl Core {
    fn node_entry(&self, entry: &UserPresence, active_since: Option<MonotonicTime>) -> Option<NodeEntry> {
        let is_active =
            |session: &Session| active_since.is_none_or(|since| session.heartbeat.last_activity() >= since);
        let sessions = || {
            entry.sessions(&self.sessions).map(|(_, session)| session).filter(|session| is_active(session))
        };
        let last_activity = sessions().map(|session| session.heartbeat.last_activity()).max()?;
        let ends = sessions().map(|session| {
            let gone = self.policy.gone_after(session.rule(&self.policy));
            let gone_at = session.heartbeat.last_activity().plus(gone);
            // A lingering session lasts until the end of its grace period.
            if session.is_live() { gone_at } else { gone_at.max(self.grace_end(entry)) }
        });
        let gone_in_ms = ends.max().map_or(0, |end| end.since_ms(last_activity));
        let mut devices: Vec<NodeDevice> = Vec::with_capacity(usize::from(entry.live).max(1));
        for session in sessions() {
            let known = devices.binary_search_by(|device| device.id.cmp(&session.device));
            match known {
                Ok(place) => add(&mut devices[place], session),
                Err(place) => devices.insert(place, device_of(session)),
            }
        }
        let gone_in = Seconds(u32::try_from(gone_in_ms.div_ceil(1000)).unwrap_or(u32::MAX));
        Some(NodeEntry { devices, last_activity: self.unix(last_activity), gone_in })
    }

    fn grace_end(&self, entry: &UserPresence) -> MonotonicTime {
        MonotonicTime(u64::from(entry.grace_until_s) * 1000)
    }

    fn set_remote(&mut self, now: MonotonicTime, remote: RemoteSessions, effects: &mut Vec<Effect>) {
        let is_new = self.find(remote.user).is_none();
        let slot = self.find_or_add(remote.user);
        if is_new {
            self.users[slot].left_at_s = now.seconds();
        }
        let before = self.digest(slot);
        let devices = RemoteDevices::new(remote.devices, remote.last_activity);
        if devices.is_some() {
            // The user is connected to another gateway: no grace period is needed.
            self.end_lingering(now, slot);
        }
        let pending = remote.pending_until.map(|until| self.clock.monotonic_at(until).seconds_up().max(1));
        let unix = self.unix(now);
        let entry = &mut self.users[slot];
        entry.note_remote_activity();
        entry.replace_remote(devices);
        (entry.flags.has_remote, entry.flags.loaded) = (true, true);
        let holds = |declared: &Declaration| declared.until.is_none_or(|until| until > unix);
        entry.declare(remote.declaration.filter(holds));
        entry.pending_until_s = pending.filter(|_| !entry.is_present()).unwrap_or(0);
        entry.last_seen = entry.last_seen.get().max(remote.last_seen).into();
        let hidden_before = entry.hidden_since.get();
        // Other gateways may not know yet that the user has just become invisible here.
        let kept = hidden_before.filter(|_| entry.first != NONE);
        entry.hidden_since = remote.hidden_since.or(kept).into();
        let versions = (remote.public_version, remote.own_version);
        self.update_hidden_since(slot, unix);
        self.apply_remote_change(slot, before, effects);
        let entry = &mut self.users[slot];
        entry.public_version = entry.public_version.max(versions.0);
        entry.own_version = entry.own_version.max(versions.1);
    }

    fn expire_remote(&mut self, now: MonotonicTime, slot: u32, effects: &mut Vec<Effect>) {
        let before = self.digest(slot);
        let pending_until_s = now.plus(self.policy.pending).seconds_up().max(1);
        let entry = &mut self.users[slot];
        entry.note_remote_activity();
        let Some(devices) = entry.replace_remote(None) else { return };
        if entry.first == NONE {
            entry.pending_until_s = pending_until_s;
            if !before.hidden {
                entry.last_seen = entry.last_seen.get().max(devices.last_activity).into();
            }
        }
        let unix = self.unix(now);
        self.update_hidden_since(slot, unix);
        self.apply_remote_change(slot, before, effects);
    }

    fn update_hidden_since(&mut self, slot: u32, unix: UnixTime) {
        let entry = &self.users[slot];
        let since = match entry.status(entry.sessions(&self.sessions)) {
            Status::Invisible => entry.hidden_since.get().or(Some(unix)),
            // A user that was invisible stays hidden while pending.
            Status::Pending => entry.hidden_since.get(),
            _ => None,
        };
        self.users[slot].hidden_since = since.into();
    }

    /// Applies a change that another gateway has published already.
    pub(super) fn apply_remote_change(&mut self, slot: u32, before: StatusDigest, effects: &mut Vec<Effect>) {
        let entry = &mut self.users[slot];
        entry.flags.online = entry.is_present() || entry.pending_until_s > 0;
        let after = self.digest(slot);
        self.update_versions(slot, before, after, effects);
        self.schedule(slot);
    }

    /// The cluster is no longer queried about this user: drop its reports, which would become outdated.
    pub(super) fn drop_remote(&mut self, slot: u32) {
        let entry = &mut self.users[slot];
        if entry.is_remote_only() {
            entry.note_remote_activity();
            entry.replace_remote(None);
            entry.pending_until_s = 0;
            (entry.flags.online, entry.flags.has_remote, entry.flags.loaded) = (false, false, false);
        }
    }
}

impl UserPresence {
    /// Keeps the last activity of remote sessions when they end.
    fn note_remote_activity(&mut self) {
        let sign = self.remote().and_then(|devices| devices.last_activity);
        self.last_alive = self.last_alive.max(sign.unwrap_or_default());
    }
}

fn device_of(session: &Session) -> NodeDevice {
    NodeDevice {
        id: session.device.clone(),
        platform: session.platform,
        app: session.app,
        online: session.is_online(),
        declared: session.effective_declared(),
    }
}

/// Merges an older session of the same device.
fn add(device: &mut NodeDevice, session: &Session) {
    if (session.app as u8) < device.app as u8 {
        device.app = session.app;
    }
    device.online |= session.is_online();
    device.declared = [device.declared, session.effective_declared()]
        .into_iter()
        .flatten()
        .max_by_key(|declared| weight(*declared));
}
