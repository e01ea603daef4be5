//! Printed when the server serves: addresses, first key, next steps.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use access::{Gate, Store};
use keyspace::Redis;
use serde_json::json;
use site::health::effect_of;
use tracker::Addresses;

use crate::config::Config;
use crate::first_key::FirstKey;
use crate::output::Output;
use crate::wiring::site::ServingSite;

pub(super) struct StartupMessage<'a> {
    pub(super) config: &'a Config,
    pub(super) addresses: Addresses,
    pub(super) site: Option<&'a ServingSite>,
    pub(super) gate: &'a Gate,
    pub(super) store: &'a Store,
    pub(super) data: &'a Path,
    pub(super) redis: Option<RedisState>,
}

/// State of the configured Redis at the start.
pub(super) struct RedisState {
    /// Without the password.
    url: String,
    /// None if Redis answers.
    error: Option<String>,
}

const REDIS_TIMEOUT: Duration = Duration::from_secs(2);

impl RedisState {
    /// None if Redis is not configured.
    pub(super) async fn probe(config: &Config) -> anyhow::Result<Option<RedisState>> {
        let Some(settings) = config.redis_settings()? else { return Ok(None) };
        let url = settings.to_string();
        let error = match tokio::time::timeout(REDIS_TIMEOUT, Redis::connect(settings)).await {
            Ok(connected) => connected.err().map(|error| error.to_string()),
            Err(_) => Some(format!("Redis did not answer within {} s", REDIS_TIMEOUT.as_secs())),
        };
        Ok(Some(RedisState { url, error }))
    }

    /// What does not work while Redis is unreachable.
    fn warning(&self, has_mirror: bool, has_cluster: bool) -> Option<String> {
        let error = self.error.as_ref()?;
        let mut text = format!("{error}.\nUntil {} answers:\n", self.url);
        let more = [("mirror", has_mirror), ("presence_cluster", has_cluster)];
        let more = more.into_iter().filter_map(|(part, is_there)| is_there.then_some(part));
        for part in ["journal", "ledger", "activity", "whitelist"].into_iter().chain(more) {
            let _ = writeln!(text, "  {}", effect_of(part));
        }
        text.push_str("The server reconnects when Redis is back.\n\n");
        Some(text)
    }
}

/// A wildcard address is not one that clients can connect to.
fn host_of(address: &SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("<this machine>:{}", address.port()),
        false => address.to_string(),
    }
}

impl StartupMessage<'_> {
    pub(super) fn print(&self, output: Output) -> anyhow::Result<()> {
        let texts = |list: &[SocketAddr]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (first_key, first_key_file) = match self.site.and_then(ServingSite::first_key) {
            None => (None, None),
            Some(FirstKey::Shown(key)) => (Some(key), None),
            Some(FirstKey::InFile(path)) => (None, Some(path.display().to_string())),
        };
        let json = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "http": texts(&self.addresses.http),
            "https": texts(&self.addresses.https),
            "udp": texts(&self.addresses.udp),
            "site": self.site.map(ServingSite::urls).unwrap_or_default(),
            "presence": self.site.map(ServingSite::websocket_urls).unwrap_or_default(),
            "gateways": self.site.and_then(ServingSite::gateways),
            "first_key": first_key,
            "first_key_file": first_key_file,
            "database": self.store.shown(),
            "journal": self.journal(),
            "redis": self.redis.as_ref().map(|redis| json!({ "url": redis.url, "error": redis.error })),
            "users": self.gate.user_count(),
            "torrents": self.gate.torrent_count(),
        });
        output.show(&json, &self.text())?;
        Ok(())
    }

    fn journal(&self) -> String {
        match self.config.redis_settings() {
            Ok(Some(settings)) => format!("{} in {settings}", self.config.journal.stream_key.as_str()),
            _ => self.data.join("journal.db").display().to_string(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("\nRollcall {} is up.\n\n", env!("CARGO_PKG_VERSION"));
        let Addresses { http, https, udp } = &self.addresses;
        for (scheme, list) in [("https", https), ("http", http), ("udp", udp)] {
            let mut hosts: Vec<String> = list.iter().map(host_of).collect();
            // Wildcard addresses of IPv4 and IPv6 look the same.
            hosts.dedup();
            for host in hosts {
                let _ = writeln!(text, "  announce  {scheme}://{host}/<passkey>/announce");
            }
        }
        for url in self.site.iter().flat_map(|site| site.urls()) {
            let _ = writeln!(text, "  site      {url}/");
        }
        for url in self.site.iter().flat_map(|site| site.websocket_urls()) {
            let _ = writeln!(text, "  presence  {url}");
        }
        if let Some(gateways) = self.site.and_then(ServingSite::gateways) {
            let size = match gateways {
                1 => "the only gateway so far".to_owned(),
                count => format!("one of {count} gateways"),
            };
            let _ = writeln!(text, "  cluster   {size}; presence is shared");
        }
        let (users, torrents) = (self.gate.user_count(), self.gate.torrent_count());
        let _ = writeln!(text, "  journal   {}", self.journal());
        let _ =
            writeln!(text, "  database  {}  (users: {users}, torrents: {torrents})\n", self.store.shown());
        let has_cluster = self.site.and_then(ServingSite::gateways).is_some();
        let warning =
            self.redis.as_ref().and_then(|redis| redis.warning(self.config.mirror.enabled, has_cluster));
        text.push_str(&warning.unwrap_or_default());
        match self.site.and_then(ServingSite::first_key) {
            None => {}
            Some(FirstKey::Shown(key)) => {
                let _ = writeln!(
                    text,
                    "API key with all scopes, shown only once (create others with rollcall key create):\n  {key}\n"
                );
            }
            Some(FirstKey::InFile(path)) => {
                let _ = writeln!(
                    text,
                    "API key with all scopes; copy it and delete this file (create others with rollcall key create):\n  {}\n",
                    path.display()
                );
            }
        }
        if users == 0 || torrents == 0 {
            text.push_str(&self.next_steps());
        }
        text
    }

    fn next_steps(&self) -> String {
        let mut program = std::env::args().next().unwrap_or_else(|| "rollcall".to_owned());
        // The other terminal may be in another folder. All other settings are recorded in the data folder.
        if self.data != Path::new("./data") {
            let data = std::path::absolute(self.data).unwrap_or_else(|_| self.data.to_owned());
            let _ = write!(program, " --data {}", data.display());
        }
        format!(
            "Next, in another terminal:\n  \
             {program} user add --id 1\n  \
             {program} torrent add FILE.torrent\n  \
             {program} torrent announce-url --user 1\n  \
             {program} user show 1\n  \
             {program} friend add 1 2\n  \
             {program} token 1\n\n\
             Changes take effect within a second. Ctrl-C stops the server.\n\n"
        )
    }
}
