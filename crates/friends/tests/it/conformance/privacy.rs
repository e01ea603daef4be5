//! Privacy.

use friends::{FriendStore, FriendsError, FriendsSettings};
use presence::{Audience, Privacy};

use testkit::on_every_database;

use crate::conformance::fixture::{Fixture, OpenStore, chosen, user, users};

async fn a_user_without_settings_has_the_defaults(fixture: Fixture) {
    let store = fixture.store().await;
    let expected = chosen(Audience::Friends, Audience::Friends, &[]);
    assert_eq!(store.privacy(user(7)).await.unwrap(), expected);
    let open = FriendsSettings { default_audience: Audience::Everyone, ..Default::default() };
    let store = fixture.store_with(open).await;
    let expected = chosen(Audience::Everyone, Audience::Everyone, &[]);
    assert_eq!(store.privacy(user(7)).await.unwrap(), expected);
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO people_never (user_id, viewer) VALUES (7, 9)").await;
    let expected = chosen(Audience::Everyone, Audience::Everyone, &[9]);
    assert_eq!(store.privacy(user(7)).await.unwrap(), expected);
}

async fn a_choice_replaces_the_one_before(fixture: Fixture) {
    let store = fixture.store().await;
    let first =
        Privacy { status: Audience::Everyone, last_seen: Audience::Nobody, never: users([12, 11, 12, 7]) };
    store.set_privacy(user(7), &first).await.unwrap();
    let kept = chosen(Audience::Everyone, Audience::Nobody, &[11, 12]);
    assert_eq!(
        store.privacy(user(7)).await.unwrap(),
        kept,
        "sorted, each once, no user hides from themselves"
    );
    let second = chosen(Audience::Nobody, Audience::Friends, &[12, 13]);
    store.set_privacy(user(7), &second).await.unwrap();
    assert_eq!(store.privacy(user(7)).await.unwrap(), second);
    store.set_privacy(user(7), &chosen(Audience::Nobody, Audience::Friends, &[])).await.unwrap();
    assert!(store.privacy(user(7)).await.unwrap().never.is_empty());
}

async fn the_never_list_is_bounded(fixture: Fixture) {
    let store = fixture.store().await;
    let many = |count: usize| Privacy { never: users(100..100 + count as u64), ..Privacy::default() };
    store.set_privacy(user(7), &many(FriendStore::NEVER_MAX)).await.unwrap();
    let error = store.set_privacy(user(7), &many(FriendStore::NEVER_MAX + 1)).await.unwrap_err();
    assert!(matches!(error, FriendsError::TooManyNever { count: 1001, max: 1000 }), "{error}");
    assert_eq!(store.privacy(user(7)).await.unwrap().never.len(), 1000);
}

async fn concurrent_writers_leave_the_settings_of_one(fixture: Fixture) {
    let mut choosing = Vec::new();
    for number in 0..6_u64 {
        let store = fixture.store().await;
        choosing.push(tokio::spawn(async move {
            let never = users([100 + number, 200 + number]);
            let choice = Privacy { status: Audience::Everyone, last_seen: Audience::Nobody, never };
            for _ in 0..5 {
                store.set_privacy(user(7), &choice).await.unwrap();
            }
        }));
    }
    for one in choosing {
        one.await.unwrap();
    }
    let left = fixture.store().await.privacy(user(7)).await.unwrap().never;
    assert_eq!(left.len(), 2);
    assert_eq!(left[0].get() + 100, left[1].get());
}

on_every_database!(
    a_user_without_settings_has_the_defaults,
    a_choice_replaces_the_one_before,
    the_never_list_is_bounded,
    concurrent_writers_leave_the_settings_of_one,
);
