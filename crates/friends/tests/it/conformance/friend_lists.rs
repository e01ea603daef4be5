//! Friend lists, and what a viewer may see.

use std::sync::atomic::Ordering;

use domain::UnixTime;
use friends::{FriendsSettings, ViewedUser};
use presence::{Audience, Declaration, Declared, LastKnown, StoredPresence, Visibility};

use testkit::on_every_database;

use crate::conformance::fixture::{Fixture, NOW, OpenStore, chosen, pair, user, users};

const ALL: Visibility = Visibility { status: true, last_seen: true };
const STATUS: Visibility = Visibility { status: true, last_seen: false };
const NOTHING: Visibility = Visibility { status: false, last_seen: false };

fn view_users(viewed: &[ViewedUser]) -> Vec<(u64, bool, Visibility)> {
    viewed.iter().map(|known| (known.user.get(), known.is_friend, known.visibility)).collect()
}

async fn a_friend_list_has_each_friend_with_what_may_be_seen(fixture: Fixture) {
    let store = fixture.store().await;
    let friends = [pair(7, 1), pair(7, 2), pair(7, 3), pair(9, 7), pair(8, 9)];
    store.add_friends(&friends, NOW).await.unwrap();
    store.set_privacy(user(1), &chosen(Audience::Nobody, Audience::Everyone, &[])).await.unwrap();
    store.set_privacy(user(2), &chosen(Audience::Everyone, Audience::Nobody, &[])).await.unwrap();
    store.set_privacy(user(3), &chosen(Audience::Everyone, Audience::Everyone, &[7])).await.unwrap();
    store.set_privacy(user(7), &chosen(Audience::Friends, Audience::Nobody, &[8])).await.unwrap();

    let friend_lists = store.friend_lists(&users([8, 7, 50])).await.unwrap();
    assert_eq!(friend_lists.iter().map(|list| list.user).collect::<Vec<_>>(), users([8, 7, 50]));
    assert_eq!(view_users(&friend_lists[0].friends), [(9, true, ALL)]);
    let of_seven = [(1, true, NOTHING), (2, true, STATUS), (3, true, NOTHING), (9, true, ALL)];
    assert_eq!(view_users(&friend_lists[1].friends), of_seven);
    assert_eq!(friend_lists[1].privacy, chosen(Audience::Friends, Audience::Nobody, &[8]));
    assert!(friend_lists[2].friends.is_empty());
    assert_eq!(friend_lists[2].privacy, chosen(Audience::Friends, Audience::Friends, &[]));
    assert!(store.friend_lists(&[]).await.unwrap().is_empty());
}

async fn any_user_is_seen_by_their_privacy(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_friends(&[pair(7, 1)], NOW).await.unwrap();
    store.set_privacy(user(2), &chosen(Audience::Everyone, Audience::Friends, &[])).await.unwrap();
    store.set_privacy(user(3), &chosen(Audience::Everyone, Audience::Everyone, &[7])).await.unwrap();
    let seen = store.view_users(user(7), &users([3, 7, 2, 1, 4])).await.unwrap();
    let expected =
        [(3, false, NOTHING), (7, false, ALL), (2, false, STATUS), (1, true, ALL), (4, false, NOTHING)];
    assert_eq!(view_users(&seen), expected);
    assert!(store.view_users(user(7), &[]).await.unwrap().is_empty());
}

async fn what_was_last_known_comes_along(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_friends(&[pair(7, 1), pair(7, 2)], NOW).await.unwrap();
    let declaration = Some(Declaration {
        status: Declared::Busy,
        text: Some("読書 🎧 ' \" \\".into()),
        until: Some(UnixTime(9)),
    });
    let presence = StoredPresence {
        user: user(1),
        online: false,
        declaration: declaration.clone(),
        last_seen: Some(NOW),
        hidden_since: None,
        public_version: 1 << 52,
        own_version: (1 << 53) - 1,
    };
    store.save_presence(&[presence]).await.unwrap();
    let known =
        LastKnown { last_seen: Some(NOW), public_version: 1 << 52, own_version: (1 << 53) - 1, declaration };
    let friend_lists = store.friend_lists(&users([7])).await.unwrap();
    assert_eq!(friend_lists[0].friends[0].last, known);
    assert_eq!(friend_lists[0].friends[1].last, LastKnown::default());
    let seen = store.view_users(user(9), &users([2, 1])).await.unwrap();
    assert_eq!((&seen[0].last, &seen[1].last), (&LastKnown::default(), &known));
}

async fn many_friend_lists_at_once_are_each_their_own(fixture: Fixture) {
    let store = fixture.store().await;
    // A ring of users, each with further friends across it.
    let ring = 1200;
    let pairs: Vec<_> = (0..ring)
        .flat_map(|at| [pair(at + 1, (at + 1) % ring + 1), pair(at + 1, (at + 5) % ring + 1)])
        .collect();
    store.add_friends(&pairs, NOW).await.unwrap();
    let friend_lists = store.friend_lists(&users(1..=ring)).await.unwrap();
    assert_eq!(friend_lists.len() as u64, ring);
    assert!(friend_lists.iter().all(|list| list.friends.len() == 4));
    let second: Vec<u64> = friend_lists[1].friends.iter().map(|friend| friend.user.get()).collect();
    assert_eq!(second, [1, 3, 7, ring - 3]);
}

async fn a_list_over_the_limit_is_truncated_and_counted(fixture: Fixture) {
    let store = fixture.store_with(FriendsSettings { friends_max: 2, ..Default::default() }).await;
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (1, 7), (2, 7), (7, 8), (7, 9)")
        .await;
    let friend_lists = store.friend_lists(&users([7])).await.unwrap();
    let kept: Vec<u64> = friend_lists[0].friends.iter().map(|friend| friend.user.get()).collect();
    assert_eq!(kept, [1, 2]);
    assert_eq!(store.counters().lists_truncated.load(Ordering::Relaxed), 1);
}

on_every_database!(
    a_friend_list_has_each_friend_with_what_may_be_seen,
    any_user_is_seen_by_their_privacy,
    what_was_last_known_comes_along,
    many_friend_lists_at_once_are_each_their_own,
    a_list_over_the_limit_is_truncated_and_counted,
);
