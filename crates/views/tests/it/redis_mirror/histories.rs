//! A long random history with late entries, stops, timeouts and overdue peers, and with mirrors that are killed at any
//! moment while another is standby. After each part every key matches the model.

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
use testkit::eventually_async;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use views::{RedisMirror, RedisMirrorSettings};

use super::fixture::{Announce, Backend, future_start, journal_on, leeches, mirror_on};
use super::model::{Model, assert_same};

const GROUP: &str = "mirror";
const USERS: u64 = 20;
const TORRENTS: u64 = 15;
const APPENDED_AT_ONCE: usize = 500;

/// A mirror process.
struct Process {
    mirror: Arc<RedisMirror>,
    task: JoinHandle<()>,
    _settings: watch::Sender<ConsumerSettings>,
    _stop: watch::Sender<bool>,
}

impl Process {
    fn start(backend: &Backend, clock: &ManualClock, number: u64) -> Process {
        let process = ProcessName::new("node", 1000 + number);
        let redis = backend.redis();
        let lease =
            Lease::new(redis.clone(), "t:m:lease".to_owned(), process.to_string(), Duration::from_secs(10));
        let turn: Arc<dyn LeaderLease> = Arc::new(lease);
        let settings = RedisMirrorSettings { reconcile_torrents: 4, ..RedisMirrorSettings::default() };
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

    /// Ends the task wherever it is.
    async fn kill(self, backend: &Backend) {
        self.task.abort();
        let _ = self.task.await;
        // As after the lease's expiry.
        backend.cli(&["DEL", "t:m:lease"]);
    }
}

/// Clients that announce, stop and disappear.
struct Population {
    random: Rng,
    now: u32,
    clients: Vec<Announce>,
}

impl Population {
    fn new(seed: u64) -> Population {
        let mut clients = Vec::new();
        for user in 1..=USERS {
            for torrent in 1..=TORRENTS {
                clients.push(leeches(user, torrent, 0));
                if (user + torrent).is_multiple_of(4) {
                    clients.push(leeches(user, torrent, 0).by(500_000 + user));
                }
                // Some clients share a peer id.
                if (user + torrent).is_multiple_of(5) {
                    clients.push(leeches(user, torrent, 0).by(900_000 + torrent));
                }
            }
        }
        Population { random: Rng::with_seed(seed), now: 0, clients }
    }

    fn next(&mut self) -> Announce {
        self.now += self.random.u32(0..4);
        // Some announce often, some so rarely that they expire.
        let share = self.random.f64().powi(3);
        let chosen = (share * self.clients.len() as f64) as usize;
        let dice = self.random.u32(0..100);
        let client = &mut self.clients[chosen];
        let since_last = self.now - client.at;
        let mut entry = Announce { at: self.now, dt: since_last, event: AnnounceEvent::None, ..*client };
        entry.moved = (self.random.u64(0..1 << 40), self.random.u64(0..1 << 30));
        entry.has_fourteen_fields = dice.is_multiple_of(5);
        entry.has_totals = dice.is_multiple_of(2);
        match dice {
            0..8 => entry = entry.event(AnnounceEvent::Started),
            8..14 => entry = entry.completes(),
            14..16 => entry.left = 1000,
            16..22 => entry = entry.stops(),
            22..24 => entry = Announce { left: u64::MAX, ..entry.stops() },
            24..28 => entry = entry.times_out(since_last),
            28..30 => entry = entry.times_out(since_last.saturating_sub(1)),
            30..32 => entry = Announce { cause: Cause::Removal, ..entry.stops() },
            // From another node, and late.
            32..36 => entry.at -= self.random.u32(0..1000).min(self.now),
            _ => {}
        }
        if entry.cause != Cause::Announce {
            entry.has_fourteen_fields = false;
        }
        client.at = client.at.max(if entry.cause == Cause::Announce { entry.at } else { 0 });
        client.left = if entry.left == u64::MAX { client.left } else { entry.left };
        entry
    }
}

struct Scenario {
    backend: Backend,
    journal: Arc<dyn Journal>,
    clock: ManualClock,
    start: UnixTime,
    population: Population,
    model: Model,
    modelled: EntryId,
    appended: u64,
    started: u64,
}

impl Scenario {
    fn new(backend: Backend, seed: u64) -> Scenario {
        let start = future_start();
        Scenario {
            journal: journal_on(backend.redis()),
            backend,
            clock: ManualClock::at(start),
            start,
            population: Population::new(seed),
            model: Model::default(),
            modelled: EntryId::ZERO,
            appended: 0,
            started: 0,
        }
    }

