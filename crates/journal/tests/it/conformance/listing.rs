//! Listing and status (J7).

use journal::{GroupStatus, LaneStatus};

use super::*;

pub async fn an_empty_lane_lists_nothing<F: Fixture>() {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    for lane in Lane::ALL {
        assert_eq!(all(&journal, lane).await, []);
        assert_eq!(journal.list_newest(lane, EntryId::MAX, 10).await.unwrap(), []);
        assert_eq!(journal.get(lane, EntryId { ms: 1, seq: 1 }).await.unwrap(), None);
        assert_eq!(journal.status(lane).await.unwrap(), LaneStatus::default());
        assert_eq!(journal.trim(lane, EntryId::MAX).await.unwrap().removed, 0);
        if lane != Lane::Traffic {
            assert_eq!(journal.delete(lane, None, &[EntryId { ms: 1, seq: 1 }]).await.unwrap(), 0);
        }
    }
}

pub async fn j7_entries_are_listed_page_by_page<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Failed, 25).await;
    let (mut seen, mut after) = (Vec::new(), EntryId::ZERO);
    loop {
        let page = journal.list(Lane::Failed, after, 10).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.id;
        seen.push(numbers(&page));
    }
    assert_eq!(seen, [(1..=10).collect::<Vec<_>>(), (11..=20).collect(), (21..=25).collect()]);
    assert_eq!(journal.list(Lane::Failed, EntryId::ZERO, 0).await.unwrap(), []);
    assert_eq!(journal.list(Lane::Failed, EntryId::MAX, 10).await.unwrap(), []);
    // After an id that was never assigned.
    let millisecond_before = EntryId { ms: all(&journal, Lane::Failed).await[0].id.ms - 1, seq: u64::MAX };
    assert_eq!(numbers(&journal.list(Lane::Failed, millisecond_before, 2).await.unwrap()), [1, 2]);
}

pub async fn j7_the_newest_entries_are_listed_newest_first<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Failed, 25).await;
    let newest = async |before, count| journal.list_newest(Lane::Failed, before, count).await.unwrap();
    let page = newest(EntryId::MAX, 3).await;
    assert_eq!(numbers(&page), [25, 24, 23]);
    assert_eq!(numbers(&newest(page[2].id, 2).await), [22, 21]);
    assert_eq!(newest(EntryId::MAX, ALL).await.len(), 25);
    assert_eq!(newest(EntryId::MAX, 0).await, []);
    assert_eq!(newest(EntryId::ZERO, 10).await, []);
}

pub async fn j7_the_oldest_unacknowledged_entry_of_a_group_is_found<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 5, &["g"]).await;
    let ids = ids(&all(&journal, Lane::Traffic).await);
    let oldest = async || {
        let status = journal.status(Lane::Traffic).await.unwrap();
        journal.oldest_unacknowledged(&status.groups[0]).await.unwrap()
    };
    assert_eq!(oldest().await, Some(ids[0]));
    read(&journal, Lane::Traffic, ("g", "c"), 3).await;
    journal.acknowledge(Lane::Traffic, "g", &ids[..1]).await.unwrap();
    assert_eq!(oldest().await, Some(ids[1]), "what is pending");
    journal.acknowledge(Lane::Traffic, "g", &ids[1..3]).await.unwrap();
    assert_eq!(oldest().await, Some(ids[3]), "the first that was not given, not the last that was");
    read(&journal, Lane::Traffic, ("g", "c"), ALL).await;
    journal.acknowledge(Lane::Traffic, "g", &ids[3..]).await.unwrap();
    assert_eq!(oldest().await, None);
}

pub async fn j7_one_entry_is_found<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Dead, 5).await;
    for stored in all(&journal, Lane::Dead).await {
        assert_eq!(journal.get(Lane::Dead, stored.id).await.unwrap(), Some(stored.clone()));
        assert_eq!(journal.get(Lane::Traffic, stored.id).await.unwrap(), None);
    }
    for strange in [EntryId::ZERO, EntryId::MAX, EntryId { ms: 1, seq: u64::MAX }] {
        assert_eq!(journal.get(Lane::Dead, strange).await.unwrap(), None);
    }
}

fn group(name: &str, unread: u64, pending: &[EntryId], last_delivered: EntryId) -> GroupStatus {
    GroupStatus {
        name: name.to_owned(),
        unread,
        pending: pending.len() as u64,
        oldest_pending: pending.first().copied(),
        last_delivered,
        consumers: u64::from(last_delivered != EntryId::ZERO),
    }
}

