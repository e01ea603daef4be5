//! Queries of the ledger, on each database.

use domain::clock::ManualClock;
use domain::{AnnounceEvent, PeerId, Seconds, UnixTime};
use journal::TrafficEntry;
use ledger::{HitAndRunPolicy, NewMultiplier, Percent, Scope};

use crate::support::simulator::{BEGIN, arrivals_of, entry, torrent, user};
use crate::support::{Known, Place, Risks, account, apply, boundless, clock, key, open_with};

const PEER: PeerId = PeerId(*b"-TR3000-abcdefghijkl");

/// An entry of any user on torrent 1.
fn of_user(owner: u64, at: u32) -> TrafficEntry {
    TrafficEntry {
        uploaded_delta: owner,
        ..entry(owner, 1, PEER, UnixTime(BEGIN + at), AnnounceEvent::None, owner)
    }
}

async fn the_accounts_on_a_torrent_come_newest_first_page_by_page(place: Place) {
    let ledger = open_with(&place, boundless(), Known::default(), clock(), Risks::default()).await;
    // Pairs were last seen at the same time.
    let mut entries: Vec<TrafficEntry> =
        (1..=9).map(|owner| of_user(owner, 100 * (owner as u32 / 2))).collect();
    entries.push(entry(1, 2, PEER, UnixTime(BEGIN + 5000), AnnounceEvent::None, 0));
    apply(&ledger, "a", &arrivals_of(entries)).await;
    for limit in [1, 2, 4, 9, 1000] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = ledger.accounts_on(torrent(1), after, limit).await.unwrap();
            assert!(page.accounts.len() <= limit as usize);
            seen.extend(page.accounts.iter().map(|(key, account)| {
                assert_eq!((account.left, key.torrent), (Some(key.user.get()), torrent(1)));
                key.user.get()
            }));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, (1..=9).rev().collect::<Vec<_>>(), "limit {limit}");
    }
    assert_eq!(ledger.accounts_on(torrent(3), None, 10).await.unwrap().accounts, []);
    let forged = Some((UnixTime(u32::MAX), user(i64::MAX as u64)));
    assert_eq!(ledger.accounts_on(torrent(1), forged, 10).await.unwrap().accounts.len(), 9);
    assert_eq!(ledger.accounts_on(torrent(1), Some((UnixTime(0), user(1))), 10).await.unwrap().accounts, []);

    let mut found = ledger.accounts(&[key(3, 1), key(1, 2), key(3, 2)]).await.unwrap();
    found.sort_by_key(|(key, _)| *key);
    let keys: Vec<_> = found.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [key(1, 2), key(3, 1)]);
    assert_eq!(found[1].1, account(&ledger, 3, 1).await);
    assert_eq!(ledger.accounts(&[]).await.unwrap(), []);
}

/// Regression: ending a multiplier removed its row, and no entry could be explained any more.
async fn the_credit_of_an_entry_is_known_after_a_multiplier_was_ended(place: Place) {
    let hands = ManualClock::at(UnixTime(BEGIN + 150));
    let ledger = open_with(&place, boundless(), Known::default(), hands, Risks::default()).await;
    let reported = async |at: u32| {
        let terms = ledger.past_multipliers().await.unwrap();
        let in_force = terms.in_force(key(1, 1), UnixTime(BEGIN + at));
        in_force.map(|terms| (terms.uploaded(1001), terms.downloaded(1001), terms.uploaded(u64::MAX)))
    };
    assert_eq!(reported(0).await, Some((1001, 1001, u64::MAX)));
    let feast = NewMultiplier {
        scope: Scope::Site,
        upload: Percent::new(150).unwrap(),
        download: Percent::new(0).unwrap(),
        starts_at: UnixTime(BEGIN + 100),
        ends_at: Some(UnixTime(BEGIN + 200)),
        note: "feast".to_owned(),
    };
    let added = ledger.add_multiplier(feast).await.unwrap();
    assert_eq!(reported(99).await, Some((1001, 1001, u64::MAX)));
    assert_eq!(reported(100).await, Some((1501, 0, u64::MAX)));
    assert!(!ledger.end_multiplier(added.id + 1).await.unwrap());
    assert_eq!(reported(200).await, Some((1001, 1001, u64::MAX)), "nothing was removed");
    assert!(ledger.end_multiplier(added.id).await.unwrap());
    assert!(!ledger.end_multiplier(added.id).await.unwrap(), "it has ended");
    assert_eq!(reported(150).await, Some((1501, 0, u64::MAX)), "it was in force");
    assert_eq!(reported(151).await, Some((1001, 1001, u64::MAX)));
    assert_eq!(ledger.multipliers().await.unwrap()[0].terms.ends_at, Some(UnixTime(BEGIN + 151)));
}

async fn all_users_come_by_number_and_all_hit_and_runs_are_those_of_each_user(place: Place) {
    let now = UnixTime(BEGIN + 100_000);
    let policy = HitAndRunPolicy { active_min: Seconds(10_000) };
    let ledger =
        open_with(&place, boundless(), Known::default(), ManualClock::at(now), Risks::default()).await;
    let took = |owner: u64, on: u64, at: u32, downloaded: u64| TrafficEntry {
        downloaded_delta: downloaded,
        ..entry(owner, on, PEER, UnixTime(BEGIN + at), AnnounceEvent::None, 5)
    };
    // User 2 is still active; user 3 left two torrents.
    let entries = vec![
        took(1, 1, 50, 499),
        took(2, 1, 99_500, 900),
        took(3, 1, 70, 900),
        took(3, 2, 60, 500),
        took(4, 9, 80, 600),
    ];
    apply(&ledger, "a", &arrivals_of(entries)).await;

    let all = ledger.users_after(None).await.unwrap();
    assert_eq!(all.iter().map(|(user, _)| user.get()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(all[2].1, ledger.user(user(3)).await.unwrap().unwrap());
    assert_eq!(ledger.users_after(Some(user(3))).await.unwrap(), all[3..]);
    let mut some = ledger.users(&[user(4), user(77), user(1)]).await.unwrap();
    some.sort_by_key(|(user, _)| *user);
    assert_eq!(some, [all[0], all[3]]);

    let page = ledger.hit_and_runs_after(None, &policy).await.unwrap();
    assert_eq!(page.next, None);
    let at = |at: u32| UnixTime(BEGIN + at);
    let gone = [(key(1, 1), at(50)), (key(3, 1), at(70)), (key(3, 2), at(60)), (key(4, 9), at(80))];
    assert_eq!(page.hit_and_runs, gone);
    let behind = ledger.hit_and_runs_after(Some(key(3, 1)), &policy).await.unwrap();
    assert_eq!(behind.hit_and_runs, gone[2..]);
    let of_one = ledger.hit_and_runs(user(3), &policy).await.unwrap();
    assert_eq!(of_one.iter().map(|(key, _, _)| *key).collect::<Vec<_>>(), [key(3, 1), key(3, 2)]);
}

on_every_database!(
    all_users_come_by_number_and_all_hit_and_runs_are_those_of_each_user,
    the_accounts_on_a_torrent_come_newest_first_page_by_page,
    the_credit_of_an_entry_is_known_after_a_multiplier_was_ended,
);
