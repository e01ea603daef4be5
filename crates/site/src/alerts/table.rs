//! Every alert. `make docs` writes `deploy/prometheus/alerts.yml` from here; the dashboard evaluates those with `on_dashboard`.
//!
//! Arguments: name, PromQL, minutes that it must hold, summary, remedy. `on_dashboard` adds a threshold of the PromQL value,
//! and the same value as the dashboard has it.

use super::{Rule, critical, readings, warning};

/// In the order of `alerts.yml`: process, journal, views, announces, access, site, presence, gateways, limits.
pub(super) const ALERTS: &[Rule] = &[
    critical(
        "Down",
        "up{job=\"rollcall\"} == 0",
        1,
        "Rollcall on {{ $labels.instance }} does not answer",
        "Prometheus cannot read /metrics, and clients may get no peers. See `systemctl status rollcall` and the log. If the \
         process runs, check site.addr, the certificate and the API key of Prometheus.",
    ),
    warning(
        "RestartsOften",
        "changes(process_start_time_seconds{job=\"rollcall\"}[1h]) > 3",
        0,
        "Rollcall on {{ $labels.instance }} started {{ $value }} times within an hour",
        "Out of memory, a supervisor or a crash ends it: see the last lines of the log before each start.",
    ),
    critical(
        "NoAnnounces",
        "sum by (instance) (rate(rollcall_tracker_announces_total[15m])) == 0 \
         and sum by (instance) (rollcall_swarm_peers) > 0",
        10,
        "{{ $labels.instance }} accepted no announce for 15 minutes, though there are peers",
        "Clients do not reach the tracker, or all are refused: see rollcall_tracker_refused_total by reason, the firewall, \
         the proxy, DNS and the tracker's certificate.",
    ),
    critical(
        "JournalAppendsFailing",
        "rollcall_queue_append_failures_in_a_row > 0",
        1,
        "{{ $labels.instance }} cannot append to the journal",
        "Announces wait in memory; none is lost yet. Once the queue is full, clients are told to retry. Check Redis, or the \
         disk of journal.db; `rollcall doctor` names the cause.",
    ),
    critical(
        "QueueFilling",
        "rollcall_queue_occupied_entries / rollcall_queue_max_entries > 0.5",
        1,
        "The journal queue of {{ $labels.instance }} is {{ $value | humanizePercentage }} full",
        "The journal is slower than the announces. See rollcall_queue_append_seconds and Redis (slow log, persistence, \
         network). A larger journal.queue_max gives time, at about 300 bytes per announce.",
    ),
    critical(
        "QueueFull",
        "increase(rollcall_queue_full_total[5m]) > 0",
        0,
        "{{ $labels.instance }} refuses announces: the journal queue is full",
        "Clients are told to retry in a minute; their next announce corrects the totals. Restore the journal before clients \
         drop the tracker: see RollcallJournalAppendsFailing.",
    ),
    warning(
        "JournalTooLong",
        "max by (instance) (rollcall_journal_entries{lane=\"traffic\"}) \
         / on (instance) max by (instance) (rollcall_journal_length_alarm_entries > 0)",
        5,
        "The journal has {{ $value | humanizePercentage }} of the entries of journal.length_alarm",
        "Entries are removed once every group has acknowledged them. `rollcall journal status` shows which group holds \
         them: resume it, repair it, or remove an unused group (XGROUP DESTROY). Watch the memory of Redis.",
    )
    .on_dashboard(1.0, readings::journal_length),
    warning(
        "JournalStatusStale",
        "rollcall_journal_poll_age_seconds",
        1,
        "The journal status is {{ $value | humanizeDuration }} old",
        "Lag, lengths and pauses are unknown, and so are their alerts. The journal does not answer in time: check Redis, \
         or the disk of the data folder.",
    )
    .on_dashboard(60.0, readings::journal_status_age),
    warning(
        "ClockSkew",
        "rollcall_journal_clock_ahead_seconds > 5",
        5,
        "The clocks of {{ $labels.instance }} and the journal differ by at least {{ $value | humanizeDuration }}",
        "The newest entry lies in the future. Run chrony or systemd-timesyncd on both machines; `rollcall doctor` measures \
         the difference.",
    ),
    warning(
        "ViewLagging",
        "(rollcall_view_lag_seconds unless on (instance, view) rollcall_view_paused == 1)",
        5,
        "{{ $labels.group }} is {{ $value | humanizeDuration }} behind the journal",
        "What users see of it is that old; nothing is lost. Check that a process with its role runs and whether its store \
         is slow. If rollcall_view_applied_total rises, raise ledger.consumers or batch_max (a reload suffices).",
    )
    .on_dashboard(120.0, readings::view_lag),
    critical(
        "ViewStalled",
        "rollcall_view_lag_entries{view!=\"\"} > 0 \
         and on (instance, view) increase(rollcall_view_applied_total[10m]) == 0 \
         unless on (instance, view) rollcall_view_paused == 1",
        10,
        "The view {{ $labels.view }} on {{ $labels.instance }} applies nothing, though entries wait",
        "The log has the error of its store. If there is none, a consumer of another process holds the entries: see \
         `rollcall journal status`.",
    ),
    critical(
        "ViewWaiting",
        "rollcall_view_failures_in_a_row > 0",
        2,
        "The view {{ $labels.view }} on {{ $labels.instance }} waits for its store",
        "The database (ledger) or Redis (activity) is down, full or busy; the log has its error. Nothing is acknowledged or \
         lost, and the view continues once the store answers.",
    ),
    warning(
        "ViewPaused",
        "max by (view) (rollcall_view_paused)",
        60,
        "The view {{ $labels.view }} is paused",
        "Entries stay in the journal until it is resumed: `rollcall journal resume {{ $labels.view }}`.",
    )
    .on_dashboard(0.0, readings::view_paused),
    warning(
        "FailedEntries",
        "max without (instance) (rollcall_journal_entries{lane=\"failed\"})",
        0,
        "Failed entries: {{ $value | humanize }}",
        "They were retried journal.retry_max times and are not accounted for. `rollcall failed list` shows why; fix the \
         cause, then `rollcall failed replay --all`, or drop them.",
    )
    .on_dashboard(0.0, readings::failed_entries),
    warning(
        "DeadLetters",
        "max without (instance) (rollcall_journal_entries{lane=\"dlq\"})",
        15,
        "Dead letters: {{ $value | humanize }}",
        "Views rejected these entries: malformed, or of unknown users or torrents. They are retried automatically. \
         `rollcall dlq list` shows the reasons.",
    )
    .on_dashboard(100.0, readings::dead_letters),
    warning(
        "DeadLetterLimit",
        "rollcall_view_dead_letters_held / rollcall_view_dead_letters_held_max >= 1",
        5,
        "The view {{ $labels.view }} holds the maximum number of dead letters",
        "New ones stay in the journal until some are done. So many have one cause: see `rollcall dlq list`, fix it and \
         replay, or drop them.",
    ),
    warning(
        "MirrorRepaired",
        "increase(rollcall_redis_mirror_repaired_total[1h]) > 0",
        5,
        "The reconciliation sweep on {{ $labels.instance }} repaired {{ $value | humanize }} keys of the mirror",
        "Another program writes t:* keys, or Redis lost writes (a failover, no persistence). The log has the values before \
         and after.",
    ),
    warning(
        "MirrorInactive",
        "sum(rollcall_redis_mirror_active) == 0",
        5,
        "No process updates the mirror",
        "The keys t:* that sites read are not updated. See the logs for errors of Redis, and whether t:m:lease names a process \
         that runs; the lease expires after ten seconds.",
    ),
    warning(
        "SiteTablesNotWritten",
        "max by (instance) (rollcall_sites_write_stopped) > 0",
        5,
        "{{ $labels.instance }} does not write the tables of the site",
        "Nothing is lost: each row gets its difference afterwards. The log has the reason; `rollcall doctor` checks the \
         database, its columns and grants.",
    ),
    warning(
        "SiteTablesBehind",
        "time() - (max by (instance) (rollcall_sites_write_timestamp_seconds) > 0) > 300",
        5,
        "The tables of the site are {{ $value | humanizeDuration }} behind",
        "The site's database is slow, locked by a long transaction of the site, or away: see the log, and the processes of the \
         database.",
    ),
    warning(
        "SiteTablesNotRead",
        "max by (instance) (rollcall_sites_read_failures_in_a_row) > 0",
        5,
        "{{ $labels.instance }} cannot read the tables of the site",
        "Users and torrents stay as they are; new ones are refused. Check the database of the site and sites.database_url.",
    ),
    warning(
        "ExpiryEventsMissing",
        "max by (instance) (rollcall_redis_servers_without_expiry_events) > 0",
        5,
        "Redis sends {{ $labels.instance }} no events of expired keys",
        "The sweep alone finds silent peers, later. Set \"notify-keyspace-events Kx\" in redis.conf; `rollcall doctor` names \
         the server.",
    ),
    warning(
        "RefusalsSpike",
        "sum by (instance, reason) (rate(rollcall_tracker_refused_total[5m])) > 1 \
         and sum by (instance, reason) (rate(rollcall_tracker_refused_total[5m])) \
         > 5 * avg_over_time(sum by (instance, reason) (rate(rollcall_tracker_refused_total[5m]))[1d:5m])",
        5,
        "{{ $labels.instance }} refuses {{ $value | humanize }} requests per second: {{ $labels.reason }}",
        "Five times the average of the last day. unknown_passkey: passkeys were changed, or are guessed. unknown_torrent: the \
         site stopped registering torrents. flood: an address sends too many requests. journal_full, not_stored_in_time: the journal \
         fails.",
    ),
    warning(
        "AnswersSlow",
        "histogram_quantile(0.99, sum by (instance, wire, le) (rate(rollcall_tracker_answer_seconds_bucket[5m]))) > 0.05",
        10,
        "The 99th percentile of answers over {{ $labels.wire }} on {{ $labels.instance }} is {{ $value | humanizeDuration }}",
        "Answers come from memory within microseconds: the machine is overloaded, swaps or is throttled. See its CPU (also \
         steal) and memory; more cores or another node help.",
    ),
    warning(
        "JournalWaitLong",
        "histogram_quantile(0.99, sum by (instance, le) (rate(rollcall_tracker_journal_wait_seconds_bucket[5m]))) > 2",
        5,
        "Announces on {{ $labels.instance }} wait {{ $value | humanizeDuration }} for the journal",
        "After journal.ack_timeout_ms (5 s by default) clients are told to retry. See rollcall_queue_append_seconds, the slow \
         log of Redis and its persistence.",
    ),
    warning(
        "RiskSpike",
        "sum(increase(rollcall_risk_events_total[10m])) > 50 and sum(increase(rollcall_risk_events_total[10m])) \
         > 5 * avg_over_time(sum(increase(rollcall_risk_events_total[10m]))[1d:10m])",
        0,
        "{{ $value | humanize }} risk events within 10 minutes",
        "Clients claim more than limits.peer_rate_max_mbit_per_s; the excess is not credited. See `rollcall journal risks`. \
         Many users: a new client version, or the limit is too low. One user: cheating.",
    ),
    warning(
        "RisksDropped",
        "increase(rollcall_risk_events_dropped_total[10m]) > 0",
        0,
        "{{ $labels.instance }} dropped risk events",
        "The queue of risk events was full, because the journal is slow or down. The claims were not credited; only the events are lost.",
    ),
    warning(
        "AddressesDisplaced",
        "sum by (instance, table) (rate(rollcall_tracker_table_displaced_total[10m])) > 10",
        10,
        "The address table {{ $labels.table }} on {{ $labels.instance }} is too small for the traffic",
        "A flood from many addresses (flood), or more clients than one node serves (recent), whose UDP scrapes are refused at \
         times. Spread clients over more nodes.",
    ),
    critical(
        "VerifyFailing",
        "sum by (instance) (rate(rollcall_access_verify_calls_total{outcome!~\"valid|invalid\"}[5m])) \
         > 0.2 * sum by (instance) (rate(rollcall_access_verify_calls_total[5m]))",
        5,
        "Calls of {{ $labels.instance }} to the verify endpoint fail",
        "Unknown passkeys are refused; known ones are not (access.on_verify_failure). The label outcome has the cause: \
         timed_out, unreachable, wrong_status, unreadable. Try access.verify_url with curl and the same X-API-Key.",
    ),
    critical(
        "VerifyBreakerOpen",
        "rollcall_access_breaker_open == 1",
        2,
        "{{ $labels.instance }} stopped calling the verify endpoint",
        "After five failures in a row it is tried every ten seconds. Repair the endpoint.",
    ),
    warning(
        "WhitelistFailing",
        "sum by (instance) (rate(rollcall_access_whitelist_lookups_total{outcome=\"failed\"}[5m])) > 0",
        2,
        "{{ $labels.instance }} cannot read the passkey whitelist",
        "Passkeys that are only in the whitelist are decided from the cache. Check Redis, or the database where there is no \
         Redis, and that pt:passkeys is a set.",
    ),
    critical(
        "DatabaseUnreachable",
        "rollcall_access_poll_failures_in_a_row > 0",
        1,
        "{{ $labels.instance }} cannot read users and torrents from the database",
        "Announces continue with what is in memory; new users and torrents are unknown. Check the database server, its \
         connections and its disk; the log has its error.",
    ),
    critical(
        "DependencyFailing",
        // Dependencies that fail because of another one (label needs) are left out.
        "count by (instance, dependency) (rollcall_dependency_ready == 0 unless on (instance, needs) \
         label_replace(rollcall_dependency_ready == 0, \"needs\", \"$1\", \"dependency\", \"(.+)\"))",
        2,
        "The dependency {{ $labels.dependency }} fails",
        "GET /readyz with a key for `read` has the cause: a full disk, a lock on a SQLite file, a server that does not \
         answer. Announces are answered; what cannot be written waits.",
    )
    .on_dashboard(0.0, readings::failing_dependencies),
    warning(
        "DatabasePoolExhausted",
        "rollcall_database_connections{state=\"busy\"} >= on (instance, use) group_left rollcall_database_connections_max",
        5,
        "All connections of {{ $labels.instance }} to the database ({{ $labels.use }}) are busy",
        "Statements wait for a connection and fail after 5 seconds. Look for slow statements and locks in the database.",
    ),
    critical(
        "RedisUnreachable",
        "sum by (instance) (increase(rollcall_redis_connect_failures_total[2m])) > 3",
        1,
        "{{ $labels.instance }} cannot connect to Redis",
        "Announces wait in memory (see RollcallQueueFilling). Try `redis-cli -u` with redis.url from this machine; \
         `rollcall doctor` names the cause.",
    ),
    critical(
        "AuditFailing",
        "increase(rollcall_audit_failures_total[5m]) > 0",
        0,
        "{{ $labels.instance }} cannot write the audit trail",
        "Changes are refused until it can. Check disk, owner and mode of access.audit_file.",
    ),
    warning(
        "SiteErrors",
        "sum by (instance) (rate(rollcall_site_requests_total{status=~\"5..\"}[5m])) \
         > 0.05 * sum by (instance) (rate(rollcall_site_requests_total[5m]))",
        5,
        "More than 5 % of the API requests to {{ $labels.instance }} end with a 5xx status",
        "GET /readyz names a failing dependency; the log has the errors by route.",
    ),
    warning(
        "SiteUnauthorizedSpike",
        "sum by (instance) (rate(rollcall_site_unauthorized_total[5m])) > 1",
        10,
        "{{ $value | humanize }} API requests per second to {{ $labels.instance }} have no valid key",
        "Keys are guessed, or a program uses a revoked one: see `rollcall key list`.",
    ),
    warning(
        "SiteRateLimited",
        "sum by (instance, by) (rate(rollcall_site_rate_limited_total[5m])) > 1",
        10,
        "{{ $labels.instance }} answers {{ $value | humanize }} requests per second with 429 (by {{ $labels.by }})",
        "A caller exceeds site.requests_per_key_per_s or site.requests_per_address_per_s. If it is a tracker that verifies \
         passkeys, raise the limit.",
    ),
    warning(
        "AbnormalDisconnects",
        "sum by (instance) (rate(rollcall_gateway_disconnects_total{abnormal=\"true\"}[10m])) \
         / sum by (instance) (rate(rollcall_gateway_disconnects_total[10m])) > 0.5 \
         and sum by (instance) (increase(rollcall_gateway_disconnects_total[10m])) > 100",
        5,
        "{{ $value | humanizePercentage }} of the disconnects on {{ $labels.instance }} are abnormal",
        "See the causes in rollcall_gateway_disconnects_total: \"dropped\", a proxy or network that cuts idle connections; \
         \"no_pong\", lost packets; \"slow\", clients that do not read, or a server without bandwidth.",
    ),
    warning(
        "HeartbeatsLate",
        "histogram_quantile(0.95, sum by (instance, le) (rate(rollcall_gateway_heartbeat_delay_seconds_bucket[10m]))) > 5",
        10,
        "The 95th percentile of ping answers on {{ $labels.instance }} is {{ $value | humanizeDuration }}",
        "Active users are soon shown as away. If most connections are affected, the server lacks CPU or its network is \
         congested; if a few are, their networks are.",
    ),
    warning(
        "FalselyOnline",
        "rollcall_presence_falsely_online_sessions / on (instance) rollcall_gateway_connections_open > 0.02 \
         and on (instance) rollcall_gateway_connections_open > 100",
        15,
        "About {{ $value | humanizePercentage }} of the sessions on {{ $labels.instance }} have no client",
        "A random sample of connections does not answer probes. A proxy keeps connections open whose clients are gone; \
         configure it to close them.",
    ),
    critical(
        "GatewayFull",
        "sum by (instance, reason) (increase(rollcall_gateway_refused_total{reason=~\"full|address_full\"}[5m])) > 0",
        0,
        "{{ $labels.instance }} refuses WebSocket connections: {{ $labels.reason }}",
        "\"full\": gateway.connections_max is reached; raise it (and LimitNOFILE), or add a node. \"address_full\": an address \
         has gateway.connections_per_address_max; if it is a proxy, add it to site.trusted_proxies.",
    ),
    critical(
        "PresenceWritesFailing",
        "increase(rollcall_presence_writer_failures_total[5m]) > 0",
        5,
        "{{ $labels.instance }} cannot write presence to the database",
        "After a crash users would have an old status. Check the database; `rollcall doctor` names the cause. Events beyond \
         the memory limit are dropped: rollcall_presence_writer_rows_total{outcome=\"dropped\"}.",
    ),
    critical(
        "FriendListsFailing",
        "sum by (instance) (increase(rollcall_presence_loads_total{outcome=\"failed\"}[5m])) > 0",
        2,
        "Users cannot connect to {{ $labels.instance }}: their friend lists cannot be read",
        "Clients retry; connected ones are not affected. Restore the database.",
    ),
    critical(
        "FriendChangesFailing",
        "rollcall_friends_poll_failures_in_a_row > 10",
        1,
        "{{ $labels.instance }} cannot read changes of friendships and privacy",
        "Ended friendships and new privacy settings have no effect yet. Check the database; `rollcall doctor` names the cause.",
    ),
    warning(
        "WebhooksLate",
        "rollcall_webhook_oldest_seconds",
        5,
        "The oldest undelivered webhook is {{ $value | humanizeDuration }} old",
        "gateway.webhook_url does not answer with 2xx: see rollcall_webhook_attempts_total by outcome, and the log. \
         Deliveries are retried for a day.",
    )
    .on_dashboard(600.0, readings::webhook_age),
    critical(
        "WebhooksFailed",
        "increase(rollcall_webhook_failed_total[1h]) > 0",
        0,
        "{{ $value | humanize }} webhooks of {{ $labels.instance }} failed permanently",
        "The receiver missed presence events. Repair gateway.webhook_url; GET /api/v1/users/{id}/presence/history and POST \
         /api/v1/presence/query return what it missed.",
    ),
    critical(
        "ClusterUnreachable",
        "rollcall_cluster_contact_seconds > 30",
        1,
        "The gateway {{ $labels.instance }} has had no answer from Redis for {{ $value | humanizeDuration }}",
        "Its users and those of other gateways see each other as pending or offline. Check Redis: `rollcall doctor`. \
         Everything is published again once it answers.",
    ),
    warning(
        "GatewayLeaseLost",
        "increase(rollcall_cluster_rejoins_total[15m]) > 1",
        0,
        "The gateway {{ $labels.instance }} lost its lease {{ $value | humanize }} times in 15 minutes",
        "It did not renew within presence.lease_s: the machine is overloaded or was suspended, or Redis is slow. Its users \
         were pending for a moment. Otherwise raise presence.lease_s.",
    ),
    warning(
        "InboxGaps",
        "increase(rollcall_cluster_gaps_total[15m]) > 3",
        0,
        "The gateway {{ $labels.instance }} may have missed changes {{ $value | humanize }} times in 15 minutes",
        "Each time it reads all watched users again, which is expensive. It reads its inbox too slowly, or Redis loses \
         writes: see rollcall_cluster_inbox_entries, the memory of Redis and its maxmemory-policy.",
    ),
    critical(
        "SyncBehind",
        "rollcall_sync_dirty_users > 5000 and deriv(rollcall_sync_dirty_users[5m]) > 0",
        5,
        "{{ $value | humanize }} unpublished presence changes on {{ $labels.instance }}, and rising",
        "Other gateways get changes late. Redis is too slow: see rollcall_sync_flush_seconds; add masters to the Redis cluster, or gateways.",
    ),
    critical(
        "FilesNearLimit",
        "process_open_fds{job=\"rollcall\"} / process_max_fds{job=\"rollcall\"} > 0.8",
        5,
        "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its file descriptors",
        "At the limit no connection is accepted. Raise LimitNOFILE in the systemd unit, or lower limits.connections_max.",
    ),
    warning(
        "ConnectionsNearLimit",
        "rollcall_tracker_connections_open / rollcall_tracker_connections_max > 0.9",
        5,
        "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its HTTP connections",
        "Further clients are refused. Raise limits.connections_max (and LimitNOFILE). \
         rollcall_tracker_connection_addresses shows whether a few addresses hold them.",
    ),
    critical(
        "MemoryNearLimit",
        "process_resident_memory_bytes{job=\"rollcall\"} / rollcall_process_memory_limit_bytes > 0.9",
        5,
        "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its memory limit",
        "Beyond it the system kills the process. A peer takes about 120 bytes, a queued announce about 300: see \
         rollcall_swarm_peers and rollcall_queue_occupied_entries, then add memory or a node.",
    ),
    warning(
        "CertificateExpiring",
        "rollcall_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
        0,
        "The certificate of {{ $labels.listener }} on {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
        "Renew it and replace the configured files, which are read again within seconds.",
    ),
    critical(
        "CertificateExpiresSoon",
        "rollcall_certificate_expiry_timestamp_seconds - time() < 3 * 86400",
        0,
        "The certificate of {{ $labels.listener }} on {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
        "Clients will refuse to connect. Renew it now, and check why the automatic renewal did not.",
    ),
];
