//! API keys, on every kind of database.

use std::sync::Arc;
use std::time::Duration;

use admin::{AdminError, ApiKeys, KeyRing, Scope, Scopes};
use domain::clock::ManualClock;
use domain::{Seconds, UnixTime};
use testkit::{eventually_async, on_every_database};
use tokio::sync::oneshot;

use crate::fixture::{Fixture, NOW, OpenDatabase};

const TIMEOUT: Duration = Duration::from_secs(30);

async fn ring_on(fixture: &Fixture, configured: Option<&str>) -> (KeyRing, ManualClock) {
    let clock = ManualClock::at(NOW);
    let keys = ApiKeys::on(&fixture.database().await);
    (KeyRing::load(keys, configured, Arc::new(clock.clone())).await.unwrap(), clock)
}

fn scopes(text: &str) -> Scopes {
    text.parse().unwrap()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually_async(what, TIMEOUT, async || holds().then_some(())).await;
}

async fn a_key_permits_its_scopes(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    let reader = keys.create("statistics — 統計", scopes("read"), NOW).await.unwrap();
    let both = keys.create("bridge", scopes("read,verify"), NOW).await.unwrap();
    let (ring, _) = ring_on(&fixture, Some("configured key")).await;
    let reading = ring.authenticate(&reader.text).unwrap();
    assert_eq!((reading.key_id, reading.scopes), (reader.id, scopes("read")));
    assert_eq!(ring.authenticate(&both.text).unwrap().scopes, scopes("verify,read"));
    let configured = ring.authenticate("configured key").unwrap();
    assert_eq!((configured.key_id.as_str(), configured.scopes), ("tracker_api_key", Scope::Verify.into()));
    let wrong_secret = format!("{}0", &reader.text[..reader.text.len() - 1]);
    let other_id = format!("rck_{}{}", both.id, &reader.text[12..]);
    let long = "x".repeat(100_000);
    for refused in
        ["", " ", "configured ke", &wrong_secret[..20], &other_id, &reader.text[4..], &long, "rck_é"]
    {
        assert_eq!(ring.authenticate(refused), None, "{refused:?}");
    }
    if wrong_secret != reader.text {
        assert_eq!(ring.authenticate(&wrong_secret), None);
    }
    let listed = keys.list().await.unwrap();
    let named: Vec<_> = listed.iter().map(|key| (key.id, key.name.as_str())).collect();
    assert!(named.contains(&(reader.id, "statistics — 統計")) && named.contains(&(both.id, "bridge")));
}

async fn only_a_hash_is_stored(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    let key = keys.create("a", scopes("admin"), NOW).await.unwrap();
    let secret = &key.text[13..];
    let mut raw = fixture.raw().await;
    let found = raw.count(&format!("api_keys WHERE hash LIKE '%{secret}%' OR name LIKE '%{secret}%'")).await;
    assert_eq!((found, raw.count("api_keys").await), (0, 1));
}

async fn changes_reach_the_ring_of_another_process(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    let key = keys.create("a", scopes("read"), NOW).await.unwrap();
    let (ring, _) = ring_on(&fixture, None).await;
    let ring = Arc::new(ring);
    let (stop, stopped) = oneshot::channel::<()>();
    let following = tokio::spawn({
        let ring = Arc::clone(&ring);
        async move { ring.follow(stopped).await }
    });
    assert!(ring.authenticate(&key.text).is_some());
    assert!(keys.revoke(key.id, UnixTime(NOW.0 + 5)).await.unwrap());
    until("the revocation", || ring.authenticate(&key.text).is_none()).await;
    // A second revocation changes nothing.
    assert!(!keys.revoke(key.id, UnixTime(NOW.0 + 9)).await.unwrap());
    assert_eq!(keys.list().await.unwrap()[0].revoked_at, Some(UnixTime(NOW.0 + 5)));
    let new = keys.create("b", scopes("verify"), NOW).await.unwrap();
    until("the new key", || ring.authenticate(&new.text).is_some()).await;
    // Changes by SQL.
    let mut raw = fixture.raw().await;
    raw.execute("UPDATE api_keys SET scopes = 'verify,read'").await;
    until("the new scopes", || {
        ring.authenticate(&new.text).is_some_and(|found| found.scopes == scopes("verify,read"))
    })
    .await;
    raw.execute("DELETE FROM api_keys").await;
    until("the deletion", || ring.authenticate(&new.text).is_none()).await;
    drop(stop);
    following.await.unwrap();
}

