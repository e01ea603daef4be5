//! The change feed returns changes by any process.

use std::sync::atomic::Ordering;
use std::time::Duration;

use friends::FriendsChange::{Everything, Friends, Privacy};
use friends::{ChangeFeed, FriendsChange};
use presence::Audience;

use testkit::on_every_database;

use crate::conformance::fixture::{Fixture, NOW, OpenStore, chosen, pair, user};

const EVERY: Duration = Duration::from_millis(20);

async fn begun(fixture: &Fixture) -> ChangeFeed {
    let mut feed = fixture.store().await.change_feed(EVERY);
    feed.begin().await.unwrap();
    feed
}

/// The next change, with a timeout.
async fn next(feed: &mut ChangeFeed) -> Vec<FriendsChange> {
    tokio::time::timeout(Duration::from_secs(20), feed.next()).await.unwrap()
}

async fn a_change_by_another_process_is_received(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_friends(&[pair(1, 2)], NOW).await.unwrap();
    let mut feed = begun(&fixture).await;
    assert!(feed.poll().await.unwrap().is_empty(), "it starts at the present");
    store.add_friends(&[pair(8, 7), pair(1, 2)], NOW).await.unwrap();
    assert_eq!(next(&mut feed).await, [Friends(user(7), user(8))]);
    store.remove_friends(&[pair(7, 8)]).await.unwrap();
    assert_eq!(next(&mut feed).await, [Friends(user(7), user(8))]);
    store.set_privacy(user(7), &chosen(Audience::Nobody, Audience::Nobody, &[8, 9])).await.unwrap();
    assert_eq!(next(&mut feed).await, [Privacy(user(7))]);
    store.set_privacy(user(7), &chosen(Audience::Nobody, Audience::Nobody, &[9])).await.unwrap();
    assert_eq!(next(&mut feed).await, [Privacy(user(7))]);
    assert!(feed.poll().await.unwrap().is_empty());
}

async fn a_change_by_the_site_is_received(fixture: Fixture) {
    let mut feed = begun(&fixture).await;
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (1, 2), (3, 4)").await;
    assert_eq!(next(&mut feed).await, [Friends(user(1), user(2)), Friends(user(3), user(4))]);
    site.execute("UPDATE people_friendships SET user_b = 9 WHERE user_a = 1").await;
    assert_eq!(next(&mut feed).await, [Friends(user(1), user(2)), Friends(user(1), user(9))]);
    site.execute("DELETE FROM people_friendships WHERE user_a = 3").await;
    assert_eq!(next(&mut feed).await, [Friends(user(3), user(4))]);
    site.execute("INSERT INTO people_privacy (user_id, status, last_seen) VALUES (5, 'nobody', 'nobody')")
        .await;
    assert_eq!(next(&mut feed).await, [Privacy(user(5))]);
    site.execute("UPDATE people_privacy SET user_id = 6 WHERE user_id = 5").await;
    assert_eq!(next(&mut feed).await, [Privacy(user(5)), Privacy(user(6))]);
    site.execute("INSERT INTO people_never (user_id, viewer) VALUES (6, 1)").await;
    assert_eq!(next(&mut feed).await, [Privacy(user(6))]);
    site.execute("UPDATE people_never SET viewer = 2 WHERE user_id = 6").await;
    assert_eq!(next(&mut feed).await, [Privacy(user(6))]);
    site.execute("DELETE FROM people_never").await;
    assert_eq!(next(&mut feed).await, [Privacy(user(6))]);
}

