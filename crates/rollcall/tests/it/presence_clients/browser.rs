//! Two users with pages in a real Chromium, driven by its DevTools protocol. What one does with the page, the other
//! sees within the documented times.
//!
//! A page is hidden by another tab in front of it; "offline" is the browser's own emulation; a tab is closed as by
//! its close button.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Server, eventually, promised};

use crate::presence_clients::agent::{Agent, Kind, PATIENCE, Sighting, now};
use crate::presence_clients::fixture::{identity, people, quick_ladder, server, url};

/// Without input for this long, the first person's page is inactive.
const IDLE_MS: u64 = 3000;

/// One browser at a time: several on two cores keep each other from what the document promises in seconds.
static TURN: Mutex<()> = Mutex::new(());

/// A browser, and where its pages come from.
struct Browser {
    agent: Agent,
    origin: String,
    _turn: MutexGuard<'static, ()>,
}

fn launch() -> Browser {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut agent = Agent::start(Kind::Browser, "pages");
    let profile = agent.folder.path().join("profile");
    let launched = agent.ask("launch", json!({"profile": profile}));
    Browser { agent, origin: launched["origin"].as_str().unwrap().to_owned(), _turn: turn }
}

/// It must let go of its profile before that is removed.
impl Drop for Browser {
    fn drop(&mut self) {
        self.agent.send("quit", json!({}));
        eventually("the browser to end", PATIENCE, || self.agent.process.has_ended());
    }
}

/// A browser in which user 2 watches user 1.
struct Pages {
    server: Server,
    browser: Browser,
}

fn pages(idle_ms: u64) -> Pages {
    let mut browser = launch();
    let origins = format!("[{:?}]", browser.origin);
    let server = quick_ladder(server()).set("gateway.allowed_origins", origins).start();
    people(&server, &[1, 2], &[(1, 2)]);
    browser.agent.viewer = Some("second");
    browser.agent.ask("open", json!({"who": "second", "url": url(&server), "identity": identity("2")}));
    let mut pages = Pages { server, browser };
    pages.open_first(idle_ms);
    pages.agent().wait_status("1", "online");
    pages
}

impl Pages {
    fn agent(&mut self) -> &mut Agent {
        &mut self.browser.agent
    }

    /// Opens the page of person 1.
    #[track_caller]
    fn open_first(&mut self, idle_ms: u64) {
        let url = url(&self.server);
        self.act("open", json!({"url": url, "identity": identity("1"), "idle_ms": idle_ms}));
    }

    /// Does something to the page of person 1.
    #[track_caller]
    fn act(&mut self, what: &str, details: Value) -> Value {
        let mut details = details;
        details["who"] = "first".into();
        self.agent().ask(what, details)
    }

    #[track_caller]
    fn wait_status(&mut self, status: &str) -> Sighting {
        self.agent().wait_status("1", status)
    }

    #[track_caller]
    fn wait_device_state(&mut self, state: &str) -> Sighting {
        let what = format!("a page in the {state}");
        self.agent().wait_shown(&what, "1", |user| user["devices"][0]["state"] == state)
    }
}

#[test]
fn p8_a_hidden_page_is_in_the_background_and_an_unattended_one_is_away() {
    let mut pages = pages(IDLE_MS);
    // No input: inactive, so away.
    pages.wait_status("away");
    pages.act("touch", json!({}));
    pages.wait_status("online");
    pages.act("hide", json!({}));
    let shown = pages.wait_device_state("background");
    assert_eq!(shown.user["status"], "online", "hidden is not away: {shown:?}");
    let visibility = pages.act("visibility", json!({}));
    assert_eq!(visibility, "hidden", "the browser says so itself");
    pages.act("show", json!({}));
    pages.wait_device_state("foreground");
}

