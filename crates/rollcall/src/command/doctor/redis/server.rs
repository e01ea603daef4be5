//! One Redis server: version, role, persistence, memory, clock.

use std::collections::HashMap;

use domain::clock::{Clock, SystemClock};
use keyspace::notify;

use super::{Requirements, ServerConnection};
use crate::command::doctor::clock;
use crate::command::doctor::finding::Findings;

/// Older versions lack commands that we use.
const VERSION_MIN: (u32, u32) = (6, 2);
const VERSION_TESTED: &str = "7.0";
/// Thresholds of used memory, in percent.
const MEMORY_PERCENT_WARNING: u64 = 80;
const MEMORY_PERCENT_PROBLEM: u64 = 95;

/// `INFO` and, where permitted, `CONFIG GET`.
struct ServerInfo {
    info: HashMap<String, String>,
    config: Option<HashMap<String, String>>,
}

impl ServerInfo {
    fn info(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    fn info_number(&self, name: &str) -> u64 {
        self.info(name).parse().unwrap_or(0)
    }

    /// None without permission.
    fn config(&self, name: &str) -> Option<&str> {
        self.config.as_ref()?.get(name).map(String::as_str)
    }
}

pub(super) async fn check(findings: &mut Findings, server: &ServerConnection, requirements: Requirements) {
    let info: String = match server.redis.query(&redis::cmd("INFO")).await {
        Ok(info) => info,
        Err(error) => {
            return findings.warning(
                format!("{}: INFO failed: {error}", server.name()),
                "grant our user: ACL SETUSER NAME +info +config|get +time",
            );
        }
    };
    let info = ServerInfo { info: read_info(&info), config: read_config(server).await };
    version(findings, server, &info);
    role(findings, server, &info);
    persistence(findings, server, &info);
    memory(findings, server, &info, requirements.presence);
    notifications(findings, server, &info, requirements.expiry).await;
    time(findings, server).await;
}

fn read_info(text: &str) -> HashMap<String, String> {
    let pair =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    text.lines().filter_map(pair).collect()
}

async fn read_config(server: &ServerConnection) -> Option<HashMap<String, String>> {
    let mut all = HashMap::new();
    for name in ["appendfsync", "save", "notify-keyspace-events"] {
        let answer: HashMap<String, String> =
            server.redis.query(redis::cmd("CONFIG").arg("GET").arg(name)).await.ok()?;
        all.extend(answer);
    }
    Some(all)
}

fn version(findings: &mut Findings, server: &ServerConnection, info: &ServerInfo) {
    let version = info.info("redis_version");
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let number = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let found = format!("{} is version {version}; we test with {VERSION_TESTED}", server.name());
    match number < VERSION_MIN {
        true => findings.problem(
            format!("{found}, and require {}.{}", VERSION_MIN.0, VERSION_MIN.1),
            "install a newer Redis, such as Debian's redis-server",
        ),
        false => findings.ok(found),
    }
}

fn role(findings: &mut Findings, server: &ServerConnection, info: &ServerInfo) {
    let name = server.name();
    if info.info("role") != "master" {
        findings.problem(
            format!("{name} is a {}, which accepts no writes", info.info("role")),
            "set redis.url to the master, or use sentinels: redis+sentinel://…",
        );
    }
    let is_cluster_node = info.info("cluster_enabled") == "1";
    if is_cluster_node && !server.is_cluster_known {
        findings.problem(
            format!("{name} is a node of a cluster"),
            "use: redis.url = \"redis+cluster://HOST:PORT\"",
        );
    }
    if info.info("loading") == "1" {
        findings.problem(format!("{name} is still loading its data"), "wait, then run rollcall doctor again");
    }
}

/// What a crash loses.
fn persistence(findings: &mut Findings, server: &ServerConnection, info: &ServerInfo) {
    let (name, cli) = (server.name(), &server.cli);
    let turn_on = format!("{cli} CONFIG SET appendonly yes; {cli} CONFIG REWRITE");
    if info.info("aof_enabled") == "1" {
        match info.config("appendfsync") {
            Some("no") => findings.warning(
                format!("{name} has an append-only file with appendfsync no: a crash of its machine loses up to half a minute"),
                format!("{cli} CONFIG SET appendfsync everysec; {cli} CONFIG REWRITE"),
            ),
            Some("always") => findings.ok(format!("{name} has an append-only file with appendfsync always: a crash loses nothing")),
            _ => findings.ok(format!(
                "{name} has an append-only file; a crash of its machine loses up to two seconds"
            )),
        }
    } else if info.config("save").is_some_and(str::is_empty) {
        findings.problem(format!("{name} has no persistence: a restart loses the whole journal"), turn_on);
    } else {
        findings.warning(
            format!("{name} has snapshots only: a crash loses everything since the last one"),
            turn_on,
        );
    }
    let is_ok = |key: &str| matches!(info.info(key), "ok" | "");
    if !is_ok("aof_last_write_status") || !is_ok("rdb_last_bgsave_status") {
        findings.problem(
            format!("{name} failed to write to its disk the last time"),
            format!("free space there, and check its log; then: {cli} BGSAVE"),
        );
    }
}

fn memory(findings: &mut Findings, server: &ServerConnection, info: &ServerInfo, has_presence: bool) {
    let (name, cli) = (server.name(), &server.cli);
    let (used, max) = (info.info_number("used_memory"), info.info_number("maxmemory"));
    let policy = info.info("maxmemory_policy");
    let keep = format!("{cli} CONFIG SET maxmemory-policy noeviction; {cli} CONFIG REWRITE");
    let presence = if has_presence { ", and online users would be shown as offline" } else { "" };
    match (policy, max) {
        ("noeviction", _) => findings.ok(format!("{name} never evicts keys")),
        (_, 0) => findings.warning(
            format!("{name} would evict keys ({policy}) if a maxmemory were set: the journal could lose entries{presence}"),
            keep,
        ),
        _ => findings.problem(
            format!("{name} evicts keys ({policy}) when memory is full: the journal can lose entries{presence}"),
            keep,
        ),
    }
    let Some(percent) = used.saturating_mul(100).checked_div(max) else { return };
    let found = format!("{name} uses {percent} % of its maxmemory");
    let remedy = format!(
        "{cli} CONFIG SET maxmemory BYTES; see which group keeps the journal long: rollcall journal status"
    );
    match percent {
        MEMORY_PERCENT_PROBLEM.. => findings.problem(found, remedy),
        MEMORY_PERCENT_WARNING..MEMORY_PERCENT_PROBLEM => findings.warning(found, remedy),
        _ => findings.ok(found),
    }
}

/// Whether Redis publishes expired keys, by which silent peers leave the mirror immediately (M6).
async fn notifications(
    findings: &mut Findings,
    server: &ServerConnection,
    info: &ServerInfo,
    wants_expiry: bool,
) {
    const SETTING: &str = "notify-keyspace-events";
    let name = server.name();
    let Some(flags) = info.config(SETTING) else {
        let found = format!("{name}: {SETTING} is unknown: no permission for CONFIG GET");
        return match wants_expiry {
            true => findings.warning(found, notify::REMEDY),
            false => findings.ok(found),
        };
    };
    if notify::reports_expired_keys(flags) || !wants_expiry {
        return findings.ok(format!("{name}: {SETTING} is \"{flags}\""));
    }
    // Set to its current value: changes nothing, but shows the permission.
    let mut same = redis::cmd("CONFIG");
    same.arg("SET").arg(SETTING).arg(flags);
    match server.redis.query::<redis::Value>(&same).await {
        Ok(_) => findings.ok(format!(
            "{name}: {SETTING} is \"{flags}\"; the server adds \"Kx\" at its start (set it in redis.conf to make it permanent)"
        )),
        Err(error) => findings.warning(
            format!("{name}: {SETTING} is \"{flags}\", and our user may not change it ({error})"),
            notify::REMEDY,
        ),
    }
}

async fn time(findings: &mut Findings, server: &ServerConnection) {
    let before_ms = SystemClock.now_ms();
    let asked: Result<(u64, u64), _> = server.redis.query(&redis::cmd("TIME")).await;
    if let Ok((seconds, micros)) = asked {
        let asked_ms = (before_ms, SystemClock.now_ms());
        clock::compare(findings, &server.name(), seconds * 1000 + micros / 1000, asked_ms);
    }
}
