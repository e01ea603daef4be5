//! Redis: every server that stores our data.
//!
//! # Layout
//!
//! - [`server`]: one server: version, role, persistence, memory, clock
//! - [`cluster`]: whether a cluster is complete, and its masters
//! - [`permissions`]: whether our user may run our commands

mod cluster;
mod permissions;
mod server;

use std::time::Duration;

use keyspace::{Mode, Node, Redis, RedisSettings};

use super::Target;
use super::finding::Findings;
use crate::config::Config;
use crate::redis_cli::RedisCli;

/// Per reply; the whole check has its own deadline.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("redis");
    let settings = match target.config.redis_settings() {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            findings.ok("not configured: everything is in the data folder");
            return findings;
        }
        Err(error) => {
            findings.problem(crate::one_line(&error), "correct redis.url");
            return findings;
        }
    };
    let settings = RedisSettings {
        response_timeout: settings.response_timeout.min(RESPONSE_TIMEOUT),
        connect_timeout: settings.connect_timeout.min(RESPONSE_TIMEOUT),
        ..settings
    };
    match settings.mode {
        Mode::Single | Mode::Sentinel => one(&mut findings, target, settings).await,
        Mode::Cluster => all_masters(&mut findings, target, &settings).await,
    }
    findings
}

async fn one(findings: &mut Findings, target: &Target, settings: RedisSettings) {
    let Some(server) = ServerConnection::connect(findings, settings, false).await else { return };
    server::check(findings, &server, Requirements::of(&target.config)).await;
    permissions::check(findings, target, &server.redis).await;
}

async fn all_masters(findings: &mut Findings, target: &Target, settings: &RedisSettings) {
    let Some(masters) = cluster::check(findings, settings).await else { return };
    for master in masters {
        if let Some(server) = ServerConnection::connect(findings, single_node(settings, master), true).await {
            server::check(findings, &server, Requirements::of(&target.config)).await;
        }
    }
    if let Ok(redis) = Redis::new(settings.clone()) {
        permissions::check(findings, target, &redis).await;
    }
}

/// The same settings for a single server.
fn single_node(settings: &RedisSettings, node: Node) -> RedisSettings {
    RedisSettings { mode: Mode::Single, nodes: vec![node], ..settings.clone() }
}

/// Optional features that the configuration needs.
#[derive(Clone, Copy)]
struct Requirements {
    /// Expiry messages, for the mirror.
    expiry: bool,
    /// Presence shared between gateways.
    presence: bool,
}

impl Requirements {
    fn of(config: &Config) -> Requirements {
        Requirements { expiry: config.mirror.enabled, presence: config.shares_presence() }
    }
}

/// A reachable server.
struct ServerConnection {
    redis: Redis,
    /// For remedies.
    cli: RedisCli,
    /// Whether the configuration names it as part of a cluster.
    is_cluster_known: bool,
}

impl ServerConnection {
    async fn connect(
        findings: &mut Findings,
        settings: RedisSettings,
        is_cluster_known: bool,
    ) -> Option<ServerConnection> {
        let cli = RedisCli::of(&settings);
        match Redis::connect(settings.clone()).await {
            Ok(redis) => Some(ServerConnection { redis, cli, is_cluster_known }),
            Err(error) => {
                findings.problem(
                    format!("{settings}: {error}"),
                    format!("test with: {cli} PING; then start Redis, or correct redis.url and the password"),
                );
                None
            }
        }
    }

    fn name(&self) -> String {
        self.redis.settings().to_string()
    }
}
