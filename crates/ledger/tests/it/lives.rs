//! One client, and a tracker that is restarted repeatedly, with the contents of the journal or with nothing: the real
//! swarms of each process, and the resulting ledger.
//!
//! Redis is unavailable at times. Then a process starts without state, and its queued entries are lost with it; or they
//! are stored, and it restores what earlier processes received. `started`, `completed` and `stopped` are answered once
//! stored, and repeated until answered; heartbeats are answered at once, and totals make up for those that are lost.
//!
//! # Deliberately absent
//!
//! A client that starts, moves something, stops and restarts in the next process of the tracker, the last two within
//! one second: entries have a resolution of one second, so it cannot be distinguished from a client that began on two
//! nodes at once.

use std::fmt::Write;
use std::net::IpAddr;

use domain::{
    Announce, AnnounceEvent, Cause, ClientKey, Families, InfoHash, NodeId, PeerId, RateCeiling, RunId,
    Seconds, SessionId, UnixTime, UserId,
};
use fastrand::Rng;
use journal::EntryId;
use ledger::Bucket;
use ledger::credit::credit;
use ledger::reported::Reported;
use ledger::run::{Counters, Report, Run, RunKey};
use swarm::{PeerLists, RemoteAnnounce, RemoteTotals, Rules, SlotLimits, Swarms, Terms};

const TORRENT: InfoHash = InfoHash([7; 20]);
const BEGIN_MS: u64 = 1_794_000_000_000;
const CEILING: RateCeiling = RateCeiling { bytes_per_s: 1_250_000_000_000 };
const RULES: Rules = Rules {
    silence_max: Seconds(660),
    min_interval: Seconds(0),
    clients_per_user_max: 16,
    ceiling: CEILING,
    peer_ids_per_hour_max: 0,
    credit_upload_without_leechers: true,
};

/// Time between two steps of a client.
const BETWEEN_STEPS_MS: u64 = 400;

/// Number of histories.
const HISTORIES: u64 = 400;

#[derive(Clone, Copy, Debug)]
struct Word {
    node: u64,
    session: SessionId,
    remote: RemoteAnnounce,
}

/// A tracker process.
struct Life {
    node: u64,
    swarms: Swarms,
    /// Entries not yet stored.
    queue: Vec<Word>,
    /// How much of the journal it has read.
    read: usize,
}

