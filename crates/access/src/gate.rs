//! The gate: decides in memory who may announce what.
//!
//! # Guarantees
//!
//! - A read takes no lock and allocates nothing; any number of threads read while one writes.
//! - A reader never finds a user or torrent missing while it is being changed: what is new is put in before what is
//!   old is taken out.
//! - A passkey or infohash that moved from one owner to another belongs to the newer one, in whatever order the two
//!   changes arrive.
//! - A stranger, or somebody whom others vouch for, is let in only by a verdict that is fresh
//!   ([`crate::vouching`]); where there is none, whoever asked is told to ask.
//! - The database and the site's keys in Redis both count: what either has is known. Where both have it, the database
//!   decides, so a disabled user or torrent stays refused.
//! - The last passkey of a removed user and the number of a removed torrent are known for a while longer: the goodbye
//!   of their peers is written under these.
//!
//! # Deliberately absent
//!
//! Where the data comes from ([`crate::follow`]) and what a refused client did wrong before (limits are the
//! tracker's).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use domain::{InfoHash, Passkey, PeerId, TorrentId, UnixTime, UserId};

use crate::clients::ClientRules;
use crate::ports::{PortBans, PortRange};
use crate::removed::Removed;
use crate::slots::LeechSlots;
use crate::vouching::Strangers;
use crate::vouching::strangers::Standing;

mod terms;

pub use terms::{Approval, TorrentGrant, TorrentTerms, UserTerms};
use terms::{TorrentRecord, UserGrant};

type Map<K, V> = papaya::HashMap<K, V, foldhash::fast::RandomState>;

/// Added to the id of a torrent in the site's keys where the database has another torrent under that id, so that the two
/// have accounts of their own.
const TAKEN_ID_OFFSET: u64 = 1_000_000_000_000;

/// Who announces what, once let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The user behind the passkey.
    pub user: UserId,
    /// The torrent's number.
    pub torrent: TorrentId,
    /// The torrent's one name: a hybrid torrent announced by its v2 hash is found here under its v1 hash.
    pub info_hash: InfoHash,
    /// Whether the torrent still awaits approval.
    pub approval: Approval,
    /// How many torrents the user may leech at once.
    pub user_slots: LeechSlots,
    /// How many peers may leech the torrent at once.
    pub torrent_slots: LeechSlots,
}

/// Why somebody is not let in. What `Display` writes is told to the client (T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Nobody has this passkey, or nobody has it any longer.
    #[error("unknown passkey: download the torrent file again, or copy the announce URL from the site")]
    UnknownPasskey,
    /// The user is known and shut out.
    #[error("this account is disabled: ask the site's staff")]
    UserDisabled,
    /// The torrent is not registered.
    #[error("unknown torrent: it is not registered here, or was removed")]
    UnknownTorrent,
    /// The torrent is registered and closed.
    #[error("this torrent is disabled: see its page on the site")]
    TorrentDisabled,
    /// The program is not on the list, or is forbidden.
    #[error("this client or its version is not allowed: see the site's list of clients")]
    ClientNotAllowed,
    /// The client listens on a port that is banned.
    #[error(
        "the port your client listens on is not allowed here: choose another in its settings, above 49152"
    )]
    PortBanned,
    /// Nobody here has this passkey, and whoever may vouch for it cannot be asked.
    #[error("this passkey cannot be checked right now: try again later")]
    CannotCheck,
    /// The database does not have the torrent, and the site's keys were not read yet.
    #[error("this torrent cannot be checked right now: try again later")]
    CannotCheckTorrent,
}

/// Why nobody is let in yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// They are not, and are told so.
    Refused(Refusal),
    /// Nobody knows: it has to be asked ([`Gate::strangers`]), and then the gate again. Never told to a client.
    Ask,
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Denied::Refused(refusal)
    }
}

