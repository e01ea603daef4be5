//! A long random history with everything in it: late entries, goodbyes, timeouts, peers that fall silent; mirrors that
//! are killed at any moment while another stands by. After each part, every key is what the model says.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::ManualClock;
use domain::{AnnounceEvent, Cause, Seconds, UnixTime};
use fastrand::Rng;
use journal::{
    AppendToken, ConsumerSettings, EntryId, Fields, Journal, Lane, LeaderLease, OrderedConsumer,
    OrderedParts, ProcessName, View,
};
use keyspace::Lease;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use views::{Mirror, MirrorSettings};

use super::model::{Model, assert_same};
use super::rig::{Announce, Place, journal_on, leeches, mirror_on, soon};

const GROUP: &str = "mirror";
const USERS: u64 = 20;
const TORRENTS: u64 = 15;
const APPENDED_AT_ONCE: usize = 500;

/// A mirror as a process runs it.
struct Process {
    mirror: Arc<Mirror>,
    task: JoinHandle<()>,
    _settings: watch::Sender<ConsumerSettings>,
    _stop: watch::Sender<bool>,
}

impl Process {
    fn start(place: &Place, clock: &ManualClock, number: u64) -> Process {
        let process = ProcessName::new("node", 1000 + number);
        let redis = place.redis();
        let lease =
            Lease::new(redis.clone(), "t:m:lease".to_owned(), process.to_string(), Duration::from_secs(10));
        let turn: Arc<dyn LeaderLease> = Arc::new(lease);
        let settings = MirrorSettings { reconcile_torrents: 4, ..MirrorSettings::default() };
        let mirror = mirror_on(redis.clone(), turn.clone(), clock, settings, &process.to_string());
        let mirror = Arc::new(mirror);
        let consumer = ConsumerSettings {
            group: GROUP.to_owned(),
            consumers: 1,
            batch_max: 300,
            entries_per_s_max: 0,
            not_before_ms: 0,
            read_wait: Duration::from_millis(50),
            dead_after: Duration::from_secs(3600),
            retry_max: 3,
            retry_delay: Seconds(0),
            handles_malformed: false,
        };
        let (settings, seen) = watch::channel(consumer);
        let (stop, stopped) = watch::channel(false);
        let view = Arc::clone(&mirror) as Arc<dyn View>;
        let clock = Arc::new(clock.clone());
        let parts = OrderedParts { journal: journal_on(redis), view, lease: turn, clock, process };
        let task = tokio::spawn(OrderedConsumer::new(parts, seen, stopped).run());
        Process { mirror, task, _settings: settings, _stop: stop }
    }

    /// As a kill does it: whatever is under way ends where it is.
    async fn kill(self, place: &Place) {
        self.task.abort();
        let _ = self.task.await;
        // Its lease has run out.
        place.cli(&["DEL", "t:m:lease"]);
    }
}

/// Clients that announce, leave and fall silent.
struct Crowd {
    random: Rng,
    now: u32,
    clients: Vec<Announce>,
}

impl Crowd {
    fn new(seed: u64) -> Crowd {
        let mut clients = Vec::new();
        for user in 1..=USERS {
            for torrent in 1..=TORRENTS {
                clients.push(leeches(user, torrent, 0));
                if (user + torrent).is_multiple_of(4) {
                    clients.push(leeches(user, torrent, 0).by(500_000 + user));
                }
                // Some share a peer id with others.
                if (user + torrent).is_multiple_of(5) {
                    clients.push(leeches(user, torrent, 0).by(900_000 + torrent));
                }
            }
        }
        Crowd { random: Rng::with_seed(seed), now: 0, clients }
    }

    fn next(&mut self) -> Announce {
        self.now += self.random.u32(0..4);
        // Some announce often, some so seldom that they are taken for gone.
        let share = self.random.f64().powi(3);
        let chosen = (share * self.clients.len() as f64) as usize;
        let dice = self.random.u32(0..100);
        let client = &mut self.clients[chosen];
        let since_last = self.now - client.at;
        let mut entry = Announce { at: self.now, dt: since_last, event: AnnounceEvent::None, ..*client };
        entry.moved = (self.random.u64(0..1 << 40), self.random.u64(0..1 << 30));
        entry.is_foreign = dice.is_multiple_of(5);
        entry.has_totals = dice.is_multiple_of(2);
        match dice {
            0..8 => entry = entry.event(AnnounceEvent::Started),
            8..14 => entry = entry.completes(),
            14..16 => entry.left = 1000,
            16..22 => entry = entry.stops(),
            22..24 => entry = Announce { left: u64::MAX, ..entry.stops() },
            24..28 => entry = entry.falls_silent(since_last),
            28..30 => entry = entry.falls_silent(since_last.saturating_sub(1)),
            30..32 => entry = Announce { cause: Cause::Removal, ..entry.stops() },
            // Heard elsewhere, and late.
            32..36 => entry.at -= self.random.u32(0..1000).min(self.now),
            _ => {}
        }
        if entry.cause != Cause::Announce {
            entry.is_foreign = false;
        }
        client.at = client.at.max(if entry.cause == Cause::Announce { entry.at } else { 0 });
        client.left = if entry.left == u64::MAX { client.left } else { entry.left };
        entry
    }
}

