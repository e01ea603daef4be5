//! Redis is not there.

use domain::AnnounceEvent;
use serde_json::{Value as Json, json};
use testkit::population::{info_hash_of, passkey_of};
use testkit::{Announce, AnnounceReply, Family, RedisServer, RetryIn, eventually, eventually_equal};

use crate::journal_faults::{assert_nothing_lost, populate};
use crate::site::{DatabaseKind, PATIENCE, Site, builder};

fn announce(site: &Site, announce: &Announce) -> AnnounceReply {
    site.server.announce(Family::V4, &passkey_of(1), announce)
}

fn client() -> Announce {
    Announce::leecher(info_hash_of(1), 1)
}

fn stream_length(site: &Site) -> u64 {
    site.redis().cli(&["XLEN", "tracker:traffic"]).parse().unwrap()
}

/// Log lines caused by the outage, by message and subject.
fn complaints(log: &str) -> Vec<(String, u64)> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
    let lines = lines.filter(|line| line["level"] == "WARN" || line["level"] == "ERROR");
    let told = |line: Json| {
        let about =
            ["view", "dependency", "server", "what"].map(|name| line[name].as_str().unwrap_or("").to_owned());
        let message = line["message"].as_str().unwrap_or("").to_owned();
        (format!("{message} {}", about.join(" ")), line["lines_left_out"].as_u64().unwrap_or(0))
    };
    lines.map(told).collect()
}

#[test]
fn an_unreachable_redis_is_one_alert_and_log_lines_are_throttled() {
    let mut site = Site::start(builder(), Some(RedisServer::start()), DatabaseKind::Sqlite);
    populate(&site);
    let api = site.server.api(&["read"]);
    let alerts = |what: &str, is_so: &dyn Fn(&[Json]) -> bool| {
        eventually(what, PATIENCE, || {
            let seen = api.get("/api/v1/overview").ok();
            is_so(seen["alerts"].as_array().unwrap()).then_some(seen)
        })
    };
    alerts("all to be well", &|alerts| alerts.is_empty());
    let before = site.server.log().len();
    site.redis_mut().kill();
    // The presence cluster is reported last, after a lease.
    let affected = ["journal", "whitelist", "activity", "presence_cluster"];
    let seen = alerts("everything in Redis to fail", &|alerts| {
        affected.iter().all(|name| {
            alerts.iter().any(|alert| alert["affected"].as_array().unwrap().contains(&json!(name)))
        })
    });
    let alert = &seen["alerts"][0];
    assert_eq!(seen["alerts"].as_array().unwrap().len(), 1, "{seen:#}");
    assert_eq!((&alert["subject"], &alert["severity"]), (&json!("redis"), &json!("critical")), "{alert}");
    assert!(alert["detail"].as_str().unwrap().contains("New passkeys cannot be checked."), "{alert}");
    let log = site.server.log()[before..].to_owned();
    let complaints = complaints(&log);
    let not_ready: Vec<&String> =
        complaints.iter().map(|(line, _)| line).filter(|line| line.starts_with("not ready")).collect();
    assert_eq!(not_ready, ["not ready  redis  "], "of what fails the cause alone is logged");
    for (place, (line, left_out)) in complaints.iter().enumerate() {
        let is_first = complaints[..place].iter().all(|(earlier, _)| earlier != line);
        assert!(is_first || *left_out > 0, "again, and no count: {line}\n{log}");
    }
    site.redis_mut().restart();
    alerts("all to be well again", &|alerts| alerts.is_empty());
}

