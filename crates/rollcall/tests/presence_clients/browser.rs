//! Two people with pages in a real Chromium, driven by its DevTools protocol. What the one does with the page, the other
//! sees, in the document's times.
//!
//! A page is hidden by another tab in front of it, as people do it; "offline" is the browser's own emulation; a tab is closed
//! as its cross does it.

use std::time::Duration;

use serde_json::json;
use testkit::{Server, eventually};

use crate::agent::{Agent, Kind, PATIENCE, Sighting, now};
use crate::scene::{identity, people, quick_ladder, server, url};

/// Without input for this long, the first person's page is inactive.
const IDLE_MS: u64 = 3000;

/// A browser in which person 2 looks at what becomes of person 1.
struct Pages {
    server: Server,
    browser: Agent,
}

fn pages(idle_ms: u64) -> Pages {
    let mut browser = Agent::start(Kind::Browser, "pages");
    let profile = browser.folder.path().join("profile");
    let launched = browser.ask("launch", json!({"profile": profile}));
    let origin = launched["origin"].as_str().unwrap();
    let server = quick_ladder(server()).set("gateway.allowed_origins", format!("[{origin:?}]")).start();
    people(&server, &[1, 2], &[(1, 2)]);
    let (url, first, second) = (url(&server), identity("1"), identity("2"));
    browser.viewer = Some("second");
    browser.ask("open", json!({"who": "second", "url": url, "identity": second}));
    browser.ask("open", json!({"who": "first", "url": url, "identity": first, "idle_ms": idle_ms}));
    browser.wait_status("1", "online");
    Pages { server, browser }
}

/// The browser must let go of its profile before that is removed.
impl Drop for Pages {
    fn drop(&mut self) {
        self.browser.send("quit", json!({}));
        eventually("the browser to end", PATIENCE, || self.browser.process.has_ended());
    }
}

impl Pages {
    /// Does something to the first person's page, and waits for what the second one sees.
    #[track_caller]
    fn after(&mut self, what: &str, status: &str) -> Sighting {
        let since = now();
        self.browser.ask(what, json!({"who": "first"}));
        let mut shown = self.browser.wait_status("1", status);
        shown.at -= since;
        shown
    }

    #[track_caller]
    fn wait_device_state(&mut self, state: &str) -> Sighting {
        let what = format!("a page in the {state}");
        self.browser.wait_shown(&what, "1", |user| user["devices"][0]["state"] == state)
    }
}

#[test]
fn p8_a_hidden_page_is_in_the_background_and_an_unattended_one_is_away() {
    let mut pages = pages(IDLE_MS);
    // Nobody touches it: inactive, so away.
    pages.browser.wait_status("1", "away");
    let back = pages.after("touch", "online");
    assert!(back.at < Duration::from_secs(2), "{back:?}");
    pages.browser.ask("hide", json!({"who": "first"}));
    let shown = pages.wait_device_state("background");
    assert_eq!(shown.user["status"], "online", "hidden is not away: {shown:?}");
    let visibility = pages.browser.ask("visibility", json!({"who": "first"}));
    assert_eq!(visibility, "hidden", "the browser says so itself");
    pages.browser.ask("show", json!({"who": "first"}));
    pages.wait_device_state("foreground");
}

#[test]
fn p5_a_closed_tab_is_offline_within_a_second() {
    let mut pages = pages(0);
    let gone = pages.after("close", "offline");
    assert!(gone.at < Duration::from_secs(1), "{gone:?}");
    assert_eq!(gone.before, [], "offline, and nothing in between");
}

#[test]
fn p12_a_lost_network_is_offline_and_online_again_when_it_is_back() {
    let mut pages = pages(0);
    let since = now();
    pages.browser.ask("offline", json!({"who": "first", "on": true}));
    let gone = pages.browser.wait_status("1", "offline");
    // Never later than the ladder of P7 takes: 15 s, and a ping of 2 s for what was heard last.
    assert!(gone.at - since < Duration::from_secs(20), "{gone:?}");
    pages.browser.ask("offline", json!({"who": "first", "on": false}));
    pages.browser.wait_status("1", "online");
}

/// The page's script hangs, so it answers no ping of the protocol; the browser answers the probe. So it is away, however long
/// it hangs, and never offline (P9: no heartbeat, but the probe is answered).
#[test]
fn p9_a_page_that_hangs_is_away_and_not_offline() {
    let mut pages = pages(0);
    let hang_ms = 18_000;
    let since = now();
    pages.browser.ask("hang", json!({"who": "first", "ms": hang_ms}));
    let away = pages.browser.wait_status("1", "away");
    assert!((Duration::from_secs(3)..Duration::from_secs(11)).contains(&(away.at - since)), "{away:?}");
    let back = pages.browser.wait_status("1", "online");
    assert!(back.at - since >= Duration::from_millis(hang_ms - 1000), "{back:?}");
    assert!(back.before.iter().all(|(_, status)| status == "away"), "never offline: {back:?}");
    assert!(!pages.server.log().contains("panicked"), "{}", pages.server.log());
}

/// A browser freezes pages that nobody looks at: no script runs, and no ping of the protocol is answered. P8 gives such a
/// page its time (30 s here) before it is away. When it goes on, its SDK finds that it has heard no ping for long, and connects
/// anew.
#[test]
fn p8_a_frozen_page_in_the_background_is_away_after_its_time_and_not_before() {
    let mut pages = pages(0);
    pages.browser.ask("hide", json!({"who": "first"}));
    pages.wait_device_state("background");
    let since = now();
    pages.browser.ask("freeze", json!({"who": "first"}));
    let away = pages.browser.wait_status("1", "away");
    assert!((Duration::from_secs(26)..Duration::from_secs(37)).contains(&(away.at - since)), "{away:?}");
    pages.browser.ask("thaw", json!({"who": "first"}));
    pages.after("show", "online");
}
