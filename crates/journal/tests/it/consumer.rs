//! The consumer loop, on a journal in a file, with a view that tests can make fail.

mod operator;
pub mod rig;

use std::time::Duration;

use domain::{Seconds, UnixTime};
use journal::{DeadLetter, Journal, Lane, ProcessName};
use rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn entries_reach_the_view_and_are_acknowledged() {
    let rig = Rig::new().await;
    rig.append(&(0..250).map(entry).collect::<Vec<_>>()).await;
    let running = rig.start("a", |settings| settings.batch_max = 100);
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), (0..250).collect::<Vec<_>>());
    rig.wait_for("all to be counted", async || running.counters.applied() == 250).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j5_a_bad_entry_becomes_a_dead_letter_and_blocks_nothing() {
    let rig = Rig::new().await;
    let mut entries: Vec<_> = (0..20).map(entry).collect();
    entries[7] = fields_with(7, "du", "-1");
    entries[11] = fields_with(11, "passkey", "unknown!");
    rig.view.reject(13);
    rig.append(&entries).await;
    let running = rig.start("a", |settings| settings.retry_delay = domain::Seconds(3600));
    rig.wait_lag_0().await;
    let dead_letters = rig.dead_letters(Lane::Dead).await;
    let reasons: Vec<&str> = dead_letters.iter().map(|dead_letter| dead_letter.reason.as_str()).collect();
    assert_eq!(dead_letters.len(), 3, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.starts_with("du: expected")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.starts_with("passkey: expected")), "{reasons:?}");
    assert!(reasons.contains(&"the view rejects it"), "{reasons:?}");
    assert!(dead_letters.iter().all(|dead_letter| dead_letter.retry == 0 && dead_letter.group == GROUP));
    assert_eq!(rig.view.applied_uploads().len(), 17);
    running.stop().await;
}

