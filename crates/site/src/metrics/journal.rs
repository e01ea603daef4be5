//! The way of an entry on the page: the queue, the journal's upkeep, the views.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::consumer::LETTERS_HELD_MAX;
use journal::maintenance::MaintenanceCounters;
use journal::queue::RISKS_MAX;
use journal::{Journal, Queue};

use super::{Page, Source, ViewSource};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The queue between the tracker and the journal, and the task that empties it.
pub(super) struct QueueFigures(pub(super) Arc<Queue>);

impl Source for QueueFigures {
    fn encode(&self, page: &mut Page) {
        let (queue, counters) = (&self.0, self.0.counters());
        page.gauge("rollcall_queue_occupied_entries", "Announces that wait to be stored in the journal.")
            .is(queue.occupied());
        page.gauge("rollcall_queue_max_entries", "Announces that may wait (journal.queue_max).")
            .is(queue.capacity());
        page.gauge(
            "rollcall_queue_append_failures_in_a_row",
            "Attempts to store the present batch that failed. Zero while the journal takes entries.",
        )
        .is(read(&counters.failures_in_a_row));
        page.gauge("rollcall_queue_risks_waiting", "Reports of risks that wait to be stored.")
            .is(queue.risks_waiting());
        page.gauge("rollcall_queue_risks_waiting_max", "Reports of risks that may wait.").is(RISKS_MAX);
        for (name, help, counter) in [
            ("rollcall_queue_stored_total", "Announces stored in the journal.", &counters.stored),
            (
                "rollcall_queue_batches_total",
                "Batches of announces stored in the journal.",
                &counters.batches,
            ),
            (
                "rollcall_queue_append_failures_total",
                "Attempts to store a batch that failed; each is repeated until it succeeds.",
                &counters.failed_appends,
            ),
            (
                "rollcall_queue_full_total",
                "Announces that found no place in the queue; their clients are told to come back.",
                &counters.full,
            ),
            (
                "rollcall_queue_lost_total",
                "Announces that were given up when the server had to end before the journal took them.",
                &counters.lost,
            ),
            (
                "rollcall_risk_events_total",
                "Reports of claims that nobody can believe, stored in the journal.",
                &counters.risks_stored,
            ),
            (
                "rollcall_risk_events_dropped_total",
                "Such reports that were dropped because too many waited.",
                &counters.risks_dropped,
            ),
        ] {
            page.counter(name, help).is(read(counter));
        }
        page.histogram(
            "rollcall_queue_append_seconds",
            "Time that an attempt to store a batch in the journal took, whatever came of it.",
        )
        .measured(&[], &counters.appends.snapshot());
    }
}

/// What keeps the journal short, and the bounds of whatever it is kept in.
pub(super) struct MaintenanceFigures {
    pub(super) counters: Arc<MaintenanceCounters>,
    pub(super) journal: Arc<dyn Journal>,
}

impl Source for MaintenanceFigures {
    fn encode(&self, page: &mut Page) {
        let (counters, bounds) = (&self.counters, self.journal.bounds_hit());
        page.gauge(
            "rollcall_journal_length_alarm_entries",
            "Entries in the journal from which on there is an alarm (journal.length_alarm). Zero before the first look.",
        )
        .is(read(&counters.length_alarm));
        for (name, help, count) in [
            (
                "rollcall_journal_trimmed_total",
                "Entries removed from the journal, after every view had them.",
                read(&counters.trimmed),
            ),
            (
                "rollcall_journal_maintenance_failures_total",
                "Rounds of maintenance that could not be finished, since the journal was away.",
                read(&counters.failures),
            ),
            (
                "rollcall_journal_dead_letters_truncated_total",
                "Dead letters that had too many fields to be moved whole.",
                bounds.letters_shortened,
            ),
            (
                "rollcall_journal_connections_dropped_total",
                "Good connections of the journal that were closed because enough were kept.",
                bounds.connections_dropped,
            ),
            (
                "rollcall_journal_too_few_replicas_total",
                "Times that fewer replicas than journal.wait_replicas had a batch in time; it was waited for again.",
                bounds.too_few_replicas,
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

/// The views that this process keeps.
pub(super) struct ViewFigures(pub(super) Vec<ViewSource>);

impl Source for ViewFigures {
    fn encode(&self, page: &mut Page) {
        for ViewSource { view, counters, .. } in &self.0 {
            let labels = [("view", *view)];
            for (name, help, counter) in counted(counters) {
                page.counter(name, help).with(&labels, read(counter));
            }
            let family = page.counter(
                "rollcall_view_dead_letter_retries_total",
                "Dead letters that were tried again, by how often they had been tried before; the last number means that many or more.",
            );
            for (tried_before, counter) in counters.letters_tried.iter().enumerate() {
                let tried_before = tried_before.to_string();
                family.with(&[("view", *view), ("tried_before", &tried_before)], read(counter));
            }
            page.gauge(
                "rollcall_view_failures_in_a_row",
                "Attempts to apply the present batch that failed. Zero while the view's store answers.",
            )
            .with(&labels, read(&counters.failures_in_a_row));
            page.gauge(
                "rollcall_view_dead_letters_held",
                "Dead letters that wait for their time to be tried again.",
            )
            .with(&labels, read(&counters.letters_held));
            page.gauge(
                "rollcall_view_dead_letters_held_max",
                "Dead letters that may wait; with more, new ones are left in the journal until some are answered.",
            )
            .with(&labels, LETTERS_HELD_MAX);
            page.histogram(
                "rollcall_view_apply_seconds",
                "Time that a view took to apply a batch of entries, whatever came of it.",
            )
            .measured(&labels, &counters.applies.snapshot());
            page.gauge(
                "rollcall_view_foreign_consumers",
                "Consumers of other programs in the view's group: the entries that they take are missing from the view.",
            )
            .with(&labels, counters.foreign_consumers.load(Ordering::Relaxed));
        }
    }
}

type Counted<'a> = (&'static str, &'static str, &'a AtomicU64);

fn counted(counters: &journal::ConsumerCounters) -> [Counted<'_>; 11] {
    [
        ("rollcall_view_applied_total", "Entries that the view has taken.", &counters.applied),
        (
            "rollcall_view_dead_letters_total",
            "Entries that the view could not take and that went to the dead letters.",
            &counters.buried,
        ),
        (
            "rollcall_view_skipped_total",
            "Entries that cannot be understood, left to the view that answers for all.",
            &counters.skipped,
        ),
        (
            "rollcall_view_skipped_old_total",
            "Entries that were skipped because they are older than the installation.",
            &counters.skipped_old,
        ),
        (
            "rollcall_view_dead_letters_applied_total",
            "Dead letters that the view took in the end.",
            &counters.revived,
        ),
        ("rollcall_view_retried_total", "Dead letters that failed once more.", &counters.retried),
        (
            "rollcall_view_failed_total",
            "Dead letters that were given up, after as many tries as allowed (journal.retry_max).",
            &counters.failed,
        ),
        ("rollcall_view_taken_over_total", "Entries taken over from dead consumers.", &counters.taken_over),
        (
            "rollcall_view_transient_failures_total",
            "Attempts that had to be repeated because a store was down; nothing is lost by them.",
            &counters.transient_failures,
        ),
        (
            "rollcall_view_fenced_total",
            "Times that a consumer of this process was taken for dead by another process.",
            &counters.fenced,
        ),
        (
            "rollcall_view_dead_letters_full_total",
            "Times that new dead letters were left where they are, because as many as allowed waited already.",
            &counters.letters_full,
        ),
    ]
}
