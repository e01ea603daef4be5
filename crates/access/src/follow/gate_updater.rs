//! Applies rows of the database to the gate, and reports the changes.

use std::collections::HashSet;

use database::SqlError;
use domain::{InfoHash, TorrentId, UnixTime, UserId};

use super::Change;
use super::log::Batch;
use crate::clients::{ClientRule, ClientRules};
use crate::gate::{Gate, TorrentAccess, UserAccess};
use crate::ports::BannedPorts;
use crate::store::rows::{NumberedRow, torrent_id, user_id};
use crate::store::tables::Tables;
use crate::store::{PAGE_ROWS, Torrent, User};

pub(super) struct GateUpdater<'a, F> {
    gate: &'a Gate,
    on_change: &'a mut F,
    now: UnixTime,
    /// Primary infohashes that a torrent lost. Reported at the end, unless another torrent has them by then.
    lost_hashes: Vec<InfoHash>,
}

impl<'a, F: FnMut(Change)> GateUpdater<'a, F> {
    pub fn new(gate: &'a Gate, on_change: &'a mut F, now: UnixTime) -> Self {
        GateUpdater { gate, on_change, now, lost_hashes: Vec::new() }
    }

    /// Applies present rows first, then removed ones, so that nothing is missing in between.
    pub fn apply(mut self, batch: Batch) {
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

    /// Reports the infohashes that no torrent has any longer.
    pub fn finish(self) {
        for hash in self.lost_hashes {
            let is_served =
                self.gate.torrent(&hash).is_some_and(|grant| grant.enabled && grant.info_hash == hash);
            if !is_served {
                (self.on_change)(Change::TorrentRemoved(hash));
            }
        }
    }

    fn put_user(&mut self, user: &User) {
        let old_passkey = self.gate.passkey_of(user.id).filter(|passkey| *passkey != user.passkey);
        let User { passkey, enabled, is_external, leech_slots, .. } = *user;
        let access = UserAccess { passkey, enabled, is_external, leech_slots };
        if self.gate.put_user_access(user.id, access) {
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
        let old = self.gate.info_hashes_of(torrent.id);
        let Torrent { info_hash, info_hash_v2, enabled, approved, leech_slots, .. } = *torrent;
        let access = TorrentAccess { info_hash, info_hash_v2, enabled, approved, leech_slots };
        if !self.gate.put_torrent_access(torrent.id, access, self.now) {
            return;
        }
        let old_primary = old.map(|(primary, _)| primary);
        self.lost_hashes.extend(old_primary.filter(|hash| *hash != torrent.info_hash));
        if torrent.enabled {
            (self.on_change)(Change::TorrentAdmitted(torrent.info_hash));
        } else {
            self.lost_hashes.push(torrent.info_hash);
        }
        let new = Some((torrent.info_hash, torrent.info_hash_v2));
        both(old).chain(both(new)).for_each(|hash| (self.on_change)(Change::InfoHashChanged(hash)));
    }

    fn remove_torrent(&mut self, id: TorrentId) {
        let old = self.gate.info_hashes_of(id);
        self.lost_hashes.extend(self.gate.remove_torrent(id));
        both(old).for_each(|hash| (self.on_change)(Change::InfoHashChanged(hash)));
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

fn both(hashes: Option<(InfoHash, Option<InfoHash>)>) -> impl Iterator<Item = InfoHash> {
    hashes.into_iter().flat_map(|(first, second)| [Some(first), second].into_iter().flatten())
}

/// Reads the whole database in pages, then removes from the gate what was not read.
pub(super) async fn read_all<F: FnMut(Change)>(
    tables: &mut Tables<'_>,
    updater: &mut GateUpdater<'_, F>,
) -> Result<(), SqlError> {
    updater.set_clients(&tables.all_clients().await?);
    updater.set_banned_ports(&tables.all_banned_ports().await?);

    let (mut users, mut torrents) = (Set::default(), Set::default());
    each_row(tables, |user: &User| {
        users.insert(user.id);
        updater.put_user(user);
    })
    .await?;
    each_row(tables, |torrent: &Torrent| {
        torrents.insert(torrent.id);
        updater.put_torrent(torrent);
    })
    .await?;

    for user in updater.gate.users_where(|user| !users.contains(&user)) {
        updater.remove_user(user);
    }
    for torrent in updater.gate.torrents_where(|torrent| !torrents.contains(&torrent)) {
        updater.remove_torrent(torrent);
    }
    Ok(())
}

type Set<T> = HashSet<T, foldhash::fast::RandomState>;

async fn each_row<T: NumberedRow>(tables: &mut Tables<'_>, mut put: impl FnMut(&T)) -> Result<(), SqlError> {
    let mut last = Some(0);
    while let Some(after) = last {
        let page = tables.page(after, PAGE_ROWS).await?;
        page.rows.iter().for_each(&mut put);
        last = page.last;
    }
    Ok(())
}
