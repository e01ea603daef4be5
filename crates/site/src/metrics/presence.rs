//! Metrics of the gateway: connections, presence, delivery, webhooks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gateway::GatewayCounters;
use gateway::counters::{AcceptCounters, HubCounters, Kind, SessionCounters, WebhookCounters};
use gateway::hub::OnlineCount;
use presence::{Platform, Status};

use super::page::metrics;
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
        metrics! { page =>
            gauge "rollcall_gateway_connections_max" = self.connections_max,
                "Maximum number of open connections of users.";
        }
        let users = page.gauge(
            "rollcall_presence_users",
            "Users by status. Invisible users are left out; of offline users only watched ones count.",
        );
        // Keys with `read` may read this page, but must not learn the number of invisible users.
        for status in Status::ALL.into_iter().filter(|status| *status != Status::Invisible) {
            users.with(&[("status", status.name())], tally.of(status));
        }
        metrics! { page =>
            gauge "rollcall_presence_sessions" by "kind" {
                "connection" => tally.connections, "http" => tally.without_connection,
            }, "Sessions of users: with a connection, or with heartbeats over HTTP.";
            gauge "rollcall_presence_connections_by_platform" by "platform"
                of(Platform::ALL.into_iter().zip(connections).map(|(platform, count)| (platform.name(), count))),
                "Connections of users, by platform.";
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
    metrics! { page =>
        gauge "rollcall_gateway_connections_open" = &accept.open, "Open connections of users.";
        counter "rollcall_gateway_accepted_total" = &accept.opened, "Accepted WebSockets.";
        counter "rollcall_gateway_refused_total" by "reason"
            of(accept.refused.all().map(|(reason, count)| (reason.name(), count))),
            "Refused WebSocket upgrade requests, by reason.";
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
    metrics! { page =>
        counter "rollcall_gateway_commands_refused_total" by "reason"
            of(sessions.commands_refused.all().map(|(reason, count)| (reason.name(), count))),
            "Refused commands of clients, by reason.";
        counter "rollcall_gateway_connected_total" = &sessions.connected, "Authenticated connections.";
        counter "rollcall_gateway_commands_total" = &sessions.commands, "Executed commands of clients.";
        counter "rollcall_gateway_messages_read_total" = &sessions.messages_read, "Messages read from clients.";
        counter "rollcall_gateway_read_bytes_total" = &sessions.bytes_read, "Bytes read from clients.";
        counter "rollcall_gateway_frames_written_total" = &sessions.frames_written, "Frames written to clients.";
        counter "rollcall_gateway_written_bytes_total" = &sessions.bytes_written, "Bytes written to clients.";
    }
}

fn heartbeats(sessions: &SessionCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_gateway_pings_total" = &sessions.pings, "Pings written.";
        histogram "rollcall_gateway_heartbeat_delay_seconds" measures(&sessions.ping_answers.snapshot()),
            "Time from ping to pong.";
        counter "rollcall_gateway_probes_total" by "outcome" {
            "sent" => &sessions.probes, "answered" => &sessions.probes_answered,
        }, "Probes of devices that missed a heartbeat, by outcome.";
    }
}

fn delivery(counters: &GatewayCounters, page: &mut Page) {
    let (sessions, hub) = (&counters.sessions, &counters.hub);
    metrics! { page =>
        counter "rollcall_presence_transitions_total" by "cause"
            of(hub.transitions.all().map(|(cause, count)| (cause.name(), count))),
            "Changes of status, by cause.";
        counter "rollcall_presence_changes_total" by "step" {
            "queued" => &hub.deliveries, "coalesced" => &sessions.changes_coalesced,
            "written" => &sessions.changes_written,
        }, "Statuses sent to watchers, by step: queued in an outbox, replaced there by a later one, written.";
        counter "rollcall_presence_typing_total" by "outcome" {
            "passed" => &hub.typing, "throttled" => &hub.typing_throttled,
        }, "Messages about typing, by outcome.";
        gauge "rollcall_presence_rooms" = &hub.rooms, "Rooms with members at this gateway.";
        counter "rollcall_presence_http_heartbeats_total" = &hub.http_heartbeats, "Heartbeats over HTTP.";
        counter "rollcall_presence_samples_total" by "outcome" {
            "asked" => &hub.sampled, "silent" => &hub.sampled_silent,
        }, "Connections probed by the sampler, by outcome.";
        gauge "rollcall_presence_falsely_online_sessions" = &hub.falsely_online,
            "Estimated number of dead connections that count as online, by the last sample.";
    }
}

