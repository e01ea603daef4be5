//! Totals become deltas: each byte counts once.

use std::net::IpAddr;

use domain::{AnnounceEvent, ClientKey, RateCeiling, Seconds};
use swarm::{Claim, Outcome, PeerLists, Rules};

use crate::support::*;

const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

fn deltas(outcome: Outcome) -> (u64, u64, u32) {
    (outcome.uploaded_delta, outcome.downloaded_delta, outcome.since_last.0)
}

#[test]
fn heartbeats_are_credited_by_the_difference() {
    let swarms = swarms();
    let first = announce_of(1, START);
    take(&swarms, &first);
    let later = Announce { uploaded: 500, downloaded: 70, now: START + Seconds(1800), ..first };
    assert_eq!(deltas(take(&swarms, &later)), (500, 70, 1800));
    assert_eq!(deltas(take(&swarms, &later)), (0, 0, 0), "the same announce again");
}

#[test]
fn an_unseen_peer_with_running_counters_starts_there() {
    let swarms = swarms();
    let first = Announce { uploaded: 1 << 40, downloaded: 1 << 41, ..announce_of(1, START) };
    assert_eq!(deltas(take(&swarms, &first)), (0, 0, 0));
    let later = Announce { uploaded: (1 << 40) + 9, now: START + Seconds(60), ..first };
    assert_eq!(deltas(take(&swarms, &later)), (9, 0, 60));
}

#[test]
fn counters_that_go_backwards_start_a_new_session_and_credit_nothing() {
    let swarms = swarms();
    let first = Announce { uploaded: 1000, downloaded: 1000, ..announce_of(1, START) };
    let session = take(&swarms, &first).session;
    let restarted = Announce { uploaded: 10, downloaded: 2000, now: START + Seconds(1800), ..first };
    let outcome = take(&swarms, &restarted);
    assert_eq!(deltas(outcome), (0, 0, 0), "neither counter, though one grew");
    assert_ne!(outcome.session, session);
    let later = Announce { uploaded: 15, downloaded: 2001, now: START + Seconds(3600), ..first };
    let outcome_later = take(&swarms, &later);
    assert_eq!(deltas(outcome_later), (5, 1, 1800));
    assert_eq!(outcome_later.session, outcome.session);
}

/// Its `stopped` had a peer id that was unknown here, so the earlier peer is still present, with nothing moved.
#[test]
fn a_client_that_starts_from_zero_under_another_peer_id_begins_a_run() {
    let swarms = swarms();
    let first = Announce { key: ClientKey(5), event: AnnounceEvent::Started, ..announce_of(1, START) };
    let session = take(&swarms, &first).session;
    assert_eq!(take(&swarms, &first).session, session, "sent twice");
    let anew = Announce { peer_id: peer_id(77), now: START + Seconds(60), ..first };
    let outcome = take(&swarms, &anew);
    assert_eq!(deltas(outcome), (0, 0, 0));
    assert_eq!((outcome.session.client, swarms.totals().peers), (session.client, 1));
    assert_ne!(outcome.session.run, session.run);
    assert_eq!(take(&swarms, &anew).session, outcome.session, "sent twice");
}

#[test]
fn a_client_whose_counters_continue_under_another_peer_id_continues() {
    let swarms = swarms();
    let first = Announce { key: ClientKey(5), uploaded: 100, downloaded: 7, ..announce_of(1, START) };
    let session = take(&swarms, &first).session;
    let renamed = Announce {
        peer_id: peer_id(77),
        event: AnnounceEvent::Started,
        uploaded: 130,
        now: START + Seconds(60),
        ..first
    };
    let outcome = take(&swarms, &renamed);
    assert_eq!((deltas(outcome), outcome.session), ((30, 0, 60), session));
}

#[test]
fn a_stop_is_credited_before_the_peer_leaves() {
    let swarms = swarms();
    let first = announce_of(1, START);
    take(&swarms, &first);
    let stop = Announce { uploaded: 77, event: AnnounceEvent::Stopped, now: START + Seconds(5), ..first };
    let outcome = take(&swarms, &stop);
    assert_eq!(deltas(outcome), (77, 0, 5));
    assert_eq!(swarms.totals().peers, 0);
    assert_eq!(deltas(take(&swarms, &stop)), (0, 0, 0), "a repeated stop succeeds and credits nothing");
}

#[test]
fn the_key_continues_a_session_under_a_new_peer_id() {
    let swarms = swarms();
    let first = Announce { key: ClientKey(0xbeef), uploaded: 100, ..announce_of(1, START) };
    let session = take(&swarms, &first).session;
    let renamed = Announce { peer_id: peer_id(999), uploaded: 130, now: START + Seconds(1800), ..first };
    let outcome = take(&swarms, &renamed);
    assert_eq!(deltas(outcome), (30, 0, 1800));
    assert_eq!(outcome.session, session);
    assert_eq!(outcome.counts.leechers, 1, "one client, not two");
}

