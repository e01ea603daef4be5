//! What should be known after a crash (P11).

use domain::UnixTime;
use presence::{Declaration, Declared, Remembered};

use crate::fixture::{Fixture, NOW, on_every_database, user};

fn here(number: u64, version: u64) -> Remembered {
    Remembered {
        user: user(number),
        here: true,
        declaration: None,
        last_seen: Some(NOW),
        hidden_since: None,
        public_version: version,
        own_version: version,
    }
}

async fn p11_those_who_were_here_are_found_again_with_all_that_is_known(fixture: Fixture) {
    let people = fixture.people().await;
    let said =
        |status, text: Option<&str>| Some(Declaration { status, text: text.map(Into::into), until: None });
    let hidden = Remembered {
        declaration: said(Declared::Invisible, None),
        hidden_since: Some(UnixTime(5)),
        last_seen: None,
        ..here(3, 8)
    };
    let busy = Remembered { declaration: said(Declared::Busy, Some("")), ..here(1, 2) };
    let gone = Remembered { here: false, ..here(2, 2) };
    people.remember(&[hidden.clone(), busy.clone(), gone]).await.unwrap();
    let again = fixture.people().await;
    assert_eq!(again.here(None, 10).await.unwrap(), [busy.clone(), hidden.clone()]);
    assert_eq!(again.here(None, 1).await.unwrap(), [busy]);
    assert_eq!(again.here(Some(user(1)), 10).await.unwrap(), [hidden]);
    assert!(again.here(Some(user(3)), 10).await.unwrap().is_empty());
    people.remember(&[]).await.unwrap();
}

async fn the_last_version_wins_in_whatever_order_it_comes(fixture: Fixture) {
    let people = fixture.people().await;
    let gone = |version| Remembered { here: false, ..here(1, version) };
    people.remember(&[here(1, 5)]).await.unwrap();
    people.remember(&[gone(4)]).await.unwrap();
    assert_eq!(people.here(None, 10).await.unwrap(), [here(1, 5)], "an older one changes nothing");
    // Only when they were last here is later: the same version again.
    let later = Remembered { last_seen: Some(UnixTime(NOW.0 + 9)), ..here(1, 5) };
    people.remember(std::slice::from_ref(&later)).await.unwrap();
    assert_eq!(people.here(None, 10).await.unwrap(), [later]);
    people.remember(&[gone(7), here(1, 6)]).await.unwrap();
    assert!(people.here(None, 10).await.unwrap().is_empty(), "twice in a batch: the last version");
    let own_only = Remembered { public_version: 3, ..here(1, 8) };
    people.remember(&[own_only]).await.unwrap();
    let kept = people.here(None, 10).await.unwrap();
    assert_eq!((kept[0].own_version, kept[0].public_version), (8, 7), "a version never goes back");
}

async fn thousands_are_remembered_at_once_by_several_writers(fixture: Fixture) {
    let mut writing = Vec::new();
    for number in 0..3_u64 {
        let people = fixture.people().await;
        writing.push(tokio::spawn(async move {
            let mut batch: Vec<Remembered> = (1..=1700).map(|id| here(id, id % 7 + number)).collect();
            fastrand::Rng::with_seed(number).shuffle(&mut batch);
            people.remember(&batch).await.unwrap();
        }));
    }
    for one in writing {
        one.await.unwrap();
    }
    let all = fixture.people().await.here(None, 2000).await.unwrap();
    assert_eq!(all.len(), 1700);
    assert!(all.iter().all(|known| known.own_version == known.user.get() % 7 + 2));
}

async fn a_text_that_no_database_takes_keeps_nobody_else_out(fixture: Fixture) {
    let people = fixture.people().await;
    let text = Some("a\0b".into());
    let odd = Remembered {
        declaration: Some(Declaration { status: Declared::Away, text, until: None }),
        ..here(1, 1)
    };
    people.remember(&[odd, here(2, 1)]).await.unwrap();
    let kept = people.here(None, 10).await.unwrap();
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0].declaration.as_ref().unwrap().text.as_deref(), Some("ab"));
}

on_every_database!(
    p11_those_who_were_here_are_found_again_with_all_that_is_known,
    the_last_version_wins_in_whatever_order_it_comes,
    thousands_are_remembered_at_once_by_several_writers,
    a_text_that_no_database_takes_keeps_nobody_else_out,
);
