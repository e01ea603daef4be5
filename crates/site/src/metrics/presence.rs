//! Metrics of the gateway: connections, presence, delivery, webhooks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gateway::GatewayCounters;
use gateway::counters::{AcceptCounters, HubCounters, Kind, SessionCounters, WebhookCounters};
use gateway::hub::OnlineCount;
use presence::{Platform, Status};

use super::{Page, Source};

/// Counts and limits of the gateway.
pub struct PresenceMetrics {
    /// Called at every scrape, so it must not wait.
    pub count: Arc<dyn Fn() -> OnlineCount + Send + Sync>,
    /// `gateway.connections_max`.
    pub connections_max: usize,
}

impl Source for PresenceMetrics {
    fn encode(&self, page: &mut Page) {
        let OnlineCount { tally, connections } = (self.count)();
        page.gauge("rollcall_gateway_connections_max", "Maximum number of open connections of users.")
            .is(self.connections_max);
        let users = page.gauge(
            "rollcall_presence_users",
            "Users by status. Invisible users are left out; of offline users only watched ones count.",
        );
        // Keys with `read` may read this page, but must not learn the number of invisible users.
        for status in Status::ALL.into_iter().filter(|status| *status != Status::Invisible) {
            users.with(&[("status", status.name())], tally.of(status));
        }
        page.gauge(
            "rollcall_presence_sessions",
            "Sessions of users: with a connection, or with heartbeats over HTTP.",
        )
        .with(&[("kind", "connection")], tally.connections)
        .with(&[("kind", "http")], tally.without_connection);
        let platforms =
            page.gauge("rollcall_presence_connections_by_platform", "Connections of users, by platform.");
        for (platform, count) in Platform::ALL.into_iter().zip(connections) {
            platforms.with(&[("platform", platform.name())], count);
        }
    }
}

impl Source for GatewayCounters {
    fn encode(&self, page: &mut Page) {
        accept(&self.accept, page);
        connections(&self.sessions, page);
        heartbeats(&self.sessions, page);
        delivery(self, page);
        storage(&self.hub, page);
        change_feeds(&self.hub, page);
        webhooks(&self.webhooks, page);
    }
}

fn accept(accept: &AcceptCounters, page: &mut Page) {
    page.gauge("rollcall_gateway_connections_open", "Open connections of users.").is(accept.open.get());
    page.counter("rollcall_gateway_accepted_total", "Accepted WebSockets.").is(accept.opened.get());
    let refused =
        page.counter("rollcall_gateway_refused_total", "Refused WebSocket upgrade requests, by reason.");
    for (reason, count) in accept.refused.all() {
        refused.with(&[("reason", reason.name())], count);
    }
}

fn connections(sessions: &SessionCounters, page: &mut Page) {
    let ended = page.counter(
        "rollcall_gateway_disconnects_total",
        "Ended connections, by cause, close code, and whether the end was abnormal.",
    );
    for (ending, count) in sessions.ended.all() {
        let abnormal = if ending.is_abnormal() { "true" } else { "false" };
        let code = ending.code().to_string();
        ended.with(&[("cause", ending.name()), ("code", &code), ("abnormal", abnormal)], count);
    }
    let refused =
        page.counter("rollcall_gateway_commands_refused_total", "Refused commands of clients, by reason.");
    for (reason, count) in sessions.commands_refused.all() {
        refused.with(&[("reason", reason.name())], count);
    }
    for (name, help, counter) in [
        ("rollcall_gateway_connected_total", "Authenticated connections.", &sessions.connected),
        ("rollcall_gateway_commands_total", "Executed commands of clients.", &sessions.commands),
        ("rollcall_gateway_messages_read_total", "Messages read from clients.", &sessions.messages_read),
        ("rollcall_gateway_read_bytes_total", "Bytes read from clients.", &sessions.bytes_read),
        ("rollcall_gateway_frames_written_total", "Frames written to clients.", &sessions.frames_written),
        ("rollcall_gateway_written_bytes_total", "Bytes written to clients.", &sessions.bytes_written),
    ] {
        page.counter(name, help).is(counter.get());
    }
}

fn heartbeats(sessions: &SessionCounters, page: &mut Page) {
    page.counter("rollcall_gateway_pings_total", "Pings written.").is(sessions.pings.get());
    page.histogram("rollcall_gateway_heartbeat_delay_seconds", "Time from ping to pong.")
        .measured(&[], &sessions.ping_answers.snapshot());
    page.counter("rollcall_gateway_probes_total", "Probes of devices that missed a heartbeat, by outcome.")
        .with(&[("outcome", "sent")], sessions.probes.get())
        .with(&[("outcome", "answered")], sessions.probes_answered.get());
}

fn delivery(counters: &GatewayCounters, page: &mut Page) {
    let (sessions, hub) = (&counters.sessions, &counters.hub);
    let transitions = page.counter("rollcall_presence_transitions_total", "Changes of status, by cause.");
    for (cause, count) in hub.transitions.all() {
        transitions.with(&[("cause", cause.name())], count);
    }
    page.counter(
        "rollcall_presence_changes_total",
        "Statuses sent to watchers, by step: queued in an outbox, replaced there by a later one, written.",
    )
    .with(&[("step", "queued")], hub.deliveries.get())
    .with(&[("step", "coalesced")], sessions.changes_coalesced.get())
    .with(&[("step", "written")], sessions.changes_written.get());
    page.counter("rollcall_presence_typing_total", "Messages about typing, by outcome.")
        .with(&[("outcome", "passed")], hub.typing.get())
        .with(&[("outcome", "throttled")], hub.typing_throttled.get());
    page.gauge("rollcall_presence_rooms", "Rooms with members at this gateway.").is(hub.rooms.get());
    page.counter("rollcall_presence_http_heartbeats_total", "Heartbeats over HTTP.")
        .is(hub.http_heartbeats.get());
    page.counter("rollcall_presence_samples_total", "Connections probed by the sampler, by outcome.")
        .with(&[("outcome", "asked")], hub.sampled.get())
        .with(&[("outcome", "silent")], hub.sampled_silent.get());
    page.gauge(
        "rollcall_presence_falsely_online_sessions",
        "Estimated number of dead connections that count as online, by the last sample.",
    )
    .is(hub.falsely_online.get());
}

