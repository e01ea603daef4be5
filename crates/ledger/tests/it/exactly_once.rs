//! L6: whatever happens between reading and acknowledging, no byte is lost and none counts twice.

use std::sync::Arc;
use std::time::Duration;

use journal::{Batch, DeliveredEntry, EntryId, Lane, View, ViewError};
use ledger::Ledger;

use crate::support::simulator::{Size, World, simulate};
use crate::support::{self, Place, apply, batch, everything, figures, open};

const SIZE: Size = Size { nodes: 2, users: 4, torrents: 5, clients_per_account: 2, announces_per_client: 25 };

fn shuffled(world: &World, seed: u64) -> Vec<DeliveredEntry> {
    let mut arrivals = world.arrivals.clone();
    fastrand::Rng::with_seed(seed).shuffle(&mut arrivals);
    arrivals
}

async fn assert_credited(ledger: &Ledger, world: &World) {
    for owner in 1..=SIZE.users {
        let moved = figures(ledger, owner).await;
        assert_eq!((moved.uploaded, moved.downloaded), world.credited_to_user(owner), "user {owner}");
    }
    for ((owner, on), moved) in &world.credited {
        let account = support::account(ledger, *owner, *on).await;
        assert_eq!((account.figures.uploaded, account.figures.downloaded), *moved, "user {owner} on {on}");
    }
}

/// The state if everything is applied in order, once, on SQLite.
async fn in_order(world: &World) -> (Place, Ledger) {
    let place = Place::sqlite();
    let ledger = open(&place).await;
    for chunk in world.arrivals.chunks(500) {
        assert_eq!(apply(&ledger, "only", chunk).await, []);
    }
    (place, ledger)
}

async fn any_order_and_many_consumers_at_once_give_the_same_state(place: Place) {
    let world = simulate(11, SIZE);
    let arrivals = shuffled(&world, 11);
    let ledger = Arc::new(open(&place).await);
    let share = arrivals.len().div_ceil(6);
    let consumers: Vec<_> = arrivals
        .chunks(share)
        .enumerate()
        .map(|(number, share)| {
            let (ledger, share) = (Arc::clone(&ledger), share.to_vec());
            tokio::spawn(async move {
                for chunk in share.chunks(37) {
                    // No deadlocks.
                    assert_eq!(apply(&ledger, &format!("c{number}"), chunk).await, []);
                }
            })
        })
        .collect();
    for consumer in consumers {
        consumer.await.unwrap();
    }
    assert_credited(&ledger, &world).await;
    let (_place, expected) = in_order(&world).await;
    assert_eq!(
        everything(&ledger, SIZE.users, SIZE.torrents).await,
        everything(&expected, SIZE.users, SIZE.torrents).await
    );
    assert_eq!(ledger.counts().applied, world.arrivals.len() as u64);
}

async fn l6_a_batch_whose_commit_reply_was_lost_is_not_applied_again(place: Place) {
    let world = simulate(12, SIZE);
    let ledger = open(&place).await;
    for chunk in world.arrivals.chunks(101) {
        apply(&ledger, "a", chunk).await;
        let again = Batch { is_retry: true, ..batch("a", chunk) };
        assert_eq!(ledger.apply(&again).await.unwrap(), []);
    }
    assert_credited(&ledger, &world).await;
    let (_place, expected) = in_order(&world).await;
    assert_eq!(
        everything(&ledger, SIZE.users, SIZE.torrents).await,
        everything(&expected, SIZE.users, SIZE.torrents).await
    );
}

async fn l6_entries_applied_by_a_dead_consumer_are_left_out_after_the_takeover(place: Place) {
    let world = simulate(13, SIZE);
    let ledger = open(&place).await;
    let (applied, unapplied) = world.arrivals.split_at(world.arrivals.len() / 2);
    apply(&ledger, "dead", applied).await;
    ledger.fence("dead").await.unwrap();
    // All of it is still pending: nothing was acknowledged. It is delivered in other batches.
    let pending: Vec<DeliveredEntry> = applied.iter().chain(unapplied).copied().collect();
    for chunk in pending.chunks(77) {
        let taken = Batch { taken_from: Some("dead"), ..batch("successor", chunk) };
        assert_eq!(ledger.apply(&taken).await.unwrap(), []);
    }
    ledger.forget("dead").await.unwrap();
    assert_credited(&ledger, &world).await;
    assert_eq!(ledger.counts().repeated, applied.len() as u64);
}