impl Refusal {
    /// Every refusal, for tables of counters.
    pub const ALL: [Refusal; 8] = [
        Refusal::UnknownPasskey,
        Refusal::UserDisabled,
        Refusal::UnknownTorrent,
        Refusal::TorrentDisabled,
        Refusal::ClientNotAllowed,
        Refusal::PortBanned,
        Refusal::CannotCheck,
        Refusal::CannotCheckTorrent,
    ];

    /// Its name in counters and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Refusal::UnknownPasskey => "unknown_passkey",
            Refusal::UserDisabled => "user_disabled",
            Refusal::UnknownTorrent => "unknown_torrent",
            Refusal::TorrentDisabled => "torrent_disabled",
            Refusal::ClientNotAllowed => "client_not_allowed",
            Refusal::PortBanned => "port_banned",
            Refusal::CannotCheck => "cannot_check",
            Refusal::CannotCheckTorrent => "cannot_check_torrent",
        }
    }
}

/// Everyone and everything that may pass. The default gate is empty and lets nobody in.
#[derive(Debug, Default)]
pub struct Gate {
    by_passkey: Map<Passkey, UserGrant>,
    users: Map<UserId, UserTerms>,
    by_info_hash: Map<InfoHash, TorrentGrant>,
    torrents: Map<TorrentId, TorrentRecord>,
    clients: ArcSwap<ClientRules>,
    banned_ports: PortBans,
    removed_users: Removed<UserId, Passkey>,
    removed_names: Removed<InfoHash, TorrentId>,
    /// None where strangers are simply unknown.
    strangers: Option<Arc<Strangers>>,
    /// What the site's keys in Redis say, as a gate of its own. None without Redis.
    site: Option<Arc<Gate>>,
    /// Set once everything was read for the first time.
    is_loaded: AtomicBool,
    /// Held by writers only: each changes two maps, which must not interleave.
    writing: Mutex<()>,
}

impl Gate {
    /// An empty gate that lets strangers in whom somebody vouches for.
    pub fn with_strangers(strangers: Arc<Strangers>) -> Self {
        Gate { strangers: Some(strangers), ..Gate::default() }
    }

    /// Consults `site` for what the database does not have. [`crate::site_keys::SiteFollower`] fills it.
    pub fn with_site(mut self, site: Arc<Gate>) -> Self {
        self.site = Some(site);
        self
    }

    /// Where to ask about strangers, if there is such a place.
    pub fn strangers(&self) -> Option<&Arc<Strangers>> {
        self.strangers.as_ref()
    }
}

/// What the announce path asks.
impl Gate {
    /// Whether this announce is let in.
    ///
    /// The user is checked first: a stranger learns nothing about torrents or clients.
    pub fn admit(
        &self,
        passkey: &Passkey,
        info_hash: &InfoHash,
        peer_id: &PeerId,
        now: UnixTime,
    ) -> Result<Admission, Denied> {
        let holder = self.holder(passkey);
        let user = self.judge(passkey, holder, |strangers| strangers.standing(passkey, now))?;
        let torrent = self.torrent(info_hash).ok_or_else(|| self.refusal_of_torrent())?;
        if !torrent.enabled {
            return Err(Refusal::TorrentDisabled.into());
        }
        if !self.allows_client(peer_id) {
            return Err(Refusal::ClientNotAllowed.into());
        }
        Ok(Admission {
            user,
            torrent: torrent.id,
            info_hash: torrent.info_hash,
            approval: torrent.approval,
            user_slots: holder.map_or(LeechSlots::DEFAULT, |grant| grant.leech_slots),
            torrent_slots: torrent.leech_slots,
        })
    }

    /// Whose passkey this is; enough for a scrape.
    pub fn admit_user(&self, passkey: &Passkey, now: UnixTime) -> Result<UserId, Denied> {
        self.judge(passkey, self.holder(passkey), |strangers| strangers.standing(passkey, now))
    }

