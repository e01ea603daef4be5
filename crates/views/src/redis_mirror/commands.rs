//! The commands that bring the keys of one torrent in line with memory. All are in one slot; all values are absolute.

use domain::{PeerId, TorrentId, UnixTime};
use keyspace::RedisMirrorNames;
use redis::Cmd;

use super::settings::RedisMirrorSettings;
use super::stored_peer::StoredPeer;
use super::torrent::{Changes, PeerChange, Torrent};

/// If the newest entry is older than this, later announces may be unread: timeouts are at least `LAG_TIMEOUT_S`.
const LAG_S: u32 = 30;
const LAG_TIMEOUT_S: u32 = 60;

#[derive(Clone, Copy)]
pub(super) struct TorrentCommands<'a> {
    pub(super) names: &'a RedisMirrorNames,
    pub(super) settings: &'a RedisMirrorSettings,
    pub(super) id: TorrentId,
    /// Whether there is no state hash yet.
    pub(super) is_new: bool,
    /// Time of Redis.
    pub(super) now: UnixTime,
}

fn digit(is: bool) -> &'static str {
    if is { "1" } else { "0" }
}

impl TorrentCommands<'_> {
    /// Deletes what another torrent had under the infohash.
    pub(super) fn take_over(&self, torrent: &Torrent, commands: &mut Vec<Cmd>) {
        let (names, info_hash) = (self.names, &torrent.info_hash);
        let mut delete = redis::cmd("DEL");
        delete.arg(names.torrent(self.id, info_hash)).arg(names.torrent_peers(self.id, info_hash));
        commands.push(delete);
        let owner = names.info_hash_owner(self.id, info_hash);
        commands.push(redis::cmd("SET").arg(owner).arg(self.id.get()).to_owned());
    }

    pub(super) fn add_members<'p>(
        &self,
        torrent: &Torrent,
        peers: impl Iterator<Item = &'p PeerId>,
        commands: &mut Vec<Cmd>,
    ) {
        let members = self.names.torrent_peers(self.id, &torrent.info_hash);
        for peer in peers {
            commands.push(redis::cmd("SADD").arg(&members).arg(peer.to_string()).to_owned());
        }
    }

    pub(super) fn write(&self, torrent: &Torrent, changes: &Changes, commands: &mut Vec<Cmd>) {
        let names = self.names;
        let is_owner = torrent.owner == Some(self.id);
        let counts = torrent.counts;
        let [announces, leechers, seeders, snatches] = counts.in_order();
        let mut state = redis::cmd("HSET");
        state.arg(names.state(self.id)).arg("w").arg(torrent.watermark.to_string());
        if self.is_new {
            state.arg("h").arg(torrent.info_hash.to_string());
        }
        state.arg("c").arg(format!("{announces} {leechers} {seeders} {snatches}"));
        for (user, change) in &changes.users {
            let figures = torrent.figures(*user);
            if let Some(figures) = figures.filter(|_| figures != change.before) {
                state.arg(format!("u{user}")).arg(figures.to_text());
            }
        }
        for (peer, change) in changes.peers.iter().filter(|(_, change)| change.is_changed) {
            let all = torrent.peers.get(peer).map(Vec::as_slice).unwrap_or_default();
            let Some(shown) = StoredPeer::shown(all) else { continue };
            commands.push(peer_hash(&names.peer(self.id, peer), shown));
            match shown.is_active {
                true => {
                    state.arg(format!("p{peer}")).arg(StoredPeer::to_text(all));
                    self.activate(torrent, (peer, change), is_owner, commands);
                }
                false => self.deactivate(torrent, (peer, change), is_owner, commands),
            }
        }
        commands.push(state);
        if is_owner {
            let mut hash = redis::cmd("HSET");
            hash.arg(names.torrent(self.id, &torrent.info_hash)).arg("announces").arg(announces);
            hash.arg("leechers").arg(leechers).arg("seeders").arg(seeders).arg("snatches").arg(snatches);
            commands.push(hash);
        }
    }

    fn activate(
        &self,
        torrent: &Torrent,
        (peer, change): (&PeerId, &PeerChange),
        is_owner: bool,
        commands: &mut Vec<Cmd>,
    ) {
        let all = torrent.peers.get(peer).map(Vec::as_slice).unwrap_or_default();
        let deadline = all.iter().filter(|stored| stored.is_active).map(StoredPeer::deadline).min();
        let entry_s = u32::try_from(torrent.watermark.ms / 1000).unwrap_or(u32::MAX);
        // A time in the past would delete the key without an expired event.
        let is_lagging = self.now.0.saturating_sub(entry_s) > LAG_S;
        let earliest = self.now.0.saturating_add(if is_lagging { LAG_TIMEOUT_S } else { 1 });
        let until = deadline.map_or(earliest, |deadline| deadline.0.max(earliest));
        let timeout = self.names.peer_timeout(self.id, peer);
        commands.push(redis::cmd("SET").arg(timeout).arg("1").arg("EXAT").arg(until).to_owned());
        if !change.was_active {
            commands.push(redis::cmd("PERSIST").arg(self.names.peer(self.id, peer)).to_owned());
            if is_owner {
                self.add_members(torrent, std::iter::once(peer), commands);
            }
        }
    }

    fn deactivate(
        &self,
        torrent: &Torrent,
        (peer, change): (&PeerId, &PeerChange),
        is_owner: bool,
        commands: &mut Vec<Cmd>,
    ) {
        let timeout = self.names.peer_timeout(self.id, peer);
        commands.push(match change.is_expired {
            // Other programs wait for the expired event of Redis (M6), whichever process detected the timeout. With a
            // time to live of 0 Redis would publish del instead.
            true => redis::cmd("PEXPIRE").arg(timeout).arg(1).to_owned(),
            false => redis::cmd("DEL").arg(timeout).to_owned(),
        });
        let state = self.names.state(self.id);
        commands.push(redis::cmd("HDEL").arg(state).arg(format!("p{peer}")).to_owned());
        if is_owner {
            let members = self.names.torrent_peers(self.id, &torrent.info_hash);
            commands.push(redis::cmd("SREM").arg(members).arg(peer.to_string()).to_owned());
        }
        let keep = self.settings.inactive_keep.0;
        if keep > 0 {
            let hash = self.names.peer(self.id, peer);
            commands.push(redis::cmd("EXPIRE").arg(hash).arg(keep).to_owned());
        }
    }
}

/// All fields of the public hash (M5).
fn peer_hash(key: &str, shown: &StoredPeer) -> Cmd {
    let mut hash = redis::cmd("HSET");
    hash.arg(key).arg("speed_up").arg(shown.speeds.0.to_string());
    hash.arg("speed_dn").arg(shown.speeds.1.to_string()).arg("completed").arg(digit(shown.is_complete));
    hash.arg("user_id").arg(shown.user.get()).arg("first_announce").arg(shown.first.0);
    hash.arg("last_announce").arg(shown.last.0).arg("total_time").arg(shown.active_s);
    hash.arg("active").arg(digit(shown.is_active));
    hash
}
