//! `rollcall demo` and its simulation: everything moves, nothing is left behind, and the accounts of the server equal
//! what the simulation transferred.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use access::Store;
use domain::UnixTime;
use domain::clock::{Clock, SystemClock};
use friends::{FriendStore, FriendsSettings};
use gateway::mint::{TokenClaims, mint};
use rollcall::demo_data;
use serde_json::Value as Json;
use simulate::{Plan, ServerAddresses, Simulation, Target, catalogue};
use tempfile::TempDir;
use testkit::ports::free_port;
use testkit::process::Process;
use testkit::{Api, Family, eventually};

use crate::site::{self, DatabaseKind, Site, builder};

/// How long anything may take on a machine that does much else, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A demo that runs, in a folder for temporary folders of its own.
struct Demo {
    process: Process,
    greeting: Json,
    api: Api,
    home: TempDir,
}

impl Demo {
    #[track_caller]
    fn start(port: u16, tracker_port: u16, more: &[&str]) -> Demo {
        let home = tempfile::tempdir().unwrap();
        let (port, tracker_port) = (port.to_string(), tracker_port.to_string());
        // The program is started by a shell only to give it a place for temporary folders.
        let script = r#"TMPDIR="$0" exec "$@""#;
        let mut args =
            vec!["-c", script, home.path().to_str().unwrap(), env!("CARGO_BIN_EXE_rollcall"), "demo"];
        args.extend(["--json", "--port", &port, "--tracker-port", &tracker_port]);
        args.extend(["--members", "10", "--peers", "100"]);
        if !more.contains(&"--torrents") {
            args.extend(["--torrents", "20"]);
        }
        args.extend(more);
        let log = home.path().join("log");
        let (process, stdin, stdout) = Process::start_dialogue("sh", args, &log);
        drop(stdin);
        let mut lines = BufReader::new(stdout);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let greeting: Json = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{line:?} is no greeting: {}", process.log()));
        // One line, and nothing else.
        std::thread::spawn(move || {
            let mut rest = String::new();
            lines.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "");
        });
        let site: SocketAddr = text(&greeting, "site").strip_prefix("http://").unwrap().parse().unwrap();
        let api = Api::new(site).with_key(&text(&greeting, "key"));
        Demo { process, greeting, api, home }
    }

    fn data(&self) -> PathBuf {
        PathBuf::from(text(&self.greeting, "data"))
    }

    /// The overview, once it is available.
    fn overview(&self) -> Json {
        let reply = self.api.get("/api/v1/overview");
        if reply.status() == 200 { reply.json() } else { Json::Null }
    }

    #[track_caller]
    fn assert_gone(&mut self) {
        let status = self.process.wait_end(PATIENCE);
        assert!(status.success(), "{status}: {}", self.process.log());
        let left: Vec<_> =
            std::fs::read_dir(self.home.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [self.home.path().join("log")], "nothing is left behind");
    }
}

fn text(json: &Json, key: &str) -> String {
    json[key].as_str().unwrap_or_else(|| panic!("no {key} in {json:#}")).to_owned()
}

fn whole(json: &Json) -> u64 {
    json.as_u64().or_else(|| json.as_str()?.parse().ok()).unwrap_or(0)
}

#[test]
fn everything_lives_and_after_ctrl_c_nothing_is_left() {
    let mut demo = Demo::start(0, 0, &["--pace", "4"]);
    assert!(text(&demo.greeting, "sign_in").contains("/#/sign-in?key=rck_"), "{:#}", demo.greeting);
    assert!(text(&demo.greeting, "member").contains("/me#token="), "{:#}", demo.greeting);
    assert!(demo.data().is_dir() && demo.data().starts_with(demo.home.path()));
    assert_eq!(demo.greeting["notes"], serde_json::json!([]));
    eventually("peers, people and bytes", PATIENCE, || {
        let overview = demo.overview();
        let tracker = &overview["tracker"];
        let is_alive = whole(&tracker["seeders"]) >= 40
            && whole(&tracker["leechers"]) > 0
            && whole(&tracker["torrents_active"]) >= 10
            && whole(&tracker["downloaded"]) > 1_000_000
            && whole(&tracker["uploaded"]) > 1_000_000
            && whole(&overview["presence"]["online"]) >= 3;
        is_alive.then_some(())
    });
    assert_eq!(demo.api.get("/api/v1/torrents/20").ok()["torrent"]["approved"], false, "one awaits approval");
    assert_eq!(demo.api.get("/api/v1/multipliers").ok()["items"].as_array().unwrap().len(), 2);
    eventually("a dead letter", PATIENCE, || {
        let letters = demo.api.get("/api/v1/dead-letters/dlq").ok();
        (!letters["items"].as_array()?.is_empty()).then_some(())
    });
    eventually("a cheat to be noticed", PATIENCE, || {
        (!demo.api.get("/api/v1/risks").ok()["items"].as_array()?.is_empty()).then_some(())
    });
    demo.process.interrupt();
    demo.assert_gone();
}

