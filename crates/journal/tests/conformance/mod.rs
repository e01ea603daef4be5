//! What every journal owes, as tests. An adapter names its fixture and runs them all:
//!
//! ```ignore
//! #[macro_use]
//! mod conformance;
//! conformance_suite!(MyFixture);
//! ```
//!
//! One function per duty, in the file of its subject. A duty that is missing from the list below is dead code, and
//! the compiler says so.

use std::sync::Arc;
use std::time::Duration;

use journal::{AppendToken, EntryId, Fields, Journal, Lane, StartAt, Stored, Transfer};

pub mod appending;
pub mod listing;
pub mod model;
pub mod moving;
pub mod random;
pub mod reading;
pub mod searching;
pub mod taking_over;
pub mod trimming;

/// A journal of one's own for each test, gone with the test.
pub trait Fixture: Sized + Send + Sync + 'static {
    /// An empty journal.
    async fn fresh() -> Self;

    /// A handle on it that shares nothing with the others, as another process has it, or this one after a restart.
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
                ids_go_on_growing_when_everything_was_deleted,
                what_was_appended_is_there_for_everybody,
                lanes_are_separate,
                a_batch_sent_again_is_not_stored_twice,
                an_older_batch_that_arrives_late_is_not_stored_again,
                a_batch_sent_twice_at_once_is_stored_once,
                tokens_count_per_producer_and_lane,
                an_empty_batch_stores_nothing,
                an_append_that_is_cut_off_is_whole_or_nothing,
                a_batch_of_five_thousand_is_stored_whole,
                j3_odd_fields_come_back_as_they_were,
                producers_append_at_once_without_mixing_their_batches,
            ]
        );
        conformance_duties!(
            $fixture,
            reading,
            [
                every_group_reads_everything,
                a_group_that_exists_stays_where_it_is,
                a_group_can_begin_behind_an_entry,
                a_read_gives_at_most_what_was_asked_for,
                j4_consumers_share_the_work_without_overlap,
                what_is_pending_survives_a_restart,
                acknowledging_twice_or_too_much_does_no_harm,
                a_read_that_need_not_wait_returns_at_once,
                a_read_waits_for_an_append_of_this_process,
                a_read_waits_for_an_append_of_another_process,
                of_waiting_consumers_one_gets_the_entry,
                deleted_entries_are_not_given,
                a_missing_group_is_named,
                consumers_say_what_they_have_and_how_long_they_were_silent,
                views_are_paused_until_told_otherwise,
            ]
        );
        conformance_duties!(
            $fixture,
            taking_over,
            [
                j4_a_dead_consumers_entries_are_given_oldest_first,
                j4_a_dead_consumers_late_acknowledgements_do_no_harm,
                j4_two_that_take_over_at_once_do_not_overlap,
                j4_deleted_entries_are_acknowledged_not_given,
                j4_nothing_is_taken_from_a_stranger,
                a_consumer_with_pending_entries_is_not_forgotten,
            ]
        );
        conformance_duties!(
            $fixture,
            moving,
            [
                j5_a_bad_entry_moves_to_the_dead_letters_and_stays_in_the_traffic,
                j5_what_is_not_pending_does_not_move,
                j5_a_letter_moves_once,
                j5_two_that_move_the_same_letters_move_each_once,
                j6_a_letter_is_retried_then_failed_then_replayed,
                j7_letters_move_without_a_group_too,
                j7_letters_are_deleted,
            ]
        );
        conformance_duties!(
            $fixture,
            listing,
            [
                an_empty_lane_has_nothing_to_show,
                j7_entries_are_listed_page_by_page,
                j7_the_newest_entries_are_listed_newest_first,
                j7_the_oldest_entry_that_a_group_has_not_finished_is_found,
                j7_one_entry_is_found,
                j7_figures_are_right_at_each_step,
                j7_figures_of_a_lane_whose_letters_were_deleted,
                a_tail_says_whether_anything_is_missing,
                a_tail_of_a_journal_that_lost_its_newest_is_not_whole,
            ]
        );
        conformance_duties!(
            $fixture,
            searching,
            [
                a_search_finds_every_entry_of_a_user_once_newest_first,
                a_search_looks_at_no_more_than_it_may,
                a_search_goes_on_while_entries_come_and_go,
                a_search_keeps_to_its_lane_and_to_what_was_asked,
            ]
        );
        conformance_duties!(
            $fixture,
            trimming,
            [
                traffic_that_nobody_reads_is_not_trimmed,
                other_lanes_need_no_group_to_be_trimmed,
                only_older_entries_are_removed,
                what_a_group_has_not_read_is_kept,
                what_a_group_has_not_acknowledged_is_kept,
                the_slowest_group_holds_back,
                a_group_that_kept_nothing_is_not_blamed,
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
/// Longer than anything here takes; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// More than any test stores.
pub const ALL: usize = 100_000;

pub fn token(producer: &str, number: u64) -> AppendToken {
    AppendToken { producer: producer.to_owned(), number }
}

/// An entry that can be told from others.
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

pub fn ids(stored: &[Stored]) -> Vec<EntryId> {
    stored.iter().map(|stored| stored.id).collect()
}

/// The same entry as a dead letter on its way elsewhere.
pub fn transfers(stored: &[Stored]) -> Vec<Transfer> {
    stored.iter().map(|stored| Transfer { id: stored.id, fields: stored.fields.clone() }).collect()
}

/// A journal whose lane holds the entries 1 to `count`.
pub async fn filled<F: Fixture>(lane: Lane, count: u64) -> (F, Arc<dyn Journal>) {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    journal.append(lane, &entries(1..=count), &token("filler", 1)).await.unwrap();
    (fixture, journal)
}

/// The same, with groups that begin at the beginning.
pub async fn filled_for<F: Fixture>(lane: Lane, count: u64, groups: &[&str]) -> (F, Arc<dyn Journal>) {
    let (fixture, journal) = filled::<F>(lane, count).await;
    for group in groups {
        journal.ensure_group(lane, group, StartAt::Beginning).await.unwrap();
    }
    (fixture, journal)
}

/// Everything a lane holds.
pub async fn all(journal: &Arc<dyn Journal>, lane: Lane) -> Vec<Stored> {
    journal.list(lane, EntryId::ZERO, ALL).await.unwrap()
}

pub async fn read(journal: &Arc<dyn Journal>, lane: Lane, who: (&str, &str), count: usize) -> Vec<Stored> {
    journal.read(lane, who.0, who.1, count, NO_WAIT).await.unwrap()
}

/// How many entries are pending for a group.
pub async fn pending(journal: &Arc<dyn Journal>, lane: Lane, group: &str) -> u64 {
    let status = journal.status(lane).await.unwrap();
    status.groups.iter().find(|status| status.name == group).unwrap().pending
}