    /// Whoever is ours is judged by the grant alone, everybody else by the site's key or their standing as well.
    fn judge(
        &self,
        passkey: &Passkey,
        grant: Option<UserGrant>,
        standing: impl Fn(&Arc<Strangers>) -> Standing,
    ) -> Result<UserId, Denied> {
        match grant {
            Some(grant) if !grant.enabled => return Err(Refusal::UserDisabled.into()),
            Some(grant) if !grant.vouched => return Ok(grant.id),
            _ => {}
        }
        let has_site_key = self.site_user_of(passkey).is_some();
        if let Some(grant) = grant.filter(|_| has_site_key) {
            return Ok(grant.id);
        }
        match self.strangers.as_ref().map(standing) {
            // Where both are known the row counts: it may have been changed since.
            Some(Standing::Vouched(user)) => Ok(grant.map_or(user, |grant| grant.id)),
            // Known, but without a row: the row is made when it is asked about.
            Some(_) if has_site_key => Err(Denied::Ask),
            Some(Standing::Unknown) | None => Err(Refusal::UnknownPasskey.into()),
            Some(Standing::NotAsked) => Err(Denied::Ask),
            Some(Standing::NotAsking) => Err(Refusal::CannotCheck.into()),
        }
    }

    /// Who has this passkey, enabled or not, ours or not.
    pub(crate) fn holder(&self, passkey: &Passkey) -> Option<UserGrant> {
        self.by_passkey.pin().get(passkey).copied()
    }

