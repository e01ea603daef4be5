//! The duties of every adapter, as tests. An adapter runs them all on its fixture:
//!
//! ```ignore
//! #[macro_use] mod conformance; conformance_suite!(MyFixture);
//! ```
//!
//! One function per duty, in the file of its subject. A duty that is missing from the list below is dead code, and the
//! compiler reports it.

use std::sync::Arc;
use std::time::Duration;

use journal::{AppendToken, EntryId, Fields, Journal, Lane, StartAt, Stored, Transfer};
use testkit::eventually_async;

pub mod appending;
pub mod listing;
pub mod model;
pub mod moving;
pub mod random;
pub mod reading;
pub mod searching;
pub mod taking_over;
pub mod trimming;

/// An isolated journal for each test, deleted with the test.
pub trait Fixture: Sized + Send + Sync + 'static {
    async fn fresh() -> Self;

    /// A handle that shares nothing with the others, as in another process, or after a restart.
    async fn open(&self) -> Arc<dyn Journal>;
}

/// Turns every duty into a test of one adapter.
macro_rules! conformance_suite {
    ($fixture:ident) => {
        conformance_duties!(
            $fixture,
            appending,
            [
                entries_are_kept_in_order_with_growing_ids,
                ids_rise_after_everything_was_deleted,
                appended_entries_are_visible_to_every_handle,
                lanes_are_separate,
                a_batch_sent_again_is_not_stored_twice,
                an_older_batch_that_arrives_late_is_not_stored_again,
                a_batch_sent_twice_at_once_is_stored_once,
                tokens_count_per_producer_and_lane,
                an_empty_batch_stores_nothing,
                a_cancelled_append_is_atomic,
                a_batch_of_five_thousand_is_stored_whole,
                j3_unusual_fields_round_trip,
                producers_append_at_once_without_mixing_their_batches,
                j2_events_are_stored_with_the_fields_of_the_contract,
            ]
        );
        conformance_duties!(
            $fixture,
            reading,
            [
                every_group_reads_everything,
                an_existing_group_is_not_moved,
                a_group_can_start_after_an_entry,
                a_read_returns_at_most_the_requested_number,
                j4_consumers_share_the_work_without_overlap,
                what_is_pending_survives_a_restart,
                acknowledging_twice_or_too_much_is_harmless,
                a_read_that_need_not_wait_returns_at_once,
                a_read_waits_for_an_append_of_this_process,
                a_read_waits_for_an_append_of_another_process,
                one_of_several_waiting_consumers_gets_the_entry,
                deleted_entries_are_not_delivered,
                a_missing_group_is_reported,
                consumers_report_pending_entries_and_idle_time,
                views_are_paused_until_resumed,
            ]
        );
        conformance_duties!(
            $fixture,
            taking_over,
            [
                j4_entries_of_a_dead_consumer_are_returned_oldest_first,
                j4_late_acknowledgements_of_a_dead_consumer_are_harmless,
                j4_concurrent_take_overs_do_not_overlap,
                j4_deleted_entries_are_acknowledged_not_returned,
                j4_nothing_is_taken_over_from_an_unknown_consumer,
                a_consumer_with_pending_entries_is_not_deleted,
            ]
        );
        conformance_duties!(
            $fixture,
            moving,
            [
                j5_a_bad_entry_moves_to_the_dead_letters_and_stays_in_the_traffic,
                j5_what_is_not_pending_does_not_move,
                j5_an_entry_moves_once,
                j5_concurrent_moves_move_each_entry_once,
                j6_a_dead_letter_is_retried_then_failed_then_replayed,
                j7_dead_letters_move_without_a_group,
                j7_dead_letters_are_deleted,
            ]
        );
        conformance_duties!(
            $fixture,
            listing,
            [
                an_empty_lane_lists_nothing,
                j7_entries_are_listed_page_by_page,
                j7_the_newest_entries_are_listed_newest_first,
                j7_the_oldest_unacknowledged_entry_of_a_group_is_found,
                j7_one_entry_is_found,
                j7_status_is_correct_at_each_step,
                j7_status_of_a_lane_with_deleted_entries,
                a_tail_reports_missing_entries,
                a_tail_after_a_lost_entry_is_not_whole,
            ]
        );
        conformance_duties!(
            $fixture,
            searching,
            [
                a_search_finds_every_entry_of_a_user_once_newest_first,
                a_search_scans_no_more_than_its_bound,
                a_search_continues_while_entries_are_appended_and_trimmed,
                a_search_respects_its_lane_and_filter,
            ]
        );
        conformance_duties!(
            $fixture,
            trimming,
            [
                traffic_without_a_group_is_not_trimmed,
                other_lanes_need_no_group_to_be_trimmed,
                only_older_entries_are_removed,
                what_a_group_has_not_read_is_kept,
                what_a_group_has_not_acknowledged_is_kept,
                the_slowest_group_holds_trimming_back,
                a_group_that_holds_nothing_back_is_not_reported,
                trimming_while_others_append_and_read_loses_nothing,
            ]
        );
        conformance_duties!($fixture, random, [any_sequence_of_calls_agrees_with_the_model,]);
    };
}

