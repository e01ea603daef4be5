//! Presence that survives a crash (P11).

use domain::UnixTime;
use presence::{Declaration, Declared, StoredPresence};

use testkit::on_every_database;

use crate::conformance::fixture::{Fixture, NOW, OpenStore, user};

fn online(number: u64, version: u64) -> StoredPresence {
    StoredPresence {
        user: user(number),
        online: true,
        declaration: None,
        last_seen: Some(NOW),
        hidden_since: None,
        public_version: version,
        own_version: version,
    }
}

async fn p11_users_that_were_online_are_found_after_a_restart(fixture: Fixture) {
    let store = fixture.store().await;
    let declaration =
        |status, text: Option<&str>| Some(Declaration { status, text: text.map(Into::into), until: None });
    let hidden = StoredPresence {
        declaration: declaration(Declared::Invisible, None),
        hidden_since: Some(UnixTime(5)),
        last_seen: None,
        ..online(3, 8)
    };
    let busy = StoredPresence { declaration: declaration(Declared::Busy, Some("")), ..online(1, 2) };
    let gone = StoredPresence { online: false, ..online(2, 2) };
    store.save_presence(&[hidden.clone(), busy.clone(), gone]).await.unwrap();
    let again = fixture.store().await;
    assert_eq!(again.stored_online(None, 10).await.unwrap(), [busy.clone(), hidden.clone()]);
    assert_eq!(again.stored_online(None, 1).await.unwrap(), [busy]);
    assert_eq!(again.stored_online(Some(user(1)), 10).await.unwrap(), [hidden]);
    assert!(again.stored_online(Some(user(3)), 10).await.unwrap().is_empty());
    store.save_presence(&[]).await.unwrap();
}

async fn the_last_version_wins_in_whatever_order_it_comes(fixture: Fixture) {
    let store = fixture.store().await;
    let gone = |version| StoredPresence { online: false, ..online(1, version) };
    store.save_presence(&[online(1, 5)]).await.unwrap();
    store.save_presence(&[gone(4)]).await.unwrap();
    assert_eq!(store.stored_online(None, 10).await.unwrap(), [online(1, 5)], "an older one changes nothing");
    // Only `last_seen` is later: the same version again.
    let later = StoredPresence { last_seen: Some(UnixTime(NOW.0 + 9)), ..online(1, 5) };
    store.save_presence(std::slice::from_ref(&later)).await.unwrap();
    assert_eq!(store.stored_online(None, 10).await.unwrap(), [later]);
    store.save_presence(&[gone(7), online(1, 6)]).await.unwrap();
    assert!(store.stored_online(None, 10).await.unwrap().is_empty(), "twice in a batch: the last version");
    let own_only = StoredPresence { public_version: 3, ..online(1, 8) };
    store.save_presence(&[own_only]).await.unwrap();
    let kept = store.stored_online(None, 10).await.unwrap();
    assert_eq!((kept[0].own_version, kept[0].public_version), (8, 7), "a version never goes back");
}

async fn thousands_are_saved_at_once_by_several_writers(fixture: Fixture) {
    let mut writing = Vec::new();
    for number in 0..3_u64 {
        let store = fixture.store().await;
        writing.push(tokio::spawn(async move {
            let mut batch: Vec<StoredPresence> = (1..=1700).map(|id| online(id, id % 7 + number)).collect();
            fastrand::Rng::with_seed(number).shuffle(&mut batch);
            store.save_presence(&batch).await.unwrap();
        }));
    }
    for one in writing {
        one.await.unwrap();
    }
    let all = fixture.store().await.stored_online(None, 2000).await.unwrap();
    assert_eq!(all.len(), 1700);
    assert!(all.iter().all(|known| known.own_version == known.user.get() % 7 + 2));
}

async fn a_text_that_no_database_takes_fails_no_other_user(fixture: Fixture) {
    let store = fixture.store().await;
    let text = Some("a\0b".into());
    let odd = StoredPresence {
        declaration: Some(Declaration { status: Declared::Away, text, until: None }),
        ..online(1, 1)
    };
    store.save_presence(&[odd, online(2, 1)]).await.unwrap();
    let kept = store.stored_online(None, 10).await.unwrap();
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0].declaration.as_ref().unwrap().text.as_deref(), Some("ab"));
}

on_every_database!(
    p11_users_that_were_online_are_found_after_a_restart,
    the_last_version_wins_in_whatever_order_it_comes,
    thousands_are_saved_at_once_by_several_writers,
    a_text_that_no_database_takes_fails_no_other_user,
);
