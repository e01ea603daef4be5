//! The expected keys, computed from all entries in order with plain maps.

use std::collections::{BTreeMap, BTreeSet};

use domain::{AnnounceEvent, Cause, PeerId, UserId};
use journal::TrafficEntry;

use super::fixture::{NumericDirectory, REAP, Snapshot};
use views::redis_mirror::Directory;

const HIT_AND_RUN_S: u64 = 14 * 24 * 60 * 60;

#[derive(Default)]
struct Peer {
    is_active: bool,
    is_complete: bool,
    user: u64,
    first: u32,
    last: u32,
    total_s: u64,
    speeds: (String, String),
}

#[derive(Default)]
struct User {
    active_s: u64,
    counted_until: u32,
    has_leeched: bool,
    is_complete: bool,
    has_snatched: bool,
    was_removed: bool,
}

#[derive(Default)]
struct Torrent {
    info_hash: String,
    announces: u64,
    /// Users under each peer id; the one with the last entry is last.
    peers: BTreeMap<PeerId, Vec<Peer>>,
    users: BTreeMap<u64, User>,
}

#[derive(Default)]
pub struct Model {
    torrents: BTreeMap<u64, Torrent>,
}

fn speed(bytes: u64, dt: u32) -> String {
    if dt == 0 {
        return "0".to_owned();
    }
    ((bytes as f64 / f64::from(dt) * 100.0).round() / 100.0).to_string()
}

impl Model {
    pub fn apply(&mut self, entry: &TrafficEntry) {
        let Some((torrent, info_hash)) = NumericDirectory.torrent_of(&entry.info_hash) else { return };
        let user = entry.user.or_else(|| NumericDirectory.user_of(entry.passkey.as_ref()?));
        let Some(user) = user.map(UserId::get) else { return };
        let torrent = self.torrents.entry(torrent.get()).or_default();
        torrent.info_hash = info_hash.to_string();
        if entry.cause == Cause::Announce {
            torrent.announces += 1;
            let figures = torrent.users.entry(user).or_default();
            figures.has_snatched |= entry.event == AnnounceEvent::Completed;
            figures.is_complete |= entry.is_complete();
            let is_silent = entry.event == AnnounceEvent::Stopped && entry.left.is_none();
            figures.has_leeched |= !entry.is_complete() && !is_silent;
            figures.was_removed = false;
        }
        match (entry.cause, entry.event) {
            (Cause::Announce, AnnounceEvent::Stopped) => torrent.stop(entry, user),
            (Cause::Announce, _) => torrent.announce(entry, user),
            (Cause::Timeout, _) => torrent.deactivate(entry, user, entry.since_last.unwrap_or_default().0),
            (Cause::Removal, _) => torrent.deactivate(entry, user, 0),
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        let mut sums = (0, 0, 0);
        for (id, torrent) in &self.torrents {
            let active: Vec<&Peer> = torrent.peers.values().flatten().filter(|peer| peer.is_active).collect();
            let seeders = active.iter().filter(|peer| peer.is_complete).count();
            let leechers = active.len() - seeders;
            let snatches = torrent.users.values().filter(|user| user.has_snatched).count();
            sums = (sums.0 + torrent.announces, sums.1 + leechers, sums.2 + seeders);
            snapshot.insert(
                format!("t:t:{}", torrent.info_hash),
                vec![
                    format!("announces={}", torrent.announces),
                    format!("leechers={leechers}"),
                    format!("seeders={seeders}"),
                    format!("snatches={snatches}"),
                ],
            );
            for (name, count) in [("leechers", leechers), ("seeders", seeders), ("snatches", snatches)] {
                snapshot.entry(format!("t:i:{name}")).or_default().push(format!("{id}={count}"));
            }
            for (peer_id, users) in &torrent.peers {
                snapshot.insert(format!("t:p:{id}:{peer_id}"), shown(users).words());
                let deadlines = users.iter().filter(|peer| peer.is_active).map(|peer| peer.last + REAP);
                let Some(until) = deadlines.min() else { continue };
                snapshot.insert(
                    format!("t:ptimeout:{id}:{peer_id}"),
                    vec!["1".to_owned(), format!("until {until}")],
                );
                let members = snapshot.entry(format!("t:tpeers:{}", torrent.info_hash)).or_default();
                members.push(peer_id.to_string());
                snapshot.entry(format!("t:p:{peer_id}:torrents")).or_default().push(id.to_string());
            }
            torrent.list_users(*id, &mut snapshot);
        }
        snapshot.insert("t:stats:announces".to_owned(), vec![sums.0.to_string()]);
        snapshot.insert("t:stats:leechers".to_owned(), vec![sums.1.to_string()]);
        snapshot.insert("t:stats:seeders".to_owned(), vec![sums.2.to_string()]);
        for words in snapshot.values_mut() {
            words.sort();
        }
        snapshot
    }
}

impl Torrent {
    fn announce(&mut self, entry: &TrafficEntry, user: u64) {
        let dt = entry.since_last.unwrap_or_default().0;
        let speeds = (speed(entry.uploaded_delta, dt), speed(entry.downloaded_delta, dt));
        if self.find(&entry.peer_id, user).is_some_and(|peer| entry.at.0 < peer.last) {
            return;
        }
        let peer = self.record_time(entry, user);
        peer.is_active = true;
        peer.is_complete = entry.is_complete();
        peer.speeds = speeds;
    }