macro_rules! conformance_duties {
    ($fixture:ident, $subject:ident, [$($duty:ident),* $(,)?]) => {
        mod $subject {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $duty() {
                    $crate::conformance::$subject::$duty::<super::$fixture>().await;
                }
            )*
        }
    };
}

pub const NO_WAIT: Duration = Duration::ZERO;
/// Upper bound; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Of a producer or consumer whose journal does not answer.
pub const RETRY_DELAY: Duration = Duration::from_millis(20);
/// More than any test stores.
pub const ALL: usize = 100_000;

/// Retries until it succeeds, as the tracker does; returns the number of failures.
pub async fn append_with_retries(journal: &dyn Journal, entries: &[Fields], token: &AppendToken) -> u32 {
    // Not `eventually_async`: tasks that are spawned retry, too, and what an async closure borrows is not `Send` there.
    let retrying = async {
        let mut failures = 0;
        while let Err(error) = journal.append(Lane::Traffic, entries, token).await {
            assert!(error.is_retryable(), "{error}");
            failures += 1;
            tokio::time::sleep(RETRY_DELAY).await;
        }
        failures
    };
    tokio::time::timeout(PATIENCE * 2, retrying).await.expect("the journal stores the entries again")
}

/// Waits until so many more entries were appended to the traffic lane, whatever happens to the store meanwhile.
pub async fn wait_appended(journal: &dyn Journal, count: u64) {
    let appended = async || Some(journal.status(Lane::Traffic).await.ok()?.appended);
    let goal = eventually_async("the journal to answer", PATIENCE, &appended).await + count;
    eventually_async("entries to be appended", PATIENCE, async || {
        appended().await.filter(|appended| *appended >= goal)
    })
    .await;
}

pub fn token(producer: &str, number: u64) -> AppendToken {
    AppendToken { producer: producer.to_owned(), number }
}

/// A distinguishable entry.
pub fn entry(number: u64) -> Fields {
    let mut fields = Fields::new();
    fields.push_text("number", number);
    fields.push("infohash", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d");
    fields
}

pub fn entries(numbers: impl IntoIterator<Item = u64>) -> Vec<Fields> {
    numbers.into_iter().map(entry).collect()
}

pub fn number(stored: &Stored) -> u64 {
    let text = std::str::from_utf8(stored.fields.get("number").unwrap()).unwrap();
    text.parse().unwrap()
}

pub fn numbers(stored: &[Stored]) -> Vec<u64> {
    stored.iter().map(number).collect()
}

/// The numbers of all entries of the traffic lane.
pub async fn stored_numbers(journal: &dyn Journal) -> Vec<u64> {
    numbers(&journal.list(Lane::Traffic, EntryId::ZERO, ALL).await.unwrap())
}

pub fn ids(stored: &[Stored]) -> Vec<EntryId> {
    stored.iter().map(|stored| stored.id).collect()
}

/// The entries as transfers.
pub fn transfers(stored: &[Stored]) -> Vec<Transfer> {
    stored.iter().map(|stored| Transfer { id: stored.id, fields: stored.fields.clone() }).collect()
}

/// A journal whose lane has the entries 1 to `count`.
pub async fn filled<F: Fixture>(lane: Lane, count: u64) -> (F, Arc<dyn Journal>) {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    journal.append(lane, &entries(1..=count), &token("filler", 1)).await.unwrap();
    (fixture, journal)
}

/// The same, with groups that start at the beginning.
pub async fn filled_for<F: Fixture>(lane: Lane, count: u64, groups: &[&str]) -> (F, Arc<dyn Journal>) {
    let (fixture, journal) = filled::<F>(lane, count).await;
    for group in groups {
        journal.ensure_group(lane, group, StartAt::Beginning).await.unwrap();
    }
    (fixture, journal)
}

/// All entries of a lane.
pub async fn all(journal: &Arc<dyn Journal>, lane: Lane) -> Vec<Stored> {
    journal.list(lane, EntryId::ZERO, ALL).await.unwrap()
}

pub async fn read(journal: &Arc<dyn Journal>, lane: Lane, who: (&str, &str), count: usize) -> Vec<Stored> {
    journal.read(lane, who.0, who.1, count, NO_WAIT).await.unwrap()
}

pub async fn pending(journal: &Arc<dyn Journal>, lane: Lane, group: &str) -> u64 {
    let status = journal.status(lane).await.unwrap();
    status.groups.iter().find(|status| status.name == group).unwrap().pending
}