async fn a_rolled_back_change_is_not_received_and_a_late_commit_is(fixture: Fixture) {
    let mut feed = begun(&fixture).await;
    let mut site = fixture.raw().await;
    site.execute(fixture.begin()).await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (1, 2)").await;
    assert!(feed.poll().await.unwrap().is_empty());
    if let Fixture::Postgres(_) = fixture {
        // Only here do writers not wait for an uncommitted transaction.
        fixture.store().await.set_privacy(user(5), &Default::default()).await.unwrap();
        assert_eq!(next(&mut feed).await, [Privacy(user(5))]);
    }
    site.execute("COMMIT").await;
    assert_eq!(next(&mut feed).await, [Friends(user(1), user(2))]);
    site.execute(fixture.begin()).await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (3, 4)").await;
    site.execute("ROLLBACK").await;
    assert!(feed.poll().await.unwrap().is_empty());
}

async fn a_feed_that_did_not_begin_receives_everything_once(fixture: Fixture) {
    let store = fixture.store().await;
    let mut feed = store.change_feed(EVERY);
    store.add_friends(&[pair(1, 2)], NOW).await.unwrap();
    assert_eq!(next(&mut feed).await, [Everything]);
    store.add_friends(&[pair(1, 3)], NOW).await.unwrap();
    assert_eq!(next(&mut feed).await, [Friends(user(1), user(3))]);
    assert_eq!(feed.counters().everything.load(Ordering::Relaxed), 1);
}

async fn the_log_is_trimmed_and_a_feed_behind_it_receives_everything(fixture: Fixture) {
    let store = fixture.store().await;
    let mut slow = begun(&fixture).await;
    let mut quick = begun(&fixture).await.log_rows_max(5);
    for number in 2..=21 {
        store.add_friends(&[pair(1, number)], NOW).await.unwrap();
    }
    // Not always all at once: PostgreSQL returns nothing newer than the oldest open transaction of the server.
    let mut received = 0;
    while received < 20 {
        received += next(&mut quick).await.len();
    }
    assert!(quick.poll().await.unwrap().is_empty());
    let mut raw = fixture.raw().await;
    let short = async {
        while raw.count("people_changes").await > 5 {
            quick.poll().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(20), short).await.expect("the log is trimmed");
    assert_eq!(next(&mut slow).await, [Everything]);
    // Rows trimmed while another transaction of the server was open may be returned twice.
    for feed in [&mut slow, &mut quick] {
        while !feed.poll().await.unwrap().is_empty() {}
    }
    store.add_friends(&[pair(1, 50)], NOW).await.unwrap();
    assert_eq!(next(&mut slow).await, [Friends(user(1), user(50))]);
    assert_eq!(next(&mut quick).await, [Friends(user(1), user(50))]);
}

async fn too_many_changes_are_everything(fixture: Fixture) {
    let store = fixture.store().await;
    let mut feed = begun(&fixture).await;
    let pairs: Vec<_> = (1..=20_001).map(|number| pair(number, number + 1)).collect();
    store.add_friends(&pairs, NOW).await.unwrap();
    assert_eq!(next(&mut feed).await, [Everything]);
    assert!(feed.poll().await.unwrap().is_empty());
}

async fn next_is_cancel_safe(fixture: Fixture) {
    let store = fixture.store().await;
    let mut feed = begun(&fixture).await;
    let mut received = Vec::new();
    for number in 2..=12 {
        store.add_friends(&[pair(1, number)], NOW).await.unwrap();
        let patience = Duration::from_micros(number * 400);
        if let Ok(changes) = tokio::time::timeout(patience, feed.next()).await {
            received.extend(changes);
        }
    }
    while received.len() < 11 {
        received.extend(next(&mut feed).await);
    }
    let expected: Vec<_> = (2..=12).map(|number| Friends(user(1), user(number))).collect();
    assert_eq!(received, expected);
}

on_every_database!(
    a_change_by_another_process_is_received,
    a_change_by_the_site_is_received,
    a_rolled_back_change_is_not_received_and_a_late_commit_is,
    a_feed_that_did_not_begin_receives_everything_once,
    the_log_is_trimmed_and_a_feed_behind_it_receives_everything,
    too_many_changes_are_everything,
    next_is_cancel_safe,
);
