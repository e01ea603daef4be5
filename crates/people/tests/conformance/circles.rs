//! What a connection needs to know of others.

use std::sync::atomic::Ordering;

use domain::UnixTime;
use people::{Acquaintance, PeopleSettings};
use presence::{Declaration, Declared, LastKnown, Remembered, Sight, Visibility};

use crate::fixture::{Fixture, NOW, chosen, on_every_database, pair, user, users};

const ALL: Sight = Sight { status: true, last_seen: true };
const STATUS: Sight = Sight { status: true, last_seen: false };
const NOTHING: Sight = Sight { status: false, last_seen: false };

fn sights(acquaintances: &[Acquaintance]) -> Vec<(u64, bool, Sight)> {
    acquaintances.iter().map(|known| (known.user.get(), known.is_friend, known.sight)).collect()
}

async fn a_circle_has_each_friend_with_what_may_be_seen(fixture: Fixture) {
    let people = fixture.people().await;
    let friends = [pair(7, 1), pair(7, 2), pair(7, 3), pair(9, 7), pair(8, 9)];
    people.add_friends(&friends, NOW).await.unwrap();
    people.set_privacy(user(1), &chosen(Visibility::Nobody, Visibility::Everyone, &[])).await.unwrap();
    people.set_privacy(user(2), &chosen(Visibility::Everyone, Visibility::Nobody, &[])).await.unwrap();
    people.set_privacy(user(3), &chosen(Visibility::Everyone, Visibility::Everyone, &[7])).await.unwrap();
    people.set_privacy(user(7), &chosen(Visibility::Friends, Visibility::Nobody, &[8])).await.unwrap();

    let circles = people.circles(&users([8, 7, 50])).await.unwrap();
    assert_eq!(circles.iter().map(|circle| circle.user).collect::<Vec<_>>(), users([8, 7, 50]));
    assert_eq!(sights(&circles[0].friends), [(9, true, ALL)]);
    let of_seven = [(1, true, NOTHING), (2, true, STATUS), (3, true, NOTHING), (9, true, ALL)];
    assert_eq!(sights(&circles[1].friends), of_seven);
    assert_eq!(circles[1].privacy, chosen(Visibility::Friends, Visibility::Nobody, &[8]));
    assert!(circles[2].friends.is_empty());
    assert_eq!(circles[2].privacy, chosen(Visibility::Friends, Visibility::Friends, &[]));
    assert!(people.circles(&[]).await.unwrap().is_empty());
}

async fn anybody_is_seen_as_they_have_chosen(fixture: Fixture) {
    let people = fixture.people().await;
    people.add_friends(&[pair(7, 1)], NOW).await.unwrap();
    people.set_privacy(user(2), &chosen(Visibility::Everyone, Visibility::Friends, &[])).await.unwrap();
    people.set_privacy(user(3), &chosen(Visibility::Everyone, Visibility::Everyone, &[7])).await.unwrap();
    let seen = people.sights(user(7), &users([3, 7, 2, 1, 4])).await.unwrap();
    let expected =
        [(3, false, NOTHING), (7, false, ALL), (2, false, STATUS), (1, true, ALL), (4, false, NOTHING)];
    assert_eq!(sights(&seen), expected);
    assert!(people.sights(user(7), &[]).await.unwrap().is_empty());
}

async fn what_was_last_known_comes_along(fixture: Fixture) {
    let people = fixture.people().await;
    people.add_friends(&[pair(7, 1), pair(7, 2)], NOW).await.unwrap();
    let declaration = Some(Declaration {
        status: Declared::Busy,
        text: Some("読書 🎧 ' \" \\".into()),
        until: Some(UnixTime(9)),
    });
    let remembered = Remembered {
        user: user(1),
        here: false,
        declaration: declaration.clone(),
        last_seen: Some(NOW),
        hidden_since: None,
        public_version: 1 << 52,
        own_version: (1 << 53) - 1,
    };
    people.remember(&[remembered]).await.unwrap();
    let known =
        LastKnown { last_seen: Some(NOW), public_version: 1 << 52, own_version: (1 << 53) - 1, declaration };
    let circles = people.circles(&users([7])).await.unwrap();
    assert_eq!(circles[0].friends[0].last, known);
    assert_eq!(circles[0].friends[1].last, LastKnown::default());
    let seen = people.sights(user(9), &users([2, 1])).await.unwrap();
    assert_eq!((&seen[0].last, &seen[1].last), (&LastKnown::default(), &known));
}

async fn many_circles_at_once_are_each_their_own(fixture: Fixture) {
    let people = fixture.people().await;
    // A ring with chords.
    let ring = 1200;
    let pairs: Vec<_> = (0..ring)
        .flat_map(|at| [pair(at + 1, (at + 1) % ring + 1), pair(at + 1, (at + 5) % ring + 1)])
        .collect();
    people.add_friends(&pairs, NOW).await.unwrap();
    let circles = people.circles(&users(1..=ring)).await.unwrap();
    assert_eq!(circles.len() as u64, ring);
    assert!(circles.iter().all(|circle| circle.friends.len() == 4));
    let second: Vec<u64> = circles[1].friends.iter().map(|friend| friend.user.get()).collect();
    assert_eq!(second, [1, 3, 7, ring - 3]);
}

async fn more_friends_than_one_may_have_are_cut_off_and_counted(fixture: Fixture) {
    let people = fixture.people_with(PeopleSettings { friends_max: 2, ..Default::default() }).await;
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO people_friendships (user_a, user_b) VALUES (1, 7), (2, 7), (7, 8), (7, 9)")
        .await;
    let circles = people.circles(&users([7])).await.unwrap();
    let kept: Vec<u64> = circles[0].friends.iter().map(|friend| friend.user.get()).collect();
    assert_eq!(kept, [1, 2]);
    assert_eq!(people.counters().circles_cut.load(Ordering::Relaxed), 1);
}

on_every_database!(
    a_circle_has_each_friend_with_what_may_be_seen,
    anybody_is_seen_as_they_have_chosen,
    what_was_last_known_comes_along,
    many_circles_at_once_are_each_their_own,
    more_friends_than_one_may_have_are_cut_off_and_counted,
);