struct World {
    random: Rng,
    now_ms: u64,
    journal: Vec<Word>,
    is_journal_there: bool,
    life: Option<Life>,
    lives: u64,
    story: String,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Rng::with_seed(seed);
        let now_ms = BEGIN_MS + random.u64(..1000);
        World {
            random,
            now_ms,
            journal: Vec::new(),
            is_journal_there: true,
            life: None,
            lives: 0,
            story: String::new(),
        }
    }

    fn now(&self) -> UnixTime {
        UnixTime((self.now_ms / 1000) as u32)
    }

    fn tell(&mut self, what: &str) {
        let _ = writeln!(self.story, "{:>7} {what}", self.now_ms - BEGIN_MS);
    }

    /// Advances time with random failures.
    fn pass(&mut self) {
        let longest_ms = if self.random.bool() { 50 } else { 900 };
        self.now_ms += self.random.u64(..longest_ms);
        match self.random.u8(..20) {
            // Recovery is more likely than failure.
            0..4 if !self.is_journal_there || self.random.u8(..4) == 0 => {
                self.is_journal_there = !self.is_journal_there;
                self.tell(if self.is_journal_there { "journal there" } else { "journal away" });
            }
            4 => self.kill(),
            _ => {}
        }
        if self.life.is_none() {
            self.begin();
        }
        self.store_and_read();
    }

    fn kill(&mut self) {
        let Some(mut life) = self.life.take() else { return };
        // Some of it may have been stored.
        if self.is_journal_there {
            let stored = self.random.usize(..=life.queue.len());
            self.journal.extend(life.queue.drain(..stored));
        }
        self.tell(&format!("killed, {} words lost", life.queue.len()));
    }

    fn begin(&mut self) {
        self.now_ms += self.random.u64(100..1500);
        self.lives += 1;
        let swarms = Swarms::new(self.now(), self.random.u64(..), RunId(self.now_ms as u32));
        let node = NodeId::starting(self.now(), "here", Rng::with_seed(self.now_ms).u64(..)).0;
        self.life = Some(Life { node, swarms, queue: Vec::new(), read: 0 });
        self.tell(&format!("life {}, node {node}", self.lives));
        if self.is_journal_there {
            self.read(usize::MAX);
        }
    }

    /// Stores queued entries and reads those of others, if the journal is available; neither immediately.
    fn store_and_read(&mut self) {
        if !self.is_journal_there {
            return;
        }
        if self.random.u8(..4) > 0
            && let Some(life) = &mut self.life
        {
            self.journal.append(&mut life.queue);
        }
        if self.random.u8(..4) > 0 {
            let some = if self.random.bool() { self.random.usize(..3) } else { usize::MAX };
            self.read(some);
        }
    }

    fn read(&mut self, count: usize) {
        let now = self.now();
        let Some(life) = &mut self.life else { return };
        for word in self.journal.iter().skip(life.read).take(count) {
            life.read += 1;
            if word.node != life.node {
                life.swarms.apply_remote(&word.remote, now, &RULES);
            }
        }
    }

    /// Sends an announce to the running process; true if it was answered.
    fn say(&mut self, client: &Client, event: AnnounceEvent, totals: (u64, u64), v6: bool) -> bool {
        let now = self.now();
        let Some(life) = &mut self.life else { return false };
        let announce = client.announce(event, totals, v6, now);
        let user = UserId::new(1).unwrap();
        let terms = Terms { user, wanted: 0, slots: SlotLimits::default(), rules: RULES };
        let outcome = life.swarms.announce(&announce, &terms, &mut PeerLists::default()).unwrap();
        let remote = RemoteAnnounce {
            info_hash: TORRENT,
            user,
            peer_id: announce.peer_id,
            key: outcome.key,
            ip: announce.ip,
            port: 6881,
            left: Some(0),
            event,
            cause: Cause::Announce,
            at: now,
            since_last: Some(outcome.since_last),
            silence_max: Seconds(0),
            totals: Some(RemoteTotals { run: outcome.session.run, uploaded: totals.0, downloaded: totals.1 }),
        };
        let word = Word { node: life.node, session: outcome.session, remote };
        life.queue.push(word);
        let node = life.node;
        self.tell(&format!("  to {node}: {event:?} {} run {} v6 {v6}", totals.0, outcome.session.run.0));
        if event == AnnounceEvent::None {
            return true;
        }
        // Answered once stored, if that is soon enough, and if the process is not killed.
        let is_stored = self.is_journal_there && self.random.u8(..10) > 0;
        if is_stored && let Some(life) = &mut self.life {
            self.journal.append(&mut life.queue);
        }
        let is_answered = is_stored && self.random.u8(..10) > 0;
        if !is_answered && self.random.u8(..4) == 0 {
            self.kill();
        }
        is_answered
    }
}

struct Client {
    key: ClientKey,
    is_dual: bool,
    generation: u64,
    uploaded: u64,
    is_running: bool,
    moved: u64,
}

impl Client {
    fn announce(&self, event: AnnounceEvent, totals: (u64, u64), v6: bool, now: UnixTime) -> Announce {
        let mut peer_id = *b"-TT0001-------------";
        peer_id[12..].copy_from_slice(&self.generation.to_be_bytes());
        Announce {
            info_hash: TORRENT,
            passkey: None,
            peer_id: PeerId(peer_id),
            key: self.key,
            ip: if v6 { IpAddr::from([1, 2, 3, 4, 5, 6, 7, 8]) } else { IpAddr::from([10, 0, 0, 1]) },
            port: 6881,
            uploaded: totals.0,
            downloaded: totals.1,
            left: Some(0),
            event,
            numwant: None,
            families: Families::Both,
            now,
        }
    }

    /// Repeats until answered; over both families at once, if it has both.
    fn insist(&self, world: &mut World, event: AnnounceEvent) {
        loop {
            world.pass();
            if self.say(world, event, self.uploaded) {
                return;
            }
        }
    }