/// Stop and start in quick succession, over two connections: the stop may come last.
#[test]
fn a_late_stop_of_the_old_peer_id_leaves_the_new_one_in_the_swarm() {
    let swarms = swarms();
    let old = Announce { key: ClientKey(0xbeef), ..announce_of(1, START) };
    let new = Announce { peer_id: peer_id(999), event: AnnounceEvent::Started, ..old };
    take(&swarms, &old);
    take(&swarms, &new);
    let late = take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..old });
    assert_eq!(late.counts.leechers, 1);
}

#[test]
fn an_address_of_the_other_family_expires() {
    let swarms = swarms();
    let over_v4 = announce_of(1, START);
    take(&swarms, &over_v4);
    take(&swarms, &Announce { ip: V6, ..over_v4 });
    for turn in 1..=2 {
        take(&swarms, &Announce { now: START + Seconds(1800 * turn), ..over_v4 });
    }
    let (_, lists) = take_with_peers(&swarms, &announce_of(2, START + Seconds(3600)));
    assert_eq!((lists.v4.len(), lists.v6.len()), (6, 0));
}

#[test]
fn the_same_key_of_another_user_is_another_client() {
    let swarms = swarms();
    let first = Announce { key: ClientKey(5), uploaded: 100, ..announce_of(1, START) };
    take(&swarms, &first);
    let stranger = Announce { key: ClientKey(5), uploaded: 900, ..announce_of(2, START) };
    let outcome = take(&swarms, &stranger);
    assert_eq!(deltas(outcome), (0, 0, 0));
    assert_eq!(outcome.counts.leechers, 2);
}

#[test]
fn a_dual_stack_client_is_one_peer_with_two_addresses_and_counts_once() {
    let swarms = swarms();
    let over_v4 = announce_of(1, START);
    take(&swarms, &over_v4);
    let over_v6 = Announce { ip: V6, ..over_v4 };
    assert_eq!(take(&swarms, &over_v6).counts.leechers, 1);
    let now = START + Seconds(1800);
    assert_eq!(deltas(take(&swarms, &Announce { uploaded: 500, now, ..over_v4 })), (500, 0, 1800));
    assert_eq!(deltas(take(&swarms, &Announce { uploaded: 500, now, ..over_v6 })), (0, 0, 0));
    let (_, lists) = take_with_peers(&swarms, &announce_of(2, now));
    assert_eq!((lists.v4.len(), lists.v6.len()), (6, 18), "both addresses are handed out");
}

/// The two requests of a dual-stack client have slightly different counters and may arrive in either order. Treated as
/// a restart, the later one would lower the baseline and credit the difference twice.
#[test]
fn the_older_half_of_a_dual_stack_announce_does_not_lower_the_baseline() {
    let swarms = swarms();
    let over_v4 = announce_of(1, START);
    take(&swarms, &over_v4);
    let now = START + Seconds(1800);
    let session = take(&swarms, &Announce { uploaded: 1000, now, ..over_v4 }).session;
    let twin = take(&swarms, &Announce { uploaded: 990, ip: V6, now: now + Seconds(1), ..over_v4 });
    assert_eq!((deltas(twin), twin.session), ((0, 0, 1), session));
    let next = take(&swarms, &Announce { uploaded: 1100, now: now + Seconds(1800), ..over_v4 });
    assert_eq!(deltas(next), (100, 0, 1799));
}

#[test]
fn a_leecher_completes_once_and_a_seeder_never() {
    let swarms = swarms();
    let first = announce_of(1, START);
    take(&swarms, &first);
    let done = Announce { left: Some(0), now: START + Seconds(10), ..first };
    let counts = take(&swarms, &done).counts;
    assert_eq!((counts.seeders, counts.leechers, counts.snatches), (1, 0, 1));
    let completed = Announce { event: AnnounceEvent::Completed, ..done };
    assert_eq!(take(&swarms, &completed).counts.snatches, 1);
    assert_eq!(take(&swarms, &completed).counts.snatches, 1, "once");
    let unseen = Announce { event: AnnounceEvent::Completed, left: Some(0), ..announce_of(2, START) };
    let counts = take(&swarms, &unseen).counts;
    assert_eq!((counts.seeders, counts.snatches), (2, 1), "never seen leeching");
}