#[test]
fn it_ends_by_itself_and_where_a_port_is_taken_it_uses_another() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let tracker_port = free_port();
    let mut demo = Demo::start(port, tracker_port, &["--for", "2"]);
    let note = demo.greeting["notes"][0].as_str().unwrap().to_owned();
    assert!(note.contains(&format!("port {port} is taken")), "{note}");
    assert!(!text(&demo.greeting, "site").ends_with(&format!(":{port}")));
    assert_eq!(demo.greeting["http"][0], format!("127.0.0.1:{tracker_port}"));
    demo.assert_gone();
}

#[test]
fn a_large_demo_prints_progress_and_is_complete() {
    let mut demo = Demo::start(0, 0, &["--torrents", "12000", "--for", "3"]);
    let open = demo.api.get("/api/v1/torrents/11999").ok();
    let last = demo.api.get("/api/v1/torrents/12000").ok();
    demo.assert_gone();
    assert_eq!(open["torrent"]["approved"], true);
    assert_eq!(last["torrent"]["approved"], false, "the last one awaits approval");
    let said = demo.process.log();
    let told = ["10000 of 12000 torrents", "11999 of 12000 torrents", "starting the server"];
    assert!(told.iter().all(|line| said.contains(line)), "{said}");
}

#[tokio::test]
async fn a_world_that_was_broken_off_is_completed_and_what_was_removed_stays_away() {
    let folder = tempfile::tempdir().unwrap();
    let store =
        Store::open(&format!("sqlite:{}", folder.path().join("rollcall.db").display())).await.unwrap();
    let people = FriendStore::open(store.database().clone(), FriendsSettings::default()).await.unwrap();
    let plan = Plan { torrents: 21_000, peers: 2, members: 3, pace: 1.0, seed: 1, misbehaviour: false };
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    tokio::select! {
        biased;
        _ = stopped.wait_for(|is_told| *is_told) => {}
        _ = demo_data::insert(&plan, &store, &people, UnixTime(1_800_000_000), |_| stop.send(true).unwrap()) => {}
    }
    assert_eq!(store.count_torrents().await.unwrap(), 10_000, "broken off after the first transaction");
    store.remove_torrent(catalogue::torrent_id(10_000)).await.unwrap();
    for _ in 0..2 {
        demo_data::insert(&plan, &store, &people, UnixTime(1_800_000_000), |_| ()).await.unwrap();
        assert_eq!(store.count_torrents().await.unwrap(), 20_999);
    }
    assert!(!store.torrent(catalogue::torrent_id(21_000)).await.unwrap().unwrap().approved);
    store.close().await;
}

/// Tokens of simulated users, signed with the secret in the server's data folder.
fn tokens(data: &Path) -> simulate::TokenIssuer {
    let secret = rollcall::gateway_secret::read(data).unwrap().unwrap();
    Arc::new(move |user| {
        let issued_at = SystemClock.now();
        let expires_at = UnixTime(issued_at.0 + 3_600);
        mint(&secret, &TokenClaims { user, issued_at, expires_at, audience: "", issuer: "", channel: None })
            .ok()
    })
}

/// Adds the simulation's users and torrents to the server's database, and waits until the server knows them.
fn enrol(plan: &Plan, site: &Site, runtime: &tokio::runtime::Runtime) {
    let url = format!("sqlite:{}", site.server.data_folder().join("rollcall.db").display());
    runtime.block_on(async {
        let store = Store::open(&url).await.unwrap();
        let people = FriendStore::open(store.database().clone(), FriendsSettings::default()).await.unwrap();
        demo_data::insert(plan, &store, &people, SystemClock.now(), |_| ()).await.unwrap();
        store.close().await;
    });
    let passkey = catalogue::passkey_of(plan.seed, plan.users());
    let last = catalogue::torrent_of(plan.seed, plan.torrents).info_hash;
    eventually("the world to be known", PATIENCE, || site.server.try_scrape(&passkey, &last).ok().flatten());
}

#[test]
fn l6_the_books_equal_what_the_world_moved() {
    let plan = Plan { torrents: 12, peers: 150, members: 8, pace: 20.0, seed: 3, misbehaviour: false };
    let builder = builder().set("tracker.announce_interval_s", 2).set("tracker.min_announce_interval_s", 1);
    let site = Site::start(builder, None, DatabaseKind::Sqlite);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    enrol(&plan, &site, &runtime);
    let tracker = vec![site.server.addr(Family::V4), site.server.addr(Family::V6)];
    let addresses =
        ServerAddresses { http: tracker.clone(), udp: tracker, site: Some(site.server.site_addr()) };
    let mut world = Simulation::new(&plan, Target { addresses, tokens: tokens(&site.server.data_folder()) });
    // Six seconds are three announces of each client.
    let tally = runtime
        .block_on(async { world.run_until(tokio::time::sleep(Duration::from_secs(6))).await.unwrap() });
    assert!(tally.accepted > 200 && tally.connects >= 5, "{tally:?}");
    assert_eq!((tally.lost, tally.refused, world.unconfirmed()), (0, 0, 0), "{tally:?}");

    let status = site.settle();
    site.assert_nothing_failed(&status);
    let truth = world.truth();
    assert!(truth.total().downloaded > 100_000_000, "{:?}", truth.total());
    site.assert_books_equal(&truth);
    site::accounts::assert_same("completions of", &truth.completions, &site.books().completions);
}
