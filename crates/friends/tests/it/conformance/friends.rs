//! Friendships.

use access::Store;
use database::Database;
use friends::{FriendsAdded, FriendsError, FriendsSettings};
use testkit::{eventually_async, on_every_database};

use crate::conformance::fixture::{Fixture, NOW, OpenStore, pair, user, users};

async fn a_friendship_has_no_direction_and_is_kept_once(fixture: Fixture) {
    let store = fixture.store().await;
    let all = [pair(7, 3), pair(3, 7), pair(7, 9)];
    assert_eq!(store.add_friends(&all, NOW).await.unwrap(), FriendsAdded { added: 2, already: 1 });
    let again = store.add_friends(&[pair(3, 7), pair(3, 9)], NOW).await.unwrap();
    assert_eq!(again, FriendsAdded { added: 1, already: 1 });
    let of_seven = store.friends_of(user(7), None, 10).await.unwrap();
    assert_eq!(of_seven.iter().map(|friend| friend.id).collect::<Vec<_>>(), users([3, 9]));
    assert_eq!(of_seven[0].since, NOW);
    assert_eq!(store.count_friends(user(3)).await.unwrap(), 2);
    assert_eq!(store.count_friends(user(4)).await.unwrap(), 0);

    assert_eq!(store.remove_friends(&[pair(3, 7), pair(7, 3), pair(1, 2)]).await.unwrap(), 1);
    assert_eq!(store.count_friends(user(7)).await.unwrap(), 1);
    assert_eq!(store.add_friends(&[], NOW).await.unwrap(), FriendsAdded::default());
    assert_eq!(store.remove_friends(&[]).await.unwrap(), 0);
}

async fn a_user_cannot_be_their_own_friend_and_the_call_changes_nothing(fixture: Fixture) {
    let store = fixture.store().await;
    let error = store.add_friends(&[pair(1, 2), pair(5, 5)], NOW).await.unwrap_err();
    assert!(matches!(error, FriendsError::OwnFriend(named) if named == user(5)), "{error}");
    assert_eq!(store.count_friends(user(1)).await.unwrap(), 0);
}

async fn friends_come_page_by_page(fixture: Fixture) {
    let store = fixture.store().await;
    let pairs: Vec<_> = (1..=9).filter(|other| *other != 5).map(|other| pair(5, other)).collect();
    store.add_friends(&pairs, NOW).await.unwrap();
    let ids = async |after, limit| {
        let transaction = store.friends_of(user(5), after, limit).await.unwrap();
        transaction.iter().map(|friend| friend.id.get()).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, 3).await, [1, 2, 3]);
    assert_eq!(ids(Some(user(3)), 3).await, [4, 6, 7]);
    assert_eq!(ids(Some(user(7)), 3).await, [8, 9]);
    assert_eq!(ids(Some(user(u64::try_from(i64::MAX).unwrap())), 3).await, [0_u64; 0]);
    let among = store.friends_among(user(5), &users([9, 1, 5, 11, 1])).await.unwrap();
    assert_eq!(among, users([1, 9]));
    assert!(store.friends_among(user(5), &[]).await.unwrap().is_empty());
}

async fn the_friend_limit_is_kept(fixture: Fixture) {
    let store = fixture.store_with(FriendsSettings { friends_max: 3, ..Default::default() }).await;
    store.add_friends(&[pair(1, 2), pair(1, 3), pair(4, 1)], NOW).await.unwrap();
    let error = store.add_friends(&[pair(5, 6), pair(9, 1)], NOW).await.unwrap_err();
    assert!(
        matches!(error, FriendsError::TooManyFriends { user: named, max: 3 } if named == user(1)),
        "{error}"
    );
    assert!(!error.is_retryable());
    assert_eq!(store.count_friends(user(5)).await.unwrap(), 0, "all or nothing");
    assert_eq!(store.add_friends(&[pair(1, 2)], NOW).await.unwrap(), FriendsAdded { added: 0, already: 1 });
}

