//! All clients reconnect at once.
//!
//! Guarantees for watchers that stay connected:
//!
//! - In the end they see all users online; no reconnected user stays offline.
//! - For each user they receive at most one change to offline and one back, in order; a user who reconnects before
//!   the watcher's next batch causes none. At most a few messages per `batch_ms`.
//! - A user whose new connection precedes the end of the old one is never shown offline.
//! - Who keeps losing the connection is given a grace, and is not seen offline at all when back within it.

use std::time::Duration;

use domain::clock::Stopwatch;
use simulate::websocket::ClientId;

use crate::crowd::site::{Site, builder};

const BATCH_MS: u64 = 100;
/// Messages with urgent changes within that.
const URGENT_WRITES_MAX: u64 = 8;
/// A message that does not bring all there is has at least this.
const MESSAGE_BYTES_MIN: usize = 200 * 1024;

fn site() -> Site {
    // Longer than all reconnects take, also on a slow machine.
    Site::full(builder().set("presence.flap_grace_s", 300))
}

/// All clients lose the connection and reconnect at once; returns how long that took.
fn storm(site: &mut Site) -> Duration {
    site.forget_past();
    let watch = Stopwatch::start();
    for person in site.people.clone() {
        site.crowd.close(person, false);
        site.crowd.open(person);
    }
    site.all_up("every client to reconnect");
    site.until("all users to be online again", Site::all_online);
    // Whatever is still on its way to a watcher.
    let settled = Stopwatch::start();
    while settled.elapsed() < Duration::from_millis(3 * BATCH_MS) {
        site.listen(Duration::from_millis(20));
    }
    assert!(site.all_online());
    watch.elapsed()
}

#[test]
fn p4_a_reconnect_storm_is_absorbed_and_friends_receive_net_changes_only() {
    let mut site = site();
    let took = storm(&mut site);
    for watcher in &site.watchers {
        for (id, past) in &watcher.past {
            let net: &[&[&str]] = &[&["offline", "online"], &["online"]];
            assert!(net.iter().any(|net| past == net), "user {id} was shown as {past:?}");
        }
        // A batch that is too long for one message comes in several.
        let (windows, further) = (took.as_millis() as u64 / BATCH_MS + 2, watcher.bytes / MESSAGE_BYTES_MIN);
        assert!(
            watcher.publications <= windows * URGENT_WRITES_MAX + further as u64,
            "{} publications in {took:?}",
            watcher.publications
        );
    }
    let told: usize =
        site.watchers.iter().map(|watcher| watcher.past.values().map(Vec::len).sum::<usize>()).sum();
    eprintln!(
        "{} people came back within {took:?}; {told} changes were told to the watchers",
        site.people.len()
    );

    // From the third time on, a user who reconnects within the grace is not shown offline.
    storm(&mut site);
    let took = storm(&mut site);
    for watcher in &site.watchers {
        let offline = watcher.past.iter().find(|(_, past)| past.iter().any(|status| status != "online"));
        assert_eq!(offline, None, "given a grace of minutes, and back within {took:?}");
    }
}

#[test]
fn p4_a_reconnect_before_the_old_connection_ends_is_never_shown_offline() {
    let mut site = site();
    site.forget_past();
    let seconds: Vec<ClientId> = site.people.clone().into_iter().take(300).collect();
    let seconds: Vec<ClientId> = seconds
        .into_iter()
        .map(|person| {
            let user = site.crowd.user(person);
            site.crowd.join(user, 0)
        })
        .collect();
    site.open(&seconds);
    site.all_up("the second connections");
    for person in site.people.clone().into_iter().take(300) {
        site.crowd.close(person, false);
    }
    let open = (crate::crowd::site::WATCHERS + site.people.len()) as f64;
    site.shows(&[("rollcall_presence_sessions{kind=\"connection\"}", open)]);
    site.listen(Duration::from_millis(3 * BATCH_MS));
    let offline = |past: &Vec<String>| past.iter().any(|status| status == "offline");
    assert!(!site.watchers.iter().any(|watcher| watcher.past.values().any(offline)));
    assert!(site.all_online());
}
