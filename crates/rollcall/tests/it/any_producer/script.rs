//! Entries as another program writes them, and what follows from them, computed here by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use domain::clock::{Clock, SystemClock};
use fastrand::Rng;
use testkit::population::{info_hash_of, passkey_of};
use testkit::{ActivityLists, JOURNAL_FIELDS, Moved};

pub const USERS: u64 = 30;
pub const TORRENTS: u64 = 12;
/// Clients that a user runs on one torrent.
const CLIENTS: u64 = 3;
/// What an entry without `dt` counts instead (L4).
const INTERVAL_S: u64 = 1800;

/// An entry, field by field.
#[derive(Clone, Debug)]
pub struct Entry(pub BTreeMap<&'static str, String>);

impl Entry {
    /// A leecher's heartbeat of one of three clients of a user on a torrent, a while ago.
    pub fn new(user: u64, torrent: u64, client: u64) -> Self {
        let ip = if client == 0 { ("2001:db8::7", "IPv6") } else { ("192.0.2.7", "IPv4") };
        let values = [
            passkey_of(user).to_string(),
            info_hash_of(torrent).to_string(),
            format!("2d545233303030{user:08x}{torrent:08x}{client:010x}"),
            (6000 + client).to_string(),
            ip.0.to_owned(),
            ip.1.to_owned(),
            "0".to_owned(),
            "0".to_owned(),
            "1000".to_owned(),
            "none".to_owned(),
            now().to_string(),
            "60".to_owned(),
            INTERVAL_S.to_string(),
            "900".to_owned(),
        ];
        Entry(JOURNAL_FIELDS.into_iter().zip(values).collect())
    }

    pub fn with(mut self, field: &'static str, value: impl ToString) -> Self {
        self.0.insert(field, value.to_string());
        self
    }

    pub fn without(mut self, field: &'static str) -> Self {
        self.0.remove(field);
        self
    }

    pub fn get(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }

    fn number(&self, field: &str) -> u64 {
        self.get(field).parse().unwrap()
    }

    /// The command that writes it. Values stand in quotes, as they are typed.
    pub fn command(&self) -> String {
        let mut line = "XADD tracker:traffic *".to_owned();
        for (field, value) in JOURNAL_FIELDS.iter().filter_map(|field| Some((field, self.0.get(field)?))) {
            write!(line, " {field} \"{value}\"").unwrap();
        }
        line + "\n"
    }
}

/// The present moment, in seconds.
pub fn now() -> u64 {
    SystemClock.now().0.into()
}

/// Good entries in no order at all.
pub fn good_entries(count: usize, random: &mut Rng) -> Vec<Entry> {
    let now = now();
    let mut heard = BTreeSet::new();
    let mut one = |random: &mut Rng| {
        let (user, torrent) = (random.u64(1..=USERS), random.u64(1..=TORRENTS));
        let event = random.choice(["none", "none", "none", "started", "completed", "stopped"]).unwrap();
        let left = if event == "completed" || random.bool() { 0 } else { random.u64(1..1_000_000) };
        let entry = Entry::new(user, torrent, random.u64(..CLIENTS))
            .with("du", random.u64(..10_000_000_000))
            .with("dd", random.u64(..10_000_000_000))
            .with("left", left)
            .with("event", event)
            // Not long ago, or the lists would not show it any more.
            .with("ts", now - random.u64(..300))
            .with("dt", random.u64(..100));
        let is_first_of_second = heard.insert((entry.get("peer_id").to_owned(), entry.get("ts").to_owned()));
        match random.u8(..20) {
            // No time has passed since the client's last announce: the later one counts, by its place.
            _ if !is_first_of_second => entry.with("dt", 0),
            0 => entry.without("dt"),
            _ => entry,
        }
    };
    (0..count).map(|_| one(random)).collect()
}

/// What follows from entries, in the order in which they were written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub accounts: BTreeMap<(u64, u64), Account>,
    /// Each client's latest word: the time, its place among the entries, and what it does.
    latest: BTreeMap<(u64, u64, String), (u64, usize, &'static str)>,
    /// The seconds in which each user seeded and leeched each torrent.
    seconds: BTreeMap<(u64, u64, bool), BTreeSet<u64>>,
}

/// Expected account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub moved: Moved,
    pub seeding_s: u64,
    pub leeching_s: u64,
    pub completed: u64,
}

impl Outcome {
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Outcome {
        let mut outcome = Outcome::default();
        for (place, entry) in entries.into_iter().enumerate() {
            outcome.take(place, entry);
        }
        outcome
    }

    fn take(&mut self, place: usize, entry: &Entry) {
        let user = (1..=USERS).find(|id| passkey_of(*id).to_string() == entry.get("passkey")).unwrap();
        let torrent =
            (1..=TORRENTS).find(|id| info_hash_of(*id).to_string() == entry.get("infohash")).unwrap();
        let account = self.accounts.entry((user, torrent)).or_default();
        account
            .moved
            .add(Moved { uploaded: entry.number("du").into(), downloaded: entry.number("dd").into() });
        let (event, left) = (entry.get("event"), entry.number("left"));
        account.completed += u64::from(event == "completed");
        let seconds = if entry.0.contains_key("dt") { entry.number("dt") } else { INTERVAL_S };
        // Wall clock: what several clients report counts once.
        if event != "started" {
            let (to, is_seeding) = (entry.number("ts"), event != "completed" && left == 0);
            let spent = self.seconds.entry((user, torrent, is_seeding)).or_default();
            spent.extend(to - seconds..to);
            match is_seeding {
                true => account.seeding_s = spent.len() as u64,
                false => account.leeching_s = spent.len() as u64,
            }
        }
        let standing = match event {
            "stopped" => "gone",
            "completed" => "seeding",
            _ if left == 0 => "seeding",
            _ => "leeching",
        };
        let word = (entry.number("ts"), place, standing);
        let known = self.latest.entry((user, torrent, entry.get("peer_id").to_owned())).or_insert(word);
        *known = word.max(*known);
    }

    /// The activity lists (A2, A3).
    pub fn activity_lists(&self) -> ActivityLists {
        let those = |wanted: &str| -> BTreeSet<(u64, u64)> {
            let clients = self.latest.iter().filter(|(_, word)| word.2 == wanted);
            clients.map(|((user, torrent, _), _)| (*user, *torrent)).collect()
        };
        let seeding = those("seeding");
        let leeching = those("leeching").difference(&seeding).copied().collect();
        ActivityLists { seeding, leeching }
    }

    /// Time of the last seeding announce of the user: the score in the sorted set (A1).
    pub fn seeding_since(&self, user: u64, torrent: u64) -> Option<u64> {
        let clients =
            self.latest.iter().filter(|((u, t, _), word)| (*u, *t, word.2) == (user, torrent, "seeding"));
        clients.map(|(_, word)| word.0).max()
    }
}
