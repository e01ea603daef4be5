//! A wall clock that is set forward and back, with restarts of clients and trackers between: every byte is credited once.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use access::Gate;
use database::Database;
use domain::clock::{Clock, ManualClock};
use domain::{Announce, ClientKey, Families, InfoHash, Passkey, UnixTime};
use fastrand::Rng;
use journal::{Batch, DeliveredEntry, EntryId, Lane, TrafficEntry, View};
use ledger::{AccountKey, Directory, Ledger, LedgerSettings, RiskSink};
use swarm::PeerLists;
use tracker::snapshot;
use tracker::{Secrets, Tracker, TrafficSink};

use super::*;

const HOUR_S: i32 = 3_600;

/// The users, torrents and journal that all processes of the node see.
struct Node {
    clock: ManualClock,
    gate: Arc<Gate>,
    recorder: Arc<Recorder>,
    tracker: Arc<Tracker>,
    folder: tempfile::TempDir,
}

impl Node {
    fn start() -> Node {
        let gate = Arc::new(Gate::default());
        for id in 1..=9 {
            gate.put_user(user(id), passkey(id), true);
        }
        gate.put_torrent(TorrentId::new(1).unwrap(), TORRENT, None, true);
        let (clock, recorder) = (ManualClock::at(UnixTime(1_700_000_000)), Arc::default());
        let tracker = new_tracker(&gate, &clock, &recorder);
        Node { clock, gate, recorder, tracker, folder: tempfile::tempdir().unwrap() }
    }

    /// Kills the process and starts the next one, which finds a snapshot or reads the journal.
    fn restart(&mut self, has_snapshot: bool) {
        let file = self.folder.path().join(snapshot::FILE_NAME);
        if has_snapshot {
            snapshot::write(&file, &self.tracker).unwrap();
        }
        self.tracker = new_tracker(&self.gate, &self.clock, &self.recorder);
        if has_snapshot {
            assert!(snapshot::read(&file, &self.tracker).is_some());
        } else {
            self.entries().iter().for_each(|entry| _ = self.tracker.learn(entry));
        }
    }

    fn entries(&self) -> Vec<TrafficEntry> {
        let events = self.recorder.events.lock();
        events.iter().map(|event| TrafficEntry::parse(&TrafficEntry::fields_of(event)).unwrap()).collect()
    }

    fn announce(&self, announce: &Announce) {
        let announce = Announce { now: self.clock.steady(), ..*announce };
        let accepted = self.tracker.announce(&announce, &mut PeerLists::default());
        let Ok(accepted) = accepted else { panic!("the announce was refused") };
        accepted.unrecorded.unwrap().record(None);
    }
}

fn new_tracker(gate: &Arc<Gate>, clock: &ManualClock, recorder: &Arc<Recorder>) -> Arc<Tracker> {
    let sink = Arc::clone(recorder) as Arc<dyn TrafficSink>;
    let secrets = Secrets::draw().unwrap();
    let live = LiveSettings { min_announce_interval: Seconds(0), ..LiveSettings::default() };
    // A start takes a second.
    clock.advance(Seconds(1));
    let tracker = Tracker::new(Arc::clone(gate), Arc::new(clock.clone()), sink, live, &secrets);
    Arc::new(tracker.with_node_name("here"))
}

/// A client with its transferred and its announced totals.
struct Client {
    owner: u64,
    announce: Announce,
    told_at: UnixTime,
}

/// Slow enough for the default ceiling.
const BYTES_PER_S: u64 = 10_000_000;

impl Client {
    fn new(owner: u64, number: u8) -> Client {
        let peer_id = PeerId([b'a' + number; 20]);
        let announce = Announce {
            passkey: Some(passkey(owner)),
            info_hash: TORRENT,
            peer_id,
            key: ClientKey(u32::from(number) + 1),
            ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)),
            port: 6_881,
            uploaded: 0,
            downloaded: 0,
            left: Some(0),
            event: AnnounceEvent::Started,
            numwant: None,
            families: Families::Both,
            now: UnixTime(0),
        };
        Client { owner, announce, told_at: UnixTime(0) }
    }

    /// Starts with counters at zero. Unannounced traffic is lost.
    fn restart(&mut self, node: &Node) {
        (self.announce.uploaded, self.announce.downloaded) = (0, 0);
        self.announce.event = AnnounceEvent::Started;
        node.announce(&self.announce);
        self.told_at = node.clock.steady();
    }

    /// Tells what it has moved since the last time.
    fn announce(&mut self, node: &Node, random: &mut Rng, truth: &mut BTreeMap<u64, u128>) {
        let elapsed_s = u64::from(node.clock.steady().since(self.told_at).0);
        let moved = random.u64(0..=elapsed_s * BYTES_PER_S);
        self.announce.uploaded += moved;
        self.announce.event = AnnounceEvent::None;
        node.announce(&self.announce);
        self.told_at = node.clock.steady();
        *truth.entry(self.owner).or_default() += u128::from(moved);
    }
}

