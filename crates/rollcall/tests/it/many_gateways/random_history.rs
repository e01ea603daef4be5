//! A random run with faults: at every moment, what watchers were shown was true within the bounds; and after the last
//! fault everything is right, in every view and in Redis.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::many_gateways::checker::violations;
use crate::many_gateways::faults;
use crate::many_gateways::gateways::{BOUNDS, COUNT, Gateways, PATIENCE, Store};
use crate::many_gateways::history::OPEN;
use crate::many_gateways::population::Population;
use crate::many_gateways::spans::Ms;

/// Users, unless `LOAD_SESSIONS` is set.
const PEOPLE_DEFAULT: u64 = 300;
/// After the last fault, everything is right within this time: losses are noticed when watched users are read again.
const CONVERGE_LIMIT: Duration = Duration::from_secs(75);
/// What takes longer than this is worth a line.
const SLOW_MS: Ms = 2_000;
/// How many violations are shown.
const SHOWN_MAX: usize = 12;

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn p11_at_every_moment_what_is_shown_is_true_at_one_gateway_alone() {
    run(Store::Alone);
}

#[test]
fn p15_at_every_moment_what_is_shown_is_true_on_one_redis() {
    run(Store::single());
}

#[test]
fn p16_at_every_moment_what_is_shown_is_true_on_a_cluster() {
    run(Store::cluster());
}