/// Otherwise every view would move the same entry to the dead letters.
#[tokio::test(flavor = "multi_thread")]
async fn j5_malformed_entries_become_dead_letters_of_one_view_only() {
    let rig = Rig::new().await;
    rig.view.reject(2);
    rig.append(&[entry(1), fields_with(9, "du", "-1"), entry(2)]).await;
    let running = rig.start("a", |settings| {
        (settings.handles_malformed, settings.retry_delay) = (false, domain::Seconds(3600));
    });
    rig.wait_lag_0().await;
    let dead_letters = rig.dead_letters(Lane::Dead).await;
    assert_eq!(
        dead_letters.iter().map(|dead_letter| dead_letter.reason.as_str()).collect::<Vec<_>>(),
        ["the view rejects it"]
    );
    assert_eq!(running.counters.skipped(), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j6_dead_letters_are_retried_and_finally_failed() {
    let rig = Rig::new().await;
    rig.view.reject(3);
    rig.append(&[entry(3), fields_with(4, "ts", "yesterday")]).await;
    let running = rig.start("a", |settings| settings.retry_max = 3);
    rig.wait_for("both to have failed", async || rig.dead_letters(Lane::Failed).await.len() == 2).await;
    let failed = rig.dead_letters(Lane::Failed).await;
    assert!(failed.iter().all(|dead_letter| dead_letter.retry == 3), "{failed:?}");
    assert!(rig.dead_letters(Lane::Dead).await.is_empty());
    assert_eq!(rig.view.attempts_of(3), 4, "once, and three times more");
    // Counted after the move.
    rig.wait_for("both to be counted", async || running.counters.failed() == 2).await;
    assert_eq!(running.counters.retried(), 4);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j6_an_applied_dead_letter_is_deleted() {
    let rig = Rig::new().await;
    rig.view.reject(3);
    rig.append(&[entry(3)]).await;
    let running = rig.start("a", |settings| settings.retry_delay = domain::Seconds(1));
    rig.wait_for("the dead letter", async || rig.dead_letters(Lane::Dead).await.len() == 1).await;
    rig.view.accept(3);
    rig.wait_for("the dead letter to be applied", async || rig.dead_letters(Lane::Dead).await.is_empty())
        .await;
    assert_eq!(rig.view.applied_uploads(), [3]);
    assert!(rig.dead_letters(Lane::Failed).await.is_empty());
    running.stop().await;
}

/// Of an unknown group, as another program may write them, or of another view.
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_of_other_groups_are_left_and_those_without_a_group_are_applied() {
    let rig = Rig::new().await;
    let of_another = DeadLetter { group: "another".to_owned(), ..dead_letter_of(entry(8)) };
    rig.append_to(Lane::Dead, &[of_another.to_fields(), entry(9)]).await;
    let running = rig.start("a", |_| {});
    rig.wait_for("the dead letter without a group", async || rig.view.applied_uploads() == [9]).await;
    rig.wait_for("its dead letter to be deleted", async || rig.dead_letters(Lane::Dead).await.len() == 1)
        .await;
    assert_eq!(rig.dead_letters(Lane::Dead).await[0].group, "another");
    running.stop().await;
}

/// The dead letters of a dead consumer are due in an hour, and so are new ones: neither delays a due dead letter, nor
/// the search for dead consumers of the traffic lane.
#[tokio::test(flavor = "multi_thread")]
async fn j7_waiting_dead_letters_delay_nothing() {
    let rig = Rig::new().await;
    rig.ensure_groups().await;
    let later = |number| DeadLetter { due_at: UnixTime(u32::MAX), ..dead_letter_of(entry(number)) };
    rig.append_to(Lane::Dead, &[later(1).to_fields()]).await;
    let dead = ProcessName::new("dead", 1).consumer("letters", 0);
    rig.journal.read(Lane::Dead, GROUP, &dead, 20, Duration::ZERO).await.unwrap();
    rig.clock.advance(Seconds(120));
    let running = rig.start("a", |settings| settings.dead_after = Duration::from_secs(60));
    rig.wait_for("the dead letter to be taken over", async || running.counters.taken_over() == 1).await;
    rig.append_to(Lane::Dead, &[later(2).to_fields()]).await;
    rig.append_to(Lane::Dead, &[dead_letter_of(entry(3)).to_fields()]).await;
    rig.wait_for("the dead letter that is due", async || rig.view.applied_uploads() == [3]).await;

    let dead = ProcessName::new("dead", 1).consumer("reader-0", 0);
    rig.journal.set_note(VIEW, Some("paused")).await.unwrap();
    rig.wait_for("the pause", async || running.counters.is_paused_seen(&rig).await).await;
    rig.append(&[entry(4)]).await;
    rig.journal.read(Lane::Traffic, GROUP, &dead, 1, Duration::ZERO).await.unwrap();
    rig.clock.advance(Seconds(120));
    rig.journal.set_note(VIEW, None).await.unwrap();
    rig.wait_for("the dead reader's entry", async || rig.view.applied_uploads() == [3, 4]).await;
    assert_eq!(rig.dead_letters(Lane::Dead).await.len(), 2);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_down_creates_no_dead_letters() {
    let rig = Rig::new().await;
    rig.view.set_down(true);
    rig.append(&(0..10).map(entry).collect::<Vec<_>>()).await;
    let running = rig.start("a", |_| {});
    rig.wait_for("several attempts", async || running.counters.waits() >= 3).await;
    let status = rig.group_status().await;
    assert_eq!((status.pending, rig.dead_letters(Lane::Dead).await.len()), (10, 0));
    assert!(rig.view.applied_uploads().is_empty());
    rig.view.set_down(false);
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), (0..10).collect::<Vec<_>>());
    assert!(rig.view.saw_retries(), "a retried batch has is_retry");
    running.stop().await;
}

/// A view whose store fails on one entry without identifying it.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_entry_is_found_by_halving_the_batch() {
    let rig = Rig::new().await;
    rig.view.upset_by(37);
    rig.append(&(0..100).map(entry).collect::<Vec<_>>()).await;
    let running = rig.start("a", |settings| settings.retry_delay = domain::Seconds(3600));
    rig.wait_lag_0().await;
    let dead_letters = rig.dead_letters(Lane::Dead).await;
    assert_eq!(
        dead_letters.iter().map(|dead_letter| dead_letter.reason.as_str()).collect::<Vec<_>>(),
        ["upset"]
    );
    let expected: Vec<u64> = (0..100).filter(|number| *number != 37).collect();
    assert_eq!(rig.view.applied_uploads(), expected);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j4_several_consumers_share_the_work() {
    let rig = Rig::new().await;
    let first = rig.start("a", |settings| (settings.consumers, settings.batch_max) = (3, 7));
    let second = rig.start("b", |settings| settings.batch_max = 5);
    for chunk in (0..600).collect::<Vec<u64>>().chunks(50) {
        rig.append(&chunk.iter().copied().map(entry).collect::<Vec<_>>()).await;
    }
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), (0..600).collect::<Vec<_>>());
    assert!(rig.view.consumers_seen() > 1);
    first.stop().await;
    second.stop().await;
}