#[test]
fn an_announce_that_comes_too_soon_is_credited_but_gets_no_peers() {
    let swarms = swarms();
    take(&swarms, &announce_of(2, START));
    let first = announce_of(1, START);
    let (outcome, lists) = take_with_peers(&swarms, &first);
    assert_eq!((outcome.too_soon, lists.v4.len()), (false, 6));
    let soon = Announce { uploaded: 5, now: START + Seconds(899), ..first };
    let (outcome, lists) = take_with_peers(&swarms, &soon);
    assert_eq!((outcome.too_soon, outcome.uploaded_delta, lists.v4.len()), (true, 5, 0));
    let in_time = Announce { now: START + Seconds(899 + 900), ..soon };
    assert!(!take(&swarms, &in_time).too_soon);
}

#[test]
fn a_first_completed_the_other_family_and_every_stop_are_never_too_soon() {
    let swarms = swarms();
    let first = announce_of(1, START);
    take(&swarms, &first);
    let soon = START + Seconds(2);
    assert!(!take(&swarms, &Announce { ip: V6, now: soon, ..first }).too_soon, "first over IPv6");
    assert!(take(&swarms, &Announce { ip: V6, now: soon + Seconds(1), ..first }).too_soon, "again over IPv6");
    let completed = Announce { event: AnnounceEvent::Completed, left: Some(0), now: soon, ..first };
    assert!(!take(&swarms, &completed).too_soon);
    assert!(take(&swarms, &completed).too_soon, "the second completed");
    assert!(!take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..completed }).too_soon);
    let next_turn = START + Seconds(1800);
    take(&swarms, &Announce { now: next_turn, ..first });
    assert!(!take(&swarms, &Announce { ip: V6, now: next_turn, ..first }).too_soon);
}

#[test]
fn j8_a_claim_beyond_the_ceiling_is_credited_up_to_it_in_a_new_run() {
    let swarms = swarms();
    let rules = Rules { ceiling: RateCeiling { bytes_per_s: 1000 }, ..RULES };
    let first = announce_of(1, START);
    let take_by = |announce: &Announce| announce.send(&swarms, &rules, &mut PeerLists::default()).unwrap();
    let before = take_by(&first);
    let now = START + Seconds(90);
    let outcome = take_by(&Announce { uploaded: 1_000_000, downloaded: 500, now, ..first });
    // 90 seconds and ten of slack, at a thousand bytes each.
    assert_eq!(deltas(outcome), (100_000, 500, 90));
    assert_eq!(outcome.implausible, Some(Claim { uploaded: 1_000_000, downloaded: 500 }));
    assert_eq!(outcome.session.client, before.session.client);
    assert_ne!(outcome.session.run, before.session.run);
    // The next announce is measured from there.
    let now = now + Seconds(90);
    let later = take_by(&Announce { uploaded: 1_000_700, downloaded: 500, now, ..first });
    assert_eq!((deltas(later), later.implausible), ((700, 0, 90), None));
    assert_eq!(later.session, outcome.session);
}

/// A client may stop and restart within a second, under the same key and with counters at zero.
#[test]
fn a_restarted_client_is_the_same_client_in_another_run() {
    let swarms = swarms();
    let first = Announce { key: ClientKey(9), ..announce_of(1, START) };
    let run = take(&swarms, &first).session;
    take(&swarms, &Announce { uploaded: 500, event: AnnounceEvent::Stopped, ..first });
    let again = take(&swarms, &Announce { peer_id: peer_id(77), event: AnnounceEvent::Started, ..first });
    assert_eq!(again.session.client, run.client);
    assert_ne!(again.session.run, run.run);
}

#[test]
fn j8_a_completion_counts_once_however_often_it_is_sent() {
    let swarms = swarms();
    let first = announce_of(1, START);
    take(&swarms, &first);
    let completed = Announce { left: Some(0), event: AnnounceEvent::Completed, ..first };
    assert!(take(&swarms, &completed).completed);
    let again = take(&swarms, &completed);
    assert!(!again.completed);
    assert_eq!(again.counts.snatches, 1);
}

const MIB: u64 = 1 << 20;

fn seeder_of(number: u64, at: u32, uploaded: u64) -> Announce {
    Announce { left: Some(0), uploaded, ..announce_of(number, START + Seconds(at)) }
}

fn leecher_of(number: u64, at: u32) -> Announce {
    announce_of(number, START + Seconds(at))
}