fn storage(hub: &HubCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_presence_loads_total" by "outcome" {
            "read" => &hub.loads, "failed" => &hub.load_failures,
        }, "Batches in which friends and privacy were read, by outcome.";
        counter "rollcall_presence_users_loaded_total" = &hub.people_loaded,
            "Users whose friends and privacy were read.";
        histogram "rollcall_presence_load_seconds" measures(&hub.load_seconds.snapshot()),
            "Duration of reading a batch of friends and privacy.";
        gauge "rollcall_presence_writer_waiting_rows" = &hub.writer_waiting,
            "Presence and history rows that wait for the database.";
        counter "rollcall_presence_writer_rows_total" by "outcome" {
            "written" => &hub.writer_written, "dropped" => &hub.writer_dropped,
        }, "Presence and history rows, by outcome.";
        counter "rollcall_presence_writer_failures_total" = &hub.writer_failures,
            "Writes of presence and history that failed and are retried.";
    }
}

fn change_feeds(hub: &HubCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_presence_torrent_counts_total" by "outcome" {
            "asked" => &hub.torrent_counts_requested, "failed" => &hub.torrent_count_failures,
            "dropped" => &hub.torrent_counts_dropped,
        },
            "Users whose seeding and leeching counts were read, by outcome; the periodic pass makes up for dropped \
             notices.";
    }
    let number = |number: Option<&AtomicU64>| number.map_or(0, |number| number.load(Ordering::Relaxed));
    let change_feed = hub.following.get();
    metrics! { page =>
        counter "rollcall_friends_polls_total" by "outcome" {
            "ok" => number(change_feed.map(|feed| &feed.polls)),
            "failed" => number(change_feed.map(|feed| &feed.failures)),
            "everything" => number(change_feed.map(|feed| &feed.everything)),
        }, "Polls for changes of friendships and privacy, by outcome; everything: all of them were read again.";
        gauge "rollcall_friends_poll_failures_in_a_row" = number(change_feed.map(|feed| &feed.failures_in_a_row)),
            "Failed polls for changes of friendships and privacy since the last success.";
    }
    let friends = hub.friends.get();
    metrics! { page =>
        counter "rollcall_friends_retries_total" = number(friends.map(|friends| &friends.retries)),
            "Transactions on friendships and privacy repeated after a conflict.";
        counter "rollcall_friends_refused_total" = number(friends.map(|friends| &friends.friends_refused)),
            "Changes refused because a user would exceed the friend limit.";
        counter "rollcall_friends_lists_truncated_total" = number(friends.map(|friends| &friends.lists_truncated)),
            "Friend lists truncated to the friend limit.";
    }
}

fn webhooks(webhooks: &WebhookCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_webhook_attempts_total" by "outcome"
            of(webhooks.attempts.all().map(|(outcome, count)| (outcome.name(), count))),
            "Attempts to deliver a webhook, by outcome.";
        histogram "rollcall_webhook_attempt_seconds" measures(&webhooks.attempt_seconds.snapshot()),
            "Duration of an attempt to deliver a webhook.";
        counter "rollcall_webhook_failed_total" = &webhooks.given_up,
            "Webhook deliveries that failed permanently, after a day of retries.";
        gauge "rollcall_webhook_waiting" = &webhooks.waiting, "Webhooks in memory that are not delivered yet.";
        gauge "rollcall_webhook_oldest_seconds" = &webhooks.oldest_seconds,
            "Age of the oldest webhook that is not delivered yet.";
        counter "rollcall_webhook_store_failures_total" = &webhooks.store_failures,
            "Times that the history could not be read for webhooks, or the cursor not be saved.";
    }
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