    /// Over IPv6 the current totals; over IPv4 perhaps older ones.
    fn say(&self, world: &mut World, event: AnnounceEvent, older: u64) -> bool {
        let (newer, older) = ((self.uploaded, 0), (older, 0));
        if !self.is_dual {
            return world.say(self, event, newer, false);
        }
        // Neither is sent to a process that started after the other was sent.
        let life = world.lives;
        if world.random.bool() {
            let answered = world.say(self, event, newer, true);
            if world.life.is_some() && world.lives == life && world.random.u8(..10) > 0 {
                world.say(self, event, older, false);
            }
            return answered;
        }
        world.say(self, event, older, false);
        world.life.is_some() && world.lives == life && world.say(self, event, newer, true)
    }

    fn step(&mut self, world: &mut World) {
        world.now_ms += BETWEEN_STEPS_MS;
        if !self.is_running {
            self.generation += 1;
            self.uploaded = 0;
            self.insist(world, AnnounceEvent::Started);
            self.is_running = true;
            return;
        }
        match world.random.u8(..100) {
            0..=15 => self.stop(world),
            16..=25 => {
                self.generation += 1;
                self.move_bytes(world);
                self.insist(world, AnnounceEvent::None);
            }
            26..=35 => {
                self.move_bytes(world);
                world.pass();
                self.say(world, AnnounceEvent::None, self.uploaded);
                self.insist(world, AnnounceEvent::None);
            }
            36..=43 => self.insist(world, AnnounceEvent::None),
            44..=59 => {
                self.move_bytes(world);
                let older = self.uploaded;
                self.move_bytes(world);
                world.pass();
                if !self.say(world, AnnounceEvent::None, older) {
                    self.insist(world, AnnounceEvent::None);
                }
            }
            _ => {
                self.move_bytes(world);
                self.insist(world, AnnounceEvent::None);
            }
        }
    }

    fn stop(&mut self, world: &mut World) {
        if self.is_running {
            self.insist(world, AnnounceEvent::Stopped);
            self.moved += self.uploaded;
            self.is_running = false;
        }
    }

    fn move_bytes(&mut self, world: &mut World) {
        self.uploaded += world.random.u64(1..1_000_000);
    }
}

/// The runs of these entries.
fn runs_of(journal: &[Word]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (id, word) in journal.iter().enumerate() {
        let totals = word.remote.totals.unwrap();
        let counters = Counters { uploaded: totals.uploaded, downloaded: totals.downloaded };
        let key = RunKey { run: word.session.run, node: word.node };
        let is_stop = word.remote.event == AnnounceEvent::Stopped;
        let id = EntryId { ms: 1, seq: id as u64 };
        let report = Report { counters, at: word.remote.at, id, is_stop, reported: Reported::NONE };
        match runs.iter_mut().find(|run| run.key == key) {
            Some(run) => run.add(&report),
            None => runs.push(Run::starting(key, &report)),
        }
    }
    runs
}

/// Credited and moved bytes of one history, and its log.
fn credited_and_moved(seed: u64) -> (u128, u128, String) {
    let mut world = World::new(seed);
    world.begin();
    let mut client = Client {
        key: ClientKey(5),
        is_dual: seed.is_multiple_of(2),
        generation: 0,
        uploaded: 0,
        is_running: false,
        moved: 0,
    };
    for _ in 0..10 {
        client.step(&mut world);
    }
    client.stop(&mut world);
    let runs = runs_of(&world.journal);
    let mut story = world.story;
    for run in &runs {
        let _ = writeln!(
            story,
            "node {} run {}: {}..{} at {}..{}",
            run.key.node,
            run.key.run.0,
            run.low.uploaded,
            run.high.uploaded,
            run.first.0 - (BEGIN_MS / 1000) as u32,
            run.last.0 - (BEGIN_MS / 1000) as u32
        );
    }
    (credit(&runs, CEILING, Bucket::default()).uploaded, client.moved.into(), story)
}

#[test]
fn l6_no_byte_is_lost_or_doubled_over_restarts_of_a_tracker() {
    for seed in 0..HISTORIES {
        let (credited, moved, story) = credited_and_moved(seed);
        assert_eq!(credited, moved, "seed {seed}\n{story}");
    }
}