struct Stage {
    place: Place,
    journal: Arc<dyn Journal>,
    clock: ManualClock,
    start: UnixTime,
    crowd: Crowd,
    model: Model,
    modelled: EntryId,
    appended: u64,
    started: u64,
}

impl Stage {
    fn new(place: Place, seed: u64) -> Stage {
        let start = soon();
        Stage {
            journal: journal_on(place.redis()),
            place,
            clock: ManualClock::at(start),
            start,
            crowd: Crowd::new(seed),
            model: Model::default(),
            modelled: EntryId::ZERO,
            appended: 0,
            started: 0,
        }
    }

    fn process(&mut self) -> Process {
        self.started += 1;
        Process::start(&self.place, &self.clock, self.started)
    }

    async fn append_some(&mut self) {
        let before = self.crowd.now;
        let announces: Vec<Announce> = (0..APPENDED_AT_ONCE).map(|_| self.crowd.next()).collect();
        self.clock.advance(Seconds(self.crowd.now - before));
        let entries: Vec<Fields> = announces.iter().map(|announce| announce.fields(self.start)).collect();
        self.appended += 1;
        let token = AppendToken { producer: "crowd".to_owned(), number: self.appended };
        self.journal.append(Lane::Traffic, &entries, &token).await.unwrap();
    }

    async fn wait_until_applied(&self) {
        let waiting = async {
            loop {
                let status = self.journal.status(Lane::Traffic).await.unwrap();
                if status.groups.iter().any(|group| group.name == GROUP && group.lag() == 0) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("the mirror catches up");
    }

    /// A whole round of the sweep, by whoever has the turn. Returns how many peers it reaped.
    async fn sweep(&self, processes: &[Process; 2]) -> u64 {
        let mut reaped = 0;
        loop {
            wait_until_active(processes).await;
            let Some(active) = processes.iter().find(|process| process.mirror.is_active()) else { continue };
            let step = active.mirror.reconcile_step().await.unwrap();
            assert_eq!(step.mended, 0, "nothing drifts");
            reaped += step.reaped;
            if step.is_round_over {
                return reaped;
            }
        }
    }

    async fn compare(&mut self) {
        loop {
            let page = self.journal.list(Lane::Traffic, self.modelled, 1000).await.unwrap();
            let Some(last) = page.last() else { break };
            self.modelled = last.id;
            for stored in &page {
                self.model.hear(&journal::TrafficEntry::parse(&stored.fields).unwrap());
            }
        }
        assert_same(&self.place.layout().await, &self.model.layout());
    }
}

/// A kill is to meet work.
async fn wait_until_active(processes: &[Process; 2]) {
    let waiting = async {
        while !processes.iter().any(|process| process.mirror.is_active()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("one is active");
}

/// Each part ends with a comparison of every key. In each, the active mirror is killed `kills` times.
async fn live_through(place: Place, parts: usize, appends: usize, kills: usize) {
    let mut stage = Stage::new(place, 7);
    let mut processes = [stage.process(), stage.process()];
    let mut random = Rng::with_seed(11);
    let mut reaped = 0;
    for _ in 0..parts {
        for round in 0..appends {
            stage.append_some().await;
            if round * kills / appends != (round + 1) * kills / appends {
                wait_until_active(&processes).await;
                tokio::time::sleep(Duration::from_millis(random.u64(1..60))).await;
                let place = usize::from(processes[1].mirror.is_active());
                let killed = std::mem::replace(&mut processes[place], stage.process());
                killed.kill(&stage.place).await;
            }
        }
        stage.wait_until_applied().await;
        reaped += stage.sweep(&processes).await;
        stage.wait_until_applied().await;
        stage.compare().await;
    }
    assert!(reaped > 20, "{reaped} peers fell silent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m4_to_m10_every_key_is_right_after_a_random_history_with_kills() {
    live_through(Place::single(), 2, 20, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m4_to_m10_every_key_is_right_on_a_cluster_too() {
    live_through(Place::cluster(), 1, 16, 2).await;
}
