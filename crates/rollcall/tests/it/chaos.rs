//! Every byte counts once, although the tracker, the consumers, Redis and the database are killed (SIGKILL) and
//! restarted at random moments, and the disk of an embedded server is full at times: nothing is lost where
//! `journal.ack` promised storage (L6), nothing is doubled, and there are no failed entries because a store was down
//! (J5, J6 as corrected).
//!
//! Meanwhile the wall clock of the tracker's process is repeatedly set forward and back by up to eight hours.
//!
//! `CHAOS_SEED` repeats a run as far as timing allows: victims, order, pauses. `CHAOS_KILLS` sets the number of kills
//! over all tests of this module.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use fastrand::Rng;
use testkit::population::{info_hash_of, passkey_of};
use testkit::{Moved, Plan, Population, ServerBuilder, SmallDisk, Truth};

use crate::site::{self, DatabaseKind, Site, builder, durable_redis};

/// Kills over all tests, unless `CHAOS_KILLS` is set.
const KILLS_DEFAULT: u32 = 24;
/// Over how many tests they are spread.
const TESTS: u32 = 3;

const PLAN: Plan = Plan {
    seed: 0,
    users: 50,
    torrents: 20,
    clients: 400,
    at_once: 8,
    crashes: false,
    pause: Duration::from_millis(12),
};

/// How far the tracker's wall clock may be off.
const CLOCK_OFF_MAX_S: i64 = 8 * 60 * 60;

/// Sets the wall clock of the tracker's process now and then. Has random numbers of its own: what is struck, and when, stays
/// as it is.
struct WallClock(Rng);

impl WallClock {
    fn step_perhaps(&mut self, site: &Site) {
        if self.0.u8(..3) == 0 {
            let ahead_s = self.0.i64(-CLOCK_OFF_MAX_S..=CLOCK_OFF_MAX_S);
            eprintln!("wall clock: {ahead_s:+} s");
            site.server.set_wall_clock(ahead_s);
        }
    }
}

/// What can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The process with the tracker role; embedded, the only one.
    Tracker,
    /// The process that keeps accounts and lists.
    Consumers,
    Redis,
    Database,
    /// The disk of the data folder, which is full instead of dead.
    Disk,
}

impl Victim {
    fn kill(self, site: &mut Site) {
        match self {
            Victim::Tracker => site.server.kill(),
            Victim::Consumers => site.companion.as_mut().unwrap().kill(),
            Victim::Redis => site.redis_mut().kill(),
            Victim::Database => site.database.kill(),
            Victim::Disk => site.server.disk().fill(),
        }
    }

    fn start_again(self, site: &mut Site) {
        match self {
            Victim::Tracker => site.server.start_again(),
            Victim::Consumers => site.companion.as_mut().unwrap().start_again(),
            Victim::Redis => site.redis_mut().restart(),
            Victim::Database => site.database.restart(),
            Victim::Disk => site.server.disk().free(),
        }
    }
}

/// Who is struck one after the other, before the first is back: a tracker whose queue is full of what Redis has not
/// taken, consumers that wait for their database. A process needs its database to start, so that comes back first.
const STRIKES: &[&[Victim]] = &[
    &[Victim::Tracker],
    &[Victim::Consumers],
    &[Victim::Redis],
    &[Victim::Database],
    &[Victim::Redis, Victim::Tracker],
    &[Victim::Redis, Victim::Tracker],
    &[Victim::Database, Victim::Consumers],
];

/// Embedded, there are a process and its disk. A process that starts on a full disk would not: room comes first.
const EMBEDDED_STRIKES: &[&[Victim]] =
    &[&[Victim::Tracker], &[Victim::Disk], &[Victim::Disk, Victim::Tracker]];
/// Room for all that the kills of a long run leave behind.
const DISK_MIB: u32 = 128;

/// Signals the end, also when a test fails: other threads would otherwise run forever.
struct UntilDropped<'a>(&'a AtomicBool);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn from_environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// What `journal.ack` promises.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// An accepted regular announce may be lost with the tracker; the next one repeats its totals.
    Events,
    /// What was accepted is stored, so a client that dies without a word is credited up to its last heartbeat.
    All,
}