    /// The user id in the site's key of this passkey, if there is one. Rows may have another id for the user.
    pub fn site_user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.site.as_ref()?.holder(passkey).map(|grant| grant.id)
    }

    /// Whether the site's keys exist and were not read yet, so that what is unknown may be known to them.
    pub fn is_site_unread(&self) -> bool {
        self.site.as_ref().is_some_and(|site| !site.is_loaded.load(Ordering::Acquire))
    }

    fn refusal_of_torrent(&self) -> Refusal {
        if self.is_site_unread() { Refusal::CannotCheckTorrent } else { Refusal::UnknownTorrent }
    }

    /// Whose passkey this is, enabled or not; for entries that were written a while ago.
    pub fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        let row = self.by_passkey.pin().get(passkey).map(|grant| grant.id);
        // A row that was made a moment ago is not in the gate yet.
        row.or_else(|| self.strangers.as_ref()?.account_of(passkey))
    }

    /// What this infohash stands for, enabled or not.
    pub fn torrent(&self, info_hash: &InfoHash) -> Option<TorrentGrant> {
        self.own_torrent(info_hash).or_else(|| {
            let key = self.site.as_ref()?.torrent(info_hash)?;
            Some(TorrentGrant { id: self.id_of_site_torrent(key.id), ..key })
        })
    }

    /// What this infohash stands for in the database, enabled or not.
    pub(crate) fn own_torrent(&self, info_hash: &InfoHash) -> Option<TorrentGrant> {
        self.by_info_hash.pin().get(info_hash).copied()
    }

    /// The id under which a torrent of the site's keys has its accounts.
    fn id_of_site_torrent(&self, id: TorrentId) -> TorrentId {
        match self.torrents.pin().contains_key(&id) {
            true => TorrentId::new(id.get().saturating_add(TAKEN_ID_OFFSET)).unwrap_or(id),
            false => id,
        }
    }

    /// The number of the torrent with this infohash, enabled or not.
    pub fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.torrent(info_hash).map(|grant| grant.id)
    }

    /// The number of the torrent with this infohash, or of the one that had it until lately; for events of peers that
    /// expired or were turned out.
    pub fn torrent_of_departed(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.torrent_of(info_hash).or_else(|| self.removed_torrent_of(info_hash))
    }

    /// The id of the torrent that had this infohash until lately.
    fn removed_torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        let of_site =
            || self.site.as_ref()?.removed_names.get(info_hash).map(|id| self.id_of_site_torrent(id));
        self.removed_names.get(info_hash).or_else(of_site)
    }

    /// Whether a torrent of this name is known to have been removed: nobody has this number any longer, and the name
    /// was given up lately or is another torrent's. False where nobody remembers.
    pub fn is_torrent_removed(&self, torrent: TorrentId, info_hash: &InfoHash) -> bool {
        let holder = self.torrent_of(info_hash);
        let was_its = || self.removed_torrent_of(info_hash) == Some(torrent);
        self.info_hash_of(torrent).is_none() && holder.map_or_else(was_its, |holder| holder != torrent)
    }

    /// Whether a client that calls itself `peer_id` may announce.
    pub fn allows_client(&self, peer_id: &PeerId) -> bool {
        let own = self.clients.load();
        match &self.site {
            Some(site) => own.allows_with(&site.clients.load(), peer_id),
            None => own.allows(peer_id),
        }
    }

    /// Whether a client may listen on this port.
    pub fn allows_port(&self, port: u16) -> bool {
        !self.banned_ports.contain(port)
    }

    /// The present passkey of a user, enabled or not, or the last one of a user who was removed lately; for events of
    /// peers that expired or were turned out.
    pub fn passkey_of(&self, user: UserId) -> Option<Passkey> {
        self.present_passkey_of(user).or_else(|| self.removed_users.get(&user))
    }

    /// The present passkey of a user, enabled or not.
    pub(crate) fn present_passkey_of(&self, user: UserId) -> Option<Passkey> {
        self.users.pin().get(&user).map(|record| record.passkey)
    }

    /// How many removed users and torrents were forgotten to make room for others that were removed later.
    pub fn removed_users_forgotten(&self) -> u64 {
        self.removed_users.forgotten() + self.removed_names.forgotten()
    }

    /// Whether a user is known and let in.
    pub fn is_enabled(&self, user: UserId, now: UnixTime) -> bool {
        let passkey = self.users.pin().get(&user).map(|record| record.passkey);
        passkey.is_some_and(|passkey| {
            let standing = |strangers: &Arc<Strangers>| strangers.look(&passkey, now);
            self.judge(&passkey, self.holder(&passkey), standing) == Ok(user)
        })
    }

    /// Whether a user is known and not let in, whoever vouches for them.
    pub fn is_barred(&self, user: UserId) -> bool {
        self.users.pin().get(&user).is_some_and(|record| !record.enabled)
    }

    /// The one name of a torrent, enabled or not.
    pub fn info_hash_of(&self, torrent: TorrentId) -> Option<InfoHash> {
        let of_site = || {
            let site = self.site.as_ref()?;
            let moved = || site.names_of(TorrentId::new(torrent.get().checked_sub(TAKEN_ID_OFFSET)?)?);
            let (info_hash, _) = site.names_of(torrent).or_else(moved)?;
            (self.torrent_of(&info_hash) == Some(torrent)).then_some(info_hash)
        };
        self.names_of(torrent).map(|(info_hash, _)| info_hash).or_else(of_site)
    }

    /// Tells of every torrent, enabled or not, in no order. Those that come or go meanwhile are told of or not.
    pub fn each_torrent(&self, mut each: impl FnMut(TorrentId, &InfoHash)) {
        let own = self.torrents.pin();
        own.iter().for_each(|(torrent, record)| each(*torrent, &record.terms.info_hash));
        let Some(site) = &self.site else { return };
        site.torrents.pin().iter().for_each(|(torrent, record)| {
            let info_hash = &record.terms.info_hash;
            if !self.by_info_hash.pin().contains_key(info_hash) {
                each(self.id_of_site_torrent(*torrent), info_hash);
            }
        });
    }

    /// How many users have a row, enabled or not.
    pub fn user_count(&self) -> usize {
        self.users.len()
    }

    /// How many torrents are known, enabled or not.
    pub fn torrent_count(&self) -> usize {
        self.torrents.len() + self.site.as_ref().map_or(0, |site| site.torrents.len())
    }

    /// How many ports are banned.
    pub fn banned_port_count(&self) -> u32 {
        self.banned_ports.count()
    }

    /// How many client prefixes are known, allowed or forbidden.
    pub fn client_count(&self) -> usize {
        self.clients.load().len() + self.site.as_ref().map_or(0, |site| site.clients.load().len())
    }
}

