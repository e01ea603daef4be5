//! Skipped and rejected entries, and bounds.

use std::sync::{Arc, Mutex};

use domain::AnnounceEvent;
use journal::{Batch, Lane, View};
use views::activity::record::CLIENTS_MAX;

use crate::activity::fixture::{Backend, THRESHOLD, leeches, passkey, seeds, shown, stops};

pub async fn entries_without_a_passkey_are_skipped_and_counted(backend: Backend) {
    let fixture = backend.fixture().await;
    let mut arrivals = [seeds(1, 1, -10).arrival(), seeds(1, 2, -10).arrival()];
    arrivals[0].entry.passkey = None;
    let batch =
        Batch { lane: Lane::Traffic, consumer: "c1", taken_from: None, is_retry: false, arrivals: &arrivals };
    assert_eq!(fixture.activity.apply(&batch).await.unwrap(), []);
    assert_eq!(fixture.seeding(1).await, [(2, shown(-10))]);
    let counters = fixture.activity.counters();
    assert_eq!((counters.entries.get(), counters.without_passkey.get()), (1, 1));
}

pub async fn expired_entries_change_nothing_and_are_counted(backend: Backend) {
    let fixture = backend.fixture().await;
    let threshold = i64::from(THRESHOLD);
    fixture.apply(&[seeds(1, 1, -threshold), seeds(1, 2, 1 - threshold), stops(1, 3, -threshold)]).await;
    assert_eq!(fixture.seeding(1).await, [(2, shown(1 - threshold))]);
    let counters = fixture.activity.counters();
    assert_eq!((counters.entries.get(), counters.too_old.get()), (1, 2));
}

pub async fn entries_from_the_future_are_rejected_until_their_time(backend: Backend) {
    let fixture = backend.fixture().await;
    let announces = [seeds(1, 1, 0), seeds(1, 2, 61), seeds(1, 3, 60)];
    let rejected = fixture.try_apply(&announces).await.unwrap();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0].index, 1);
    assert!(rejected[0].reason.starts_with("ts: "), "{}", rejected[0].reason);
    assert_eq!(fixture.seeding(1).await, [(3, shown(60)), (1, shown(0))]);
    assert_eq!(fixture.activity.counters().rejected.get(), 1);
    fixture.wait(1);
    fixture.apply(&announces).await;
    assert_eq!(fixture.counts(1).await, (3, 0));
}

pub async fn on_change_is_called_once_per_batch_for_users_with_an_event(backend: Backend) {
    let fixture = backend.fixture().await;
    let changed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&changed);
    fixture.activity.on_change(move |passkeys| seen.lock().unwrap().extend_from_slice(passkeys));
    let beats = |user, torrent| seeds(user, torrent, -5).event(AnnounceEvent::None);
    let begins = |user, torrent| leeches(user, torrent, -9).event(AnnounceEvent::Started);
    fixture.apply(&[beats(1, 1), begins(2, 1), begins(2, 2), stops(3, 1, -1)]).await;
    let mut expected = vec![passkey(2), passkey(3)];
    expected.sort_unstable();
    assert_eq!(*changed.lock().unwrap(), expected);
}

pub async fn clients_beyond_the_maximum_are_evicted(backend: Backend) {
    let fixture = backend.fixture().await;
    let clients_count = CLIENTS_MAX as u32 + 5;
    for client in 0..clients_count {
        fixture.apply(&[leeches(1, 1, -100 + i64::from(client)).by(client)]).await;
    }
    assert_eq!(fixture.activity.counters().clients_evicted.get(), 5);
    assert_eq!(fixture.leeching(1).await, [(1, shown(-100 + i64::from(clients_count) - 1))]);
    // The same in one batch.
    let clients: Vec<_> =
        (0..clients_count).map(|client| leeches(1, 2, -50).by(client).seq(client.into())).collect();
    fixture.apply(&clients).await;
    assert_eq!(fixture.activity.counters().clients_evicted.get(), 10);
    let stopped: Vec<_> = (5..clients_count).map(|client| stops(1, 2, -40).by(client)).collect();
    fixture.apply(&stopped).await;
    assert_eq!(fixture.leeching(1).await.len(), 1, "only the first torrent is left");
}

pub async fn thousands_of_torrents_of_a_user_are_listed_and_expire(backend: Backend) {
    let fixture = backend.fixture().await;
    let announces: Vec<_> = (0..2500).map(|torrent| seeds(1, torrent, -i64::from(torrent % 7))).collect();
    fixture.apply(&announces).await;
    assert_eq!(fixture.counts(1).await, (2500, 0));
    fixture.wait(THRESHOLD - 1);
    assert_eq!(fixture.activity.sweep().await.unwrap().torrents, 1000, "a bounded step");
    assert_eq!(fixture.counts(1).await, (358, 0), "a read removes everything that has expired");
    fixture.wait(1);
    assert_eq!(fixture.seeding(1).await, []);
}
