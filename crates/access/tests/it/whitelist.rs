//! Conformance suite of the whitelist, on SQLite, PostgreSQL, MariaDB, Redis and Redis Cluster.

pub mod place;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use access::{AccessError, Replaced, Whitelist};
use place::{Place, build, passkey, passkeys, tidy};
use testkit::{RedisCluster, eventually_async};

/// The compiler reports an unlisted case as unused.
macro_rules! everywhere {
    ($($case:ident),+ $(,)?) => {
        everywhere!(@ sqlite $($case)+);
        everywhere!(@ postgres $($case)+);
        everywhere!(@ mariadb $($case)+);
        everywhere!(@ redis $($case)+);

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn on_a_cluster() {
            let cluster = Arc::new(RedisCluster::start());
            $(
                println!(stringify!($case));
                $case(Place::on(&cluster)).await;
            )+
        }
    };
    (@ $kind:ident $($case:ident)+) => {
        mod $kind {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(super::Place::$kind()).await;
                }
            )+
        }
    };
}

everywhere!(
    w2_passkeys_are_added_found_counted_and_removed,
    w2_any_number_of_passkeys_is_looked_up_in_one_call,
    w2_a_refresh_replaces_everything,
    w2_an_undo_can_be_undone,
    w2_only_the_previous_set_is_kept,
    w2_readers_never_see_a_part_of_a_refresh,
    w2_concurrent_refreshes_are_isolated,
    w2_an_empty_list_empties_the_whitelist_and_can_be_undone,
    w2_an_abandoned_refresh_has_no_effect,
    w2_an_unfinished_refresh_is_deleted,
    w2_a_refresh_that_was_dropped_cannot_be_committed,
    w2_changes_after_a_refresh_go_to_the_new_set,
);

async fn holds(whitelist: &dyn Whitelist, number: u64) -> bool {
    whitelist.contains(&[passkey(number)]).await.unwrap()[0]
}

async fn w2_passkeys_are_added_found_counted_and_removed(place: Place) {
    let whitelist = place.open().await;
    assert_eq!(whitelist.count().await.unwrap(), 0);
    assert_eq!(whitelist.contains(&[]).await.unwrap(), [false; 0]);
    assert_eq!(whitelist.add(&passkeys(1..4)).await.unwrap(), 3);
    assert_eq!(whitelist.add(&passkeys(2..6)).await.unwrap(), 2, "two existed");
    assert_eq!(whitelist.add(&[]).await.unwrap(), 0);
    assert_eq!(whitelist.count().await.unwrap(), 5);
    let asked = [passkey(9), passkey(5), passkey(1), passkey(5)];
    assert_eq!(whitelist.contains(&asked).await.unwrap(), [false, true, true, true]);
    assert_eq!(whitelist.remove(&[passkey(1), passkey(9)]).await.unwrap(), 1);
    assert_eq!(whitelist.remove(&[]).await.unwrap(), 0);
    // Another process sees the same.
    let other = place.open().await;
    assert_eq!((other.count().await.unwrap(), holds(&*other, 1).await), (4, false));
    // W1: upper case is the same passkey.
    let upper = passkey(5).to_string().to_uppercase().parse().unwrap();
    assert_eq!(other.contains(&[upper]).await.unwrap(), [true]);
}

async fn w2_any_number_of_passkeys_is_looked_up_in_one_call(place: Place) {
    let whitelist = place.open().await;
    let even: Vec<_> = (0..7000).filter(|number| number % 2 == 0).map(passkey).collect();
    assert_eq!(whitelist.add(&even).await.unwrap(), 3500);
    let answers = whitelist.contains(&passkeys(0..7000)).await.unwrap();
    assert!(answers.iter().enumerate().all(|(number, found)| *found == (number % 2 == 0)));
    assert_eq!(answers.len(), 7000);
    assert_eq!(whitelist.remove(&passkeys(0..7000)).await.unwrap(), 3500);
    assert_eq!(whitelist.count().await.unwrap(), 0);
}

async fn w2_a_refresh_replaces_everything(place: Place) {
    let whitelist = place.open().await;
    whitelist.add(&passkeys(0..10)).await.unwrap();
    let mut refresh = build(&*whitelist, &passkeys(5..3005), 1000).await;
    refresh.add(&passkeys(5..8)).await.unwrap();
    assert_eq!(whitelist.count().await.unwrap(), 10, "not visible before the commit");
    assert!(!holds(&*whitelist, 2000).await);
    let replaced = refresh.commit().await.unwrap();
    assert_eq!(replaced, Replaced { before: 10, after: 3000 }, "duplicates are ignored");
    assert_eq!(whitelist.count().await.unwrap(), 3000);
    let asked = [passkey(0), passkey(5), passkey(3004), passkey(3005)];
    assert_eq!(whitelist.contains(&asked).await.unwrap(), [false, true, true, false]);
}