#[test]
fn p5_a_closed_tab_is_offline_within_a_second_and_so_is_a_crashed_one() {
    let mut pages = pages(0);
    for end in ["close", "crash"] {
        pages.act(end, json!({}));
        let ended_at = now();
        let gone = pages.wait_status("offline");
        // Room for what a browser on a busy machine needs to end a tab; heartbeats would find out after 90 s.
        let limit = promised(Duration::from_secs(1), Duration::from_secs(10));
        assert!(gone.at.saturating_sub(ended_at) < limit, "{end}: {gone:?}");
        assert_eq!(gone.before, [], "{end}: offline, and nothing in between");
        pages.open_first(0);
        pages.wait_status("online");
    }
}

#[test]
fn a_page_that_is_loaded_again_is_the_same_device() {
    let mut pages = pages(0);
    let device = |pages: &mut Pages| {
        let name = pages.act("evaluate", json!({"expression": "rollcall.device"}));
        name.as_str().unwrap().to_owned()
    };
    let before = device(&mut pages);
    pages.act("reload", json!({}));
    pages.wait_status("offline");
    let back = pages.wait_status("online").user;
    assert_eq!(back["devices"].as_array().unwrap().len(), 1, "{back}");
    assert_eq!(back["devices"][0]["id"], before, "{back}");
    assert_eq!(device(&mut pages), before);
}

#[test]
fn a_page_of_an_origin_that_is_not_allowed_cannot_connect() {
    let mut browser = launch();
    let server = server().set("gateway.allowed_origins", "[\"https://elsewhere.example\"]").start();
    people(&server, &[1], &[]);
    browser.agent.ask("open", json!({"who": "first", "url": url(&server), "identity": identity("1")}));
    let mut tries = 0;
    browser.agent.wait_for("three tries", |event| {
        assert_ne!(event.said["event"], "connected");
        tries += u32::from(event.said["event"] == "connecting");
        (tries == 3).then_some(())
    });
}

#[test]
fn p12_a_lost_network_is_offline_and_online_again_when_it_is_back() {
    let mut pages = pages(0);
    let since = now();
    pages.act("offline", json!({"on": true}));
    let gone = pages.wait_status("offline");
    // No later than the times of P7: 15 s, and a ping of 2 s before the last activity.
    assert!(gone.at - since < Duration::from_secs(20), "{gone:?}");
    pages.act("offline", json!({"on": false}));
    pages.wait_status("online");
}

/// The page's script hangs, so it answers no ping of the protocol; the browser answers the probe. So it is away, however long
/// it hangs, and never offline (P9: no heartbeat, but the probe is answered).
#[test]
fn p9_a_page_that_hangs_is_away_and_not_offline() {
    let mut pages = pages(0);
    let hang_ms = 18_000;
    let since = now();
    pages.act("hang", json!({"ms": hang_ms}));
    let away = pages.wait_status("away");
    assert!((Duration::from_secs(3)..Duration::from_secs(11)).contains(&(away.at - since)), "{away:?}");
    let back = pages.wait_status("online");
    assert!(back.at - since >= Duration::from_millis(hang_ms - 1000), "{back:?}");
    assert!(back.before.iter().all(|(_, status)| status == "away"), "never offline: {back:?}");
    assert!(!pages.server.log().contains("panicked"), "{}", pages.server.log());
}

/// A browser freezes background pages: no script runs, and no ping of the protocol is answered. P8 gives such a page
/// 30 s here before it is away. When it resumes, its SDK notices the missing pings and reconnects.
#[test]
fn p8_a_frozen_page_in_the_background_is_away_after_its_time_and_not_before() {
    let mut pages = pages(0);
    pages.act("hide", json!({}));
    pages.wait_device_state("background");
    let since = now();
    pages.act("freeze", json!({}));
    let away = pages.wait_status("away");
    assert!((Duration::from_secs(26)..Duration::from_secs(37)).contains(&(away.at - since)), "{away:?}");
    pages.act("thaw", json!({}));
    pages.act("show", json!({}));
    pages.wait_status("online");
}
