//! Sessions, on every database.

use admin::{ApiKeys, NewKey, SessionSecret, Sessions};
use domain::{Seconds, UnixTime};

use testkit::on_every_database;

use crate::fixture::{Fixture, NOW, OpenDatabase};

const HOUR: Seconds = Seconds(3600);

/// In milliseconds.
fn after(seconds: u32) -> u64 {
    u64::from(NOW.0 + seconds) * 1000
}

async fn a_key(fixture: &Fixture) -> NewKey {
    ApiKeys::on(&fixture.database().await).create("a", "admin".parse().unwrap(), NOW).await.unwrap()
}

async fn a_session_is_valid_in_every_process_until_it_expires(fixture: Fixture) {
    let key = a_key(&fixture).await;
    let here = Sessions::on(&fixture.database().await);
    let (secret, session) = here.begin(key.id, NOW, HOUR).await.unwrap();
    assert_eq!((session.key_id, session.expires_at), (key.id, UnixTime(NOW.0 + 3600)));
    // Another process, or this one after a restart.
    let elsewhere = Sessions::on(&fixture.database().await);
    for sessions in [&here, &elsewhere] {
        assert_eq!(sessions.find(&secret, after(0)).await.unwrap(), Some(session));
        assert_eq!(sessions.find(&secret, after(3599)).await.unwrap(), Some(session));
        assert_eq!(sessions.find(&secret, after(3600)).await.unwrap(), None);
    }
    let made_up = SessionSecret::read(&"A".repeat(43)).unwrap();
    assert_eq!(here.find(&made_up, after(0)).await.unwrap(), None);
}

async fn only_a_hash_of_a_session_is_stored(fixture: Fixture) {
    let key = a_key(&fixture).await;
    let sessions = Sessions::on(&fixture.database().await);
    let (secret, _) = sessions.begin(key.id, NOW, HOUR).await.unwrap();
    let mut raw = fixture.raw().await;
    let text = secret.text();
    assert_eq!(raw.count(&format!("api_sessions WHERE hash = '{text}' OR key_id = '{text}'")).await, 0);
    assert_eq!(raw.count("api_sessions").await, 1);
}

async fn signing_out_takes_effect_here_at_once_and_elsewhere_within_a_second(fixture: Fixture) {
    let key = a_key(&fixture).await;
    let (here, elsewhere) =
        (Sessions::on(&fixture.database().await), Sessions::on(&fixture.database().await));
    let (secret, _) = here.begin(key.id, NOW, HOUR).await.unwrap();
    let (other, _) = here.begin(key.id, NOW, HOUR).await.unwrap();
    for sessions in [&here, &elsewhere] {
        assert!(sessions.find(&secret, after(0)).await.unwrap().is_some());
    }
    assert_eq!(here.figures().open, 2);
    assert!(here.end(&secret).await.unwrap());
    assert_eq!(here.find(&secret, after(0)).await.unwrap(), None);
    assert_eq!(elsewhere.find(&secret, after(1)).await.unwrap(), None);
    assert!(!here.end(&secret).await.unwrap(), "already ended");
    assert!(here.find(&other, after(2)).await.unwrap().is_some(), "other sessions stay valid");
    assert_eq!(here.figures().open, 1);
}

async fn expired_sessions_are_removed(fixture: Fixture) {
    let keys = ApiKeys::on(&fixture.database().await);
    let (kept, revoked) = (a_key(&fixture).await, a_key(&fixture).await);
    let sessions = Sessions::on(&fixture.database().await);
    sessions.begin(kept.id, NOW, HOUR).await.unwrap();
    let (long, _) = sessions.begin(kept.id, NOW, Seconds(7200)).await.unwrap();
    sessions.begin(revoked.id, NOW, Seconds(7200)).await.unwrap();
    sessions.sweep(UnixTime(NOW.0 + 3599)).await.unwrap();
    assert_eq!((sessions.figures().open, sessions.figures().swept), (3, 0));
    sessions.sweep(UnixTime(NOW.0 + 3600)).await.unwrap();
    assert_eq!((sessions.figures().open, sessions.figures().swept), (2, 1));
    keys.revoke(revoked.id, NOW).await.unwrap();
    sessions.sweep(UnixTime(NOW.0 + 3600)).await.unwrap();
    assert_eq!((sessions.figures().open, sessions.figures().swept), (1, 2));
    assert!(sessions.find(&long, after(3600)).await.unwrap().is_some());
    fixture.raw().await.execute("DELETE FROM api_keys").await;
    sessions.sweep(UnixTime(NOW.0 + 3600)).await.unwrap();
    assert_eq!(sessions.figures().open, 0);
}

async fn the_oldest_session_of_a_key_is_removed_beyond_the_limit(fixture: Fixture) {
    let (key, other) = (a_key(&fixture).await, a_key(&fixture).await);
    let sessions = Sessions::on(&fixture.database().await);
    let (others, _) = sessions.begin(other.id, NOW, HOUR).await.unwrap();
    let (oldest, _) = sessions.begin(key.id, NOW, HOUR).await.unwrap();
    let mut newest = None;
    for second in 1..=admin::sessions::PER_KEY_MAX {
        newest = Some(sessions.begin(key.id, UnixTime(NOW.0 + second), HOUR).await.unwrap().0);
    }
    assert_eq!(sessions.find(&oldest, after(200)).await.unwrap(), None);
    assert!(sessions.find(&newest.unwrap(), after(200)).await.unwrap().is_some());
    assert!(sessions.find(&others, after(200)).await.unwrap().is_some(), "another key has its own limit");
    assert_eq!((sessions.figures().pushed_out, sessions.figures().open), (1, 101));
}

async fn cached_sessions_stay_valid_while_the_database_fails(fixture: Fixture) {
    let key = a_key(&fixture).await;
    let store = fixture.database().await;
    let sessions = Sessions::on(&store);
    let (known, _) = sessions.begin(key.id, NOW, HOUR).await.unwrap();
    let (unknown, _) = sessions.begin(key.id, NOW, HOUR).await.unwrap();
    assert!(sessions.find(&known, after(0)).await.unwrap().is_some());
    store.close().await;
    for second in [5, 10, 3599] {
        assert!(sessions.find(&known, after(second)).await.unwrap().is_some(), "after {second} s");
    }
    assert_eq!(sessions.find(&known, after(3600)).await.unwrap(), None, "until they expire");
    assert!(sessions.find(&unknown, after(1)).await.is_err(), "not cached");
    assert!(sessions.begin(key.id, NOW, HOUR).await.is_err());
    assert!(sessions.figures().failures >= 4);
}

on_every_database!(
    a_session_is_valid_in_every_process_until_it_expires,
    only_a_hash_of_a_session_is_stored,
    signing_out_takes_effect_here_at_once_and_elsewhere_within_a_second,
    expired_sessions_are_removed,
    the_oldest_session_of_a_key_is_removed_beyond_the_limit,
    cached_sessions_stay_valid_while_the_database_fails,
);