async fn w2_an_undo_can_be_undone(place: Place) {
    let whitelist = place.open().await;
    assert_eq!(whitelist.undo().await.unwrap(), None, "there was never a refresh");
    whitelist.add(&passkeys(0..3)).await.unwrap();
    assert_eq!(whitelist.undo().await.unwrap(), None);
    build(&*whitelist, &passkeys(2..7), 2).await.commit().await.unwrap();
    assert_eq!(whitelist.undo().await.unwrap(), Some(Replaced { before: 5, after: 3 }));
    assert_eq!((holds(&*whitelist, 0).await, holds(&*whitelist, 5).await), (true, false));
    assert_eq!(whitelist.undo().await.unwrap(), Some(Replaced { before: 3, after: 5 }));
    assert_eq!((holds(&*whitelist, 0).await, holds(&*whitelist, 5).await), (false, true));
    assert_eq!(whitelist.count().await.unwrap(), 5);
    tidy(&*whitelist).await;
    assert_eq!(place.stored().await, 8);
}

async fn w2_only_the_previous_set_is_kept(place: Place) {
    let whitelist = place.open().await;
    for (numbers, stored) in [(0..1000, 1000), (1000..3000, 3000), (3000..6000, 5000), (6000..6001, 3001)] {
        build(&*whitelist, &passkeys(numbers), 999).await.commit().await.unwrap();
        tidy(&*whitelist).await;
        assert_eq!(place.stored().await, stored, "the current and the previous set");
    }
    assert_eq!(whitelist.undo().await.unwrap(), Some(Replaced { before: 1, after: 3000 }));
    assert!(holds(&*whitelist, 3000).await);
}