fn storage(hub: &HubCounters, page: &mut Page) {
    page.counter(
        "rollcall_presence_loads_total",
        "Batches in which friends and privacy were read, by outcome.",
    )
    .with(&[("outcome", "read")], hub.loads.get())
    .with(&[("outcome", "failed")], hub.load_failures.get());
    page.counter("rollcall_presence_users_loaded_total", "Users whose friends and privacy were read.")
        .is(hub.people_loaded.get());
    page.histogram("rollcall_presence_load_seconds", "Duration of reading a batch of friends and privacy.")
        .measured(&[], &hub.load_seconds.snapshot());
    page.gauge(
        "rollcall_presence_writer_waiting_rows",
        "Presence and history rows that wait for the database.",
    )
    .is(hub.writer_waiting.get());
    page.counter("rollcall_presence_writer_rows_total", "Presence and history rows, by outcome.")
        .with(&[("outcome", "written")], hub.writer_written.get())
        .with(&[("outcome", "dropped")], hub.writer_dropped.get());
    page.counter(
        "rollcall_presence_writer_failures_total",
        "Writes of presence and history that failed and are retried.",
    )
    .is(hub.writer_failures.get());
}

fn change_feeds(hub: &HubCounters, page: &mut Page) {
    page.counter(
        "rollcall_presence_torrent_counts_total",
        "Users whose seeding and leeching counts were read, by outcome; the periodic pass makes up for dropped notices.",
    )
    .with(&[("outcome", "asked")], hub.torrent_counts_requested.get())
    .with(&[("outcome", "failed")], hub.torrent_count_failures.get())
    .with(&[("outcome", "dropped")], hub.torrent_counts_dropped.get());
    let number = |number: Option<&AtomicU64>| number.map_or(0, |number| number.load(Ordering::Relaxed));
    let change_feed = hub.following.get();
    page.counter(
        "rollcall_friends_polls_total",
        "Polls for changes of friendships and privacy, by outcome; everything: all of them were read again.",
    )
    .with(&[("outcome", "ok")], number(change_feed.map(|feed| &feed.polls)))
    .with(&[("outcome", "failed")], number(change_feed.map(|feed| &feed.failures)))
    .with(&[("outcome", "everything")], number(change_feed.map(|feed| &feed.everything)));
    page.gauge(
        "rollcall_friends_poll_failures_in_a_row",
        "Failed polls for changes of friendships and privacy since the last success.",
    )
    .is(number(change_feed.map(|feed| &feed.failures_in_a_row)));
    let friends = hub.friends.get();
    page.counter(
        "rollcall_friends_retries_total",
        "Transactions on friendships and privacy repeated after a conflict.",
    )
    .is(number(friends.map(|friends| &friends.retries)));
    page.counter(
        "rollcall_friends_refused_total",
        "Changes refused because a user would exceed the friend limit.",
    )
    .is(number(friends.map(|friends| &friends.friends_refused)));
    page.counter("rollcall_friends_lists_truncated_total", "Friend lists truncated to the friend limit.")
        .is(number(friends.map(|friends| &friends.lists_truncated)));
}

fn webhooks(webhooks: &WebhookCounters, page: &mut Page) {
    let attempts =
        page.counter("rollcall_webhook_attempts_total", "Attempts to deliver a webhook, by outcome.");
    for (outcome, count) in webhooks.attempts.all() {
        attempts.with(&[("outcome", outcome.name())], count);
    }
    page.histogram("rollcall_webhook_attempt_seconds", "Duration of an attempt to deliver a webhook.")
        .measured(&[], &webhooks.attempt_seconds.snapshot());
    page.counter(
        "rollcall_webhook_failed_total",
        "Webhook deliveries that failed permanently, after a day of retries.",
    )
    .is(webhooks.given_up.get());
    page.gauge("rollcall_webhook_waiting", "Webhooks in memory that are not delivered yet.")
        .is(webhooks.waiting.get());
    page.gauge("rollcall_webhook_oldest_seconds", "Age of the oldest webhook that is not delivered yet.")
        .is(webhooks.oldest_seconds.get());
    page.counter(
        "rollcall_webhook_store_failures_total",
        "Times that the history could not be read for webhooks, or the cursor not be saved.",
    )
    .is(webhooks.store_failures.get());
}

#[cfg(test)]
mod tests {
    use gateway::counters::Ending;

    use super::*;

    #[test]
    fn p17_disconnects_are_labelled_by_cause_and_abnormal_end() {
        let counters = GatewayCounters::default();
        counters.sessions.ended.count(Ending::Slow);
        counters.sessions.ended.count(Ending::Clean);
        let mut page = Page::default();
        counters.encode(&mut page);
        let text = page.finish();
        for line in [
            "rollcall_gateway_disconnects_total{cause=\"slow\",code=\"3008\",abnormal=\"true\"} 1\n",
            "rollcall_gateway_disconnects_total{cause=\"clean\",code=\"1000\",abnormal=\"false\"} 1\n",
            "rollcall_gateway_disconnects_total{cause=\"no_pong\",code=\"3012\",abnormal=\"true\"} 0\n",
            "rollcall_presence_transitions_total{cause=\"silence\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is missing:\n{text}");
        }
    }
}
