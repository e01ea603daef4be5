//! Whether our user may run our commands.
//!
//! Every command is tried in a form without effect: with an invalid id, or for a nonexistent group. Redis checks
//! permissions first, so a missing one shows.

use keyspace::Redis;
use redis::Cmd;

use crate::command::doctor::Target;
use crate::command::doctor::finding::Findings;
use crate::config::Name;

/// A nonexistent group.
const NO_GROUP: &str = "rollcall-doctor-asks";
/// A nonexistent script.
const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";
/// A nonexistent inbox: gateway names are not empty.
const NO_INBOX: &str = "p:in:";
/// A nonexistent member: passkeys are not empty.
const NO_MEMBER: &str = "";

pub(super) async fn check(findings: &mut Findings, target: &Target, redis: &Redis) {
    let mut refused: Vec<String> = Vec::new();
    let mut keys: Vec<&str> = Vec::new();
    let attempts = attempts(target);
    for (name, key, command) in &attempts {
        match redis.query::<redis::Value>(command).await {
            Err(error) if error.code() == "NOPERM" => {
                refused.push((*name).to_owned());
                keys.push(key);
            }
            _ => {}
        }
    }
    keys.dedup();
    let place = redis.settings();
    if refused.is_empty() {
        return findings.ok(format!("{place}: our user has all permissions"));
    }
    let allowed: Vec<String> = refused.iter().map(|name| format!("+{}", name.to_lowercase())).collect();
    findings.problem(
        format!("{place}: our user has no permission for {} on {}", refused.join(", "), keys.join(", ")),
        format!(
            "ACL SETUSER NAME {} ~tracker:* ~t:* ~pt:*{}{}; then ACL SAVE",
            allowed.join(" "),
            other_streams(target),
            presence_keys(target)
        ),
    );
}

/// The configured stream keys that `~tracker:*` does not include.
fn other_streams(target: &Target) -> String {
    let journal = &target.config.journal;
    let keys = [&journal.stream_key, &journal.dlq_key, &journal.failed_key];
    keys.into_iter()
        .map(Name::as_str)
        .filter(|key| !key.starts_with("tracker:"))
        .map(|key| format!(" ~{key}*"))
        .collect()
}

/// Keys of the presence cluster, if presence is shared.
fn presence_keys(target: &Target) -> &'static str {
    match target.config.shares_presence() {
        true => " ~presence:* ~connection:* ~heartbeat:* ~p:* ~{p:nodes}*",
        false => "",
    }
}

fn attempts(target: &Target) -> Vec<(&'static str, &str, Cmd)> {
    let config = &target.config;
    let stream = config.journal.stream_key.as_str();
    let whitelist = "pt:passkeys";
    let command = |words: &[&str]| {
        let mut command = Cmd::new();
        for word in words {
            command.arg(word);
        }
        command
    };
    let lists = "tracker:users:active";
    let mut attempts = vec![
        ("XADD", stream, command(&["XADD", stream, "NOMKSTREAM", "0-0", "doctor", "asks"])),
        ("XLEN", stream, command(&["XLEN", stream])),
        ("XRANGE", stream, command(&["XRANGE", stream, "0-1", "0-1"])),
        ("XREVRANGE", stream, command(&["XREVRANGE", stream, "0-1", "0-1"])),
        (
            "XREADGROUP",
            stream,
            command(&["XREADGROUP", "GROUP", NO_GROUP, "c", "COUNT", "1", "STREAMS", stream, ">"]),
        ),
        ("XACK", stream, command(&["XACK", stream, NO_GROUP, "0-1"])),
        ("XCLAIM", stream, command(&["XCLAIM", stream, NO_GROUP, "c", "1", "0-1"])),
        ("XDEL", stream, command(&["XDEL", stream, "0-1"])),
        ("XTRIM", stream, command(&["XTRIM", stream, "MINID", "0"])),
        ("XPENDING", stream, command(&["XPENDING", stream, NO_GROUP])),
        ("XINFO", stream, command(&["XINFO", "GROUPS", stream])),
        ("XGROUP", stream, command(&["XGROUP", "DELCONSUMER", stream, NO_GROUP, "c"])),
        ("EVAL", stream, command(&["EVAL", "return 0", "1", stream])),
        ("EVALSHA", stream, command(&["EVALSHA", NO_SCRIPT, "1", stream])),
        ("ZADD", lists, command(&["ZADD", lists, "XX", "0", NO_MEMBER])),
        ("ZREM", lists, command(&["ZREM", lists, NO_MEMBER])),
        ("ZREVRANGE", lists, command(&["ZREVRANGE", lists, "0", "0"])),
        ("SISMEMBER", whitelist, command(&["SISMEMBER", whitelist, NO_MEMBER])),
        ("SREM", whitelist, command(&["SREM", whitelist, NO_MEMBER])),
    ];
    if config.shares_presence() {
        for key in ["p:u:{0}", "presence:0", "{p:nodes}"] {
            attempts.push(("EVALSHA", key, command(&["EVALSHA", NO_SCRIPT, "1", key])));
        }
        attempts.push(("XREAD", NO_INBOX, command(&["XREAD", "COUNT", "1", "STREAMS", NO_INBOX, "0-0"])));
        attempts.push(("PEXPIRE", NO_INBOX, command(&["PEXPIRE", NO_INBOX, "1"])));
        attempts.push(("UNLINK", NO_INBOX, command(&["UNLINK", NO_INBOX])));
        attempts.push(("HGETALL", "{p:nodes}:info", command(&["HGETALL", "{p:nodes}:info"])));
    }
    attempts
}
