//! Atomic moves: an entry is never in both lanes, nor in neither, nor acknowledged without being moved.

use super::*;

pub async fn j5_a_bad_entry_moves_to_the_dead_letters_and_stays_in_the_traffic<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 5, &["g", "other"]).await;
    let given = read(&journal, Lane::Traffic, ("g", "c"), ALL).await;
    read(&journal, Lane::Traffic, ("other", "c"), ALL).await;
    let dead_letters =
        [Transfer { id: given[1].id, fields: entry(102) }, Transfer { id: given[3].id, fields: entry(104) }];
    assert_eq!(journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap(), 2);
    assert_eq!(numbers(&all(&journal, Lane::Dead).await), [102, 104]);
    assert_eq!(numbers(&all(&journal, Lane::Traffic).await), [1, 2, 3, 4, 5]);
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 3);
    assert_eq!(pending(&journal, Lane::Traffic, "other").await, 5);
    assert_eq!(journal.status(Lane::Dead).await.unwrap().appended, 2);
}

pub async fn j5_what_is_not_pending_does_not_move<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 4, &["g", "other"]).await;
    let given = read(&journal, Lane::Traffic, ("g", "c"), 3).await;
    read(&journal, Lane::Traffic, ("other", "c"), ALL).await;
    journal.acknowledge(Lane::Traffic, "g", &[given[0].id]).await.unwrap();
    let unread = Transfer { id: all(&journal, Lane::Traffic).await[3].id, fields: entry(4) };
    let strange = Transfer { id: EntryId::MAX, fields: entry(9) };
    let mut dead_letters = transfers(&given[..2]);
    dead_letters.extend([unread, strange]);
    assert_eq!(journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap(), 1);
    assert_eq!(numbers(&all(&journal, Lane::Dead).await), [2]);
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 1);
    assert_eq!(journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &[]).await.unwrap(), 0);
}

pub async fn j5_an_entry_moves_once<F: Fixture>() {
    let (fixture, journal) = filled_for::<F>(Lane::Traffic, 3, &["g"]).await;
    let dead_letters = transfers(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await);
    assert_eq!(journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap(), 3);
    let other = fixture.open().await;
    assert_eq!(other.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap(), 0);
    let dead_letters = transfers(&all(&journal, Lane::Dead).await);
    let twice = [dead_letters[0].clone(), dead_letters[0].clone()];
    assert_eq!(journal.transfer(Lane::Dead, Lane::Failed, None, &twice).await.unwrap(), 1);
    assert_eq!(journal.transfer(Lane::Dead, Lane::Failed, None, &dead_letters).await.unwrap(), 2);
    assert_eq!(journal.transfer(Lane::Dead, Lane::Failed, None, &dead_letters).await.unwrap(), 0);
    assert_eq!(all(&journal, Lane::Dead).await, []);
    assert_eq!(numbers(&all(&journal, Lane::Failed).await), [1, 2, 3]);
}

pub async fn j5_concurrent_moves_move_each_entry_once<F: Fixture>() {
    let (fixture, journal) = filled_for::<F>(Lane::Traffic, 100, &["g"]).await;
    let dead_letters = transfers(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await);
    assert_eq!(
        move_from_two_sides(&fixture, (Lane::Traffic, Lane::Dead, Some("g")), &dead_letters).await,
        100
    );
    let dead_letters = transfers(&all(&journal, Lane::Dead).await);
    assert_eq!(dead_letters.len(), 100);
    assert_eq!(move_from_two_sides(&fixture, (Lane::Dead, Lane::Dead, None), &dead_letters).await, 100);
    let mut moved = numbers(&all(&journal, Lane::Dead).await);
    moved.sort_unstable();
    assert_eq!(moved, (1..=100).collect::<Vec<_>>());
}