    fn process(&mut self) -> Process {
        self.started += 1;
        Process::start(&self.backend, &self.clock, self.started)
    }

    async fn append_some(&mut self) {
        let before = self.population.now;
        let announces: Vec<Announce> = (0..APPENDED_AT_ONCE).map(|_| self.population.next()).collect();
        self.clock.advance(Seconds(self.population.now - before));
        let entries: Vec<Fields> = announces.iter().map(|announce| announce.fields(self.start)).collect();
        self.appended += 1;
        let token = AppendToken { producer: "population".to_owned(), number: self.appended };
        self.journal.append(Lane::Traffic, &entries, &token).await.unwrap();
    }

    async fn wait_until_applied(&self) {
        eventually_async("the mirror to apply every entry", Duration::from_secs(120), async || {
            // On a busy machine Redis may not answer in time.
            let status = self.journal.status(Lane::Traffic).await.ok()?;
            status.groups.iter().any(|group| group.name == GROUP && group.lag() == 0).then_some(())
        })
        .await;
    }

    /// A whole round of the sweep by the process with the lease. Returns the number of ended peers.
    async fn sweep(&self, processes: &[Process; 2]) -> u64 {
        let mut reaped = 0;
        loop {
            wait_until_active(processes).await;
            let Some(active) = processes.iter().find(|process| process.mirror.is_active()) else { continue };
            let step = active.mirror.reconcile_step().await.unwrap();
            assert_eq!(step.repaired, 0, "no differences");
            reaped += step.reaped;
            if step.is_round_complete {
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
                self.model.apply(&journal::TrafficEntry::parse(&stored.fields).unwrap());
            }
        }
        assert_same(&self.backend.snapshot().await, &self.model.snapshot());
    }
}

/// So that a kill interrupts work.
async fn wait_until_active(processes: &[Process; 2]) {
    eventually_async("a mirror to be active", Duration::from_secs(60), async || {
        processes.iter().any(|process| process.mirror.is_active()).then_some(())
    })
    .await;
}

/// Each part ends with a comparison of every key. In each, the active mirror is killed `kills` times.
async fn run_history(backend: Backend, parts: usize, appends: usize, kills: usize) {
    let mut scenario = Scenario::new(backend, 7);
    let mut processes = [scenario.process(), scenario.process()];
    let mut random = Rng::with_seed(11);
    let mut reaped = 0;
    for _ in 0..parts {
        for round in 0..appends {
            scenario.append_some().await;
            if round * kills / appends != (round + 1) * kills / appends {
                wait_until_active(&processes).await;
                // A kill at any moment of its work.
                tokio::time::sleep(Duration::from_millis(random.u64(1..60))).await;
                let active = usize::from(processes[1].mirror.is_active());
                let killed = std::mem::replace(&mut processes[active], scenario.process());
                killed.kill(&scenario.backend).await;
            }
        }
        scenario.wait_until_applied().await;
        reaped += scenario.sweep(&processes).await;
        scenario.wait_until_applied().await;
        scenario.compare().await;
    }
    assert!(reaped > 20, "{reaped} peers timed out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m4_to_m10_every_key_matches_the_model_after_a_random_history_with_kills() {
    run_history(Backend::single(), 2, 20, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m4_to_m10_every_key_matches_the_model_on_a_cluster() {
    run_history(Backend::cluster(), 1, 16, 2).await;
}
