//! What the site asks of the ledger, on each database.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "the support is shared")]

mod support;

use domain::{AnnounceEvent, PeerId, UnixTime};
use journal::TrafficEntry;
use ledger::{NewMultiplier, Percent, Scope};

use support::simulator::{BEGIN, arrivals_of, entry, torrent, user};
use support::{Known, Place, Risks, account, apply, boundless, clock, key, open, open_with};

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
    // Two by two they were heard of at the same moment.
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

async fn what_an_entry_was_credited_can_be_told_unless_a_multiplier_was_removed(place: Place) {
    let ledger = open(&place).await;
    let told = async |at: u32| {
        let terms = ledger.past_terms().await.unwrap();
        let in_force = terms.in_force(key(1, 1), UnixTime(BEGIN + at));
        in_force.map(|terms| (terms.uploaded(1001), terms.downloaded(1001), terms.uploaded(u64::MAX)))
    };
    assert_eq!(told(0).await, Some((1001, 1001, u64::MAX)));
    let feast = NewMultiplier {
        scope: Scope::Site,
        upload: Percent::new(150).unwrap(),
        download: Percent::new(0).unwrap(),
        starts_at: UnixTime(BEGIN + 100),
        ends_at: Some(UnixTime(BEGIN + 200)),
        note: "feast".to_owned(),
    };
    let added = ledger.add_multiplier(feast).await.unwrap();
    assert_eq!(told(99).await, Some((1001, 1001, u64::MAX)));
    assert_eq!(told(100).await, Some((1501, 0, u64::MAX)));
    assert!(!ledger.remove_multiplier(added.id + 1).await.unwrap());
    assert_eq!(told(200).await, Some((1001, 1001, u64::MAX)), "nothing was removed");
    assert!(ledger.remove_multiplier(added.id).await.unwrap());
    assert_eq!(told(100).await, None);
}

on_every_database!(
    the_accounts_on_a_torrent_come_newest_first_page_by_page,
    what_an_entry_was_credited_can_be_told_unless_a_multiplier_was_removed,
);
