//! The program is killed or stopped while all users are online (P11).

use domain::clock::{Clock, SystemClock};
use simulate::websocket::{ClientId, CloseReason};

use crate::crowd::site::{FIRST_PERSON, Site, WATCHERS, builder, people_count};

/// Time for users to reconnect. Long enough for some of them on a busy machine, and no longer than a test may wait
/// for the others to become offline.
fn pending_s() -> usize {
    10 + people_count() / 1_000
}

/// Each answer to a ping is remembered, within about a second: `presence.ping_s` and a little.
const LAST_SEEN_BEHIND_MAX_S: u64 = 25 + 2;

/// Everything that is to be known after a crash is in the database.
fn until_remembered(site: &mut Site) {
    site.shows(&[("rollcall_presence_writer_waiting_rows", 0.0)]);
}

/// Who returns: a quarter, in pairs of neighbours, so that every watcher sees some of them and some of the others.
fn returns(position: usize) -> bool {
    position % 8 < 2
}

fn now() -> u64 {
    u64::from(SystemClock.now().0)
}

#[test]
fn p11_after_a_kill_users_are_pending_then_online_or_offline_since_last_seen() {
    let began = now();
    let mut site = Site::full(builder().set("presence.pending_s", pending_s()));
    until_remembered(&mut site);
    site.server.kill();
    let killed = now();
    site.until("every client to notice", |site| site.crowd.up() == 0);
    assert!(site.endings.drain(..).all(|(_, ending)| ending == CloseReason::Broken));

    site.server.start_again();
    site.forget_past();
    site.open_watchers();
    site.until("the snapshots", |site| site.watchers.iter().all(|watcher| watcher.has_snapshot()));
    assert!(
        site.all_are("pending"),
        "pending are {:?}",
        site.watchers.iter().map(|w| w.count("pending")).collect::<Vec<_>>()
    );

    let (returning, staying_away): (Vec<ClientId>, Vec<ClientId>) =
        site.people.iter().partition(|person| returns(person.0 - WATCHERS));
    site.open(&returning);
    site.all_up("some of them to come back");
    let away = staying_away.len();
    site.until("the others to be given up", |site| {
        site.watchers.iter().map(|watcher| watcher.count("offline")).sum::<usize>() == away * WATCHERS / 2
    });
    let returned = |id: u64| returns((id - FIRST_PERSON) as usize);
    for watcher in &site.watchers {
        for (id, past) in &watcher.past {
            let expected = if returned(*id) { ["pending", "online"] } else { ["pending", "offline"] };
            assert_eq!(
                past,
                &expected,
                "user {id}, who did{} return",
                if returned(*id) { "" } else { " not" }
            );
        }
        for (id, shown) in watcher.shown.iter().filter(|(id, _)| !returned(**id)) {
            let last_seen = shown.last_seen.unwrap();
            assert!(
                (began.max(killed - LAST_SEEN_BEHIND_MAX_S)..=killed).contains(&last_seen),
                "user {id} was last seen {last_seen}, killed {killed}"
            );
        }
    }
}

#[test]
fn p11_after_a_clean_stop_no_returning_user_is_shown_offline() {
    let mut site = Site::full(builder().set("presence.pending_s", 300));
    let status = site.server.stop();
    assert!(status.success(), "{status}");
    site.until("every client to be disconnected", |site| site.crowd.up() == 0);
    let told = site.endings.drain(..).filter(|(_, ending)| *ending == CloseReason::Code(3001)).count();
    assert_eq!(told, site.people.len() + WATCHERS, "every client receives the shutdown disconnect");
    // Up to here no user was shown offline: the watchers were disconnected too.
    assert!(site.all_online());

    site.server.start_again();
    site.forget_past();
    site.open_watchers();
    site.open(&site.people.clone());
    site.all_up("every client to reconnect");
    site.until("all users to be online again", Site::all_online);
    for (id, past) in site.watchers.iter().flat_map(|watcher| &watcher.past) {
        assert!(!past.iter().any(|status| status == "offline"), "user {id} was shown as {past:?}");
    }
}
