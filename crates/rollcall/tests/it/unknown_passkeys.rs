//! Unknown passkeys: verified by the whitelist or by the site's endpoint (W4, W5).
//!
//! Every test has a server of its own.

mod endpoint;
mod whitelist;

use std::time::Duration;

use domain::{InfoHash, Passkey};
use testkit::{Announce, AnnounceReply, Family, RedisServer, Server, ServerBuilder, eventually};

/// Long enough for a machine that does much else, too.
const PATIENCE: Duration = Duration::from_secs(20);
const TORRENT: InfoHash = InfoHash([0x5a; 20]);
/// First id of external users.
const EXTERNAL_ID: u64 = 1_000_000_000;

fn builder() -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
}

fn on(redis: &RedisServer) -> ServerBuilder {
    builder().set("redis.url", format!("\"{}\"", redis.url()))
}

/// Starts a server with [`TORRENT`] and one user of its own, who scrapes the swarm.
fn start(builder: ServerBuilder) -> (Server, Passkey) {
    let server = builder.start();
    let watcher = server.add_user(1);
    server.cli(&["torrent", "add", "--infohash", &TORRENT.to_string(), "--name", "a torrent"]);
    eventually("the torrent to be known", PATIENCE, || server.try_scrape(&watcher, &TORRENT).ok().flatten());
    (server, watcher)
}

fn stranger(number: u64) -> Passkey {
    format!("{number:08x}{:024x}", 0x00c0_ffee_u64).parse().unwrap()
}

fn leecher(client: u32) -> Announce {
    Announce::leecher(TORRENT, client)
}

fn announce(server: &Server, passkey: &Passkey, client: u32) -> AnnounceReply {
    server.announce(Family::V4, passkey, &leecher(client))
}

/// Why an announce over HTTP is refused; none if it is accepted.
fn refusal(server: &Server, passkey: &Passkey, client: u32) -> Option<String> {
    announce(server, passkey, client).failure_reason
}

fn is_unknown(server: &Server, passkey: &Passkey, client: u32) -> bool {
    refusal(server, passkey, client).is_some_and(|reason| reason.contains("unknown passkey"))
}

fn cannot_be_checked(server: &Server, passkey: &Passkey, client: u32) -> bool {
    refusal(server, passkey, client).is_some_and(|reason| reason.contains("cannot be checked right now"))
}

fn leechers(server: &Server, watcher: &Passkey) -> i64 {
    server.scrape(watcher, &TORRENT).incomplete
}

/// Waits until an account shows what was uploaded.
fn wait_uploaded(server: &Server, user: u64, bytes: &str) {
    eventually("the account to show what was moved", PATIENCE, || {
        let shown = server.try_cli(&["user", "show", &user.to_string()]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).ok()?;
        (shown["uploaded"] == bytes).then_some(())
    });
}
