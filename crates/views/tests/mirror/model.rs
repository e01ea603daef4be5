//! The layout as it should be, worked out from all entries in their order, one at a time, with plain maps.

use std::collections::{BTreeMap, BTreeSet};

use domain::{AnnounceEvent, Cause, PeerId, UserId};
use journal::TrafficEntry;

use super::rig::{Layout, Numbers, REAP};
use views::mirror::Directory;

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
    has_leeched: bool,
    is_complete: bool,
    has_snatched: bool,
}

#[derive(Default)]
struct Torrent {
    info_hash: String,
    announces: u64,
    peers: BTreeMap<PeerId, Peer>,
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
    pub fn hear(&mut self, entry: &TrafficEntry) {
        let Some((torrent, info_hash)) = Numbers.torrent_of(&entry.info_hash) else { return };
        let user = entry.user.or_else(|| Numbers.user_of(entry.passkey.as_ref()?));
        let Some(user) = user.map(UserId::get) else { return };
        let torrent = self.torrents.entry(torrent.get()).or_default();
        torrent.info_hash = info_hash.to_string();
        if entry.cause == Cause::Announce {
            torrent.announces += 1;
            let figures = torrent.users.entry(user).or_default();
            figures.has_snatched |= entry.event == AnnounceEvent::Completed;
            figures.is_complete |= entry.is_complete();
            figures.has_leeched |= !entry.is_complete();
        }
        match (entry.cause, entry.event) {
            (Cause::Announce, AnnounceEvent::Stopped) => torrent.say_goodbye(entry, user),
            (Cause::Announce, _) => torrent.announce(entry, user),
            (Cause::Timeout, _) => torrent.vanish(entry, user, entry.since_last.unwrap_or_default().0),
            (Cause::Removal, _) => torrent.vanish(entry, user, 0),
        }
    }

    pub fn layout(&self) -> Layout {
        let mut layout = Layout::new();
        let mut sums = (0, 0, 0);
        for (id, torrent) in &self.torrents {
            let active: Vec<_> = torrent.peers.iter().filter(|(_, peer)| peer.is_active).collect();
            let seeders = active.iter().filter(|(_, peer)| peer.is_complete).count();
            let leechers = active.len() - seeders;
            let snatches = torrent.users.values().filter(|user| user.has_snatched).count();
            sums = (sums.0 + torrent.announces, sums.1 + leechers, sums.2 + seeders);
            layout.insert(
                format!("t:t:{}", torrent.info_hash),
                vec![
                    format!("announces={}", torrent.announces),
                    format!("leechers={leechers}"),
                    format!("seeders={seeders}"),
                    format!("snatches={snatches}"),
                ],
            );
            for (name, count) in [("leechers", leechers), ("seeders", seeders), ("snatches", snatches)] {
                layout.entry(format!("t:i:{name}")).or_default().push(format!("{id}={count}"));
            }
            for (peer_id, peer) in &torrent.peers {
                layout.insert(format!("t:p:{id}:{peer_id}"), peer.words());
            }
            for (peer_id, peer) in active {
                let until = peer.last + REAP;
                layout.insert(
                    format!("t:ptimeout:{id}:{peer_id}"),
                    vec!["1".to_owned(), format!("until {until}")],
                );
                let members = layout.entry(format!("t:tpeers:{}", torrent.info_hash)).or_default();
                members.push(peer_id.to_string());
                layout.entry(format!("t:p:{peer_id}:torrents")).or_default().push(id.to_string());
            }
            torrent.list_users(*id, &mut layout);
        }
        layout.insert("t:stats:announces".to_owned(), vec![sums.0.to_string()]);
        layout.insert("t:stats:leechers".to_owned(), vec![sums.1.to_string()]);
        layout.insert("t:stats:seeders".to_owned(), vec![sums.2.to_string()]);
        for words in layout.values_mut() {
            words.sort();
        }
        layout
    }
}

impl Torrent {
    fn announce(&mut self, entry: &TrafficEntry, user: u64) {
        let dt = entry.since_last.unwrap_or_default().0;
        let speeds = (speed(entry.uploaded_delta, dt), speed(entry.downloaded_delta, dt));
        if self.peers.get(&entry.peer_id).is_some_and(|peer| entry.at.0 < peer.last) {
            return;
        }
        self.spend(entry);
        let peer = self.peers.entry(entry.peer_id).or_insert(Peer { first: entry.at.0, ..Peer::default() });
        peer.is_active = true;
        peer.is_complete = entry.is_complete();
        peer.user = user;
        peer.last = entry.at.0;
        peer.speeds = speeds;
    }

    fn say_goodbye(&mut self, entry: &TrafficEntry, user: u64) {
        let is_no_matter = |peer: &Peer| entry.at.0 < peer.last || peer.user != user;
        if self.peers.get(&entry.peer_id).is_some_and(is_no_matter) {
            return;
        }
        self.spend(entry);
        let peer = self.peers.entry(entry.peer_id).or_insert(Peer { first: entry.at.0, ..Peer::default() });
        peer.is_active = false;
        peer.is_complete = entry.is_complete();
        peer.user = user;
        peer.last = entry.at.0;
        peer.speeds = (speed(0, 0), speed(0, 0));
    }

    fn vanish(&mut self, entry: &TrafficEntry, user: u64, dt: u32) {
        if let Some(peer) = self.peers.get_mut(&entry.peer_id)
            && peer.is_active
            && peer.user == user
            && peer.last <= entry.at.0 - dt
        {
            peer.is_active = false;
            peer.speeds = (speed(0, 0), speed(0, 0));
        }
    }

    /// Time that passed while the peer was there.
    fn spend(&mut self, entry: &TrafficEntry) {
        if let Some(peer) = self.peers.get_mut(&entry.peer_id)
            && peer.is_active
            && entry.at.0 - peer.last <= REAP
        {
            let gap = u64::from(entry.at.0 - peer.last);
            peer.total_s += gap;
            self.users.get_mut(&peer.user).unwrap().active_s += gap;
        }
    }

    fn list_users(&self, id: u64, layout: &mut Layout) {
        let active: BTreeSet<u64> =
            self.peers.values().filter(|peer| peer.is_active).map(|peer| peer.user).collect();
        for (user, figures) in &self.users {
            let is_active = active.contains(user);
            let sets = [
                ("active", is_active),
                ("complete", figures.is_complete),
                ("incomplete", !figures.is_complete),
                ("hnr", !is_active && figures.has_leeched && figures.active_s < HIT_AND_RUN_S),
            ];
            for (name, _) in sets.iter().filter(|(_, is_in)| *is_in) {
                layout.entry(format!("t:u:{user}:{name}")).or_default().push(id.to_string());
            }
        }
    }
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

/// Says which keys differ, not only that some do.
#[track_caller]
pub fn assert_same(found: &Layout, expected: &Layout) {
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