/// What the follower writes. One writer at a time; readers go on.
impl Gate {
    /// Takes in a user of ours to whom no other terms apply. Tells whether that changed anything.
    pub fn put_user(&self, user: UserId, passkey: Passkey, enabled: bool) -> bool {
        let leech_slots = LeechSlots::DEFAULT;
        self.put_user_on_terms(user, UserTerms { passkey, enabled, vouched: false, leech_slots })
    }

    /// Takes in a user who is not ours: they are let in as long as somebody vouches for them.
    pub fn put_vouched_user(&self, user: UserId, passkey: Passkey, enabled: bool) -> bool {
        let leech_slots = LeechSlots::DEFAULT;
        self.put_user_on_terms(user, UserTerms { passkey, enabled, vouched: true, leech_slots })
    }

    /// Takes in a user, new or changed. Tells whether that changed anything.
    pub fn put_user_on_terms(&self, user: UserId, terms: UserTerms) -> bool {
        let _writing = self.lock_writers();
        let (by_passkey, users) = (self.by_passkey.pin(), self.users.pin());
        let UserTerms { passkey, enabled, vouched, leech_slots } = terms;
        let grant = UserGrant { id: user, enabled, vouched, leech_slots };
        let before = users.get(&user).copied();
        if before == Some(terms) && by_passkey.get(&passkey) == Some(&grant) {
            return false;
        }
        by_passkey.insert(passkey, grant);
        users.insert(user, terms);
        if let Some(old) = before.filter(|old| old.passkey != passkey) {
            self.forget_passkey(old.passkey, user);
        }
        true
    }

    /// Forgets a user. Tells whether there was one.
    pub fn remove_user(&self, user: UserId) -> bool {
        let _writing = self.lock_writers();
        let users = self.users.pin();
        let Some(record) = users.get(&user).copied() else { return false };
        // First, so that a reader finds the passkey in one place or the other.
        self.removed_users.remember(user, record.passkey);
        users.remove(&user);
        self.forget_passkey(record.passkey, user);
        true
    }

    /// Takes in a torrent that is approved and to which no other terms apply. Tells whether that changed anything.
    pub fn put_torrent(
        &self,
        torrent: TorrentId,
        info_hash: InfoHash,
        info_hash_v2: Option<InfoHash>,
        enabled: bool,
    ) -> bool {
        let leech_slots = LeechSlots::DEFAULT;
        let terms = TorrentTerms { info_hash, info_hash_v2, enabled, approved: true, leech_slots };
        self.put_torrent_on_terms(torrent, terms, UnixTime(0))
    }

    /// Takes in a torrent, new or changed; `now` is when it is approved, if it was not. Tells whether that changed
    /// anything.
    pub fn put_torrent_on_terms(&self, torrent: TorrentId, terms: TorrentTerms, now: UnixTime) -> bool {
        let _writing = self.lock_writers();
        let (by_info_hash, torrents) = (self.by_info_hash.pin(), self.torrents.pin());
        let before = torrents.get(&torrent).copied();
        let approval = before.map_or(Approval::ALWAYS, |record| record.approval).then(terms.approved, now);
        let record = TorrentRecord { terms, approval };
        let TorrentTerms { info_hash, enabled, leech_slots, .. } = terms;
        let grant = TorrentGrant { id: torrent, info_hash, enabled, approval, leech_slots };
        if before == Some(record) && terms.names().all(|name| by_info_hash.get(&name) == Some(&grant)) {
            return false;
        }
        for name in terms.names() {
            by_info_hash.insert(name, grant);
        }
        torrents.insert(torrent, record);
        for old_name in before.iter().flat_map(|record| record.terms.names()) {
            if terms.names().all(|name| name != old_name) {
                self.forget_info_hash(old_name, torrent);
            }
        }
        true
    }

    /// Forgets a torrent. Gives back the name under which it was known.
    pub fn remove_torrent(&self, torrent: TorrentId) -> Option<InfoHash> {
        let _writing = self.lock_writers();
        let torrents = self.torrents.pin();
        let record = *torrents.remove(&torrent)?;
        for name in record.terms.names() {
            self.forget_info_hash(name, torrent);
        }
        Some(record.terms.info_hash)
    }