#[test]
fn upload_without_a_leecher_of_another_user_is_reported_and_credited() {
    let swarms = swarms();
    take(&swarms, &seeder_of(1, 0, 0));
    let claimed = take(&swarms, &seeder_of(1, 1800, 5 * MIB));
    assert_eq!((claimed.upload_without_leechers, claimed.uploaded_delta), (5 * MIB, 5 * MIB));
    assert_eq!(claimed.uncredited_upload, 0);
    // A leecher of the same user does not count, whether it stays or leaves.
    let own = Announce { user: user(1), ..leecher_of(2, 1900) };
    take(&swarms, &own);
    assert_eq!(take(&swarms, &seeder_of(1, 3600, 6 * MIB)).upload_without_leechers, MIB);
    take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..own });
    assert_eq!(take(&swarms, &seeder_of(1, 5400, 7 * MIB)).upload_without_leechers, MIB);
    assert_eq!(take(&swarms, &seeder_of(1, 7200, 7 * MIB)).upload_without_leechers, 0, "nothing was claimed");
}

#[test]
fn upload_with_a_leecher_of_another_user_at_any_moment_since_is_fine() {
    let swarms = swarms();
    take(&swarms, &seeder_of(1, 0, 0));
    take(&swarms, &leecher_of(2, 10));
    assert_eq!(take(&swarms, &seeder_of(1, 1800, MIB)).upload_without_leechers, 0, "it is there");
    take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..leecher_of(2, 1810) });
    assert_eq!(take(&swarms, &seeder_of(1, 3600, 2 * MIB)).upload_without_leechers, 0, "it left since");
    take(&swarms, &leecher_of(3, 3700));
    take(&swarms, &Announce { event: AnnounceEvent::Completed, left: Some(0), ..leecher_of(3, 3710) });
    assert_eq!(take(&swarms, &seeder_of(1, 5400, 3 * MIB)).upload_without_leechers, 0, "it completed since");
    assert_eq!(take(&swarms, &seeder_of(1, 7200, 4 * MIB)).upload_without_leechers, MIB);
    // A partial seeder is not complete: it counts as a leecher.
    take(&swarms, &Announce { left: Some(1), ..leecher_of(4, 7300) });
    assert_eq!(take(&swarms, &seeder_of(1, 9000, 5 * MIB)).upload_without_leechers, 0);
    expire(&swarms, START + Seconds(9000 + 700));
    assert_eq!(swarms.scrape(&TORRENT).leechers, 0);
    assert_eq!(take(&swarms, &seeder_of(1, 9900, 6 * MIB)).upload_without_leechers, 0, "it expired since");
}

/// Announces before this process, or while replication was interrupted, are unknown here.
#[test]
fn upload_in_an_unknown_period_is_not_reported() {
    let swarms = swarms();
    take(&swarms, &seeder_of(1, 0, 0));
    swarms.hold_remote_peers(true);
    assert_eq!(take(&swarms, &seeder_of(1, 1800, MIB)).upload_without_leechers, 0);
    swarms.hold_remote_peers(false);
    take(&swarms, &seeder_of(2, 1900, 0));
    assert_eq!(take(&swarms, &seeder_of(1, 3600, 2 * MIB)).upload_without_leechers, MIB);
    let restarted = swarm::Swarms::new(START + Seconds(3700), 1, domain::RunId(9));
    swarms.copy(|bytes| restarted.restore(bytes, &RULES, |_, _| {}).map(|_| ())).unwrap();
    assert_eq!(take(&restarted, &seeder_of(1, 5400, 3 * MIB)).upload_without_leechers, 0);
    assert_eq!(take(&restarted, &seeder_of(1, 7200, 4 * MIB)).upload_without_leechers, MIB);
}

#[test]
fn upload_without_leechers_can_be_left_uncredited_and_then_begins_a_new_run() {
    let swarms = swarms();
    let rules = Rules { credit_upload_without_leechers: false, ..RULES };
    let take = |announce: &Announce| {
        announce.send(&swarms, &rules, &mut swarm::PeerLists::default()).expect("the announce is fine")
    };
    let first = take(&seeder_of(1, 0, 0));
    let claimed = take(&Announce { downloaded: 10, ..seeder_of(1, 1800, 5 * MIB) });
    assert_eq!((claimed.uploaded_delta, claimed.downloaded_delta), (0, 10));
    assert_eq!((claimed.upload_without_leechers, claimed.uncredited_upload), (5 * MIB, 5 * MIB));
    assert_ne!(claimed.session.run, first.session.run);
    take(&leecher_of(2, 1900));
    take(&Announce { event: AnnounceEvent::Stopped, ..leecher_of(2, 3500) });
    let fine = take(&Announce { downloaded: 10, ..seeder_of(1, 3600, 6 * MIB) });
    assert_eq!((fine.uploaded_delta, fine.uncredited_upload), (MIB, 0));
    assert_eq!(fine.session, claimed.session);
    let stopped =
        take(&Announce { downloaded: 10, event: AnnounceEvent::Stopped, ..seeder_of(1, 7200, 8 * MIB) });
    assert_eq!((stopped.uploaded_delta, stopped.uncredited_upload), (0, 2 * MIB));
}