    fn stop(&mut self, entry: &TrafficEntry, user: u64) {
        if self.find(&entry.peer_id, user).is_some_and(|peer| entry.at.0 < peer.last) {
            return;
        }
        let peer = self.record_time(entry, user);
        peer.is_active = false;
        if entry.left.is_some() {
            peer.is_complete = entry.is_complete();
        }
        peer.speeds = (speed(0, 0), speed(0, 0));
        self.keep_latest(&entry.peer_id);
    }

    fn deactivate(&mut self, entry: &TrafficEntry, user: u64, dt: u32) {
        let Some(peer) = self.find(&entry.peer_id, user) else { return };
        if !peer.is_active || peer.last > entry.at.0 - dt {
            return;
        }
        peer.is_active = false;
        peer.speeds = (speed(0, 0), speed(0, 0));
        let users = self.peers.get_mut(&entry.peer_id).unwrap();
        let position = users.iter().position(|peer| peer.user == user).unwrap();
        let peer = users.remove(position);
        users.push(peer);
        self.users.get_mut(&user).unwrap().was_removed |= entry.cause == Cause::Removal;
        self.keep_latest(&entry.peer_id);
    }

    fn find(&mut self, peer_id: &PeerId, user: u64) -> Option<&mut Peer> {
        self.peers.get_mut(peer_id)?.iter_mut().find(|peer| peer.user == user)
    }

    /// Adds the time since the last announce; moves the user to the end.
    fn record_time(&mut self, entry: &TrafficEntry, user: u64) -> &mut Peer {
        let users = self.peers.entry(entry.peer_id).or_default();
        let mut peer = match users.iter().position(|peer| peer.user == user) {
            Some(position) => users.remove(position),
            None => Peer { user, first: entry.at.0, last: entry.at.0, ..Peer::default() },
        };
        if peer.is_active && entry.at.0 - peer.last <= REAP {
            let gap = u64::from(entry.at.0 - peer.last);
            peer.total_s += gap;
            let figures = self.users.get_mut(&user).unwrap();
            let from = peer.last.max(figures.counted_until);
            figures.active_s += u64::from(entry.at.0.saturating_sub(from));
            figures.counted_until = figures.counted_until.max(entry.at.0);
        }
        peer.last = entry.at.0;
        users.push(peer);
        users.last_mut().unwrap()
    }

    /// Without an active user, only the latest is kept.
    fn keep_latest(&mut self, peer_id: &PeerId) {
        let users = self.peers.get_mut(peer_id).unwrap();
        if users.iter().all(|peer| !peer.is_active) {
            let latest = users.iter().map(|peer| peer.last).max().unwrap();
            let position = users.iter().rposition(|peer| peer.last == latest).unwrap();
            let peer = users.swap_remove(position);
            *users = vec![peer];
        }
    }

    fn list_users(&self, id: u64, snapshot: &mut Snapshot) {
        let active: BTreeSet<u64> =
            self.peers.values().flatten().filter(|peer| peer.is_active).map(|peer| peer.user).collect();
        for (user, figures) in &self.users {
            let is_active = active.contains(user);
            let sets = [
                ("active", is_active),
                ("complete", figures.is_complete),
                ("incomplete", !figures.is_complete),
                ("hnr", !is_active && figures.is_hit_and_run()),
            ];
            for (name, _) in sets.iter().filter(|(_, is_in)| *is_in) {
                snapshot.entry(format!("t:u:{user}:{name}")).or_default().push(id.to_string());
            }
        }
    }
}

impl User {
    fn is_hit_and_run(&self) -> bool {
        self.has_leeched && !self.was_removed && self.active_s < HIT_AND_RUN_S
    }
}

/// The latest active user, else the latest.
fn shown(users: &[Peer]) -> &Peer {
    users.iter().max_by_key(|peer| (peer.is_active, peer.last)).unwrap()
}

impl Peer {
    fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("speed_up={}", self.speeds.0),
            format!("speed_dn={}", self.speeds.1),
            format!("completed={}", u8::from(self.is_complete)),
            format!("user_id={}", self.user),
            format!("first_announce={}", self.first),
            format!("last_announce={}", self.last),
            format!("total_time={}", self.total_s),
            format!("active={}", u8::from(self.is_active)),
        ];
        words.sort();
        words
    }
}

/// Lists the differing keys.
#[track_caller]
pub fn assert_same(found: &Snapshot, expected: &Snapshot) {
    let keys: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<String> = keys
        .into_iter()
        .filter(|key| found.get(*key) != expected.get(*key))
        .map(|key| format!("{key}\n  found    {:?}\n  expected {:?}", found.get(key), expected.get(key)))
        .collect();
    assert!(
        differing.is_empty(),
        "{} of {} keys differ:\n{}",
        differing.len(),
        expected.len(),
        differing[..differing.len().min(10)].join("\n")
    );
}
