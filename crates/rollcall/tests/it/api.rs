//! The site's HTTP API through the real program: authorisation, every route, attacks, and the site for an operator.
//!
//! Every test has its own server.

mod attacks;
mod audit;
mod authorisation;
mod bodies;
mod dead_letters;
mod disabled;
mod friends;
mod https;
mod keys;
mod lists;
mod me;
mod moderation;
mod operator;
mod overview;
mod own_process;
mod pages;
mod paging;
mod presence;
mod session;
mod staff;
mod swarms;
mod torrents;
mod users;
mod verify;
mod webhooks;
mod websocket;
mod whitelist;
mod why;

use std::net::SocketAddr;
use std::time::Duration;

use domain::{InfoHash, Passkey};
use serde_json::Value as Json;
use testkit::{Announce, Api, ApiReply, Family, HttpReply, RawHttp, Server, ServerBuilder, eventually};

/// Long enough for a machine that does much else, too.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server without limits that tests would meet, and with quick readers.
fn builder() -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .set("site.requests_per_address_per_s", 0)
        .set("site.requests_per_key_per_s", 0)
        .set("tracker.min_announce_interval_s", 0)
        .set("tracker.workers", 1)
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// A torrent made from a number.
fn info_hash(number: u8) -> InfoHash {
    InfoHash([number; 20])
}

/// Adds a torrent over the API, and waits until the tracker knows it.
#[track_caller]
fn add_torrent(server: &Server, admin: &Api, passkey: &Passkey, number: u8) -> InfoHash {
    let hash = info_hash(number);
    let said = serde_json::json!({ "infohash": hash.to_string(), "name": format!("torrent {number}") });
    assert_eq!(admin.post("/api/v1/torrents", &said).status(), 201);
    eventually("the torrent to be known", PATIENCE, || server.try_scrape(passkey, &hash).ok().flatten());
    hash
}

/// An announce that is accepted.
#[track_caller]
fn announce(server: &Server, passkey: &Passkey, announce: &Announce) {
    assert_eq!(server.announce(Family::V4, passkey, announce).failure_reason, None);
}

/// Asserts a refusal with this status and a problem with a remedy; returns its code.
#[track_caller]
fn problem(reply: &ApiReply, status: u16) -> String {
    let body = String::from_utf8_lossy(&reply.reply.body).into_owned();
    assert_eq!(reply.status(), status, "{body}");
    assert_eq!(reply.reply.header("content-type"), Some("application/problem+json"), "{body}");
    let json = reply.json();
    assert_eq!(json["status"], status, "{body}");
    assert!(json["title"].as_str().is_some_and(|title| !title.is_empty()), "{body}");
    assert!(json["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{body}");
    json["code"].as_str().unwrap().to_owned()
}

/// The detail of a problem.
#[track_caller]
fn detail(reply: &ApiReply) -> String {
    reply.json()["detail"].as_str().unwrap().to_owned()
}

/// Sends these bytes on a connection of their own, and reads one reply.
#[track_caller]
fn exchange(server: SocketAddr, bytes: &[u8]) -> HttpReply {
    let mut connection = RawHttp::connect(server);
    connection.send(bytes);
    connection.read_reply()
}

/// A number on the metrics page; zero if it is not there.
#[track_caller]
fn metric(reader: &Api, sample: &str) -> f64 {
    let page = reader.get("/metrics");
    assert_eq!(page.status(), 200);
    let page = String::from_utf8(page.reply.body).unwrap();
    page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok()).unwrap_or(0.0)
}

/// Requests to a route that were answered with this status.
#[track_caller]
fn answered(reader: &Api, route: &str, status: u16) -> f64 {
    metric(reader, &format!("rollcall_site_requests_total{{route=\"{route}\",status=\"{status}\"}}"))
}

/// The items of a page.
#[track_caller]
fn items(page: &Json) -> &Vec<Json> {
    page["items"].as_array().unwrap_or_else(|| panic!("no page: {page}"))
}

/// All items of a list, page by page.
#[track_caller]
fn walk(api: &Api, target: &str, limit: u32) -> Vec<Json> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{target}?limit={limit}{cursor}")).ok();
        assert!(items(&page).len() <= limit as usize, "{page}");
        assert!(all.is_empty() || !items(&page).is_empty(), "there is no page behind the last: {target}");
        all.extend(items(&page).iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Runs a statement on a server's own database, as a site's own SQL would.
fn sqlite(server: &Server, statement: &str) {
    let file = server.data_folder().join("rollcall.db");
    let done = std::process::Command::new("sqlite3")
        .args(["-bail", "-cmd", ".timeout 10000"])
        .arg(&file)
        .arg(statement)
        .status();
    assert!(done.expect("sqlite3 is installed").success());
}