struct AllUsers;

impl Directory for AllUsers {
    fn user_of(&self, _: &Passkey) -> Option<UserId> {
        None
    }
    fn torrent_of(&self, _: &InfoHash) -> Option<TorrentId> {
        None
    }
}

impl RiskSink for AllUsers {
    fn report(&self, risk: &domain::RiskEvent) {
        let is_withheld = matches!(risk.kind, domain::RiskKind::ClientRate | domain::RiskKind::UserRate);
        assert!(!is_withheld, "nothing was claimed that cannot be: {risk:?}");
    }
}

/// A history of the node: announces, restarts of clients and trackers, and steps of the wall clock among them.
fn history(seed: u64, steps: &[i32]) -> (Vec<TrafficEntry>, BTreeMap<u64, u128>, ManualClock) {
    let mut random = Rng::with_seed(seed);
    let mut node = Node::start();
    let mut truth = BTreeMap::new();
    let mut clients: Vec<Client> =
        (0..18).map(|number| Client::new(u64::from(number) % 9 + 1, number)).collect();
    clients.iter_mut().for_each(|client| client.restart(&node));
    for step in steps.iter().cycle().take(24) {
        for client in &mut clients {
            node.clock.advance(Seconds(random.u32(0..60)));
            match random.u8(..10) {
                0 => client.restart(&node),
                1 => {}
                _ => client.announce(&node, &mut random, &mut truth),
            }
        }
        node.clock.step(*step);
        node.tracker.expire_peers();
        if random.u8(..3) == 0 {
            node.restart(random.bool());
        }
    }
    (node.entries(), truth, node.clock)
}

async fn credited(entries: &[TrafficEntry], clock: ManualClock) -> BTreeMap<u64, u128> {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
    let (all_users, database) = (Arc::new(AllUsers), Database::open(&url).await.unwrap());
    let settings = LedgerSettings::default();
    let ledger = Ledger::open(database, settings, Arc::clone(&all_users) as _, Arc::new(clock), all_users)
        .await
        .unwrap();
    let arrivals: Vec<DeliveredEntry> = (1..)
        .zip(entries)
        .map(|(ms, entry)| DeliveredEntry {
            id: EntryId::at_ms(ms),
            origin: EntryId::at_ms(ms),
            entry: *entry,
        })
        .collect();
    for some in arrivals.chunks(100) {
        let batch =
            Batch { lane: Lane::Traffic, consumer: "one", taken_from: None, is_retry: false, arrivals: some };
        assert_eq!(ledger.apply(&batch).await.unwrap(), []);
    }
    let mut sums = BTreeMap::new();
    for owner in 1..=9 {
        let key = AccountKey { user: user(owner), torrent: TorrentId::new(1).unwrap() };
        sums.insert(owner, ledger.account(key).await.unwrap().unwrap().figures.uploaded);
    }
    sums
}

/// Histories in which the wall clock is set forward, back, or both, again and again.
const STEPS: &[&[i32]] = &[
    &[0],
    &[2 * HOUR_S, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0, -2 * HOUR_S, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0, 2 * HOUR_S, 0, -2 * HOUR_S],
    &[8 * HOUR_S, -16 * HOUR_S, 8 * HOUR_S],
    &[-90, 45, -1, 46],
];

#[test]
fn every_byte_is_credited_once_however_the_wall_clock_is_set() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for steps in STEPS {
        for seed in 0..4 {
            let (entries, truth, clock) = history(seed, steps);
            assert_eq!(runtime.block_on(credited(&entries, clock)), truth, "steps {steps:?}, seed {seed}");
        }
    }
}
