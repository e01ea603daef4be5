//! The change feed of the whitelist, on every database.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::PasskeyChange::{Added, Removed};
use access::{AccessError, PasskeyChange, PasskeyFeed, Passkeys, Replaced, SqlWhitelist};
use domain::Passkey;
use testkit::{PostgresServer, RedisServer, on_every_database};

use crate::fixture::{Fixture, OpenStore};
use crate::whitelist::place::{on_redis, passkey, passkeys};

on_every_database!(
    w2_changes_are_published_in_order,
    w2_a_repeated_call_publishes_again,
    w2_a_reader_that_is_far_behind_gets_replaced,
    w2_no_change_of_concurrent_writers_is_missed,
    w2_a_refresh_from_text_is_atomic,
    w2_a_refresh_in_many_chunks,
    w1_upper_case_is_stored_in_lower_case,
    w2_a_restored_database_is_detected,
);

async fn open(fixture: &Fixture) -> (Passkeys, PasskeyFeed) {
    let store = fixture.store().await;
    let feed = PasskeyFeed::open(&store).await.unwrap();
    (Passkeys::new(Arc::new(SqlWhitelist::new(store.clone())), store), feed)
}

async fn refresh(passkeys: &Passkeys, pieces: &[&[u8]], allow_empty: bool) -> Result<Replaced, AccessError> {
    let mut upload = passkeys.upload().await?;
    for piece in pieces {
        if let Err(error) = upload.push(piece).await {
            upload.abandon().await;
            return Err(error);
        }
    }
    upload.finish(allow_empty).await
}

async fn w2_changes_are_published_in_order(fixture: Fixture) {
    let (whitelist, mut feed) = open(&fixture).await;
    assert_eq!(feed.next_changes().await.unwrap(), []);
    whitelist.add(&passkeys(0..2)).await.unwrap();
    whitelist.remove(&[passkey(0)]).await.unwrap();
    let mut later = PasskeyFeed::open(&fixture.store().await).await.unwrap();
    let expected = [Added(passkey(0)), Added(passkey(1)), Removed(passkey(0))];
    assert_eq!(feed.next_changes().await.unwrap(), expected);
    assert_eq!(feed.next_changes().await.unwrap(), []);
    assert_eq!(later.next_changes().await.unwrap(), [], "published before it was opened");
    refresh(&whitelist, &[passkey(7).to_string().as_bytes()], false).await.unwrap();
    whitelist.add(&[passkey(8)]).await.unwrap();
    // A refresh replaces all other changes of a poll.
    for feed in [&mut feed, &mut later] {
        assert_eq!(feed.next_changes().await.unwrap(), [PasskeyChange::Replaced]);
        assert_eq!(feed.next_changes().await.unwrap(), []);
    }
    whitelist.undo().await.unwrap().unwrap();
    assert_eq!(feed.next_changes().await.unwrap(), [PasskeyChange::Replaced]);
    assert_eq!(whitelist.contains(&passkeys(0..2)).await.unwrap(), [false, true]);
}

async fn w2_a_repeated_call_publishes_again(fixture: Fixture) {
    let (whitelist, mut feed) = open(&fixture).await;
    assert_eq!(whitelist.remove(&[passkey(1)]).await.unwrap(), 0);
    assert_eq!(
        feed.next_changes().await.unwrap(),
        [Removed(passkey(1))],
        "the first process may have died before it published"
    );
    whitelist.add(&[]).await.unwrap();
    assert_eq!(whitelist.undo().await.unwrap(), None);
    assert_eq!(feed.next_changes().await.unwrap(), []);
}

async fn w2_a_reader_that_is_far_behind_gets_replaced(fixture: Fixture) {
    let (whitelist, mut feed) = open(&fixture).await;
    let mut prompt = PasskeyFeed::open(&fixture.store().await).await.unwrap();
    for round in 0..11 {
        whitelist.add(&passkeys(round * 1000..(round + 1) * 1000)).await.unwrap();
        assert_eq!(prompt.next_changes().await.unwrap().len(), 1000);
    }
    assert_eq!(feed.next_changes().await.unwrap(), [PasskeyChange::Replaced]);
    assert_eq!(feed.next_changes().await.unwrap(), []);
    assert_eq!(fixture.raw().await.count("passkey_changes").await, 10_000, "bounded");
    whitelist.remove(&passkeys(0..5000)).await.unwrap();
    assert_eq!(feed.next_changes().await.unwrap(), [PasskeyChange::Replaced], "too many changes");
    assert_eq!(fixture.raw().await.count("passkey_changes").await, 10_000);
}

async fn w2_no_change_of_concurrent_writers_is_missed(fixture: Fixture) {
    const WRITERS: u64 = 4;
    const EACH: u64 = 25;
    let (_, mut feed) = open(&fixture).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (whitelist, _) = open(&fixture).await;
        writers.spawn(async move {
            for number in 0..EACH {
                whitelist.add(&[passkey(writer * EACH + number)]).await.unwrap();
            }
        });
    }
    let mut received: BTreeMap<Passkey, u32> = BTreeMap::new();
    loop {
        let is_over = writers.is_empty();
        for change in feed.next_changes().await.unwrap() {
            match change {
                Added(passkey) => *received.entry(passkey).or_default() += 1,
                other => panic!("{other:?}"),
            }
        }
        if is_over {
            break;
        }
        while let Some(ended) = writers.try_join_next() {
            ended.unwrap();
        }
    }
    assert_eq!(received.len() as u64, WRITERS * EACH);
    assert!(received.values().all(|times| *times == 1), "each once: {received:?}");
}

