//! Metrics of the queue, the maintenance of the journal, and the consumers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::consumer::DEAD_LETTERS_HELD_MAX;
use journal::maintenance::MaintenanceCounters;
use journal::queue::RISKS_MAX;
use journal::{Journal, Queue};

use super::page::metrics;
use super::{Page, Source, ViewSource};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The queue between tracker and journal.
pub(super) struct QueueMetrics(pub(super) Arc<Queue>);

impl Source for QueueMetrics {
    fn encode(&self, page: &mut Page) {
        let (queue, counters) = (&self.0, self.0.counters());
        metrics! { page =>
            gauge "rollcall_queue_occupied_entries" = queue.occupied(), "Announces in the queue.";
            gauge "rollcall_queue_max_entries" = queue.capacity(), "Capacity of the queue (journal.queue_max).";
            gauge "rollcall_queue_append_failures_in_a_row" = &counters.failures_in_a_row,
                "Consecutive failed appends. Zero while the journal accepts entries.";
            gauge "rollcall_queue_risks_waiting" = queue.risks_waiting(), "Risk events that wait to be appended.";
            gauge "rollcall_queue_risks_waiting_max" = RISKS_MAX, "Maximum number of risk events that wait.";
            counter "rollcall_queue_stored_total" = &counters.stored, "Announces appended to the journal.";
            counter "rollcall_queue_batches_total" = &counters.batches, "Batches appended to the journal.";
            counter "rollcall_queue_append_failures_total" = &counters.failed_appends,
                "Failed appends; each is retried until it succeeds.";
            counter "rollcall_queue_full_total" = &counters.full,
                "Announces refused because the queue was full; clients retry.";
            counter "rollcall_queue_lost_total" = &counters.lost,
                "Announces lost because the server stopped before the journal accepted them.";
            counter "rollcall_risk_events_total" = &counters.risks_stored, "Risk events appended to the journal.";
            counter "rollcall_risk_events_dropped_total" = &counters.risks_dropped,
                "Risk events dropped because too many waited.";
            histogram "rollcall_queue_append_seconds" measures(&counters.appends.snapshot()),
                "Duration of an append, successful or not.";
        }
    }
}

/// Maintenance and bounds of the journal.
pub(super) struct MaintenanceMetrics {
    pub(super) counters: Arc<MaintenanceCounters>,
    pub(super) journal: Arc<dyn Journal>,
}

impl Source for MaintenanceMetrics {
    fn encode(&self, page: &mut Page) {
        let (counters, bounds) = (&self.counters, self.journal.bounds_hit());
        metrics! { page =>
            gauge "rollcall_journal_length_alarm_entries" = &counters.length_alarm,
                "Alarm threshold of the journal's length (journal.length_alarm). Zero before the first check.";
            counter "rollcall_journal_trimmed_total" = &counters.trimmed,
                "Entries trimmed after every group had acknowledged them.";
            counter "rollcall_journal_maintenance_failures_total" = &counters.failures,
                "Maintenance rounds that failed because the journal was unavailable.";
            counter "rollcall_journal_dead_letters_truncated_total" = bounds.dead_letters_truncated,
                "Dead letters truncated because they had too many fields.";
            counter "rollcall_journal_connections_dropped_total" = bounds.connections_dropped,
                "Idle connections closed because the pool was full.";
            counter "rollcall_journal_too_few_replicas_total" = bounds.too_few_replicas,
                "Times that fewer replicas than journal.wait_replicas confirmed a batch in time.";
        }
    }
}

/// Consumers of the views that this process maintains.
pub(super) struct ViewMetrics(pub(super) Vec<ViewSource>);

impl Source for ViewMetrics {
    fn encode(&self, page: &mut Page) {
        for ViewSource { view, counters, .. } in &self.0 {
            let labels = [("view", *view)];
            for (name, help, counter) in consumer_counters(counters) {
                page.counter(name, help).with(&labels, read(counter));
            }
            let family = page.counter(
                "rollcall_view_dead_letter_retries_total",
                "Retries of dead letters, by number of earlier retries; the last value means that many or more.",
            );
            for (tried_before, counter) in counters.dead_letters_retried.iter().enumerate() {
                let tried_before = tried_before.to_string();
                family.with(&[("view", *view), ("tried_before", &tried_before)], read(counter));
            }
            metrics! { page =>
                gauge "rollcall_view_failures_in_a_row" with(&labels) = &counters.failures_in_a_row,
                    "Consecutive failed attempts to apply a batch. Zero while the view's store answers.";
                gauge "rollcall_view_dead_letters_held" with(&labels) = &counters.dead_letters_held,
                    "Dead letters that wait for their next retry.";
                gauge "rollcall_view_dead_letters_held_max" with(&labels) = DEAD_LETTERS_HELD_MAX,
                    "Maximum number of waiting dead letters; further ones stay in the journal.";
                histogram "rollcall_view_apply_seconds" with(&labels) measures(&counters.applies.snapshot()),
                    "Duration of applying a batch, successful or not.";
                gauge "rollcall_view_foreign_consumers" with(&labels) = &counters.foreign_consumers,
                    "Consumers of other programs in the view's group: entries delivered to them are missing from the \
                     view.";
            }
        }
    }
}

type CounterRow<'a> = (&'static str, &'static str, &'a AtomicU64);

fn consumer_counters(counters: &journal::ConsumerCounters) -> [CounterRow<'_>; 11] {
    [
        ("rollcall_view_applied_total", "Applied entries.", &counters.applied),
        (
            "rollcall_view_dead_letters_total",
            "Entries that the view rejected and that became dead letters.",
            &counters.moved_to_dead_letters,
        ),
        (
            "rollcall_view_skipped_total",
            "Malformed entries skipped; the ledger makes them dead letters.",
            &counters.skipped,
        ),
        (
            "rollcall_view_skipped_old_total",
            "Entries skipped because they are older than the installation.",
            &counters.skipped_old,
        ),
        ("rollcall_view_dead_letters_applied_total", "Dead letters applied by a retry.", &counters.restored),
        (
            "rollcall_view_dead_letter_retry_failures_total",
            "Failed retries of dead letters.",
            &counters.retried,
        ),
        (
            "rollcall_view_dead_letters_failed_total",
            "Dead letters that failed their last retry (journal.retry_max).",
            &counters.failed,
        ),
        ("rollcall_view_taken_over_total", "Entries taken over from dead consumers.", &counters.taken_over),
        (
            "rollcall_view_transient_failures_total",
            "Attempts repeated because a store was unavailable.",
            &counters.transient_failures,
        ),
        (
            "rollcall_view_fenced_total",
            "Times that another process fenced a consumer of this process as dead.",
            &counters.fenced,
        ),
        (
            "rollcall_view_dead_letters_full_total",
            "Times that the maximum number of waiting dead letters was reached.",
            &counters.dead_letters_full,
        ),
    ]
}
