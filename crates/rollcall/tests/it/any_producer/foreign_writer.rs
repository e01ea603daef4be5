//! Several thousand entries from `redis-cli`.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use testkit::population::passkey_of;
use testkit::{Moved, Plan, Population, RedisServer};

use crate::any_producer::script::{self, Account, Entry, Outcome, TORRENTS, USERS};
use crate::site::accounts::assert_same;
use crate::site::{DatabaseKind, Site, builder};

/// A site that knows the script's users and torrents.
pub fn site(retry_delay_s: u32, kind: DatabaseKind) -> (Site, Population) {
    let builder = builder()
        .set("journal.retry_delay_s", retry_delay_s)
        .set("limits.peer_rate_max_mbit_per_s", 10_000_000)
        .set("limits.user_rate_max_mbit_per_s", 10_000_000)
        .set("ledger.consumers", 4)
        .set("ledger.batch_max", 50);
    let site = Site::start(builder, Some(RedisServer::start()), kind);
    let plan = Plan {
        seed: 0,
        users: USERS,
        torrents: TORRENTS,
        clients: 0,
        at_once: 1,
        crashes: false,
        pause: Duration::ZERO,
    };
    let population = Population::new(plan);
    site.register(&population);
    (site, population)
}

/// Writes entries with one `redis-cli`.
#[track_caller]
pub fn write<'a>(site: &Site, entries: impl IntoIterator<Item = &'a Entry>) {
    let commands: String = entries.into_iter().map(Entry::command).collect();
    let replies = site.redis().cli_lines(&commands);
    assert_eq!(
        replies.lines().filter(|line| line.contains('-')).count(),
        commands.lines().count(),
        "{replies}"
    );
}

/// Entries that are rejected, and their reasons. Malformed ones are reported by the ledger, once.
pub fn poison() -> Vec<(Entry, &'static str)> {
    let entry = || Entry::new(1, 1, 1).with("du", 5_000);
    vec![
        (entry().without("du"), "du: the field is missing"),
        (entry().without("event"), "event: the field is missing"),
        (entry().with("du", "-5"), "du: expected a whole number"),
        (entry().with("dd", "18446744073709551616"), "dd: expected a whole number"),
        (entry().with("left", "1e9"), "left: expected a whole number"),
        (entry().with("dt", "99999999999"), "dt: expected a number of seconds"),
        (entry().with("event", "paused"), "event: expected none, started, completed or stopped"),
        (entry().with("peer_id", "\\xff\\xfe\\x00"), "peer_id: expected 40 hexadecimal digits"),
        (entry().with("passkey", "\\xc3\\x28"), "passkey: expected 8 to 64 hexadecimal digits"),
        (entry().with("ip", "2001:db8::1"), "af: does not match the address in ip"),
        (entry().with("port", "70000"), "port: expected a port"),
        (entry().with("ts", script::now() + 10 * 86_400), "ahead of this machine's clock"),
        (entry().with("passkey", "feedfacefeedface"), "no user has this passkey"),
        (entry().with("infohash", "ab".repeat(20)), "no torrent has the infohash abab"),
    ]
}

fn accounts(site: &Site) -> BTreeMap<(u64, u64), Account> {
    let rows = site.sql(
        "SELECT user_id, torrent_id, uploaded, downloaded, seeding_s, leeching_s, completed_count + repeated_count \
         FROM ledger_accounts",
    );
    let read = |line: &str| {
        let row: Vec<u128> = line.split('|').map(|column| column.parse().unwrap()).collect();
        let moved = Moved { uploaded: row[2], downloaded: row[3] };
        let [seeding_s, leeching_s, completed] = [row[4] as u64, row[5] as u64, row[6] as u64];
        ((row[0] as u64, row[1] as u64), Account { moved, seeding_s, leeching_s, completed })
    };
    rows.lines().map(read).collect()
}

/// Asserts that ledger and lists are what follows from these entries.
#[track_caller]
fn assert_outcome(site: &Site, population: &Population, outcome: &Outcome) {
    assert_same("(user, torrent)", &outcome.accounts, &accounts(site));
    let activity_lists = outcome.activity_lists();
    let mut in_redis = activity_lists.clone();
    // The lists go by passkey and infohash alone, so an unknown torrent is in them.
    in_redis.leeching.insert((1, 0));
    assert_eq!(site.lists_in_redis(population), in_redis);
    let (user, torrent) = *activity_lists.seeding.first().unwrap();
    let (key, member) =
        (format!("tracker:user:seed:{}", passkey_of(user)), testkit::population::info_hash_of(torrent));
    let score = site.redis().cli(&["ZSCORE", &key, &member.to_string()]);
    assert_eq!(score, outcome.seeding_since(user, torrent).unwrap().to_string());
    site.assert_listed(&activity_lists, user, TORRENTS);
}