async fn w2_a_refresh_from_text_is_atomic(fixture: Fixture) {
    let (whitelist, mut feed) = open(&fixture).await;
    whitelist.add(&passkeys(0..3)).await.unwrap();
    feed.next_changes().await.unwrap();
    let slip: [&[u8]; 2] = [b"0123456789abcdef\n# a comment\n", b"0123456789abcdeX\n"];
    let error = refresh(&whitelist, &slip, false).await.unwrap_err();
    assert!(error.to_string().starts_with("line 3 is not a passkey"), "{error}");
    let error = refresh(&whitelist, &[b"0123456789abcdef\n0123"], false).await.unwrap_err();
    assert!(
        error.to_string().starts_with("line 2 is not a passkey"),
        "the last line, without an end: {error}"
    );
    let error = refresh(&whitelist, &[b"# empty\n", b"\n"], false).await.unwrap_err();
    assert!(matches!(error, AccessError::EmptyRefresh), "{error}");
    let mut after_an_error = whitelist.upload().await.unwrap();
    after_an_error.push(b"no\n").await.unwrap_err();
    after_an_error.push(b"0123456789abcdef\n").await.unwrap();
    let error = after_an_error.finish(false).await.unwrap_err();
    assert!(matches!(error, AccessError::RefreshLost), "{error}");
    drop(whitelist.upload().await.unwrap());
    assert_eq!(feed.next_changes().await.unwrap(), []);
    assert_eq!(whitelist.contains(&passkeys(0..3)).await.unwrap(), [true; 3]);
    let empty = refresh(&whitelist, &[b"# empty\n"], true).await.unwrap();
    assert_eq!(empty, Replaced { before: 3, after: 0 });
    whitelist.tidy().await.unwrap();
    assert_eq!(fixture.raw().await.count("whitelist_passkeys").await, 3);
}

async fn w2_a_refresh_in_many_chunks(fixture: Fixture) {
    let (whitelist, _) = open(&fixture).await;
    let text: String = (0..70_000).map(|number| format!("{number:016X}\r\n")).collect();
    let mut upload = whitelist.upload().await.unwrap();
    let mut received = 0;
    for piece in text.as_bytes().chunks(100_003) {
        let so_far = upload.push(piece).await.unwrap();
        assert!(so_far > received, "progress");
        received = so_far;
    }
    assert_eq!(upload.finish(false).await.unwrap(), Replaced { before: 0, after: 70_000 });
    let asked =
        ["0000000000000000", "000000000001116f", "0000000000011170"].map(|text| text.parse().unwrap());
    assert_eq!(whitelist.contains(&asked).await.unwrap(), [true, true, false]);
    assert_eq!(whitelist.count().await.unwrap(), 70_000);
}

async fn w1_upper_case_is_stored_in_lower_case(fixture: Fixture) {
    let (whitelist, _) = open(&fixture).await;
    whitelist.add(&["ABCDEF0123456789".parse().unwrap()]).await.unwrap();
    let mut raw = fixture.raw().await;
    let stored = "whitelist_passkeys WHERE passkey = 'abcdef0123456789'";
    assert_eq!(raw.count(stored).await, 1);
    let wrong = "INSERT INTO whitelist_passkeys (generation, passkey) VALUES (1, 'ABCDEF99')";
    assert!(raw.try_execute(wrong).await.is_err());
}

async fn w2_a_restored_database_is_detected(fixture: Fixture) {
    let (whitelist, mut feed) = open(&fixture).await;
    whitelist.add(&passkeys(0..20)).await.unwrap();
    assert_eq!(feed.next_changes().await.unwrap().len(), 20);
    let mut raw = fixture.raw().await;
    raw.execute("UPDATE whitelist_state SET newest_change = 3").await;
    assert_eq!(feed.next_changes().await.unwrap(), [PasskeyChange::Replaced]);
    assert_eq!(feed.next_changes().await.unwrap(), []);
}

#[tokio::test]
async fn w2_changes_of_a_set_in_redis_are_published_in_the_database() {
    let (redis, fixture) = (RedisServer::start(), Fixture::sqlite());
    let store = fixture.store().await;
    let mut feed = PasskeyFeed::open(&store).await.unwrap();
    let whitelist = Passkeys::new(Arc::new(on_redis(&redis.url(), "pt:passkeys")), store);
    whitelist.add(&[passkey(1)]).await.unwrap();
    assert_eq!(redis.cli(&["SISMEMBER", "pt:passkeys", &passkey(1).to_string()]), "1");
    assert_eq!(feed.next_changes().await.unwrap(), [Added(passkey(1))]);
    refresh(&whitelist, &[b"00000000\n", b"11111111"], false).await.unwrap();
    assert_eq!(redis.cli(&["SCARD", "pt:passkeys"]), "2");
    assert_eq!(feed.next_changes().await.unwrap(), [PasskeyChange::Replaced]);
}

#[tokio::test]
async fn w2_an_unpublished_change_is_an_error_and_can_be_repeated() {
    let redis = RedisServer::start();
    let fixture = Fixture::Postgres(PostgresServer::shared().fresh_database());
    let store = fixture.store().await;
    let whitelist = Passkeys::new(Arc::new(on_redis(&redis.url(), "pt:passkeys")), store.clone());
    let mut raw = fixture.raw().await;
    raw.execute("ALTER TABLE passkey_changes RENAME TO hidden").await;
    let error = whitelist.remove(&[passkey(1)]).await.unwrap_err();
    assert!(matches!(error, AccessError::Unpublished(_)), "{error}");
    assert!(error.to_string().contains("repeat the command"), "{error}");
    raw.execute("ALTER TABLE hidden RENAME TO passkey_changes").await;
    let mut feed = PasskeyFeed::open(&store).await.unwrap();
    whitelist.remove(&[passkey(1)]).await.unwrap();
    assert_eq!(feed.next_changes().await.unwrap(), [Removed(passkey(1))]);
}
