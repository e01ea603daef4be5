//! Trimming never removes what any group has yet to acknowledge.

use journal::Trimmed;

use super::*;

fn removed(removed: u64) -> Trimmed {
    Trimmed { removed, held_back_by: None }
}

fn held_back(removed: u64, group: &str) -> Trimmed {
    Trimmed { removed, held_back_by: Some(group.to_owned()) }
}

pub async fn traffic_without_a_group_is_not_trimmed<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Traffic, 5).await;
    assert_eq!(journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap(), removed(0));
    assert_eq!(all(&journal, Lane::Traffic).await.len(), 5);
}

pub async fn other_lanes_need_no_group_to_be_trimmed<F: Fixture>() {
    for lane in [Lane::Dead, Lane::Failed, Lane::Risk] {
        let (_fixture, journal) = filled::<F>(lane, 5).await;
        let third = all(&journal, lane).await[2].id;
        assert_eq!(journal.trim(lane, third).await.unwrap(), removed(2));
        assert_eq!(numbers(&all(&journal, lane).await), [3, 4, 5]);
    }
}

pub async fn only_older_entries_are_removed<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["g"]).await;
    let given = ids(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await);
    journal.acknowledge(Lane::Traffic, "g", &given).await.unwrap();
    assert_eq!(journal.trim(Lane::Traffic, EntryId::ZERO).await.unwrap(), removed(0));
    assert_eq!(journal.trim(Lane::Traffic, given[4]).await.unwrap(), removed(4));
    assert_eq!(numbers(&all(&journal, Lane::Traffic).await), [5, 6, 7, 8, 9, 10]);
    assert_eq!(journal.trim(Lane::Traffic, given[4]).await.unwrap(), removed(0));
    assert_eq!(journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap(), removed(6));
    assert_eq!(all(&journal, Lane::Traffic).await, []);
}

pub async fn what_a_group_has_not_read_is_kept<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["g"]).await;
    assert_eq!(journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap(), held_back(0, "g"));
    let given = ids(&read(&journal, Lane::Traffic, ("g", "c"), 3).await);
    journal.acknowledge(Lane::Traffic, "g", &given).await.unwrap();
    assert_eq!(journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap(), held_back(3, "g"));
    assert_eq!(numbers(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await), [4, 5, 6, 7, 8, 9, 10]);
}

pub async fn what_a_group_has_not_acknowledged_is_kept<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["g"]).await;
    let given = ids(&read(&journal, Lane::Traffic, ("g", "dead"), ALL).await);
    let mut acknowledged = given.clone();
    acknowledged.remove(4);
    journal.acknowledge(Lane::Traffic, "g", &acknowledged).await.unwrap();
    let trimmed = journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap();
    assert_eq!(trimmed.held_back_by.as_deref(), Some("g"));
    assert!(trimmed.removed >= 4, "{trimmed:?}");
    let taken = journal.take_over(Lane::Traffic, "g", "dead", "live", ALL).await.unwrap();
    assert_eq!(numbers(&taken), [5]);
    journal.acknowledge(Lane::Traffic, "g", &ids(&taken)).await.unwrap();
    let rest = journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap();
    assert_eq!((rest.removed + trimmed.removed, rest.held_back_by), (10, None));
}

pub async fn the_slowest_group_holds_trimming_back<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["fast", "middle", "slow"]).await;
    let stored = ids(&all(&journal, Lane::Traffic).await);
    for (group, count) in [("fast", 10), ("middle", 7), ("slow", 4)] {
        read(&journal, Lane::Traffic, (group, "c"), count).await;
    }
    journal.acknowledge(Lane::Traffic, "fast", &stored).await.unwrap();
    journal.acknowledge(Lane::Traffic, "middle", &stored).await.unwrap();
    journal.acknowledge(Lane::Traffic, "slow", &stored[..2]).await.unwrap();
    assert_eq!(journal.trim(Lane::Traffic, stored[9]).await.unwrap(), held_back(2, "slow"));
    journal.acknowledge(Lane::Traffic, "slow", &stored).await.unwrap();
    assert_eq!(journal.trim(Lane::Traffic, stored[9]).await.unwrap(), held_back(2, "slow"));
    let rest = read(&journal, Lane::Traffic, ("slow", "c"), ALL).await;
    journal.acknowledge(Lane::Traffic, "slow", &ids(&rest)).await.unwrap();
    assert_eq!(journal.trim(Lane::Traffic, stored[9]).await.unwrap(), held_back(3, "middle"));
}

pub async fn a_group_that_holds_nothing_back_is_not_reported<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 6, &["g"]).await;
    let given = ids(&read(&journal, Lane::Traffic, ("g", "c"), 4).await);
    journal.acknowledge(Lane::Traffic, "g", &given[..3]).await.unwrap();
    // The group holds the fourth and has not read the fifth, but these are beyond the bound.
    assert_eq!(journal.trim(Lane::Traffic, given[3]).await.unwrap(), removed(3));
    assert_eq!(journal.trim(Lane::Traffic, given[3].next()).await.unwrap(), held_back(0, "g"));
}

/// A reader receives each entry once, in order, while another handle trims as much as it can.
pub async fn trimming_while_others_append_and_read_loses_nothing<F: Fixture>() {
    const BATCHES: u64 = 40;
    const LENGTH: u64 = 20;
    let fixture = F::fresh().await;
    let (writer, reader, trimmer) = (fixture.open().await, fixture.open().await, fixture.open().await);
    reader.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let writing = tokio::spawn(async move {
        for batch in 0..BATCHES {
            let batch_entries = entries(batch * LENGTH..(batch + 1) * LENGTH);
            writer.append(Lane::Traffic, &batch_entries, &token("writer", batch + 1)).await.unwrap();
        }
    });
    let trimming = tokio::spawn(async move {
        let mut removed = 0;
        while removed < BATCHES * LENGTH {
            removed += trimmer.trim(Lane::Traffic, EntryId::MAX).await.unwrap().removed;
            // Without a pause it would keep the writer from its turn.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let mut seen = Vec::new();
    while seen.len() < (BATCHES * LENGTH) as usize {
        let given = reader.read(Lane::Traffic, "g", "c", 33, PATIENCE).await.unwrap();
        assert!(!given.is_empty(), "entries are missing after {seen:?}");
        seen.extend(numbers(&given));
        reader.acknowledge(Lane::Traffic, "g", &ids(&given)).await.unwrap();
    }
    assert_eq!(seen, (0..BATCHES * LENGTH).collect::<Vec<_>>());
    writing.await.unwrap();
    tokio::time::timeout(PATIENCE, trimming).await.unwrap().unwrap();
}