fn run(store: Store) {
    let seed = from_environment("ROLLCALL_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    eprintln!("with ROLLCALL_SEED={seed}");
    let mut gateways = Gateways::start(store);
    let count = from_environment("LOAD_SESSIONS").unwrap_or(PEOPLE_DEFAULT);
    let mut people = Population::new(&gateways, count, seed);
    people.until(&gateways, "every client to be connected", PATIENCE, Population::is_settled);
    converge(&mut people, &gateways);

    people.set_busy(true);
    let until = people.now() + from_environment("GATEWAYS_S").unwrap_or(0) * 1_000;
    loop {
        let acts = faults::acts(&mut people.random, gateways.store.get());
        faults::play(&mut people, &mut gateways, &acts);
        if people.now() >= until {
            break;
        }
    }
    people.set_busy(false);
    people.until(&gateways, "every client to be connected again", PATIENCE, Population::is_settled);
    people.say_last_words();
    people.until(&gateways, "every declared status to be confirmed", PATIENCE, Population::is_understood);
    converge(&mut people, &gateways);
    let end = people.now();
    people.history.finish(end);
    assert_true_at_every_moment(&people, seed);
    if !matches!(gateways.store.get(), Store::Alone) {
        assert_redis_is_right(&mut people, &gateways);
    }
    assert_logs_are_clean(&gateways);
}

/// Lives until every watcher sees what is so.
#[track_caller]
fn converge(people: &mut Population, gateways: &Gateways) {
    let since = people.now();
    while people.now() < since + SLOW_MS && !people.differences().is_empty() {
        people.live(gateways);
    }
    let slow = people.differences();
    if let Some(example) = slow.first() {
        eprintln!("{:>6} ms: {} views are still wrong, such as {example:?}", people.now(), slow.len());
    }
    while !people.differences().is_empty() {
        let waited = Duration::from_millis(people.now() - since);
        assert!(waited < CONVERGE_LIMIT, "views stay wrong: {}", diagnosis(people, gateways));
        people.live(gateways);
    }
    eprintln!("{:>6} ms: every view is right after {} ms", people.now(), people.now() - since);
}

/// Details of the first user shown wrongly: by which watcher, and the state in Redis.
fn diagnosis(people: &Population, gateways: &Gateways) -> String {
    let differences = people.differences();
    let Some((_, user, _, truth)) = differences.first() else { return String::new() };
    let shown: Vec<String> = people
        .history
        .watch_sessions
        .iter()
        .filter(|look| look.to == OPEN)
        .filter_map(|look| {
            let shown = look.shown.iter().rev().find(|shown| shown.user == *user)?;
            Some(format!("viewer {} at gateway {}: {shown:?}", look.viewer, look.gateway))
        })
        .collect();
    let record = match gateways.store.get() {
        Store::Alone => String::new(),
        store => store.cli(&["HGETALL", &format!("p:u:{{{user}}}")]),
    };
    let said: Vec<_> = people.history.declarations.iter().filter(|said| said.user == *user).collect();
    let places = people.places();
    format!(
        "{} differences; {user} is {truth}, at {:?}, said {said:?}; shown {shown:#?}; Redis has {record:?}",
        differences.len(),
        places.get(user)
    )
}

#[track_caller]
fn assert_true_at_every_moment(people: &Population, seed: u64) {
    let history = &people.history;
    let found = violations(history, &BOUNDS);
    let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
    found.iter().for_each(|violation| *by_rule.entry(violation.rule).or_default() += 1);
    let shown: usize = history.watch_sessions.iter().map(|look| look.shown.len()).sum();
    eprintln!(
        "{} device sessions, {} declarations, {} watch sessions with {shown} states, {} faults",
        history.device_sessions.len(),
        history.declarations.len(),
        history.watch_sessions.len(),
        history.faults.len()
    );
    let faults: Vec<String> = history
        .faults
        .iter()
        .map(|fault| format!("{:?} {:?} {}..{}", fault.kind, fault.gateway, fault.from, fault.to))
        .collect();
    assert!(
        found.is_empty(),
        "with ROLLCALL_SEED={seed}: {by_rule:?}, such as {:#?}\nfaults {faults:#?}",
        &found[..found.len().min(SHOWN_MAX)]
    );
}

/// The public keys are right, and nothing is left of dead gateways. Clients keep running meanwhile: on a busy machine
/// this takes longer than the TTL of a silent user.
#[track_caller]
fn assert_redis_is_right(people: &mut Population, gateways: &Gateways) {
    let store = gateways.store.get();
    let names: Vec<String> = (0..COUNT).map(|gateway| gateways.name(gateway)).collect();
    let (truth, places) = (people.truth(), people.places());
    // Each check starts a process, so only a sample of users is checked.
    let step = (truth.len() / 60).max(1);
    for (user, status) in truth.iter().step_by(step) {
        let is_shown = status != "offline";
        let connection = places.get(user).filter(|_| is_shown).map_or_else(String::new, |places| {
            let mut names: Vec<&str> = places.iter().map(|gateway| names[*gateway].as_str()).collect();
            names.sort_unstable();
            names.join(",")
        });
        let status = if is_shown { status.as_str() } else { "" };
        let what = format!("the keys of {user} to say {status:?} at {connection:?}");
        people.live(gateways);
        people.until(gateways, &what, PATIENCE, |_| {
            let get = |name: &str| store.cli(&["GET", &store.key(name, *user)]);
            let is_right = get("presence") == status && get("connection") == connection;
            is_right && get("heartbeat").is_empty() != is_shown
        });
    }
    people.until(gateways, "nothing to be left of gateways that are gone", PATIENCE, |_| {
        let left = left_behind(store);
        if !left.is_empty() {
            eprintln!("left behind: {:?}", &left[..left.len().min(5)]);
        }
        left.is_empty()
    });
}

/// Keys and fields of gateways that do not run.
fn left_behind(store: &Store) -> Vec<String> {
    let alive: BTreeSet<String> = lines(&store.cli(&["ZRANGE", "{p:nodes}", "0", "-1"])).collect();
    let mut left = Vec::new();
    if alive.len() != COUNT {
        left.push(format!("{alive:?} are said to run"));
    }
    for key in store.keys("p:due:*") {
        let node = key.rsplit_once("}:").map_or("", |(_, node)| node).to_owned();
        if node != "pending" && !alive.contains(&node) {
            left.push(key);
        }
    }
    for key in store.keys("p:u:*") {
        let parts = store.cli(&["HKEYS", &key]);
        let dead =
            lines(&parts).filter(|field| field.strip_prefix("n:").is_some_and(|node| !alive.contains(node)));
        left.extend(dead.map(|field| format!("{key} {field}")));
    }
    left
}

fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[track_caller]
fn assert_logs_are_clean(gateways: &Gateways) {
    for server in &gateways.servers {
        let log = server.get().log();
        assert!(!log.contains("panicked"), "{log}");
        assert!(!log.contains("eyJ"), "tokens are in no log");
    }
}