async fn the_first_key_is_created_once_by_concurrent_starts(fixture: Fixture) {
    let store = fixture.database().await;
    let starters: Vec<_> = (0..10)
        .map(|_| {
            let url = fixture.url();
            tokio::spawn(async move {
                let store = access::Store::open(&url).await.unwrap().database().clone();
                let made = ApiKeys::on(&store).first_key(NOW).await.unwrap();
                store.close().await;
                made
            })
        })
        .collect();
    let mut made = Vec::new();
    for starter in starters {
        made.extend(starter.await.unwrap());
    }
    assert_eq!(made.len(), 1);
    let keys = ApiKeys::on(&store);
    let listed = keys.list().await.unwrap();
    assert_eq!((listed.len(), listed[0].name.as_str()), (1, "first start"));
    let (ring, _) = ring_on(&fixture, None).await;
    assert!(ring.authenticate(&made[0].text).unwrap().scopes.allow(Scope::Admin));
    // It is not created again after it is deleted.
    keys.revoke(made[0].id, NOW).await.unwrap();
    assert_eq!(keys.first_key(NOW).await.unwrap(), None);
    fixture.raw().await.execute("DELETE FROM api_keys").await;
    assert_eq!(keys.first_key(NOW).await.unwrap(), None);
}

async fn no_first_key_is_created_if_there_is_another_key(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    keys.create("a", scopes("verify"), NOW).await.unwrap();
    assert_eq!(keys.first_key(NOW).await.unwrap(), None);
}

async fn the_time_of_last_use_is_stored(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    let key = keys.create("a", scopes("read"), NOW).await.unwrap();
    let last_used = async || keys.list().await.unwrap()[0].last_used_at;
    let (ring, clock) = ring_on(&fixture, None).await;
    ring.store_usage().await.unwrap();
    assert_eq!(last_used().await, None);
    clock.advance(Seconds(100));
    ring.authenticate(&key.text).unwrap();
    assert_eq!(last_used().await, None, "not with each request");
    ring.store_usage().await.unwrap();
    let later = Some(UnixTime(NOW.0 + 100));
    assert_eq!(last_used().await, later);
    // A process with a slow clock does not set it back.
    let (behind, _) = ring_on(&fixture, None).await;
    behind.authenticate(&key.text).unwrap();
    behind.store_usage().await.unwrap();
    assert_eq!(last_used().await, later);
    assert_eq!((ring.figures().accepted, ring.figures().refused, ring.figures().keys), (1, 0, 1));
}

async fn invalid_names_and_scopes_are_refused(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    let refusal = async |name: &str, scopes| keys.create(name, scopes, NOW).await.unwrap_err();
    assert!(matches!(refusal("a", Scopes::default()).await, AdminError::KeyWithoutScope));
    for name in ["", "  ", "a\nb", "a\0b", &"x".repeat(101)] {
        assert!(matches!(refusal(name, scopes("read")).await, AdminError::KeyName), "{name:?}");
    }
    let unknown = keys.revoke("01234567".parse().unwrap(), NOW).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no key 01234567: see rollcall key list");
    assert!(keys.create(&"長".repeat(100), scopes("read"), NOW).await.is_ok());
}

async fn a_malformed_row_does_not_hide_others(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    let key = keys.create("a", scopes("read"), NOW).await.unwrap();
    let hash = "0".repeat(64);
    fixture.raw().await.execute(
        &format!(
            "INSERT INTO api_keys (id, name, hash, scopes, created_at) VALUES ('00000000', 'x', '{hash}', 'root', 1)"
        ),
    )
    .await;
    let (ring, _) = ring_on(&fixture, None).await;
    assert!(ring.authenticate(&key.text).is_some());
    assert_eq!((ring.figures().keys, keys.list().await.unwrap().len()), (1, 1));
}

on_every_database!(
    a_key_permits_its_scopes,
    only_a_hash_is_stored,
    changes_reach_the_ring_of_another_process,
    the_first_key_is_created_once_by_concurrent_starts,
    no_first_key_is_created_if_there_is_another_key,
    the_time_of_last_use_is_stored,
    invalid_names_and_scopes_are_refused,
    a_malformed_row_does_not_hide_others,
);