#[test]
fn a_server_starts_without_its_redis_and_stores_everything_once_it_is_there() {
    let mut redis = RedisServer::start();
    redis.kill();
    let builder = builder().set("journal.ack_timeout_ms", 700);
    let mut site = Site::start(builder, Some(redis), DatabaseKind::Sqlite);
    for said in ["Redis cannot be reached", "Announces wait in memory", "New passkeys cannot be checked"] {
        site.wait_logged(&[said]);
    }
    populate(&site);
    let started = client().with_event(AnnounceEvent::Started);
    let reply = announce(&site, &started);
    assert_eq!(reply.retry_in, Some(RetryIn::Minutes(1)), "it cannot be stored: {reply:?}");
    assert!(reply.failure_reason.unwrap().contains("could not store"));
    let reply = announce(&site, &client().with_totals(100, 0, 1000));
    assert_eq!(reply.failure_reason, None, "a heartbeat is answered at once");
    site.wait_logged(&["journal unavailable; entries wait in the queue"]);
    site.wait_logged(&["not_stored_in_time"]);

    site.redis_mut().restart();
    let stopped = client().with_totals(250, 0, 1000).with_event(AnnounceEvent::Stopped);
    eventually("Redis to be found", PATIENCE, || {
        announce(&site, &stopped).failure_reason.is_none().then_some(())
    });
    site.wait_logged(&["journal accepts entries again"]);
    site.settle();
    assert_eq!(site.server.cli(&["user", "show", "1"])["uploaded"], "250");
    let first_two = site.redis().cli(&["XRANGE", "tracker:traffic", "-", "+", "COUNT", "2"]);
    assert!(
        first_two.contains("started") && first_two.contains("\n100\n"),
        "what waited is stored: {first_two}"
    );
}

#[test]
fn with_a_full_queue_announces_get_retry_in_and_queued_ones_are_stored_once() {
    let builder = builder().set("journal.ack_timeout_ms", 700).set("journal.queue_max", 100);
    let mut site = Site::start(
        builder,
        Some(RedisServer::builder().append_only(testkit::Fsync::Always).start()),
        DatabaseKind::Sqlite,
    );
    populate(&site);
    assert_eq!(announce(&site, &client().with_event(AnnounceEvent::Started)).failure_reason, None);
    assert_eq!(stream_length(&site), 1);
    site.redis_mut().kill();
    for number in 1..=100 {
        let reply = announce(&site, &client().with_totals(number * 1000, 0, 1000));
        assert_eq!(reply.failure_reason, None, "place {number}");
    }
    for event in [AnnounceEvent::None, AnnounceEvent::Completed, AnnounceEvent::Stopped] {
        let reply = announce(&site, &client().with_totals(101_000, 0, 1000).with_event(event));
        assert_eq!(reply.retry_in, Some(RetryIn::Minutes(1)), "{reply:?}");
        assert!(
            reply.failure_reason.as_ref().unwrap().contains("cannot store announces"),
            "{event}: {reply:?}"
        );
    }
    site.wait_logged(&["journal_full", "first refusal for this reason"]);

    site.redis_mut().restart();
    let stopped = client().with_totals(102_000, 0, 1000).with_event(AnnounceEvent::Stopped);
    eventually("service to resume", PATIENCE, || {
        announce(&site, &stopped).failure_reason.is_none().then_some(())
    });
    // One more for each time that the goodbye had to be repeated after it was taken.
    let not_in_time = site.server.log().matches("not_stored_in_time").count() as u64;
    site.settle();
    let stored = stream_length(&site);
    assert!((102..=102 + not_in_time * 100).contains(&stored), "{stored} entries");
    assert_eq!(site.server.cli(&["user", "show", "1"])["uploaded"], "102000");
    site.server.stop();
    site.wait_logged(&["since start", "journal_full="]);
}

#[test]
fn a_population_survives_redis_restarts() {
    let redis = crate::site::durable_redis();
    let builder = builder().set("journal.ack_timeout_ms", 300).set("journal.queue_max", 100);
    let mut site = Site::start(builder, Some(redis), DatabaseKind::Sqlite);
    let mut population = populate(&site);
    crate::journal_faults::meanwhile(&mut population, &mut site, |site| {
        for _ in 0..3 {
            let length = stream_length(site);
            eventually("announces to be stored", PATIENCE, || {
                (stream_length(site) > length + 50).then_some(())
            });
            site.redis_mut().kill();
            site.wait_logged(&["journal unavailable; entries wait in the queue"]);
            std::thread::sleep(std::time::Duration::from_millis(500));
            site.redis_mut().restart();
        }
    });
    assert_nothing_lost(&mut population, &site);
    eventually_equal(0, PATIENCE, || site.redis().cli(&["XLEN", "tracker:traffic:dlq"]).parse().unwrap());
}