/// Readers run while two sets with common passkeys are switched back and forth.
async fn w2_readers_never_see_a_part_of_a_refresh(place: Place) {
    const REFRESHES: u32 = 12;
    let first: Vec<_> = passkeys(0..400);
    let second: Vec<_> = passkeys(300..900);
    let whitelist = place.open().await;
    build(&*whitelist, &first, 100).await.commit().await.unwrap();
    let (done, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (whitelist, done, looks) = (place.open().await, Arc::clone(&done), Arc::clone(&looks));
        readers.spawn(async move {
            // In both; only in the first; only in the second; in neither.
            let asked = [passkeys(300..310), passkeys(290..300), passkeys(890..900), passkeys(900..910)];
            while !done.load(Ordering::Relaxed) {
                let answers = whitelist.contains(&asked.concat()).await.unwrap();
                let parts: Vec<&[bool]> = answers.chunks(10).collect();
                for part in &parts {
                    assert!(part.iter().all(|found| *found == part[0]), "a partial set: {answers:?}");
                }
                let (both, only_first, only_second, neither) =
                    (parts[0][0], parts[1][0], parts[2][0], parts[3][0]);
                assert!(both && only_first != only_second && !neither, "{answers:?}");
                let count = whitelist.count().await.unwrap();
                assert!(count == 400 || count == 600, "a partial set of {count}");
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for round in 0..REFRESHES {
        let set = if round % 2 == 0 { &second } else { &first };
        // At least one read during each refresh.
        let looks_before = looks.load(Ordering::Relaxed);
        let refresh = build(&*whitelist, set, 50).await;
        while looks.load(Ordering::Relaxed) == looks_before {
            if let Some(ended) = readers.try_join_next() {
                ended.unwrap();
            }
            tokio::task::yield_now().await;
        }
        refresh.commit().await.unwrap();
        if round % 3 == 0 {
            whitelist.undo().await.unwrap().unwrap();
            whitelist.undo().await.unwrap().unwrap();
            tidy(&*whitelist).await;
        }
    }
    done.store(true, Ordering::Relaxed);
    while let Some(reader) = readers.join_next().await {
        reader.unwrap();
    }
}

async fn w2_concurrent_refreshes_are_isolated(place: Place) {
    let (one, other) = (place.open().await, place.open().await);
    one.add(&passkeys(0..5)).await.unwrap();
    let mut first = one.begin_refresh().await.unwrap();
    let mut second = other.begin_refresh().await.unwrap();
    for number in 0..100 {
        first.add(&passkeys(number * 10..number * 10 + 10)).await.unwrap();
        second.add(&[passkey(10_000 + number)]).await.unwrap();
    }
    assert_eq!(second.commit().await.unwrap(), Replaced { before: 5, after: 100 });
    assert_eq!(first.commit().await.unwrap(), Replaced { before: 100, after: 1000 });
    assert_eq!((one.count().await.unwrap(), holds(&*one, 10_000).await), (1000, false));
    assert_eq!(other.undo().await.unwrap(), Some(Replaced { before: 1000, after: 100 }));
    assert_eq!((holds(&*one, 10_000).await, holds(&*one, 0).await), (true, false));
    tidy(&*one).await;
    assert_eq!(place.stored().await, 1100);
}

async fn w2_an_empty_list_empties_the_whitelist_and_can_be_undone(place: Place) {
    let whitelist = place.open().await;
    whitelist.add(&passkeys(0..4)).await.unwrap();
    let refresh = whitelist.begin_refresh().await.unwrap();
    assert_eq!(refresh.commit().await.unwrap(), Replaced { before: 4, after: 0 });
    assert_eq!((whitelist.count().await.unwrap(), holds(&*whitelist, 1).await), (0, false));
    assert_eq!(whitelist.undo().await.unwrap(), Some(Replaced { before: 0, after: 4 }));
    assert!(holds(&*whitelist, 1).await);
    assert_eq!(whitelist.undo().await.unwrap(), None, "an undo to an empty set is refused");
    assert_eq!(whitelist.count().await.unwrap(), 4);
}

async fn w2_an_abandoned_refresh_has_no_effect(place: Place) {
    let whitelist = place.open().await;
    build(&*whitelist, &passkeys(0..3), 3).await.commit().await.unwrap();
    build(&*whitelist, &passkeys(1..4), 3).await.commit().await.unwrap();
    build(&*whitelist, &passkeys(100..20_000), 10_000).await.abandon().await.unwrap();
    tidy(&*whitelist).await;
    assert_eq!((whitelist.count().await.unwrap(), place.stored().await), (3, 6));
    assert_eq!(whitelist.undo().await.unwrap(), Some(Replaced { before: 3, after: 3 }));
    assert!(holds(&*whitelist, 0).await);
}

const TIMEOUT: Duration = Duration::from_secs(30);

/// Until only the three passkeys in force are stored.
async fn tidy_until_deleted(whitelist: &dyn Whitelist, place: &Place) {
    eventually_async("the unfinished refresh to be deleted", TIMEOUT, async || {
        tidy(whitelist).await;
        (place.stored().await == 3).then_some(())
    })
    .await;
}

async fn w2_an_unfinished_refresh_is_deleted(place: Place) {
    let whitelist = place.open_with_idle_max(place.short_idle_max()).await;
    whitelist.add(&passkeys(0..3)).await.unwrap();
    let dead = build(&*whitelist, &passkeys(100..15_000), 15_000).await;
    drop(dead);
    tidy_until_deleted(&*whitelist, &place).await;
    assert_eq!((whitelist.count().await.unwrap(), place.stored().await), (3, 3));
    // A process with a longer limit does not delete a refresh in progress.
    let patient = place.open().await;
    let mut alive = build(&*patient, &passkeys(5..9), 2).await;
    tidy(&*patient).await;
    patient.begin_refresh().await.unwrap().abandon().await.unwrap();
    alive.add(&passkeys(9..10)).await.unwrap();
    assert_eq!(alive.commit().await.unwrap(), Replaced { before: 3, after: 5 });
}

async fn w2_a_refresh_that_was_dropped_cannot_be_committed(place: Place) {
    let whitelist = place.open_with_idle_max(place.short_idle_max()).await;
    whitelist.add(&passkeys(0..3)).await.unwrap();
    let mut slow = build(&*whitelist, &passkeys(10..20), 10).await;
    tidy_until_deleted(&*whitelist, &place).await;
    // It continues, but its earlier batches are deleted.
    let woken = slow.add(&passkeys(20..30)).await;
    assert!(matches!(woken, Ok(()) | Err(AccessError::RefreshLost)), "{woken:?}");
    let committed = slow.commit().await;
    assert!(matches!(committed, Err(AccessError::RefreshLost)), "{committed:?}");
    assert_eq!((whitelist.count().await.unwrap(), holds(&*whitelist, 2).await), (3, true));
    assert_eq!(whitelist.undo().await.unwrap(), None);
}

async fn w2_changes_after_a_refresh_go_to_the_new_set(place: Place) {
    let (whitelist, other) = (place.open().await, place.open().await);
    whitelist.add(&passkeys(0..3)).await.unwrap();
    assert_eq!(other.count().await.unwrap(), 3);
    build(&*whitelist, &passkeys(5..8), 3).await.commit().await.unwrap();
    assert_eq!(other.add(&passkeys(0..2)).await.unwrap(), 2);
    assert_eq!(other.remove(&passkeys(2..6)).await.unwrap(), 1);
    assert_eq!(whitelist.count().await.unwrap(), 4);
    assert_eq!(whitelist.undo().await.unwrap(), Some(Replaced { before: 4, after: 3 }));
    assert!(holds(&*other, 2).await, "the replaced set is unchanged");
}
