//! The server under test: the real binary with a real database.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use access::store::{NewTorrent, NewUser, Store};
use anyhow::Context as _;
use domain::clock::{Clock, SystemClock};
use simulate::load::Peers;
use tokio::runtime::Runtime;

use crate::process::{Cores, ServerProcess, free_address};

/// The token secret.
pub const SECRET: &str = "a secret for benchmarks on loopback only";

/// The defaults, except for limits that a benchmark from one machine would reach: these limits are checked, but never
/// reached. Peers announce again after seconds rather than half an hour, and must still receive peers.
const LIMITS: &str = r#"
tracker.workers = 1
tracker.announce_interval_s = 1800
tracker.min_announce_interval_s = 0
limits.connections_per_address_max = 10000
limits.requests_per_address_per_s = 10000000
limits.announces_per_user_per_s = 10000000
limits.announce_burst_per_user = 10000000
site.connections_max = 100000
site.requests_per_address_per_s = 0
site.metrics_open = true
gateway.commands_per_s = 100000
log.level = "warn"
"#;

pub struct Server {
    pub process: ServerProcess,
    /// The same port for HTTP and UDP.
    pub tracker: SocketAddr,
    pub site: SocketAddr,
}

/// What a server runs, and how.
pub struct ServerPlan<'a> {
    pub binary: &'a Path,
    /// Its data folder, which exists.
    pub data: &'a Path,
    pub cores: Cores,
    /// All by default.
    pub roles: Option<&'a str>,
    /// Further lines of settings.
    pub settings: String,
}

impl Server {
    /// With limits that are never reached.
    pub fn start_without_limits(plan: &ServerPlan<'_>) -> anyhow::Result<Server> {
        Server::start_with(plan, LIMITS)
    }

    /// With the defaults.
    pub fn start_with_defaults(plan: &ServerPlan<'_>) -> anyhow::Result<Server> {
        Server::start_with(plan, "")
    }

    /// Starts it on its core and waits until it listens.
    fn start_with(plan: &ServerPlan<'_>, limits: &str) -> anyhow::Result<Server> {
        let (tracker, site) = (free_address()?, free_address()?);
        let mut settings = format!("gateway.token_hmac_secret = \"{SECRET}\"\nsite.addr = \"{site}\"\n");
        let _ = write!(settings, "tracker.http_addr = \"{tracker}\"\ntracker.udp_addr = \"{tracker}\"\n");
        settings.push_str(limits);
        settings.push_str(&plan.settings);
        let config = plan.data.join("bench.toml");
        std::fs::write(&config, settings).context("writing the settings")?;
        let (config, data) = (config.display().to_string(), plan.data.display().to_string());
        let mut args = vec!["serve", "--config", &config, "--data", &data];
        args.extend(plan.roles.map(|roles| ["--roles", roles]).into_iter().flatten());
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        let log = plan.data.join("rollcall.log");
        let mut process = ServerProcess::start(plan.cores.server, plan.binary, &args, &log)?;
        process.wait_for_tcp(site)?;
        if plan.roles.is_none() {
            process.wait_for_tcp(tracker)?;
            process.wait_for_udp(tracker)?;
        }
        Ok(Server { process, tracker, site })
    }
}

/// Inserts every peer's user and every torrent before the server starts.
pub fn fill_database(peers: &Peers, url: &str) -> anyhow::Result<()> {
    let created_at = SystemClock.now();
    let users = peers.users().map(move |(user, passkey)| NewUser {
        id: Some(user),
        passkey: Some(passkey),
        created_at,
    });
    let torrents = peers.torrents().map(move |(torrent, info_hash)| NewTorrent {
        id: Some(torrent),
        info_hash,
        info_hash_v2: None,
        name: format!("bench {torrent}"),
        total_bytes: 1 << 30,
        created_at,
    });
    new_runtime()?.block_on(async {
        let store = Store::open(url).await?;
        store.add_users(users).await?;
        store.add_torrents(torrents).await?;
        store.close().await;
        Ok(())
    })
}

/// A page of metrics.
pub struct Metrics(String);

impl Metrics {
    /// What the site serves now.
    pub fn read(site: SocketAddr) -> Metrics {
        Metrics::parse(&String::from_utf8_lossy(&testkit::http::get(site, "/metrics").body))
    }

    pub fn parse(page: &str) -> Metrics {
        Metrics(page.to_owned())
    }

    /// The series of one metric: labels and value.
    pub fn series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.lines().filter_map(move |line| {
            let (series, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            let labels = match series {
                "" => "",
                series => series.strip_prefix('{')?.strip_suffix('}')?,
            };
            Some((labels, value.parse().ok()?))
        })
    }

    /// The sum of the series of one metric.
    pub fn sum(&self, name: &str) -> f64 {
        self.series(name).map(|(_, value)| value).sum()
    }
}

/// A single-threaded runtime, as a tracker has for its journal.
pub fn new_runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_found_by_the_whole_name_of_their_metric() {
        let metrics = Metrics::parse("# HELP a x\na{view=\"one\"} 2\na{view=\"two\"} 3.5\na_total 7\n");
        let series: Vec<_> = metrics.series("a").collect();
        assert_eq!(series, [("view=\"one\"", 2.0), ("view=\"two\"", 3.5)]);
        assert_eq!((metrics.sum("a_total"), metrics.sum("b")), (7.0, 0.0));
    }
}
