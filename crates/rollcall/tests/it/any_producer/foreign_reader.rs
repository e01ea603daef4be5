//! Our stream, read by a foreign consumer group.

use domain::AnnounceEvent;
use serde_json::Value as Json;
use testkit::{Announce, Family, JOURNAL_FIELDS, RedisServer, eventually};

use testkit::population::info_hash_of;

use crate::any_producer::script::now;
use crate::site::{DatabaseKind, PATIENCE, Site, builder};

/// An entry as `redis-cli` gave it: fields in their order.
type Fields = Vec<(String, String)>;

fn value<'a>(entry: &'a Fields, field: &str) -> &'a str {
    &entry.iter().find(|(name, _)| name == field).unwrap_or_else(|| panic!("no {field} in {entry:?}")).1
}

fn number(entry: &Fields, field: &str) -> u64 {
    let text = value(entry, field);
    assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "{field}={text:?}");
    text.parse().unwrap()
}

/// Reads and acknowledges as a foreign consumer.
fn read_all(redis: &RedisServer) -> Vec<Fields> {
    let read = ["--json", "XREADGROUP", "GROUP", "stranger", "reader-1", "COUNT", "100", "STREAMS"];
    let reply: Json =
        serde_json::from_str(&redis.cli(&[&read[..], &["tracker:traffic", ">"]].concat())).unwrap();
    let Some(entries) = reply["tracker:traffic"].as_array() else { return Vec::new() };
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let mut read = Vec::new();
    for entry in entries {
        redis.cli(&["XACK", "tracker:traffic", "stranger", entry[0].as_str().unwrap()]);
        let flat: Vec<String> = entry[1].as_array().unwrap().iter().map(text).collect();
        read.push(flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect());
    }
    read
}

/// Asserts the names, the order and the formats of J2.
fn assert_j2(entry: &Fields) {
    let names: Vec<&str> = entry.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..14], JOURNAL_FIELDS);
    for field in ["infohash", "peer_id"] {
        let text = value(entry, field);
        assert!(
            text.len() == 40 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
            "{text}"
        );
    }
    let ip: std::net::IpAddr = value(entry, "ip").parse().unwrap();
    assert_eq!(value(entry, "af"), if ip.is_ipv4() { "IPv4" } else { "IPv6" });
    assert!(["none", "started", "completed", "stopped"].contains(&value(entry, "event")));
    for field in ["port", "du", "dd", "left", "ts", "dt", "interval", "min_interval"] {
        number(entry, field);
    }
    assert!(number(entry, "ts").abs_diff(now()) < 120, "seconds, not milliseconds: {entry:?}");
    for field in ["node", "sid", "up", "down", "cause"] {
        value(entry, field);
    }
}

#[test]
fn j2_a_foreign_consumer_reads_every_announce_with_the_fourteen_fields() {
    let builder = builder().set("tracker.announce_interval_s", 2).set("tracker.peer_grace_s", 1);
    let site = Site::start(builder, Some(RedisServer::start()), DatabaseKind::Sqlite);
    let passkey = site.server.add_user(7);
    let torrent = info_hash_of(1);
    site.server.cli(&["torrent", "add", "--infohash", &torrent.to_string(), "--name", "one"]);
    eventually("the torrent to be known", PATIENCE, || {
        site.server.try_scrape(&passkey, &torrent).ok().flatten()
    });
    site.redis().cli(&["XGROUP", "CREATE", "tracker:traffic", "stranger", "0", "MKSTREAM"]);

    let client = Announce::leecher(torrent, 1);
    let send = |announce: &Announce, family| {
        assert_eq!(site.server.announce(family, &passkey, announce).failure_reason, None);
    };
    send(&client.with_totals(0, 0, 1000).with_event(AnnounceEvent::Started), Family::V4);
    send(&client.with_totals(10, 400, 600), Family::V6);
    send(&client.with_totals(30, 1000, 0).with_event(AnnounceEvent::Completed), Family::V4);
    send(&client.with_totals(60, 1000, 0).with_event(AnnounceEvent::Stopped), Family::V4);
    // This client sends nothing more.
    send(&Announce::seeder(torrent, 2).with_totals(5, 0, 0).with_event(AnnounceEvent::Started), Family::V6);

    let mut entries = Vec::new();
    eventually("the silent client's end", PATIENCE, || {
        entries.extend(read_all(site.redis()));
        (entries.len() >= 6).then_some(())
    });
    entries.iter().for_each(assert_j2);
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            let of = |field| number(entry, field);
            (value(entry, "event"), value(entry, "cause"), value(entry, "af"), of("du"), of("dd"), of("left"))
        })
        .collect();
    let expected = [
        ("started", "announce", "IPv4", 0, 0, 1000),
        ("none", "announce", "IPv6", 10, 400, 600),
        ("completed", "announce", "IPv4", 20, 600, 0),
        ("stopped", "announce", "IPv4", 30, 0, 0),
        ("started", "announce", "IPv6", 0, 0, 0),
        ("stopped", "timeout", "IPv6", 0, 0, 0),
    ];
    assert_eq!(seen, expected);
    for entry in &entries {
        assert_eq!(value(entry, "passkey"), passkey.to_string());
        assert_eq!(value(entry, "infohash"), torrent.to_string());
        assert_eq!((number(entry, "interval"), number(entry, "min_interval")), (2, 0));
    }
    assert_eq!((number(&entries[0], "dt"), number(&entries[4], "dt")), (0, 0), "the first of each client");
    assert_eq!(number(&entries[5], "dt"), 3, "interval and grace");
    assert_eq!((number(&entries[3], "up"), number(&entries[3], "down")), (60, 1000));
    assert_eq!(site.settle()["groups"].as_array().unwrap().len(), 4, "the stranger is one of them");
}
