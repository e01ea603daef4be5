//! Complete delivery: each group receives every entry, in order, each by one consumer.

use std::collections::BTreeSet;

use domain::clock::Stopwatch;
use journal::JournalError;
use tokio::time::timeout;

use super::*;

pub async fn every_group_reads_everything<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["one", "other"]).await;
    let first = read(&journal, Lane::Traffic, ("one", "c"), 6).await;
    journal.acknowledge(Lane::Traffic, "one", &ids(&first)).await.unwrap();
    let rest = read(&journal, Lane::Traffic, ("one", "c"), ALL).await;
    assert_eq!((numbers(&first), numbers(&rest)), ((1..=6).collect(), (7..=10).collect()));
    let other = read(&journal, Lane::Traffic, ("other", "c"), ALL).await;
    assert_eq!(other, all(&journal, Lane::Traffic).await);
    assert_eq!(pending(&journal, Lane::Traffic, "one").await, 4);
    assert_eq!(pending(&journal, Lane::Traffic, "other").await, 10);
}

pub async fn an_existing_group_is_not_moved<F: Fixture>() {
    let (fixture, journal) = filled::<F>(Lane::Traffic, 4).await;
    assert!(journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap());
    read(&journal, Lane::Traffic, ("g", "c"), 2).await;
    assert!(!journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap());
    let reopened = fixture.open().await;
    assert!(!reopened.ensure_group(Lane::Traffic, "g", StartAt::After(EntryId::MAX)).await.unwrap());
    assert_eq!(numbers(&read(&reopened, Lane::Traffic, ("g", "c"), ALL).await), [3, 4]);
    // Also in a lane without entries.
    assert!(journal.ensure_group(Lane::Risk, "g", StartAt::Beginning).await.unwrap());
    assert!(!journal.ensure_group(Lane::Risk, "g", StartAt::Beginning).await.unwrap());
    assert_eq!(read(&journal, Lane::Risk, ("g", "c"), ALL).await, []);
}

pub async fn a_group_can_start_after_an_entry<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Traffic, 5).await;
    let third = all(&journal, Lane::Traffic).await[2].id;
    journal.ensure_group(Lane::Traffic, "g", StartAt::After(third)).await.unwrap();
    let status = journal.status(Lane::Traffic).await.unwrap();
    assert_eq!((status.groups[0].unread, status.groups[0].last_delivered), (2, third));
    assert_eq!(numbers(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await), [4, 5]);
}

