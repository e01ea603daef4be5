//! Redis: every server that holds a part of what is ours.
//!
//! # Layout
//!
//! - [`server`]: one server: version, role, persistence, memory, clock
//! - [`cluster`]: whether a cluster is whole, and who its masters are
//! - [`rights`]: whether our user may do what we do

mod cluster;
mod permissions;
mod server;

use std::time::Duration;

use keyspace::{Mode, Node, Redis, RedisSettings};

use super::Target;
use super::finding::Findings;
use crate::config::Config;
use crate::redis_cli::RedisCli;

/// How long one answer may take; the check as a whole has its own deadline.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Looks at Redis, if there is one.
pub(super) async fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("redis");
    let settings = match target.config.redis_settings() {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            findings.ok("not configured: everything is kept in the data folder");
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

/// The same way in, to one server alone.
fn single_node(settings: &RedisSettings, node: Node) -> RedisSettings {
    RedisSettings { mode: Mode::Single, nodes: vec![node], ..settings.clone() }
}

/// What we want of a server.
#[derive(Clone, Copy)]
struct Requirements {
    /// Somebody listens to keys that expire.
    expiry: bool,
    /// Gateways meet there.
    presence: bool,
}

impl Requirements {
    fn of(config: &Config) -> Requirements {
        Requirements { expiry: config.mirror.enabled, presence: config.shares_presence() }
    }
}

/// A server that answers.
struct ServerConnection {
    redis: Redis,
    /// How to talk to it by hand.
    cli: RedisCli,
    /// Whether it was found in a cluster that the settings name.
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
            Err(trouble) => {
                findings.problem(
                    format!("{settings}: {trouble}"),
                    format!(
                        "try it by hand: {cli} PING; then start Redis, or correct redis.url and the password"
                    ),
                );
                None
            }
        }
    }

    fn name(&self) -> String {
        self.redis.settings().to_string()
    }
}
