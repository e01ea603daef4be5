//! Every byte counts once: a thousand simulated clients with known totals announce to the real server, and in the end
//! the figures of every user and torrent equal theirs to the byte (L2, L6, L7), the activity lists are right (A1–A3),
//! and there are no failed entries. A few cheating users gain no more than the rate limits allow, and are reported as
//! risks (J8).

use std::time::Duration;

use serde_json::Value as Json;
use testkit::{Moved, Plan, Population, RedisCluster, RedisServer, Truth};

use crate::site::cheats::Cheats;
use crate::site::{self, DatabaseKind, Site, builder, durable_redis};

/// How many steps each client takes before the quiet moment, and again after it.
const STEPS: u32 = 4;

const PLAN: Plan = Plan {
    seed: 0,
    users: 120,
    torrents: 40,
    clients: 1000,
    at_once: 24,
    crashes: true,
    pause: Duration::ZERO,
};

/// How the work is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Processes {
    /// One process does everything.
    One,
    /// A second one keeps accounts and lists, too.
    ASecondReads,
}

fn conserve(seed: u64, redis: Option<RedisServer>, kind: DatabaseKind, processes: Processes) {
    conserve_on(seed, Site::start(builder(), redis, kind), processes);
}

fn conserve_on(seed: u64, mut site: Site, processes: Processes) {
    if processes == Processes::ASecondReads {
        site.companion = Some(site.server.companion("second", "ledger,activity"));
    }
    let mut population = Population::new(Plan { seed, ..PLAN });
    site.register(&population);

    let cheats = Cheats::start(&site);
    population.live(site.destination(), STEPS);
    let quiet = site.settle();
    site.assert_nothing_failed(&quiet);
    site.assert_books_equal(&population.truth());
    assert_lists(&site, &population);

    population.live(site.destination(), STEPS);
    population.stop(site.destination());
    let end = site.settle();
    let truth = population.truth();
    site.assert_nothing_failed(&end);
    site.assert_books_equal(&truth);
    site::accounts::assert_same("completions of", &truth.completions, &site.honest_books().completions);
    assert_lists(&site, &population);
    assert_commands_agree(&site, &truth);
    cheats.assert_worthless(&site);
}

/// The activity lists equal the seeding and leeching clients; stopped ones are in neither.
fn assert_lists(site: &Site, population: &Population) {
    let activity_lists = population.activity_lists();
    if site.redis.is_some() {
        let lists = site.lists_in_redis(population);
        assert_eq!(lists.seeding, activity_lists.seeding, "who seeds");
        assert_eq!(lists.leeching, activity_lists.leeching, "who leeches");
    }
    for user in [1, 2, PLAN.users] {
        site.assert_listed(&activity_lists, user, PLAN.torrents);
    }
}

/// Command output equals the tables.
fn assert_commands_agree(site: &Site, truth: &Truth) {
    let is = |shown: &Json, moved: Moved| {
        assert_eq!(shown["uploaded"], moved.uploaded.to_string(), "{shown:#}");
        assert_eq!(shown["downloaded"], moved.downloaded.to_string(), "{shown:#}");
    };
    for user in [1, 7, PLAN.users] {
        let shown = site.server.cli(&["user", "show", &user.to_string()]);
        is(&shown, truth.users[&user]);
        assert_eq!((&shown["seeding"], &shown["leeching"]), (&Json::from(0), &Json::from(0)), "{shown:#}");
        let accounts = site.server.cli(&["user", "torrents", &user.to_string()]);
        for account in accounts["accounts"].as_array().unwrap() {
            is(account, truth.accounts[&(user, account["torrent"].as_u64().unwrap())]);
        }
    }
    for torrent in [1, PLAN.torrents] {
        is(&site.server.cli(&["torrent", "show", &torrent.to_string()]), truth.torrents[&torrent]);
    }
}

#[test]
fn l6_every_byte_counts_once_embedded() {
    conserve(11, None, DatabaseKind::Sqlite, Processes::One);
}

#[test]
fn l6_every_byte_counts_once_on_redis_and_sqlite() {
    conserve(12, Some(RedisServer::start()), DatabaseKind::Sqlite, Processes::One);
}

#[test]
fn l6_every_byte_counts_once_on_redis_and_postgres_with_a_second_process() {
    conserve(13, Some(durable_redis()), DatabaseKind::Postgres, Processes::ASecondReads);
}

#[test]
fn l6_every_byte_counts_once_on_redis_and_mariadb() {
    conserve(14, Some(durable_redis()), DatabaseKind::MariaDb, Processes::One);
}

#[test]
fn l6_every_byte_counts_once_on_a_redis_cluster() {
    let cluster = RedisCluster::start();
    let nodes: Vec<String> = cluster.urls().iter().map(|url| url.replace("redis://", "")).collect();
    let url = format!("redis+cluster://{}", nodes.join(","));
    let site = Site::start(builder().set("redis.url", site::quoted(&url)), None, DatabaseKind::Sqlite);
    conserve_on(15, site, Processes::One);
}