pub async fn j7_status_is_correct_at_each_step<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["zeta", "alpha"]).await;
    let stored = ids(&all(&journal, Lane::Traffic).await);
    let mut expected = LaneStatus {
        length: 10,
        first: Some(stored[0]),
        last: Some(stored[9]),
        appended: 10,
        groups: vec![group("alpha", 10, &[], EntryId::ZERO), group("zeta", 10, &[], EntryId::ZERO)],
    };
    assert_eq!(journal.status(Lane::Traffic).await.unwrap(), expected);

    read(&journal, Lane::Traffic, ("alpha", "c"), 4).await;
    expected.groups[0] = group("alpha", 6, &stored[..4], stored[3]);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap(), expected);
    assert_eq!(expected.groups[0].lag(), 10);

    journal.acknowledge(Lane::Traffic, "alpha", &stored[..2]).await.unwrap();
    expected.groups[0] = group("alpha", 6, &stored[2..4], stored[3]);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap(), expected);

    journal.append(Lane::Traffic, &entries([11]), &token("filler", 2)).await.unwrap();
    let last = all(&journal, Lane::Traffic).await[10].id;
    (expected.length, expected.appended, expected.last) = (11, 11, Some(last));
    expected.groups[0].unread = 7;
    expected.groups[1].unread = 11;
    assert_eq!(journal.status(Lane::Traffic).await.unwrap(), expected);

    let given = read(&journal, Lane::Traffic, ("zeta", "c"), ALL).await;
    journal.acknowledge(Lane::Traffic, "zeta", &ids(&given)).await.unwrap();
    expected.groups[1] = group("zeta", 0, &[], last);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap(), expected);

    assert_eq!(journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap().removed, 2);
    (expected.length, expected.first) = (9, Some(stored[2]));
    assert_eq!(journal.status(Lane::Traffic).await.unwrap(), expected);
}

pub async fn j7_status_of_a_lane_with_deleted_entries<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Dead, 6, &["g"]).await;
    let stored = ids(&all(&journal, Lane::Dead).await);
    read(&journal, Lane::Dead, ("g", "c"), 2).await;
    // One delivered, two not.
    assert_eq!(journal.delete(Lane::Dead, Some("g"), &[stored[0], stored[3], stored[5]]).await.unwrap(), 3);
    let status = journal.status(Lane::Dead).await.unwrap();
    assert_eq!((status.length, status.appended), (3, 6));
    assert_eq!((status.first, status.last), (Some(stored[1]), Some(stored[5])));
    assert_eq!(status.groups, [group("g", 2, &stored[1..2], stored[1])]);
    journal.delete(Lane::Dead, Some("g"), &stored).await.unwrap();
    let status = journal.status(Lane::Dead).await.unwrap();
    assert_eq!((status.length, status.first, status.last), (0, None, Some(stored[5])));
    assert_eq!(status.groups, [group("g", 0, &[], stored[1])]);
}

pub async fn a_tail_reports_missing_entries<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["g"]).await;
    let tail = async |after, count| {
        let tail = journal.tail(Lane::Traffic, after, count).await.unwrap();
        (numbers(&tail.entries), tail.is_whole)
    };
    let given = ids(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await);
    assert_eq!(tail(EntryId::ZERO, 3).await, (vec![1, 2, 3], true));
    assert_eq!(tail(given[2], 3).await, (vec![4, 5, 6], true));
    assert_eq!(tail(given[9], 3).await, (vec![], true));
    journal.acknowledge(Lane::Traffic, "g", &given).await.unwrap();
    journal.trim(Lane::Traffic, given[5]).await.unwrap();
    assert_eq!(tail(EntryId::ZERO, 2).await, (vec![6, 7], true), "nothing comes before the beginning");
    assert_eq!(tail(given[4], 2).await, (vec![6, 7], false), "entries in between may be missing");
    assert_eq!(tail(given[5], 2).await, (vec![7, 8], true));
    // Everything is trimmed, but the reader had read it all.
    journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap();
    assert_eq!(tail(given[9], 2).await, (vec![], true));
    assert_eq!(tail(given[8], 2).await, (vec![], false));
    journal.append(Lane::Traffic, &entries(11..=12), &token("filler", 2)).await.unwrap();
    assert_eq!(tail(given[9], 2).await, (vec![11, 12], false));
}

pub async fn a_tail_after_a_lost_entry_is_not_whole<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Traffic, 3).await;
    let newest = all(&journal, Lane::Traffic).await[2].id;
    let never_stored = EntryId { ms: newest.ms + 1000, seq: 0 };
    let tail = journal.tail(Lane::Traffic, never_stored, 10).await.unwrap();
    assert_eq!((tail.entries.len(), tail.is_whole), (0, false));
    let lost = EntryId { ms: newest.ms - 1, seq: 7 };
    let tail = journal.tail(Lane::Traffic, lost, 10).await.unwrap();
    assert_eq!((tail.entries.len(), tail.is_whole), (3, false));
}
