//! One of many gateways on the page: the register that they share, and what they tell each other.

use std::sync::Arc;

use gateway::GatewayCounters;
use gateway::counters::{BetweenCounters, SharingCounters};
use register::RegisterCounters;

use super::{Page, Source};

/// What makes a gateway one of many.
pub struct GatewaysFigures {
    /// What the register counts.
    pub register: Arc<RegisterCounters>,
    /// What the gateway counts.
    pub gateway: Arc<GatewayCounters>,
    /// Seconds since the register last answered that all is well. Called at every scrape, so it must not wait.
    pub since_contact_s: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Source for GatewaysFigures {
    fn encode(&self, page: &mut Page) {
        standing(&self.register, page);
        page.gauge(
            "rollcall_register_contact_seconds",
            "Time since the register last answered that all is well.",
        )
        .is((self.since_contact_s)());
        told(&self.register, page);
        cleared_up(&self.register, page);
        shared(&self.gateway.sharing, page);
        between(&self.gateway.between, page);
    }
}

fn standing(register: &RegisterCounters, page: &mut Page) {
    page.gauge("rollcall_register_nodes", "Gateways whose lease holds, when this one last looked.")
        .is(register.nodes.get());
    page.gauge("rollcall_register_shards_owned", "Shards of people that this gateway clears up, of 64.")
        .is(register.shards_owned.get());
    page.counter(
        "rollcall_register_rejoins_total",
        "Times that this gateway was taken for dead, and joined the register anew.",
    )
    .is(register.rejoins.get());
    page.counter("rollcall_register_failures_total", "Commands of the register that failed.")
        .is(register.failures.get());
    page.counter(
        "rollcall_register_malformed_total",
        "Values of the register that are not what we write there.",
    )
    .is(register.malformed.get());
    page.histogram("rollcall_register_pipeline_seconds", "Time of a batch of commands of the register.")
        .measured(&[], &register.pipeline_seconds.snapshot());
}

fn told(register: &RegisterCounters, page: &mut Page) {
    page.counter("rollcall_register_updates_total", "People who were published, by what became of it.")
        .with(&[("outcome", "sent")], register.published.get())
        .with(&[("outcome", "changed")], register.changed.get())
        .with(&[("outcome", "refreshed")], register.refreshed.get())
        .with(&[("outcome", "fenced")], register.fenced.get());
    page.counter("rollcall_register_asked_total", "People about whom the register was asked.")
        .is(register.asked.get());
    page.counter(
        "rollcall_register_entries_total",
        "Entries in inboxes of gateways, by what became of them.",
    )
    .with(&[("outcome", "sent")], register.entries_sent.get())
    .with(&[("outcome", "undelivered")], register.entries_undelivered.get())
    .with(&[("outcome", "given_up")], register.entries_given_up.get())
    .with(&[("outcome", "heard")], register.entries_heard.get())
    .with(&[("outcome", "unknown")], register.entries_unknown.get());
    page.gauge("rollcall_register_entries_owed", "Entries for other gateways that wait for another try.")
        .is(register.entries_owed.get());
    page.counter("rollcall_register_gaps_total", "Times that entries of the own inbox may have been missed.")
        .is(register.gaps.get());
    page.gauge("rollcall_register_inbox_entries", "Entries in the own inbox, when last looked at.")
        .is(register.inbox_length.get());
    page.counter("rollcall_register_inbox_full_total", "Times that the own inbox was as full as it may be.")
        .is(register.inbox_full.get());
}

fn cleared_up(register: &RegisterCounters, page: &mut Page) {
    page.counter("rollcall_register_reaped_total", "People who were cleared up after, by why.")
        .with(&[("why", "gone")], register.reaped_gone.get())
        .with(&[("why", "late")], register.reaped_late.get())
        .with(&[("why", "pending")], register.reaped_pending.get())
        .with(&[("why", "retold")], register.retold.get())
        .with(&[("why", "lost")], register.found_lost.get());
}

fn shared(sharing: &SharingCounters, page: &mut Page) {
    page.gauge("rollcall_sharing_waiting_people", "People who changed and are not published yet.")
        .is(sharing.marked.get());
    page.gauge("rollcall_sharing_known_people", "People about whom the register is asked.")
        .is(sharing.known.get());
    page.counter("rollcall_sharing_flushes_total", "Batches that were published, by outcome.")
        .with(&[("outcome", "sent")], sharing.flushes.get())
        .with(&[("outcome", "failed")], sharing.flush_failures.get());
    page.histogram("rollcall_sharing_flush_seconds", "Time of a batch that is published.")
        .measured(&[], &sharing.flush_seconds.snapshot());
    page.counter("rollcall_sharing_refreshes_total", "Publications that told only of a new sign of life.")
        .is(sharing.refreshes.get());
    page.counter(
        "rollcall_sharing_asked_again_total",
        "People about whom the register was asked again, in turn.",
    )
    .is(sharing.asked_again.get());
    page.counter(
        "rollcall_sharing_records_total",
        "Records of people from the register, by what became of them.",
    )
    .with(&[("outcome", "applied")], sharing.applied.get())
    .with(&[("outcome", "stale")], sharing.stale.get())
    .with(&[("outcome", "unwanted")], sharing.unwanted.get());
    page.counter(
        "rollcall_sharing_trouble_total",
        "What was missed: outages, gaps, joining anew, people no longer believed, questions not answered in time.",
    )
    .with(&[("what", "outage")], sharing.outages.get())
    .with(&[("what", "gap")], sharing.gaps.get())
    .with(&[("what", "rejoin")], sharing.rejoins.get())
    .with(&[("what", "lost")], sharing.lost.get())
    .with(&[("what", "mended")], sharing.mended.get())
    .with(&[("what", "unanswered")], sharing.unanswered.get());
}

fn between(between: &BetweenCounters, page: &mut Page) {
    page.counter("rollcall_gateways_messages_total", "Messages between gateways, by what became of them.")
        .with(&[("outcome", "sent")], between.messages_sent.get())
        .with(&[("outcome", "failed")], between.messages_failed.get())
        .with(&[("outcome", "dropped")], between.messages_dropped.get())
        .with(&[("outcome", "heard")], between.messages_heard.get());
    page.gauge("rollcall_gateways_messages_waiting", "Messages for other gateways that wait to be sent.")
        .is(between.messages_waiting.get());
    page.counter("rollcall_gateways_rooms_total", "Parts of rooms over several gateways, by what was done.")
        .with(&[("what", "written")], between.rooms_written.get())
        .with(&[("what", "read")], between.rooms_read.get())
        .with(&[("what", "gap")], between.room_gaps.get())
        .with(&[("what", "failed")], between.room_failures.get());
}