async fn move_from_two_sides<F: Fixture>(
    fixture: &F,
    (from, to, group): (Lane, Lane, Option<&'static str>),
    dead_letters: &[Transfer],
) -> u64 {
    let mut tasks = tokio::task::JoinSet::new();
    for is_reversed in [false, true] {
        let journal = fixture.open().await;
        let mut dead_letters = dead_letters.to_vec();
        if is_reversed {
            dead_letters.reverse();
        }
        tasks.spawn(async move {
            let mut moved = 0;
            for page in dead_letters.chunks(7) {
                moved += journal.transfer(from, to, group, page).await.unwrap();
            }
            moved
        });
    }
    tasks.join_all().await.into_iter().sum()
}

pub async fn j6_a_dead_letter_is_retried_then_failed_then_replayed<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Dead, 3, &["g"]).await;
    // Rejected again: it moves to the end of the same lane.
    let given = read(&journal, Lane::Dead, ("g", "c"), ALL).await;
    let again = [Transfer { id: given[0].id, fields: entry(11) }];
    assert_eq!(journal.transfer(Lane::Dead, Lane::Dead, Some("g"), &again).await.unwrap(), 1);
    assert_eq!(numbers(&all(&journal, Lane::Dead).await), [2, 3, 11]);
    assert_eq!(pending(&journal, Lane::Dead, "g").await, 2);
    // No retries left.
    let failed = [Transfer { id: given[1].id, fields: entry(12) }];
    assert_eq!(journal.transfer(Lane::Dead, Lane::Failed, Some("g"), &failed).await.unwrap(), 1);
    assert_eq!(numbers(&all(&journal, Lane::Dead).await), [3, 11]);
    assert_eq!(pending(&journal, Lane::Dead, "g").await, 1);
    // Replayed by an operator: delivered to the group like any dead letter.
    let replayed = transfers(&all(&journal, Lane::Failed).await);
    assert_eq!(journal.transfer(Lane::Failed, Lane::Dead, None, &replayed).await.unwrap(), 1);
    assert_eq!(all(&journal, Lane::Failed).await, []);
    assert_eq!(numbers(&read(&journal, Lane::Dead, ("g", "c"), ALL).await), [11, 12]);
}

pub async fn j7_dead_letters_move_without_a_group<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Dead, 3).await;
    let stored = all(&journal, Lane::Dead).await;
    assert_eq!(journal.transfer(Lane::Dead, Lane::Failed, None, &transfers(&stored[1..])).await.unwrap(), 2);
    assert_eq!(numbers(&all(&journal, Lane::Dead).await), [1]);
    assert_eq!(numbers(&all(&journal, Lane::Failed).await), [2, 3]);
    // A group to which a dead letter was not delivered does not prevent its move.
    journal.ensure_group(Lane::Dead, "g", StartAt::Beginning).await.unwrap();
    let unread = transfers(&stored[..1]);
    assert_eq!(journal.transfer(Lane::Dead, Lane::Failed, Some("g"), &unread).await.unwrap(), 1);
    assert_eq!(read(&journal, Lane::Dead, ("g", "c"), ALL).await, []);
}

pub async fn j7_dead_letters_are_deleted<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Failed, 5, &["g"]).await;
    let given = read(&journal, Lane::Failed, ("g", "c"), 3).await;
    let chosen = [given[0].id, given[2].id, given[0].id, EntryId::MAX, EntryId::ZERO];
    assert_eq!(journal.delete(Lane::Failed, Some("g"), &chosen).await.unwrap(), 2);
    assert_eq!(journal.delete(Lane::Failed, Some("g"), &chosen).await.unwrap(), 0);
    assert_eq!(journal.delete(Lane::Failed, None, &[]).await.unwrap(), 0);
    assert_eq!(numbers(&all(&journal, Lane::Failed).await), [2, 4, 5]);
    assert_eq!(pending(&journal, Lane::Failed, "g").await, 1);
    assert_eq!(journal.get(Lane::Failed, given[0].id).await.unwrap(), None);
}