async fn l6_a_second_takeover_leaves_no_gap(place: Place) {
    let world = simulate(14, SIZE);
    let ledger = open(&place).await;
    apply(&ledger, "first", &world.arrivals).await;
    // The second takes everything over and dies before it applies any of it; the first has nothing pending any more.
    ledger.fence("first").await.unwrap();
    ledger.forget("first").await.unwrap();
    ledger.fence("second").await.unwrap();
    let taken = Batch { taken_from: Some("second"), ..batch("third", &world.arrivals) };
    ledger.apply(&taken).await.unwrap();
    // The third dies before it acknowledges what it had left out.
    ledger.fence("third").await.unwrap();
    let taken = Batch { taken_from: Some("third"), ..batch("fourth", &world.arrivals) };
    ledger.apply(&taken).await.unwrap();
    assert_credited(&ledger, &world).await;
    let (_place, expected) = in_order(&world).await;
    assert_eq!(
        everything(&ledger, SIZE.users, SIZE.torrents).await,
        everything(&expected, SIZE.users, SIZE.torrents).await
    );
}

async fn l6_a_fenced_consumer_applies_nothing_any_more(place: Place) {
    let world = simulate(15, SIZE);
    let ledger = Arc::new(open(&place).await);
    let busy = tokio::spawn({
        let (ledger, arrivals) = (Arc::clone(&ledger), world.arrivals.clone());
        async move {
            let mut applied = 0;
            for chunk in arrivals.chunks(5) {
                match ledger.apply(&batch("zombie", chunk)).await {
                    Ok(_) => applied += 1,
                    Err(ViewError::Fenced) => return applied,
                    Err(ViewError::Transient { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            applied
        }
    });
    while ledger.counts().batches < 3 {
        tokio::task::yield_now().await;
    }
    ledger.fence("zombie").await.unwrap();
    let before = everything(&ledger, SIZE.users, SIZE.torrents).await;
    let applied = busy.await.unwrap();
    assert!(applied >= 3);
    assert_eq!(everything(&ledger, SIZE.users, SIZE.torrents).await, before);
    // Nor after it was forgotten, nor under an unknown name.
    ledger.forget("zombie").await.unwrap();
    ledger.fence("never seen").await.unwrap_err();
    ledger.fence("unseen").await.unwrap();
    for name in ["zombie", "unseen"] {
        let outcome = ledger.apply(&batch(name, &world.arrivals[..1])).await;
        assert!(matches!(outcome, Err(ViewError::Fenced)), "{outcome:?}");
    }
}

async fn l6_cancelled_batches_are_applied_once(place: Place) {
    let world = simulate(16, SIZE);
    let ledger = Arc::new(open(&place).await);
    let mut random = fastrand::Rng::with_seed(16);
    for chunk in shuffled(&world, 16).chunks(60) {
        let mut is_retry = false;
        loop {
            let work = tokio::spawn({
                let (ledger, chunk) = (Arc::clone(&ledger), chunk.to_vec());
                async move { ledger.apply(&Batch { is_retry, ..batch("a", &chunk) }).await }
            });
            // Cancels it, or lets it finish, at random.
            let patience = Duration::from_micros(random.u64(100..30_000) * if is_retry { 10 } else { 1 });
            let handle = work.abort_handle();
            match tokio::time::timeout(patience, work).await {
                Ok(Ok(Ok(rejected))) => {
                    assert_eq!(rejected, []);
                    break;
                }
                Ok(Ok(Err(ViewError::Transient { .. }))) => {}
                Ok(other) => panic!("{other:?}"),
                Err(_) => handle.abort(),
            }
            is_retry = true;
        }
    }
    assert_credited(&ledger, &world).await;
    let (_place, expected) = in_order(&world).await;
    assert_eq!(
        everything(&ledger, SIZE.users, SIZE.torrents).await,
        everything(&expected, SIZE.users, SIZE.torrents).await
    );
}

async fn l6_a_dead_letter_is_applied_once_under_any_id(place: Place) {
    let world = simulate(18, SIZE);
    let ledger = open(&place).await;
    let as_dead_letters = |shift: u64| -> Vec<DeliveredEntry> {
        let moved = |arrival: &DeliveredEntry| DeliveredEntry {
            id: EntryId { ms: arrival.id.ms + shift, ..arrival.id },
            ..*arrival
        };
        world.arrivals.iter().map(moved).collect()
    };
    let dead_letters = as_dead_letters(1_000_000_000);
    for (number, chunk) in dead_letters.chunks(90).enumerate() {
        let from_dlq = Batch { lane: Lane::Dead, ..batch("a", chunk) };
        assert_eq!(ledger.apply(&from_dlq).await.unwrap(), []);
        // Its consumer dies before the dead letters are deleted; the next one does not set `taken_from`.
        if number == 1 {
            let again = Batch { lane: Lane::Dead, ..batch("successor", chunk) };
            assert_eq!(ledger.apply(&again).await.unwrap(), []);
        }
    }
    // An operator replays them all while they are being applied: they get other ids.
    for chunk in as_dead_letters(2_000_000_000).chunks(90) {
        let again = Batch { lane: Lane::Dead, ..batch("b", chunk) };
        assert_eq!(ledger.apply(&again).await.unwrap(), []);
    }
    assert_credited(&ledger, &world).await;
    let (_place, expected) = in_order(&world).await;
    assert_eq!(
        everything(&ledger, SIZE.users, SIZE.torrents).await,
        everything(&expected, SIZE.users, SIZE.torrents).await
    );
}

async fn a_deleted_group_starts_after_the_last_applied_entry(place: Place) {
    let world = simulate(17, SIZE);
    let ledger = open(&place).await;
    assert_eq!(ledger.resume_after().await.unwrap(), None);
    let (early, late) = world.arrivals.split_at(20);
    apply(&ledger, "a", late).await;
    apply(&ledger, "b", early).await;
    let last = late.last().unwrap().id;
    assert_eq!(ledger.resume_after().await.unwrap(), Some(last));
    // Applying older ones does not lower it; nor does forgetting, nor do dead letters count.
    apply(&ledger, "a", &[]).await;
    ledger.forget("a").await.unwrap();
    let letter = DeliveredEntry { id: EntryId { ms: u64::MAX / 4, seq: 0 }, ..early[0] };
    let from_dlq = Batch { lane: Lane::Dead, ..batch("c", std::slice::from_ref(&letter)) };
    ledger.apply(&from_dlq).await.unwrap();
    assert_eq!(ledger.resume_after().await.unwrap(), Some(last));
}

/// An operator may replay a dead letter while it is being applied: it is delivered again, under another id, to any
/// consumer.
async fn l6_a_moved_dead_letter_counts_once(place: Place) {
    let world = simulate(18, SIZE);
    let ledger = open(&place).await;
    let (first, rest) = world.arrivals.split_first().unwrap();
    apply(&ledger, "a", rest).await;
    for (number, consumer) in ["b", "b", "c"].into_iter().enumerate() {
        let letter = DeliveredEntry { id: EntryId { ms: 1, seq: number as u64 + 1 }, ..*first };
        let from_dlq = Batch { lane: Lane::Dead, ..batch(consumer, std::slice::from_ref(&letter)) };
        assert_eq!(ledger.apply(&from_dlq).await.unwrap(), []);
    }
    assert_eq!(ledger.counts().repeated, 2);
    let (_place, expected) = in_order(&world).await;
    assert_eq!(
        everything(&ledger, SIZE.users, SIZE.torrents).await,
        everything(&expected, SIZE.users, SIZE.torrents).await
    );
}

on_every_database!(
    l6_a_moved_dead_letter_counts_once,
    any_order_and_many_consumers_at_once_give_the_same_state,
    l6_a_batch_whose_commit_reply_was_lost_is_not_applied_again,
    l6_entries_applied_by_a_dead_consumer_are_left_out_after_the_takeover,
    l6_a_second_takeover_leaves_no_gap,
    l6_a_fenced_consumer_applies_nothing_any_more,
    l6_cancelled_batches_are_applied_once,
    l6_a_dead_letter_is_applied_once_under_any_id,
    a_deleted_group_starts_after_the_last_applied_entry,
);
