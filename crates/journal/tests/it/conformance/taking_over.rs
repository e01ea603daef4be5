//! Entries of a dead consumer are transferred to a live one (J4).

use super::*;

pub async fn j4_entries_of_a_dead_consumer_are_returned_oldest_first<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 20, &["g", "other"]).await;
    read(&journal, Lane::Traffic, ("other", "dead"), ALL).await;
    let mut dead = read(&journal, Lane::Traffic, ("g", "dead"), 5).await;
    read(&journal, Lane::Traffic, ("g", "live"), 5).await;
    dead.extend(read(&journal, Lane::Traffic, ("g", "dead"), 5).await);
    journal.acknowledge(Lane::Traffic, "g", &[dead[2].id]).await.unwrap();
    dead.remove(2);

    let mut taken = Vec::new();
    loop {
        let given = journal.take_over(Lane::Traffic, "g", "dead", "live", 4).await.unwrap();
        if given.is_empty() {
            break;
        }
        assert!(given.len() <= 4);
        taken.extend(given);
    }
    assert_eq!(taken, dead);
    let consumers = journal.consumers(Lane::Traffic, "g").await.unwrap();
    let pending_of = |name| consumers.iter().find(|consumer| consumer.name == name).unwrap().pending;
    assert_eq!((pending_of("dead"), pending_of("live")), (0, 14));
    assert_eq!(pending(&journal, Lane::Traffic, "other").await, 20);
    // Nothing was skipped or delivered again.
    assert_eq!(numbers(&read(&journal, Lane::Traffic, ("g", "live"), ALL).await), [16, 17, 18, 19, 20]);
}

pub async fn j4_late_acknowledgements_of_a_dead_consumer_are_harmless<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 6, &["g"]).await;
    let dead = ids(&read(&journal, Lane::Traffic, ("g", "dead"), 3).await);
    read(&journal, Lane::Traffic, ("g", "live"), 3).await;
    assert_eq!(journal.take_over(Lane::Traffic, "g", "dead", "live", ALL).await.unwrap().len(), 3);
    journal.acknowledge(Lane::Traffic, "g", &dead).await.unwrap();
    journal.acknowledge(Lane::Traffic, "g", &dead).await.unwrap();
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 3);
    assert_eq!(journal.take_over(Lane::Traffic, "g", "dead", "live", ALL).await.unwrap(), []);
}

pub async fn j4_concurrent_take_overs_do_not_overlap<F: Fixture>() {
    let (fixture, journal) = filled_for::<F>(Lane::Traffic, 200, &["g"]).await;
    read(&journal, Lane::Traffic, ("g", "dead"), ALL).await;
    let mut tasks = tokio::task::JoinSet::new();
    for consumer in ["a", "b", "c"] {
        let journal = fixture.open().await;
        tasks.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let given = journal.take_over(Lane::Traffic, "g", "dead", consumer, 7).await.unwrap();
                if given.is_empty() {
                    return numbers(&taken);
                }
                taken.extend(given);
            }
        });
    }
    let mut taken = tasks.join_all().await.concat();
    taken.sort_unstable();
    assert_eq!(taken, (1..=200).collect::<Vec<_>>());
}

pub async fn j4_deleted_entries_are_acknowledged_not_returned<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Dead, 12, &["g"]).await;
    let given = read(&journal, Lane::Dead, ("g", "dead"), ALL).await;
    // The first ones, so that a whole page of a take-over is deleted; and one in the middle.
    let mut deleted = ids(&given[..5]);
    deleted.push(given[8].id);
    assert_eq!(journal.delete(Lane::Dead, None, &deleted).await.unwrap(), 6);
    let mut taken = Vec::new();
    loop {
        let page = journal.take_over(Lane::Dead, "g", "dead", "live", 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        taken.extend(numbers(&page));
    }
    assert_eq!(taken, [6, 7, 8, 10, 11, 12]);
    assert_eq!(pending(&journal, Lane::Dead, "g").await, 6);
}

pub async fn j4_nothing_is_taken_over_from_an_unknown_consumer<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 3, &["g"]).await;
    read(&journal, Lane::Traffic, ("g", "live"), ALL).await;
    assert_eq!(journal.take_over(Lane::Traffic, "g", "unknown", "other", ALL).await.unwrap(), []);
    assert_eq!(journal.take_over(Lane::Traffic, "g", "live", "other", 0).await.unwrap(), []);
    let consumers = journal.consumers(Lane::Traffic, "g").await.unwrap();
    assert_eq!(consumers.iter().find(|consumer| consumer.name == "live").unwrap().pending, 3);
}

pub async fn a_consumer_with_pending_entries_is_not_deleted<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 3, &["g"]).await;
    let given = read(&journal, Lane::Traffic, ("g", "c"), 2).await;
    journal.delete_consumer(Lane::Traffic, "g", "c").await.unwrap();
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 2);
    assert_eq!(journal.consumers(Lane::Traffic, "g").await.unwrap().len(), 1);
    journal.acknowledge(Lane::Traffic, "g", &ids(&given)).await.unwrap();
    journal.delete_consumer(Lane::Traffic, "g", "c").await.unwrap();
    journal.delete_consumer(Lane::Traffic, "g", "never seen").await.unwrap();
    assert_eq!(journal.consumers(Lane::Traffic, "g").await.unwrap(), []);
    assert_eq!(numbers(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await), [3]);
}
