//! Privacy.

use people::{People, PeopleError, PeopleSettings};
use presence::{Privacy, Visibility};

use crate::fixture::{Fixture, chosen, on_every_database, user, users};

async fn who_has_not_chosen_has_what_the_settings_say(fixture: Fixture) {
    let people = fixture.people().await;
    let expected = chosen(Visibility::Friends, Visibility::Friends, &[]);
    assert_eq!(people.privacy(user(7)).await.unwrap(), expected);
    let open = PeopleSettings { default_visibility: Visibility::Everyone, ..Default::default() };
    let people = fixture.people_with(open).await;
    let expected = chosen(Visibility::Everyone, Visibility::Everyone, &[]);
    assert_eq!(people.privacy(user(7)).await.unwrap(), expected);
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO people_never (user_id, viewer) VALUES (7, 9)").await;
    let expected = chosen(Visibility::Everyone, Visibility::Everyone, &[9]);
    assert_eq!(people.privacy(user(7)).await.unwrap(), expected);
}

async fn a_choice_replaces_the_one_before(fixture: Fixture) {
    let people = fixture.people().await;
    let first = Privacy {
        status: Visibility::Everyone,
        last_seen: Visibility::Nobody,
        never: users([12, 11, 12, 7]),
    };
    people.set_privacy(user(7), &first).await.unwrap();
    let kept = chosen(Visibility::Everyone, Visibility::Nobody, &[11, 12]);
    assert_eq!(
        people.privacy(user(7)).await.unwrap(),
        kept,
        "sorted, each once, nobody hides from themselves"
    );
    let second = chosen(Visibility::Nobody, Visibility::Friends, &[12, 13]);
    people.set_privacy(user(7), &second).await.unwrap();
    assert_eq!(people.privacy(user(7)).await.unwrap(), second);
    people.set_privacy(user(7), &chosen(Visibility::Nobody, Visibility::Friends, &[])).await.unwrap();
    assert!(people.privacy(user(7)).await.unwrap().never.is_empty());
}

async fn the_list_of_those_who_never_see_is_bounded(fixture: Fixture) {
    let people = fixture.people().await;
    let many = |count: usize| Privacy { never: users(100..100 + count as u64), ..Privacy::default() };
    people.set_privacy(user(7), &many(People::NEVER_MAX)).await.unwrap();
    let error = people.set_privacy(user(7), &many(People::NEVER_MAX + 1)).await.unwrap_err();
    assert!(matches!(error, PeopleError::TooManyNever { count: 1001, max: 1000 }), "{error}");
    assert_eq!(people.privacy(user(7)).await.unwrap().never.len(), 1000);
}

async fn those_who_choose_at_once_leave_one_whole_choice(fixture: Fixture) {
    let mut choosing = Vec::new();
    for number in 0..6_u64 {
        let people = fixture.people().await;
        choosing.push(tokio::spawn(async move {
            let never = users([100 + number, 200 + number]);
            let choice = Privacy { status: Visibility::Everyone, last_seen: Visibility::Nobody, never };
            for _ in 0..5 {
                people.set_privacy(user(7), &choice).await.unwrap();
            }
        }));
    }
    for one in choosing {
        one.await.unwrap();
    }
    let left = fixture.people().await.privacy(user(7)).await.unwrap().never;
    assert_eq!(left.len(), 2);
    assert_eq!(left[0].get() + 100, left[1].get());
}

on_every_database!(
    who_has_not_chosen_has_what_the_settings_say,
    a_choice_replaces_the_one_before,
    the_list_of_those_who_never_see_is_bounded,
    those_who_choose_at_once_leave_one_whole_choice,
);