pub async fn a_read_returns_at_most_the_requested_number<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 10, &["g"]).await;
    assert_eq!(numbers(&read(&journal, Lane::Traffic, ("g", "c"), 3).await), [1, 2, 3]);
    assert_eq!(read(&journal, Lane::Traffic, ("g", "c"), 0).await, []);
    assert_eq!(numbers(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await), [4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(read(&journal, Lane::Traffic, ("g", "c"), ALL).await, []);
}

pub async fn j4_consumers_share_the_work_without_overlap<F: Fixture>() {
    const ENTRIES: u64 = 1_000;
    let (fixture, journal) = filled_for::<F>(Lane::Traffic, ENTRIES, &["g"]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for consumer in 0..4 {
        let journal = fixture.open().await;
        tasks.spawn(async move {
            let name = format!("consumer {consumer}");
            let mut taken = Vec::new();
            loop {
                let given = read(&journal, Lane::Traffic, ("g", &name), 37).await;
                if given.is_empty() {
                    return taken;
                }
                assert!(ids(&given).is_sorted());
                journal.acknowledge(Lane::Traffic, "g", &ids(&given)).await.unwrap();
                taken.extend(numbers(&given));
            }
        });
    }
    let mut taken = tasks.join_all().await.concat();
    taken.sort_unstable();
    assert_eq!(taken, (1..=ENTRIES).collect::<Vec<_>>());
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 0);
}

pub async fn what_is_pending_survives_a_restart<F: Fixture>() {
    let (fixture, journal) = filled_for::<F>(Lane::Traffic, 5, &["g"]).await;
    let given = read(&journal, Lane::Traffic, ("g", "dead"), 3).await;
    journal.acknowledge(Lane::Traffic, "g", &[given[1].id]).await.unwrap();
    drop(journal);
    let reopened = fixture.open().await;
    assert_eq!(numbers(&read(&reopened, Lane::Traffic, ("g", "live"), ALL).await), [4, 5]);
    let taken = reopened.take_over(Lane::Traffic, "g", "dead", "live", ALL).await.unwrap();
    assert_eq!(taken, [given[0].clone(), given[2].clone()]);
}

pub async fn acknowledging_twice_or_too_much_is_harmless<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 6, &["g", "other"]).await;
    let given = read(&journal, Lane::Traffic, ("g", "c"), 3).await;
    read(&journal, Lane::Traffic, ("other", "c"), ALL).await;
    let unread = all(&journal, Lane::Traffic).await[5].id;
    let strange = [EntryId::ZERO, EntryId::MAX, EntryId { ms: given[0].id.ms, seq: 1 << 40 }, unread];
    journal.acknowledge(Lane::Traffic, "g", &strange).await.unwrap();
    journal.acknowledge(Lane::Traffic, "g", &[]).await.unwrap();
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 3);
    for _ in 0..2 {
        journal.acknowledge(Lane::Traffic, "g", &[given[0].id, given[0].id, given[2].id]).await.unwrap();
        let status = journal.status(Lane::Traffic).await.unwrap();
        assert_eq!((status.groups[0].pending, status.groups[0].oldest_pending), (1, Some(given[1].id)));
    }
    assert_eq!(numbers(&read(&journal, Lane::Traffic, ("g", "c"), ALL).await), [4, 5, 6]);
    assert_eq!(pending(&journal, Lane::Traffic, "other").await, 6);
}

pub async fn a_read_that_need_not_wait_returns_at_once<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 1, &["g"]).await;
    let waiting = journal.read(Lane::Traffic, "g", "c", 10, PATIENCE * 2);
    assert_eq!(numbers(&timeout(PATIENCE, waiting).await.unwrap().unwrap()), [1]);
    let in_vain = journal.read(Lane::Traffic, "g", "c", 10, NO_WAIT);
    assert_eq!(timeout(PATIENCE, in_vain).await.unwrap().unwrap(), []);
    let since_start = Stopwatch::start();
    let short = Duration::from_millis(200);
    let in_vain = journal.read(Lane::Traffic, "g", "c", 10, short);
    assert_eq!(timeout(PATIENCE, in_vain).await.unwrap().unwrap(), []);
    assert!(since_start.elapsed() >= short, "it gave up after {:?}", since_start.elapsed());
}

pub async fn a_read_waits_for_an_append_of_this_process<F: Fixture>() {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    wakes_up(journal.clone(), journal).await;
}

pub async fn a_read_waits_for_an_append_of_another_process<F: Fixture>() {
    let fixture = F::fresh().await;
    wakes_up(fixture.open().await, fixture.open().await).await;
}

async fn wakes_up(reader: Arc<dyn Journal>, writer: Arc<dyn Journal>) {
    reader.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    for round in 1..=3 {
        let reader = reader.clone();
        let waiting =
            tokio::spawn(
                async move { reader.read(Lane::Traffic, "g", "c", 10, PATIENCE * 2).await.unwrap() },
            );
        // Usually the reader waits already; if not, it must find the entry.
        tokio::time::sleep(Duration::from_millis(30 * round)).await;
        writer.append(Lane::Traffic, &entries([round]), &token("writer", round)).await.unwrap();
        let given = timeout(Duration::from_secs(10), waiting).await.expect("the reader sleeps on").unwrap();
        assert_eq!(numbers(&given), [round]);
    }
}