    /// Replaces the list of clients. Tells whether that changed anything.
    pub fn set_clients(&self, rules: ClientRules) -> bool {
        let _writing = self.lock_writers();
        let changed = **self.clients.load() != rules;
        if changed {
            self.clients.store(rules.into());
        }
        changed
    }

    /// Replaces the list of banned ports. Tells whether that changed anything.
    pub fn set_banned_ports(&self, ranges: impl IntoIterator<Item = PortRange>) -> bool {
        let _writing = self.lock_writers();
        self.banned_ports.replace(ranges)
    }

    /// Notes that everything was read once.
    pub(crate) fn set_loaded(&self) {
        self.is_loaded.store(true, Ordering::Release);
    }

    /// Lets what was found out about a passkey be asked again.
    pub fn expire_verdict(&self, passkey: &Passkey, now: UnixTime) {
        if let Some(strangers) = &self.strangers {
            strangers.expire(passkey, now);
        }
    }

    /// The names of a torrent that has a row, enabled or not: the one it is known by first.
    pub(crate) fn names_of(&self, torrent: TorrentId) -> Option<(InfoHash, Option<InfoHash>)> {
        self.torrents.pin().get(&torrent).map(|record| (record.terms.info_hash, record.terms.info_hash_v2))
    }

    /// The passkeys of all users for whom `is_wanted` holds.
    pub(crate) fn passkeys_where(&self, mut is_wanted: impl FnMut(&Passkey) -> bool) -> Vec<Passkey> {
        let users = self.users.pin();
        users.values().map(|record| record.passkey).filter(|passkey| is_wanted(passkey)).collect()
    }

    /// Whether a verdict lets this passkey in now.
    pub(crate) fn is_verified(&self, passkey: &Passkey, now: UnixTime) -> bool {
        let standing = self.strangers.as_ref().map(|strangers| strangers.look(passkey, now));
        matches!(standing, Some(Standing::Vouched(_)))
    }

    /// The names of all torrents, of both kinds, for which `is_wanted` holds.
    pub(crate) fn names_where(&self, mut is_wanted: impl FnMut(&InfoHash) -> bool) -> Vec<InfoHash> {
        let torrents = self.torrents.pin();
        torrents.values().flat_map(|record| record.terms.names()).filter(|name| is_wanted(name)).collect()
    }

    /// The users for whom `is_gone` holds.
    pub(crate) fn users_where(&self, mut is_gone: impl FnMut(UserId) -> bool) -> Vec<UserId> {
        self.users.pin().keys().copied().filter(|user| is_gone(*user)).collect()
    }

    /// The torrents for which `is_gone` holds.
    pub(crate) fn torrents_where(&self, mut is_gone: impl FnMut(TorrentId) -> bool) -> Vec<TorrentId> {
        self.torrents.pin().keys().copied().filter(|torrent| is_gone(*torrent)).collect()
    }

    /// Drops a passkey unless it belongs to somebody else by now.
    fn forget_passkey(&self, passkey: Passkey, owner: UserId) {
        let by_passkey = self.by_passkey.pin();
        if by_passkey.get(&passkey).is_some_and(|grant| grant.id == owner) {
            by_passkey.remove(&passkey);
            // A verdict names the account, which is gone, too.
            if let Some(strangers) = &self.strangers {
                strangers.forget(&passkey);
            }
        }
    }

    /// Drops an infohash unless it belongs to another torrent by now.
    fn forget_info_hash(&self, info_hash: InfoHash, owner: TorrentId) {
        let by_info_hash = self.by_info_hash.pin();
        if by_info_hash.get(&info_hash).is_some_and(|grant| grant.id == owner) {
            // First, so that a reader finds the number in one place or the other.
            self.removed_names.remember(info_hash, owner);
            by_info_hash.remove(&info_hash);
        }
    }

    fn lock_writers(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data of its own: a writer that panicked leaves nothing half-read behind it.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
