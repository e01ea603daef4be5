//! The running program: changes from the command line, signals, logs, start and stop.
//!
//! Every test has its own server.

mod changes;
mod logs;
mod moderation;
mod reload;
mod start_and_stop;

use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{InfoHash, Passkey};
use testkit::{Announce, AnnounceReply, Family, Server, ServerBuilder, eventually};

/// Long enough for a machine that does much else, too.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is promised is a second; a machine with much else to do is given five.
const CHANGE_LIMIT: Duration = Duration::from_secs(5);
const TORRENT: InfoHash = InfoHash([0x5a; 20]);

fn builder() -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
}

/// Registers [`TORRENT`], and waits until `passkey` may scrape it.
#[track_caller]
fn add_torrent(server: &Server, passkey: &Passkey) {
    server.cli(&["torrent", "add", "--infohash", &TORRENT.to_string(), "--name", "a torrent"]);
    eventually("the torrent to be known", PATIENCE, || server.try_scrape(passkey, &TORRENT).ok().flatten());
}

fn leecher(client: u32) -> Announce {
    Announce::leecher(TORRENT, client)
}

fn seeder(client: u32) -> Announce {
    Announce::seeder(TORRENT, client)
}

/// An announce that is accepted.
#[track_caller]
fn announce(server: &Server, passkey: &Passkey, announce: &Announce) -> AnnounceReply {
    let reply = server.announce(Family::V4, passkey, announce);
    assert_eq!(reply.failure_reason, None);
    reply
}

/// Waits until a change takes effect, and prints if it took longer than documented.
#[track_caller]
fn soon(what: &str, mut shows: impl FnMut() -> bool) {
    let since_change = Stopwatch::start();
    eventually(what, CHANGE_LIMIT, || shows().then_some(()));
    let took = since_change.elapsed();
    if took > Duration::from_secs(1) {
        eprintln!("{what} took {took:?}: is this machine busy?");
    }
}

/// Waits until the log has a line with all of these.
#[track_caller]
fn wait_logged(server: &Server, parts: &[&str]) -> String {
    wait_logged_again(server, parts, 1)
}

/// Waits until the log has so many lines with all of these, and returns the last one.
#[track_caller]
fn wait_logged_again(server: &Server, parts: &[&str], count: usize) -> String {
    eventually(&format!("line {count} in the log with {parts:?}"), PATIENCE, || {
        let log = server.log();
        let mut fitting = log.lines().filter(|line| parts.iter().all(|part| line.contains(part)));
        fitting.nth(count - 1).map(str::to_owned)
    })
}
