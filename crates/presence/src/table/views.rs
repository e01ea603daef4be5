//! What can be read of a user.

use std::ops::Bound;

use domain::{UnixTime, UserId};

use super::{Core, PresenceTable};
use crate::device::{DeviceId, Platform};
use crate::slab::NONE;
use crate::status::Status;
use crate::user_presence::UserPresence;
use crate::view::{SessionView, StoredPresence, View};
use crate::wall_time::MonotonicTime;

impl PresenceTable {
    /// What other users see. An unknown user is offline with version 0.
    pub fn public_view(&self, user: UserId) -> View {
        let Some(slot) = self.core.find(user) else { return View::unknown(user) };
        let entry = &self.core.users[slot];
        let own = entry.status(entry.sessions(&self.core.sessions));
        if own == Status::Offline || entry.is_hidden(own) {
            let (last_seen, version) = (entry.last_seen.get(), entry.public_version);
            return View { last_seen, version, ..View::unknown(user) };
        }
        View { version: entry.public_version, ..self.core.full_view(entry, own) }
    }

    /// What the user's own devices see.
    pub fn own_view(&self, user: UserId) -> View {
        let Some(slot) = self.core.find(user) else { return View::unknown(user) };
        let entry = &self.core.users[slot];
        self.core.full_view(entry, entry.status(entry.sessions(&self.core.sessions)))
    }

    /// None if the user is not in the table.
    pub fn stored_presence(&self, user: UserId) -> Option<StoredPresence> {
        let entry = &self.core.users[self.core.find(user)?];
        let own = entry.status(entry.sessions(&self.core.sessions));
        let visible = own != Status::Offline && !entry.is_hidden(own);
        Some(StoredPresence {
            user,
            online: entry.flags.online,
            declaration: entry.declaration().cloned(),
            last_seen: if visible { self.core.last_activity(entry) } else { entry.last_seen.get() },
            hidden_since: entry.hidden_since.get(),
            public_version: entry.public_version,
            own_version: entry.own_version,
        })
    }

    /// A user's sessions for an administrator, newest first.
    pub fn sessions(&self, user: UserId) -> impl Iterator<Item = SessionView> {
        let entry = self.core.find(user).map(|slot| &self.core.users[slot]);
        let sessions = entry.into_iter().flat_map(|entry| entry.sessions(&self.core.sessions));
        let live = sessions.filter(|(_, session)| session.is_live());
        live.map(|(_, session)| session.view(&self.core.clock))
    }
}

/// Users that are online here or pending; not those that only other gateways have.
impl PresenceTable {
    /// Sorted ids above `after`.
    pub fn listed_after(&self, after: Option<UserId>) -> impl Iterator<Item = UserId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.core.listed.range((from, Bound::Unbounded)).copied()
    }

    pub fn is_listed(&self, user: UserId) -> bool {
        self.core.listed.contains(&user)
    }

    /// The status in the own view, and whether the user is hidden.
    pub fn own_status(&self, user: UserId) -> (Status, bool) {
        let Some(slot) = self.core.find(user) else { return (Status::Offline, false) };
        let entry = &self.core.users[slot];
        let own = entry.status(entry.sessions(&self.core.sessions));
        (own, entry.is_hidden(own))
    }

    /// Start of the oldest local session; none without one.
    pub fn online_since(&self, user: UserId) -> Option<UnixTime> {
        let entry = &self.core.users[self.core.find(user)?];
        let is_online = entry.first != NONE;
        is_online.then(|| self.core.unix(MonotonicTime(u64::from(entry.up_since_s) * 1000)))
    }

    /// Whether the user has a device of this platform, local or remote.
    pub fn has_platform(&self, user: UserId, platform: Platform) -> bool {
        let Some(slot) = self.core.find(user) else { return false };
        let entry = &self.core.users[slot];
        entry.sessions(&self.core.sessions).any(|(_, session)| session.platform == platform)
            || entry.remote_devices().iter().any(|device| device.platform == platform)
    }

    /// None if the device has no local session.
    pub fn platform_of(&self, user: UserId, device: &DeviceId) -> Option<Platform> {
        let entry = &self.core.users[self.core.find(user)?];
        let mut sessions = entry.sessions(&self.core.sessions);
        sessions.find(|(_, session)| session.device == *device).map(|(_, session)| session.platform)
    }
}

impl Core {
    /// With the version of the own view.
    fn full_view(&self, entry: &UserPresence, own: Status) -> View {
        let mut shown: Vec<_> = entry.devices(&self.sessions).map(|device| device.view()).collect();
        shown.sort_by(|one, other| one.id.cmp(&other.id));
        let declaration = entry.declaration();
        View {
            user: entry.user,
            status: own,
            text: declaration.and_then(|declared| declared.text.clone()),
            until: declaration.and_then(|declared| declared.until),
            devices: shown,
            last_seen: self.last_activity(entry),
            version: entry.own_version,
            seeding: entry.seeding,
            leeching: entry.leeching,
        }
    }

    /// The last activity: of an online user that of the sessions, else the stored one.
    fn last_activity(&self, entry: &UserPresence) -> Option<UnixTime> {
        if !entry.is_present() {
            return entry.last_seen.get();
        }
        let signs =
            entry.sessions(&self.sessions).map(|(_, session)| self.unix(session.heartbeat.last_activity()));
        let remote = entry.remote().and_then(|remote| remote.last_activity);
        signs.max().max(remote).max(Some(entry.last_alive)).filter(|at| at.0 > 0)
    }
}