/// Killed while it held entries: another process takes them over once it has been idle for long, and fences it.
#[tokio::test(flavor = "multi_thread")]
async fn j4_entries_of_a_dead_consumer_are_taken_over() {
    let rig = Rig::new().await;
    rig.ensure_groups().await;
    rig.append(&(0..30).map(entry).collect::<Vec<_>>()).await;
    let dead = ProcessName::new("dead", 1).consumer("reader-0", 0);
    let held = rig.journal.read(Lane::Traffic, GROUP, &dead, 20, Duration::ZERO).await.unwrap();
    assert_eq!(held.len(), 20);
    rig.clock.advance(domain::Seconds(120));
    let running = rig.start("living", |settings| settings.dead_after = Duration::from_secs(60));
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), (0..30).collect::<Vec<_>>());
    assert_eq!((running.counters.taken_over(), rig.view.fenced()), (20, vec![dead.clone()]));
    rig.wait_for("the dead to be forgotten", async || {
        let names = rig.journal.consumers(Lane::Traffic, GROUP).await.unwrap();
        names.iter().all(|consumer| consumer.name != dead)
    })
    .await;
    running.stop().await;
}

/// Consumers of its own node's earlier process count as dead at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_process_takes_over_its_own_entries_at_once() {
    let rig = Rig::new().await;
    rig.ensure_groups().await;
    rig.append(&(0..5).map(entry).collect::<Vec<_>>()).await;
    let before = ProcessName::new("a", 1).consumer("reader-0", 0);
    rig.journal.read(Lane::Traffic, GROUP, &before, 5, Duration::ZERO).await.unwrap();
    let running = rig.start("a", |settings| settings.dead_after = Duration::from_secs(86_400));
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), (0..5).collect::<Vec<_>>());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_consumer_continues_under_another_name() {
    let rig = Rig::new().await;
    let running = rig.start("a", |_| {});
    rig.append(&[entry(1)]).await;
    rig.wait_lag_0().await;
    rig.view.fence_all();
    rig.append(&[entry(2)]).await;
    // Its entries have been taken over by a process that stops, until an earlier process of the node is recognised.
    rig.wait_for("another name", async || running.counters.fenced() >= 1).await;
    rig.append(&[entry(3)]).await;
    rig.wait_for("the next entry", async || rig.view.applied_uploads().contains(&3)).await;
    running.stop().await;
    let again = rig.start("a", |_| {});
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), [1, 2, 3]);
    again.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j9_a_paused_view_applies_nothing_until_resumed() {
    let rig = Rig::new().await;
    rig.journal.set_note(VIEW, Some("paused")).await.unwrap();
    let running = rig.start("a", |_| {});
    rig.wait_for("the pause", async || running.counters.is_paused_seen(&rig).await).await;
    rig.append(&(0..5).map(entry).collect::<Vec<_>>()).await;
    let status = rig.group_status().await;
    assert_eq!((status.unread, rig.view.applied_uploads().len()), (5, 0));
    rig.journal.set_note(VIEW, None).await.unwrap();
    rig.wait_lag_0().await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j9_more_consumers_and_larger_batches_take_effect_at_once() {
    let rig = Rig::new().await;
    let running = rig.start("a", |settings| (settings.consumers, settings.batch_max) = (1, 1));
    rig.append(&(0..20).map(entry).collect::<Vec<_>>()).await;
    rig.wait_lag_0().await;
    assert_eq!((rig.view.consumers_seen(), rig.view.largest_batch()), (1, 1));
    running.change(|settings| (settings.consumers, settings.batch_max) = (4, 50));
    rig.wait_for("more consumers with larger batches", async || {
        rig.append(&(100..200).map(entry).collect::<Vec<_>>()).await;
        rig.wait_lag_0().await;
        rig.view.consumers_seen() >= 3 && rig.view.largest_batch() > 1
    })
    .await;
    running.change(|settings| settings.consumers = 1);
    rig.append(&[entry(999)]).await;
    rig.wait_lag_0().await;
    running.stop().await;
}

/// A deleted group starts again after what its view has applied.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_group_starts_after_what_its_view_applied() {
    let rig = Rig::new().await;
    rig.append(&(0..10).map(entry).collect::<Vec<_>>()).await;
    let fifth = rig.journal.list(Lane::Traffic, journal::EntryId::ZERO, 5).await.unwrap()[4].id;
    rig.view.resume_after(fifth);
    let running = rig.start("a", |_| {});
    rig.wait_for("the group", async || rig.has_group().await).await;
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), (5..10).collect::<Vec<_>>());
    running.stop().await;
}