/// Lets a population live while its site is struck, and then asserts that nothing was lost or doubled.
fn survive(name: &str, mut site: Site, strikes: &[&[Victim]], promise: Promise) {
    let seed: u64 = from_environment("CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let kills = from_environment("CHAOS_KILLS").unwrap_or(KILLS_DEFAULT).div_ceil(TESTS);
    eprintln!("{name}: {kills} kills with CHAOS_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let mut population =
        Population::new(Plan { seed: random.u64(..), crashes: promise == Promise::All, ..PLAN });
    site.register(&population);
    let destination = site.destination();

    let mut foreign = Foreign::default();
    let mut wall_clock = WallClock(Rng::with_seed(!seed));
    let is_on = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let over = UntilDropped(&is_on);
        let living = scope.spawn(|| population.live_while(destination, &is_on));
        let mut killed = 0;
        while killed < kills && !living.is_finished() {
            killed += strike(&mut site, strikes, &mut random);
            wall_clock.step_perhaps(&site);
            if site.redis.is_some() {
                foreign.write(&site, &mut random);
            }
        }
        std::thread::sleep(pause(&mut random));
        drop(over);
        living.join().expect("every announce was accepted in the end");
        assert!(killed >= kills);
    });

    let quiet = site.settle();
    site.assert_nothing_failed(&quiet);
    if site.redis.is_some() {
        assert_eq!(site.lists_in_redis(&population), population.activity_lists(), "with CHAOS_SEED={seed}");
    }
    population.stop(destination);
    let end = site.settle();
    site.assert_nothing_failed(&end);
    eprintln!("{name}: {} entries, with CHAOS_SEED={seed}", end["appended"]);
    site.assert_books_equal(&foreign.added_to(population.truth()));
    site.assert_listed(&population.activity_lists(), 1, PLAN.torrents);
}

/// Kills a process after a pause and restarts it after another; returns the number of kills.
fn strike(site: &mut Site, strikes: &[&[Victim]], random: &mut Rng) -> u32 {
    let victims = *random.choice(strikes).expect("a process can be struck");
    for victim in victims {
        let before = pause(random);
        eprintln!("after {before:?}: {victim:?}");
        std::thread::sleep(before);
        victim.kill(site);
    }
    std::thread::sleep(pause(random));
    for victim in victims {
        victim.start_again(site);
    }
    victims.len() as u32
}

/// Entries of another producer: credited by each entry's deltas, so that one applied twice shows.
#[derive(Default)]
struct Foreign(Vec<(u64, u64, Moved)>);

impl Foreign {
    /// Writes a few hundred entries of clients that are about to leave.
    fn write(&mut self, site: &Site, random: &mut Rng) {
        let mut commands = String::new();
        for _ in 0..300 {
            let (user, torrent) = (random.u64(1..=PLAN.users), random.u64(1..=PLAN.torrents));
            let (du, dd) = (random.u64(..1_000_000_000), random.u64(..1_000_000_000));
            let (passkey, info_hash, now) = (passkey_of(user), info_hash_of(torrent), SystemClock.now());
            writeln!(
                commands,
                "XADD tracker:traffic * passkey {passkey} infohash {info_hash} peer_id {} port 6881 ip 192.0.2.1 \
                 af IPv4 du {du} dd {dd} left 0 event stopped ts {now} dt 60 interval 60 min_interval 0",
                "f0".repeat(20)
            )
            .unwrap();
            self.0.push((user, torrent, Moved { uploaded: du.into(), downloaded: dd.into() }));
        }
        let replies = site.redis().cli_lines(&commands);
        assert_eq!(replies.lines().filter(|line| line.contains('-')).count(), 300, "{replies}");
    }

    fn added_to(&self, mut truth: Truth) -> Truth {
        self.0.iter().for_each(|(user, torrent, moved)| truth.add(*user, *torrent, *moved));
        truth
    }
}

/// Mostly short, so that kills meet each other's aftermath.
fn pause(random: &mut Rng) -> Duration {
    let longest = random.choice([20, 200, 800]).expect("there are three");
    Duration::from_millis(random.u64(..longest))
}

/// Traffic during an outage is claimed within no elapsed time.
fn rate_unlimited() -> ServerBuilder {
    // Small batches: the more of them, the more often a kill comes between two steps of one.
    builder().set("ledger.batch_max", 50).own_wall_clock()
}

/// The tracker in one process, accounts and lists in another.
fn divided_site(kind: DatabaseKind) -> Site {
    let mut site = Site::start(rate_unlimited().roles("tracker"), Some(durable_redis()), kind);
    site.companion = Some(site.server.companion("consumers", "ledger,activity"));
    site
}

#[test]
fn l6_kills_neither_lose_nor_double_a_byte_on_redis_and_postgres() {
    survive("redis and postgres", divided_site(DatabaseKind::Postgres), STRIKES, Promise::Events);
}

#[test]
fn l6_kills_neither_lose_nor_double_a_byte_on_redis_and_mariadb() {
    survive("redis and mariadb", divided_site(DatabaseKind::MariaDb), STRIKES, Promise::Events);
}

#[test]
fn l6_kills_neither_lose_nor_double_a_byte_embedded() {
    let builder = rate_unlimited().set("journal.ack", site::quoted("all"));
    let (builder, strikes): (_, &[&[Victim]]) = match SmallDisk::unavailable() {
        None => (builder.disk_mib(DISK_MIB), EMBEDDED_STRIKES),
        Some(obstacle) => {
            eprintln!("the disk is never full: this machine does not let tests mount a tmpfs: {obstacle}");
            (builder, &[&[Victim::Tracker]])
        }
    };
    let site = Site::start(builder, None, DatabaseKind::Sqlite);
    survive("embedded", site, strikes, Promise::All);
}