fn foreign_entries_count(kind: DatabaseKind, seed: u64, count: usize) {
    let (site, population) = site(3600, kind);
    let mut random = Rng::with_seed(seed);
    let good = script::good_entries(count, &mut random);
    let poison = poison();
    let mut mixed: Vec<&Entry> = good.iter().collect();
    for (entry, _) in &poison {
        mixed.insert(random.usize(..mixed.len()), entry);
    }
    write(&site, mixed);
    let status = site.settle();
    assert_outcome(&site, &population, &Outcome::of(&good));
    let letters = poison.len();
    assert_eq!(status["dlq"], letters, "{status:#}");
    assert_eq!(status["failed"], 0, "{status:#}");
}

#[test]
fn j3_thousands_of_foreign_entries_with_poison_among_them_count_exactly_on_sqlite() {
    foreign_entries_count(DatabaseKind::Sqlite, 1, 5000);
}

#[test]
fn j3_thousands_of_foreign_entries_with_poison_among_them_count_exactly_on_postgres() {
    foreign_entries_count(DatabaseKind::Postgres, 2, 3000);
}

#[test]
fn j3_thousands_of_foreign_entries_with_poison_among_them_count_exactly_on_mariadb() {
    foreign_entries_count(DatabaseKind::MariaDb, 3, 3000);
}

#[test]
fn groups_destroyed_amid_foreign_entries_lose_and_double_nothing() {
    let (site, population) = site(3600, DatabaseKind::Sqlite);
    let good = script::good_entries(6000, &mut Rng::with_seed(4));
    let mut random = Rng::with_seed(5);
    for part in good.chunks(1000) {
        write(&site, part);
        // Amid the work on them.
        std::thread::sleep(Duration::from_millis(random.u64(..100)));
        for group in ["ztorrent", "activity"] {
            site.redis().cli(&["XGROUP", "DESTROY", "tracker:traffic", group]);
        }
    }
    site.settle();
    assert_same("(user, torrent)", &Outcome::of(&good).accounts, &accounts(&site));
    assert_eq!(site.lists_in_redis(&population), Outcome::of(&good).activity_lists());
}

#[test]
fn l2_amounts_are_exact_far_beyond_64_bits() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    let entry = Entry::new(1, 1, 1).with("dd", 3).with("du", 7_u64);
    write(&site, [&entry]);
    site.settle();
    // What years of uploading come to.
    let before = 7 * u128::from(u64::MAX);
    for table in ["ledger_users", "ledger_torrents", "ledger_accounts"] {
        site.sql(&format!("UPDATE {table} SET uploaded = '{before}'"));
    }
    write(&site, [&entry]);
    site.settle();
    let shown = site.server.cli(&["user", "show", "1"]);
    assert_eq!(shown["uploaded"], (before + 7).to_string());
    assert_eq!(shown["downloaded"], "6");
    assert_eq!(site.server.cli(&["torrent", "show", "1"])["uploaded"], shown["uploaded"]);
}

#[test]
fn j8_a_foreign_claim_beyond_the_ceiling_is_credited_up_to_it_and_reported() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    let entry = Entry::new(1, 1, 1).with("dt", 10).with("du", u64::MAX);
    write(&site, [&entry]);
    site.settle();
    // Ten seconds, and ten of slack, at 10 Tbit/s.
    let allowed = 20 * 1_250_000_000_000_u128;
    assert_eq!(site.server.cli(&["user", "show", "1"])["uploaded"], allowed.to_string());
    let risk = testkit::eventually("a report", crate::site::PATIENCE, || {
        let risks = site.server.cli(&["journal", "risks"])["risks"].clone();
        risks.as_array()?.iter().find(|risk| risk["kind"] == "client_rate").cloned()
    });
    assert_eq!(risk["du_claimed"], u64::MAX.to_string(), "{risk:#}");
    assert_eq!(risk["du_credited"], allowed.to_string(), "{risk:#}");
}

/// Log lines about malformed entries are bounded.
#[test]
fn bad_entries_are_logged_once_a_minute_and_counted_all() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    for round in 1..=5 {
        let bad = Entry::new(1, 1, 1).with("du", "none");
        write(&site, [&bad]);
        testkit::eventually("a dead letter of each view", crate::site::PATIENCE, || {
            (site.server.cli(&["journal", "status"])["dlq"].as_u64()? >= round).then_some(())
        });
    }
    let log = site.server.log();
    let lines = log.lines().filter(|line| line.contains("entries rejected")).count();
    assert!((1..=4).contains(&lines), "one for each view in a minute, not {lines}:\n{log}");
}
