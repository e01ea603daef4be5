//! Backlogs: a database that is down, views that are paused, readers that are too few, processes with other roles.

use serde_json::Value as Json;
use testkit::{Population, eventually, eventually_equal};

use crate::journal_faults::{assert_nothing_lost, meanwhile, populate};
use crate::site::{DatabaseKind, PATIENCE, Site, builder, durable_redis};

fn group(status: &Json, view: &str) -> Json {
    let groups = status["groups"].as_array().unwrap();
    groups.iter().find(|group| group["view"] == view).cloned().unwrap_or_default()
}

/// Waits until a view is this far behind.
#[track_caller]
fn wait_behind(site: &Site, view: &str, lag: u64) {
    eventually("the view to fall behind", PATIENCE, || {
        group(&site.status(), view)["lag"].as_u64().filter(|seen| *seen >= lag)
    });
}

#[test]
fn a_database_that_is_down_stops_the_ledger_and_nothing_is_acknowledged_or_buried() {
    let mut site = Site::start(builder(), Some(durable_redis()), DatabaseKind::Postgres);
    let mut population = populate(&site);
    population.live(site.destination(), 2);
    site.settle();
    site.database.kill();
    meanwhile(&mut population, &mut site, |site| {
        // Announces are answered from memory, and the lists go on.
        site.wait_logged(&["view waits and retries; nothing is lost", "ledger"]);
        let length = || -> u64 { site.redis().cli(&["XLEN", "tracker:traffic"]).parse().unwrap() };
        let before = length();
        eventually("announces to be stored", PATIENCE, || (length() > before + 200).then_some(()));
        site.database.restart();
    });
    assert_nothing_lost(&mut population, &site);
    site.wait_logged(&["view continues", "ledger"]);
}

fn pause_and_resume(mut site: Site) {
    let mut population = populate(&site);
    population.live(site.destination(), 1);
    site.settle();
    for view in ["ledger", "activity"] {
        assert_eq!(site.server.cli(&["journal", "pause", view])["paused"], true);
    }
    let held = site.books();
    population.live(site.destination(), 1);
    wait_behind(&site, "ledger", 1);
    let before = site.books();
    assert_eq!(before, held, "the pause holds once the command has returned");
    meanwhile(&mut population, &mut site, |site| {
        wait_behind(site, "ledger", 200);
        wait_behind(site, "activity", 200);
    });
    let status = site.status();
    assert_eq!(group(&status, "ledger")["paused"], true, "{status:#}");
    assert_eq!(site.books(), before, "the ledger stands still");
    // A restart does not end a pause.
    site.server.start_again();
    site.server.cli(&["journal", "resume", "activity"]);
    eventually_equal(Json::from(0), PATIENCE, || group(&site.status(), "activity")["lag"].clone());
    assert_eq!(site.books(), before, "the ledger is still paused");
    site.server.cli(&["journal", "resume", "ledger"]);
    assert_nothing_lost(&mut population, &site);
}

#[test]
fn j9_a_paused_view_falls_behind_and_catches_up_on_redis() {
    pause_and_resume(Site::start(builder(), Some(durable_redis()), DatabaseKind::Sqlite));
}

#[test]
fn j9_a_paused_view_falls_behind_and_catches_up_embedded() {
    pause_and_resume(Site::start(builder(), None, DatabaseKind::Sqlite));
}

#[test]
fn j9_readers_and_batches_grow_without_a_restart() {
    let builder = builder().set("ledger.consumers", 1).set("ledger.batch_max", 1);
    let mut site = Site::start(builder, Some(durable_redis()), DatabaseKind::Sqlite);
    let mut population = populate(&site);
    population.live(site.destination(), 1);
    let one = site.settle();
    assert_eq!(group(&one, "ledger")["consumers"], 1, "{one:#}");
    meanwhile(&mut population, &mut site, |site| {
        let config = std::fs::read_to_string(site.server.config_path()).unwrap();
        let more =
            config.replace("consumers = 1", "consumers = 5").replace("batch_max = 1", "batch_max = 500");
        assert_ne!(config, more);
        std::fs::write(site.server.config_path(), more).unwrap();
        site.server.reload();
        eventually_equal(Json::from(5), PATIENCE, || group(&site.status(), "ledger")["consumers"].clone());
    });
    assert_nothing_lost(&mut population, &site);
    assert!(site.server.log().contains("configuration reloaded"));
}

#[test]
fn roles_divide_the_work_among_processes() {
    let builder = builder().roles("tracker");
    let site = Site::start(builder, Some(durable_redis()), DatabaseKind::MariaDb);
    let mut population: Population = populate(&site);
    population.live(site.destination(), 2);
    let alone = site.status();
    assert_eq!(alone["groups"], Json::Array(Vec::new()), "no group reads yet: {alone:#}");
    assert!(alone["entries"].as_u64().unwrap() >= 200, "{alone:#}");
    let ledger = site.server.companion("ledger", "ledger");
    let activity = site.server.companion("activity", "activity");
    assert_nothing_lost(&mut population, &site);
    drop((ledger, activity));
}
