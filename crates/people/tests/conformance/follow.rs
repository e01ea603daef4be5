//! Changes are told, whoever makes them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use people::PeopleChange::{Everything, Friends, Privacy};
use people::{Follower, PeopleChange};
use presence::Visibility;

use crate::fixture::{Fixture, NOW, chosen, on_every_database, pair, user};

const EVERY: Duration = Duration::from_millis(20);

async fn begun(fixture: &Fixture) -> Follower {
    let mut follower = fixture.people().await.follow(EVERY);
    follower.begin().await.unwrap();
    follower
}

/// The next change, which must not be long in coming.
async fn next(follower: &mut Follower) -> Vec<PeopleChange> {
    tokio::time::timeout(Duration::from_secs(20), follower.next()).await.unwrap()
}

async fn a_change_by_another_process_is_told(fixture: Fixture) {
    let people = fixture.people().await;
    people.add_friends(&[pair(1, 2)], NOW).await.unwrap();
    let mut follower = begun(&fixture).await;
    assert!(follower.poll().await.unwrap().is_empty(), "it starts at the present");
    people.add_friends(&[pair(8, 7), pair(1, 2)], NOW).await.unwrap();
    assert_eq!(next(&mut follower).await, [Friends(user(7), user(8))]);
    people.remove_friends(&[pair(7, 8)]).await.unwrap();
    assert_eq!(next(&mut follower).await, [Friends(user(7), user(8))]);
    people.set_privacy(user(7), &chosen(Visibility::Nobody, Visibility::Nobody, &[8, 9])).await.unwrap();
    assert_eq!(next(&mut follower).await, [Privacy(user(7))]);
    people.set_privacy(user(7), &chosen(Visibility::Nobody, Visibility::Nobody, &[9])).await.unwrap();
    assert_eq!(next(&mut follower).await, [Privacy(user(7))]);
    assert!(follower.poll().await.unwrap().is_empty());
}

async fn what_a_site_writes_is_told_too(fixture: Fixture) {
    let mut follower = begun(&fixture).await;
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (1, 2), (3, 4)").await;
    assert_eq!(next(&mut follower).await, [Friends(user(1), user(2)), Friends(user(3), user(4))]);
    site.execute("UPDATE people_friendships SET user_b = 9 WHERE user_a = 1").await;
    assert_eq!(next(&mut follower).await, [Friends(user(1), user(2)), Friends(user(1), user(9))]);
    site.execute("DELETE FROM people_friendships WHERE user_a = 3").await;
    assert_eq!(next(&mut follower).await, [Friends(user(3), user(4))]);
    site.execute("INSERT INTO people_privacy (user_id, status, last_seen) VALUES (5, 'nobody', 'nobody')")
        .await;
    assert_eq!(next(&mut follower).await, [Privacy(user(5))]);
    site.execute("UPDATE people_privacy SET user_id = 6 WHERE user_id = 5").await;
    assert_eq!(next(&mut follower).await, [Privacy(user(5)), Privacy(user(6))]);
    site.execute("INSERT INTO people_never (user_id, viewer) VALUES (6, 1)").await;
    assert_eq!(next(&mut follower).await, [Privacy(user(6))]);
    site.execute("UPDATE people_never SET viewer = 2 WHERE user_id = 6").await;
    assert_eq!(next(&mut follower).await, [Privacy(user(6))]);
    site.execute("DELETE FROM people_never").await;
    assert_eq!(next(&mut follower).await, [Privacy(user(6))]);
}

async fn what_is_undone_is_not_told_and_what_commits_late_is(fixture: Fixture) {
    let mut follower = begun(&fixture).await;
    let mut site = fixture.raw().await;
    site.execute(fixture.begin()).await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (1, 2)").await;
    assert!(follower.poll().await.unwrap().is_empty());
    if let Fixture::Postgres(_) = fixture {
        // Here others need not wait for who has not committed.
        fixture.people().await.set_privacy(user(5), &Default::default()).await.unwrap();
        assert_eq!(next(&mut follower).await, [Privacy(user(5))]);
    }
    site.execute("COMMIT").await;
    assert_eq!(next(&mut follower).await, [Friends(user(1), user(2))]);
    site.execute(fixture.begin()).await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (3, 4)").await;
    site.execute("ROLLBACK").await;
    assert!(follower.poll().await.unwrap().is_empty());
}

async fn a_follower_that_did_not_begin_takes_everything_for_changed_once(fixture: Fixture) {
    let people = fixture.people().await;
    let mut follower = people.follow(EVERY);
    people.add_friends(&[pair(1, 2)], NOW).await.unwrap();
    assert_eq!(next(&mut follower).await, [Everything]);
    people.add_friends(&[pair(1, 3)], NOW).await.unwrap();
    assert_eq!(next(&mut follower).await, [Friends(user(1), user(3))]);
    assert_eq!(follower.counters().everything.load(Ordering::Relaxed), 1);
}

async fn the_log_is_trimmed_and_who_fell_behind_is_told_so(fixture: Fixture) {
    let people = fixture.people().await;
    let mut slow = begun(&fixture).await;
    let mut quick = begun(&fixture).await.log_rows_max(5);
    for number in 2..=21 {
        people.add_friends(&[pair(1, number)], NOW).await.unwrap();
    }
    // Not always all at once: PostgreSQL tells nothing that is newer than a transaction which is still open, of whomever.
    let mut told = 0;
    while told < 20 {
        told += next(&mut quick).await.len();
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
    // What was trimmed while a transaction was open, of whomever, may be told once more.
    for follower in [&mut slow, &mut quick] {
        while !follower.poll().await.unwrap().is_empty() {}
    }
    people.add_friends(&[pair(1, 50)], NOW).await.unwrap();
    assert_eq!(next(&mut slow).await, [Friends(user(1), user(50))]);
    assert_eq!(next(&mut quick).await, [Friends(user(1), user(50))]);
}

async fn more_than_can_be_told_one_by_one_is_everything(fixture: Fixture) {
    let people = fixture.people().await;
    let mut follower = begun(&fixture).await;
    let pairs: Vec<_> = (1..=20_001).map(|number| pair(number, number + 1)).collect();
    people.add_friends(&pairs, NOW).await.unwrap();
    assert_eq!(next(&mut follower).await, [Everything]);
    assert!(follower.poll().await.unwrap().is_empty());
}

async fn nothing_is_lost_when_waiting_is_given_up(fixture: Fixture) {
    let people = fixture.people().await;
    let mut follower = begun(&fixture).await;
    let mut told = Vec::new();
    for number in 2..=12 {
        people.add_friends(&[pair(1, number)], NOW).await.unwrap();
        let patience = Duration::from_micros(number * 400);
        if let Ok(changes) = tokio::time::timeout(patience, follower.next()).await {
            told.extend(changes);
        }
    }
    while told.len() < 11 {
        told.extend(next(&mut follower).await);
    }
    let expected: Vec<_> = (2..=12).map(|number| Friends(user(1), user(number))).collect();
    assert_eq!(told, expected);
}

on_every_database!(
    a_change_by_another_process_is_told,
    what_a_site_writes_is_told_too,
    what_is_undone_is_not_told_and_what_commits_late_is,
    a_follower_that_did_not_begin_takes_everything_for_changed_once,
    the_log_is_trimmed_and_who_fell_behind_is_told_so,
    more_than_can_be_told_one_by_one_is_everything,
    nothing_is_lost_when_waiting_is_given_up,
);
