//! Brings what was read from the database into the gate, and says what that changed.

use std::collections::HashSet;

use domain::{InfoHash, TorrentId, UnixTime, UserId};

use super::Change;
use super::log::Batch;
use crate::clients::{ClientRule, ClientRules};
use crate::gate::{Gate, TorrentTerms, UserTerms};
use crate::ports::BannedPorts;
use crate::store::rows::{torrent_id, user_id};
use crate::store::tables::Tables;
use crate::store::{PAGE_ROWS, Torrent, User};

/// Writes to a gate and reports.
pub(super) struct Applier<'a, F> {
    gate: &'a Gate,
    on_change: &'a mut F,
    now: UnixTime,
    /// Names that a torrent lost. Whether they are gone for good shows when all is taken in: another torrent may have
    /// got them.
    lost_names: Vec<InfoHash>,
}

impl<'a, F: FnMut(Change)> Applier<'a, F> {
    pub fn new(gate: &'a Gate, on_change: &'a mut F, now: UnixTime) -> Self {
        Applier { gate, on_change, now, lost_names: Vec::new() }
    }

    /// Takes in a part of the log: first what is there, then what is gone, so that nothing is missing in between.
    pub fn take_in(mut self, batch: Batch) {
        for user in batch.users.iter().filter_map(|(_, user)| user.as_ref()) {
            self.put_user(user);
        }
        for torrent in batch.torrents.iter().filter_map(|(_, torrent)| torrent.as_ref()) {
            self.put_torrent(torrent);
        }
        for (id, _) in batch.users.iter().filter(|(_, user)| user.is_none()) {
            if let Some(id) = user_id(*id) {
                self.remove_user(id);
            }
        }
        for (id, _) in batch.torrents.iter().filter(|(_, torrent)| torrent.is_none()) {
            if let Some(id) = torrent_id(*id) {
                self.remove_torrent(id);
            }
        }
        if let Some(lists) = batch.lists {
            self.set_clients(&lists.clients);
            self.set_banned_ports(&lists.banned_ports);
        }
        self.finish();
    }

    /// Reports the names that no torrent has any longer.
    pub fn finish(self) {
        for name in self.lost_names {
            let served =
                self.gate.torrent(&name).is_some_and(|grant| grant.enabled && grant.info_hash == name);
            if !served {
                (self.on_change)(Change::TorrentRemoved(name));
            }
        }
    }

    fn put_user(&mut self, user: &User) {
        let old_passkey = self.gate.passkey_of(user.id).filter(|passkey| *passkey != user.passkey);
        let User { passkey, enabled, vouched, leech_slots, .. } = *user;
        let terms = UserTerms { passkey, enabled, vouched, leech_slots };
        let is_news = self.gate.put_user_on_terms(user.id, terms);
        if is_news {
            (self.on_change)(if user.enabled {
                Change::UserAdmitted(user.id)
            } else {
                Change::UserRemoved(user.id)
            });
            for passkey in old_passkey.into_iter().chain([user.passkey]) {
                (self.on_change)(Change::PasskeyChanged(passkey));
            }
        }
    }

    fn remove_user(&mut self, id: UserId) {
        let passkey = self.gate.passkey_of(id);
        if self.gate.remove_user(id) {
            (self.on_change)(Change::UserRemoved(id));
            passkey.into_iter().for_each(|passkey| (self.on_change)(Change::PasskeyChanged(passkey)));
        }
    }

    fn put_torrent(&mut self, torrent: &Torrent) {
        let old_name = self.gate.names_of(torrent.id).map(|(first, _)| first);
        let old_names = names(self.gate.names_of(torrent.id));
        let Torrent { info_hash, info_hash_v2, enabled, approved, leech_slots, .. } = *torrent;
        let terms = TorrentTerms { info_hash, info_hash_v2, enabled, approved, leech_slots };
        if !self.gate.put_torrent_on_terms(torrent.id, terms, self.now) {
            return;
        }
        self.lost_names.extend(old_name.filter(|name| *name != torrent.info_hash));
        if torrent.enabled {
            (self.on_change)(Change::TorrentAdmitted(torrent.info_hash));
        } else {
            self.lost_names.push(torrent.info_hash);
        }
        let new_names = names(Some((torrent.info_hash, torrent.info_hash_v2)));
        old_names.chain(new_names).for_each(|name| (self.on_change)(Change::NameChanged(name)));
    }

    fn remove_torrent(&mut self, id: TorrentId) {
        let old_names = names(self.gate.names_of(id));
        self.lost_names.extend(self.gate.remove_torrent(id));
        old_names.for_each(|name| (self.on_change)(Change::NameChanged(name)));
    }

    fn set_clients(&mut self, clients: &[ClientRule]) {
        let rules = ClientRules::new(clients.iter().map(|rule| (rule.prefix, rule.allowed)));
        if self.gate.set_clients(rules) {
            (self.on_change)(Change::ClientsChanged);
        }
    }

    fn set_banned_ports(&mut self, bans: &[BannedPorts]) {
        if self.gate.set_banned_ports(bans.iter().map(|ban| ban.range)) {
            (self.on_change)(Change::PortsChanged);
        }
    }
}

/// All names of a torrent.
fn names(of: Option<(InfoHash, Option<InfoHash>)>) -> impl Iterator<Item = InfoHash> {
    of.into_iter().flat_map(|(first, second)| [Some(first), second].into_iter().flatten())
}

/// Reads the whole database page by page, then takes out of the gate what was not there.
pub(super) async fn read_all<F: FnMut(Change)>(
    tables: &mut dyn Tables,
    applier: &mut Applier<'_, F>,
) -> Result<(), sqlx::Error> {
    applier.set_clients(&tables.all_clients().await?);
    applier.set_banned_ports(&tables.all_banned_ports().await?);

    let mut users = HashSet::with_hasher(foldhash::fast::RandomState::default());
    let mut last = Some(0);
    while let Some(after) = last {
        let page = tables.user_page(after, PAGE_ROWS).await?;
        users.extend(page.rows.iter().map(|user| user.id));
        page.rows.iter().for_each(|user| applier.put_user(user));
        last = page.last;
    }

    let mut torrents = HashSet::with_hasher(foldhash::fast::RandomState::default());
    let mut last = Some(0);
    while let Some(after) = last {
        let page = tables.torrent_page(after, PAGE_ROWS).await?;
        torrents.extend(page.rows.iter().map(|torrent| torrent.id));
        page.rows.iter().for_each(|torrent| applier.put_torrent(torrent));
        last = page.last;
    }

    for user in applier.gate.users_where(|user| !users.contains(&user)) {
        applier.remove_user(user);
    }
    for torrent in applier.gate.torrents_where(|torrent| !torrents.contains(&torrent)) {
        applier.remove_torrent(torrent);
    }
    Ok(())
}
