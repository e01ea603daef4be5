//! Whether a cluster is complete, and its masters.

use std::collections::{BTreeMap, BTreeSet};

use keyspace::{Node, Redis, RedisError, RedisSettings};
use redis::Value;

use super::single_node;
use crate::command::doctor::finding::Findings;
use crate::redis_cli::RedisCli;

const SLOTS: u64 = 16_384;

/// Masters with their number of replicas.
type Masters = BTreeMap<(String, u16), usize>;

/// From the first reachable node; none without one.
pub(super) async fn check(findings: &mut Findings, settings: &RedisSettings) -> Option<Vec<Node>> {
    let mut last_error = None;
    for node in &settings.nodes {
        match ask(single_node(settings, node.clone())).await {
            Ok((info, masters)) => {
                judge(findings, &RedisCli::of(&single_node(settings, node.clone())), &info, &masters);
                return Some(masters.into_keys().map(|(host, port)| Node { host, port }).collect());
            }
            Err(error) => last_error = Some(error),
        }
    }
    let reason = last_error.map(|error| error.to_string()).unwrap_or_default();
    findings.problem(
        format!("{settings}: {reason}"),
        "check that these nodes run and belong to a cluster; update redis.url if they moved",
    );
    None
}

async fn ask(settings: RedisSettings) -> Result<(String, Masters), RedisError> {
    let node = settings.nodes.first().cloned();
    let redis = Redis::connect(settings).await?;
    let info: String = redis.query(redis::cmd("CLUSTER").arg("INFO")).await?;
    let slots: Value = redis.query(redis::cmd("CLUSTER").arg("SLOTS")).await?;
    let asked = node.map(|node| node.host).unwrap_or_default();
    Ok((info, masters_of(slots, &asked)))
}

/// Per range of slots: first, last, master, replicas; a node is host, port, id. An empty host is the node queried.
fn masters_of(slots: Value, asked: &str) -> Masters {
    let mut masters = Masters::new();
    let Value::Array(ranges) = slots else { return masters };
    for range in ranges {
        let Value::Array(range) = range else { continue };
        let mut nodes = range.into_iter().skip(2).filter_map(|node| node_of(node, asked));
        if let Some(master) = nodes.next() {
            masters.insert(master, nodes.collect::<BTreeSet<_>>().len());
        }
    }
    masters
}

fn node_of(node: Value, asked: &str) -> Option<(String, u16)> {
    let Value::Array(parts) = node else { return None };
    let mut parts = parts.into_iter();
    let host = match parts.next()? {
        Value::BulkString(host) if !host.is_empty() => String::from_utf8(host).ok()?,
        _ => asked.to_owned(),
    };
    match parts.next()? {
        Value::Int(port) => Some((host, u16::try_from(port).ok()?)),
        _ => None,
    }
}

fn judge(findings: &mut Findings, cli: &RedisCli, info: &str, masters: &Masters) {
    let value = |name: &str| {
        info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).unwrap_or("?")
    };
    let number = |name: &str| value(name).parse::<u64>().unwrap_or(0);
    let (state, assigned, served) =
        (value("cluster_state"), number("cluster_slots_assigned"), number("cluster_slots_ok"));
    let place = cli.address();
    if state == "ok" && assigned == SLOTS && served == SLOTS {
        findings.ok(format!("the cluster is complete: {} masters serve all {SLOTS} slots", masters.len()));
    } else {
        findings.problem(
            format!("the cluster is incomplete: state {state}, {assigned} of {SLOTS} slots assigned, {served} served"),
            format!("find missing nodes: redis-cli --cluster check {place}; then: redis-cli --cluster fix {place}"),
        );
    }
    let alone: Vec<String> = masters
        .iter()
        .filter(|(_, replicas)| **replicas == 0)
        .map(|((host, port), _)| format!("{host}:{port}"))
        .collect();
    if !alone.is_empty() {
        findings.warning(
            format!("masters without a replica: {}", alone.join(", ")),
            format!("redis-cli --cluster add-node HOST:PORT {place} --cluster-slave"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_and_their_replicas_are_read_from_the_slots() {
        let text = |text: &str| Value::BulkString(text.into());
        let node = |host: &str, port| Value::Array(vec![text(host), Value::Int(port), text("id")]);
        let range = |first, last, nodes: Vec<Value>| {
            Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
        };
        let slots = Value::Array(vec![
            range(0, 99, vec![node("", 7000), node("b", 7001)]),
            range(100, 199, vec![node("", 7000), node("b", 7001)]),
            range(200, 16_383, vec![node("c", 7002)]),
            Value::Nil,
        ]);
        let masters = masters_of(slots, "a");
        assert_eq!(
            masters.into_iter().collect::<Vec<_>>(),
            [(("a".into(), 7000), 1), (("c".into(), 7002), 0)]
        );
    }
}