async fn concurrent_writers_count_each_friendship_once_and_keep_the_limit(fixture: Fixture) {
    let settings = FriendsSettings { friends_max: 12, ..Default::default() };
    let mut adding = Vec::new();
    for number in 0..8 {
        let store = fixture.store_with(settings).await;
        adding.push(tokio::spawn(async move {
            let mut added = 0;
            let mut refused = 0;
            for other in 2..=16 {
                // Each task starts at another pair, so that all lock orders occur.
                let other = 2 + (other + number * 2) % 15;
                match store.add_friends(&[pair(1, other), pair(other, 100 + other)], NOW).await {
                    Ok(done) => added += done.added,
                    Err(FriendsError::TooManyFriends { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            (added, refused)
        }));
    }
    let mut added = 0;
    let mut refused = 0;
    for one in adding {
        let (some, no) = one.await.unwrap();
        added += some;
        refused += no;
    }
    let store = fixture.store().await;
    assert_eq!(store.count_friends(user(1)).await.unwrap(), 12);
    assert_eq!(added, 24);
    assert!(refused > 0);
}

async fn adding_and_removing_at_once_ends_as_one_of_both_says(fixture: Fixture) {
    let mut working = Vec::new();
    for number in 0..6_u64 {
        let store = fixture.store().await;
        working.push(tokio::spawn(async move {
            let mut random = fastrand::Rng::with_seed(number);
            let mut balance = 0_i64;
            for _ in 0..15 {
                let one = random.u64(1..=6);
                let pairs = [pair(one, one + 1), pair(one, one + 2)];
                match random.bool() {
                    true => balance += store.add_friends(&pairs, NOW).await.unwrap().added as i64,
                    false => balance -= store.remove_friends(&pairs).await.unwrap() as i64,
                }
            }
            balance
        }));
    }
    let mut balance = 0;
    for one in working {
        balance += one.await.unwrap();
    }
    assert_eq!(fixture.raw().await.count("people_friendships").await, balance);
}

async fn a_thousand_at_a_time(fixture: Fixture) {
    let store = fixture.store().await;
    let pairs: Vec<_> = (1..=6000).map(|number| pair(number, number + 1)).collect();
    assert_eq!(store.add_friends(&pairs, NOW).await.unwrap(), FriendsAdded { added: 6000, already: 0 });
    assert_eq!(store.remove_friends(&pairs[..5500]).await.unwrap(), 5500);
    assert_eq!(fixture.raw().await.count("people_friendships").await, 500);
}

async fn a_site_cannot_write_what_makes_no_sense(fixture: Fixture) {
    fixture.store().await;
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (1, 2)").await;
    for senseless in ["(2, 1)", "(3, 3)", "(0, 3)", "(-1, 3)", "(1, 2)"] {
        let insert = format!("INSERT INTO people_friendships (user_a, user_b) VALUES {senseless}");
        site.try_execute(&insert).await.unwrap_err();
    }
}

async fn the_tables_live_beside_those_of_users_whichever_comes_first(fixture: Fixture) {
    let store = fixture.store().await;
    let users = Store::open(&fixture.url()).await.unwrap();
    assert_eq!(users.count_users().await.unwrap(), 0);
    store.add_friends(&[pair(1, 2)], NOW).await.unwrap();
    let other = match fixture {
        Fixture::Sqlite(_) => Fixture::sqlite(),
        Fixture::Postgres(_) => Fixture::postgres(),
        Fixture::MariaDb(_) => Fixture::mariadb(),
    };
    Store::on(Database::open(&other.url()).await.unwrap()).await.unwrap();
    other.store().await.add_friends(&[pair(1, 2)], NOW).await.unwrap();
    Store::open(&other.url()).await.unwrap();
}

on_every_database!(
    a_friendship_has_no_direction_and_is_kept_once,
    a_user_cannot_be_their_own_friend_and_the_call_changes_nothing,
    friends_come_page_by_page,
    the_friend_limit_is_kept,
    concurrent_writers_count_each_friendship_once_and_keep_the_limit,
    adding_and_removing_at_once_ends_as_one_of_both_says,
    a_thousand_at_a_time,
    a_site_cannot_write_what_makes_no_sense,
    the_tables_live_beside_those_of_users_whichever_comes_first,
);

/// Only here do all writers lock a common row, so that a site that locks in another order causes a deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_a_deadlock_with_a_site_is_resolved_by_another_attempt() {
    let fixture = Fixture::mariadb();
    let store = fixture.store().await;
    store.add_friends(&[pair(1, 2)], NOW).await.unwrap();
    let mut site = fixture.raw().await;
    site.execute("START TRANSACTION").await;
    site.execute(
        "INSERT INTO people_history (id, user_id, at_ms, kind) VALUES (90, 1, 1, 'left'), (91, 1, 1, 'left')",
    )
    .await;
    site.execute("SELECT * FROM people_friendships WHERE user_a = 1 AND user_b = 2 FOR UPDATE").await;
    let removing = {
        let store = store.clone();
        tokio::spawn(async move { store.remove_friends(&[pair(1, 2)]).await })
    };
    // The transaction that holds the counter row waits for the site by now.
    let mut other = fixture.raw().await;
    let look = "SELECT newest FROM people_counters WHERE name = 'changes' FOR UPDATE NOWAIT";
    eventually_async("the row of the counter to be locked", std::time::Duration::from_secs(20), async || {
        other.try_execute(look).await.err()
    })
    .await;
    // The site has written more, so the database rolls back the other transaction.
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (3, 4)").await;
    site.execute("COMMIT").await;
    assert_eq!(removing.await.unwrap().unwrap(), 1);
    assert_eq!(store.counters().retries.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(store.count_friends(user(3)).await.unwrap(), 1);
}