pub async fn one_of_several_waiting_consumers_gets_the_entry<F: Fixture>() {
    let (fixture, journal) = filled_for::<F>(Lane::Traffic, 1, &["g"]).await;
    read(&journal, Lane::Traffic, ("g", "c"), ALL).await;
    let mut tasks = tokio::task::JoinSet::new();
    for consumer in 0..3 {
        let reader = fixture.open().await;
        let wait = Duration::from_millis(1_500);
        tasks.spawn(async move {
            reader.read(Lane::Traffic, "g", &format!("c{consumer}"), 10, wait).await.unwrap()
        });
    }
    journal.append(Lane::Traffic, &entries([2]), &token("filler", 2)).await.unwrap();
    assert_eq!(numbers(&tasks.join_all().await.concat()), [2]);
}

pub async fn deleted_entries_are_not_delivered<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Dead, 5, &["g"]).await;
    let stored = ids(&all(&journal, Lane::Dead).await);
    journal.delete(Lane::Dead, None, &[stored[0], stored[3]]).await.unwrap();
    assert_eq!(numbers(&read(&journal, Lane::Dead, ("g", "c"), ALL).await), [2, 3, 5]);
}

pub async fn a_missing_group_is_reported<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 1, &["g"]).await;
    // A lane with other groups, and one without any.
    for lane in [Lane::Traffic, Lane::Dead] {
        let wait = Duration::from_millis(10);
        let refusals = [
            journal.read(lane, "missing", "c", 1, NO_WAIT).await.err(),
            journal.read(lane, "missing", "c", 1, wait).await.err(),
            journal.take_over(lane, "missing", "a", "b", 1).await.err(),
            journal.consumers(lane, "missing").await.err(),
            journal.keep_alive(lane, "missing", "c").await.err(),
        ];
        for (call, refusal) in refusals.into_iter().enumerate() {
            let error = refusal.unwrap_or_else(|| panic!("call {call} on {lane:?} succeeded"));
            assert!(!error.is_retryable());
            assert!(
                matches!(&error, JournalError::NoGroup { group } if group == "missing"),
                "call {call} on {lane:?}: {error}"
            );
        }
    }
}

pub async fn consumers_report_pending_entries_and_idle_time<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 5, &["g"]).await;
    assert_eq!(journal.consumers(Lane::Traffic, "g").await.unwrap(), []);
    let given = read(&journal, Lane::Traffic, ("g", "a"), 3).await;
    read(&journal, Lane::Traffic, ("g", "b"), ALL).await;
    journal.acknowledge(Lane::Traffic, "g", &[given[0].id]).await.unwrap();
    let mut seen = journal.consumers(Lane::Traffic, "g").await.unwrap();
    seen.sort_by(|a, b| a.name.cmp(&b.name));
    let status: Vec<_> = seen.iter().map(|consumer| (consumer.name.as_str(), consumer.pending)).collect();
    assert_eq!(status, [("a", 2), ("b", 2)]);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().groups[0].consumers, 2);

    let silence = Duration::from_millis(300);
    tokio::time::sleep(silence).await;
    journal.keep_alive(Lane::Traffic, "g", "a").await.unwrap();
    let mut seen = journal.consumers(Lane::Traffic, "g").await.unwrap();
    seen.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(seen[1].idle >= silence && seen[1].idle < PATIENCE, "{seen:?}");
    assert!(seen[0].idle < seen[1].idle, "{seen:?}");
    assert_eq!(seen[0].pending, 2);
}

pub async fn views_are_paused_until_resumed<F: Fixture>() {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    assert_eq!(journal.paused().await.unwrap(), BTreeSet::new());
    for view in ["ledger", "activity", "ledger"] {
        journal.set_note(view, Some("paused")).await.unwrap();
    }
    let other = fixture.open().await;
    assert_eq!(other.paused().await.unwrap(), BTreeSet::from(["activity".to_owned(), "ledger".to_owned()]));
    for view in ["ledger", "ledger", "never paused"] {
        other.set_note(view, None).await.unwrap();
    }
    assert_eq!(journal.paused().await.unwrap(), BTreeSet::from(["activity".to_owned()]));
}
