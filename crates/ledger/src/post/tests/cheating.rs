//! Dishonest claims are credited no more than the token buckets allow (J8).
//!
//! The tracker's swarms are real: they derive runs and deltas from the announces.

use std::net::{IpAddr, Ipv4Addr};

use domain::{Announce, ClientKey, Families, NodeId, PeerId, RunId};
use swarm::{PeerLists, Swarms};

use super::several_nodes::{self, written};
use super::simulator::info_hash;
use super::*;

const GB: u64 = 1_000_000_000;
/// Ten seconds at the default of 10 Gbit/s.
const CLIENT_SLACK: u128 = 12_500_000_000;
/// Ten seconds at twice that.
const USER_SLACK: u128 = 25_000_000_000;

/// Number of random histories.
const SEEDS: u64 = 1000;

/// A tracker and its ledger.
struct Site {
    swarms: Swarms,
    state: AccountState,
    risks: Vec<RiskEvent>,
    entries: u64,
}

impl Site {
    fn new() -> Site {
        let swarms = Swarms::new(UnixTime(BEGIN), 1, RunId(1));
        Site { swarms, state: AccountState::default(), risks: Vec::new(), entries: 0 }
    }

    fn announce(&mut self, announce: &Announce) {
        let outcome = self
            .swarms
            .announce(announce, &super::several_nodes::terms(), &mut PeerLists::default())
            .unwrap();
        let number = (1..=3).find(|number| info_hash(*number) == announce.info_hash).unwrap();
        let entry = TrafficEntry {
            info_hash: announce.info_hash,
            torrent: Some(torrent(number)),
            port: announce.port,
            ..written(NodeId(7 << 32), announce, &outcome)
        };
        self.entries += 1;
        let posted = post_all(&mut self.state, &[arrival(entry, self.entries)]);
        assert_eq!(posted.rejected, []);
        self.risks.extend(posted.risks);
    }

    fn uploaded(&self) -> u128 {
        self.state.users[&user(1)].uploaded
    }

    fn has_reported(&self, kind: RiskKind) -> bool {
        self.risks.iter().any(|risk| risk.kind == kind)
    }
}

/// A seeder of the first torrent with this number as its peer id.
fn seeder(client: u8, at: u32, uploaded: u64) -> Announce {
    Announce {
        info_hash: info_hash(1),
        passkey: None,
        peer_id: PeerId([client; 20]),
        key: ClientKey::NONE,
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 6881,
        uploaded,
        downloaded: 0,
        left: Some(0),
        event: AnnounceEvent::None,
        numwant: None,
        families: Families::V4,
        now: UnixTime(BEGIN + at),
    }
}

fn with_event(event: AnnounceEvent, announce: Announce) -> Announce {
    Announce { event, ..announce }
}

#[test]
fn j8_many_announces_at_once_earn_the_slack_once() {
    let mut site = Site::new();
    site.announce(&with_event(AnnounceEvent::Started, seeder(1, 0, 0)));
    (1..=500).for_each(|n| site.announce(&seeder(1, 0, n * 12_400_000_000)));
    assert_eq!(site.uploaded(), CLIENT_SLACK);
    assert!(site.has_reported(RiskKind::ClientRate));
}

#[test]
fn j8_counters_that_alternate_earn_the_slack_once() {
    let mut site = Site::new();
    for _ in 0..50 {
        site.announce(&seeder(1, 0, u64::MAX));
        site.announce(&seeder(1, 0, 0));
    }
    assert!(site.uploaded() <= CLIENT_SLACK, "{}", site.uploaded());
    // Also beyond the number of stored runs.
    for _ in 0..500 {
        site.announce(&seeder(1, 1, 1 << 63));
        site.announce(&seeder(1, 1, 0));
    }
    assert!(site.uploaded() <= CLIENT_SLACK + u128::from(5 * GB / 4), "{}", site.uploaded());
}

#[test]
fn j8_stops_of_an_unknown_client_earn_nothing() {
    let mut site = Site::new();
    (0..=200).for_each(|n| {
        site.announce(&with_event(AnnounceEvent::Stopped, seeder(1, n, u64::from(n) * 4 * GB)))
    });
    assert_eq!(site.uploaded(), 0);
}

#[test]
fn l2_growth_between_a_stop_and_the_next_start_earns_nothing() {
    let mut site = Site::new();
    site.announce(&with_event(AnnounceEvent::Started, seeder(1, 0, 0)));
    site.announce(&seeder(1, 100, GB));
    site.announce(&with_event(AnnounceEvent::Stopped, seeder(1, 200, 2 * GB)));
    site.announce(&with_event(AnnounceEvent::Started, seeder(1, 300, 3 * GB)));
    site.announce(&seeder(1, 400, 4 * GB));
    assert_eq!(site.uploaded(), u128::from(3 * GB));
}

/// A tracker that lost the client's state receives its `stopped`: what it moved since its last announce counts.
#[test]
fn l6_a_stop_at_a_restarted_tracker_counts() {
    let mut site = Site::new();
    site.announce(&with_event(AnnounceEvent::Started, seeder(1, 0, 0)));
    site.announce(&seeder(1, 100, GB));
    site.swarms = Swarms::new(UnixTime(BEGIN + 150), 2, RunId(1000));
    site.announce(&with_event(AnnounceEvent::Stopped, seeder(1, 200, 2 * GB)));
    assert_eq!(site.uploaded(), u128::from(2 * GB));
}

#[test]
fn j8_many_clients_of_a_user_share_one_limit() {
    let mut site = Site::new();
    for torrent in 1..=3 {
        for client in 1..=5 {
            let on = |announce| Announce { info_hash: info_hash(torrent), ..announce };
            site.announce(&on(with_event(AnnounceEvent::Started, seeder(client, 0, 0))));
            site.announce(&on(seeder(client, 0, 12_400_000_000)));
        }
    }
    assert_eq!(site.uploaded(), USER_SLACK);
    assert!(site.has_reported(RiskKind::UserRate));
    assert_explained(&site.state);
}

#[test]
fn j8_what_is_withheld_has_no_bonus() {
    let double = Multipliers::new([super::several_nodes::multiplier((200, 0), (0, None))]);
    let mut state = AccountState::default();
    let lie = |n: u64| ours_at(n, n * 12_400_000_000);
    (0..=100).for_each(|n| drop(post_under(&double, &mut state, &[arrival(lie(n), n)])));
    let figures = state.users[&user(1)];
    assert_eq!((figures.uploaded, figures.credited_uploaded()), (CLIENT_SLACK, 2 * CLIENT_SLACK));
}

fn ours_at(n: u64, uploaded: u64) -> TrafficEntry {
    TrafficEntry {
        uploaded_delta: if n == 0 { 0 } else { 12_400_000_000 },
        since_last: Some(Seconds(0)),
        ..ours(0, 1, uploaded)
    }
}

#[test]
fn l4_seeding_time_is_wall_clock_however_many_clients_seed() {
    let mut site = Site::new();
    for at in (0..=30).step_by(10) {
        (1..=5).for_each(|client| site.announce(&seeder(client, at, 0)));
    }
    assert_eq!(site.state.users[&user(1)].seeding_s, 30);
}

#[test]
fn l4_a_client_on_port_zero_earns_no_seeding_time() {
    let mut site = Site::new();
    [0, 10, 20].iter().for_each(|at| site.announce(&Announce { port: 0, ..seeder(1, *at, 0) }));
    assert_eq!(site.state.users[&user(1)].seeding_s, 0);
}

#[test]
fn l4_an_absence_longer_than_a_session_earns_no_time() {
    let long = TrafficEntry { since_last: Some(Seconds(28_401)), ..one(AnnounceEvent::None, 0, 0) };
    assert_eq!(account_after(&[long]).figures.seeding_s, 0);
}

#[test]
fn l5_invented_clients_complete_a_torrent_once() {
    let mut site = Site::new();
    for client in 1..=200 {
        let announce = Announce { left: Some(5), ..seeder(client, 0, 0) };
        site.announce(&with_event(AnnounceEvent::Started, announce));
        site.announce(&with_event(AnnounceEvent::Completed, seeder(client, 0, 0)));
        site.announce(&with_event(AnnounceEvent::Stopped, seeder(client, 0, 0)));
    }
    for figures in [site.state.users[&user(1)], site.state.torrents[&torrent(1)]] {
        assert_eq!((figures.completed_count, figures.repeated_count), (1, 199));
    }
    assert!(site.has_reported(RiskKind::CompletedWithoutDownload));
}

#[test]
fn left_that_falls_without_a_download_is_reported() {
    let mut site = Site::new();
    let leecher = |at, left, downloaded| Announce { left: Some(left), downloaded, ..seeder(1, at, 0) };
    site.announce(&leecher(0, 10 * GB, 0));
    site.announce(&leecher(100, 9 * GB, GB));
    assert_eq!(site.risks, []);
    site.announce(&leecher(200, GB, 2 * GB));
    assert!(site.has_reported(RiskKind::LeftWithoutDownload));
    let risk = site.risks[0];
    assert_eq!((risk.downloaded_claimed, risk.downloaded_credited), (8 * GB, GB));
}

#[test]
fn upload_that_runs_ahead_of_download_is_reported_each_time_it_doubles() {
    let mut site = Site::new();
    site.announce(&with_event(AnnounceEvent::Started, seeder(1, 0, 0)));
    (1..=64).for_each(|n| site.announce(&seeder(1, n * 100, u64::from(n) << 30)));
    let ahead = site.risks.iter().filter(|risk| risk.kind == RiskKind::UploadAheadOfDownload).count();
    assert_eq!((ahead, site.risks.len()), (7, 7), "at 1, 2, 4 … 64 GiB");
}

/// Stops at one node or both and continues, within a second or a few: in any state of replication, no byte is credited
/// that the counters did not show. A client that restarts with counters at zero takes a few seconds, and by then
/// replication is complete.
#[test]
fn l6_stopping_at_two_nodes_and_going_on_counts_no_byte_twice() {
    let (mut credited_in_all, mut moved_in_all) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut site = several_nodes::Site::new(2, seed);
        let (mut now, mut uploaded, mut moved, mut is_running) = (0, 0, 0, false);
        for _ in 0..random.u32(4..16) {
            now += if random.u8(..4) == 0 { random.u32(1..3) } else { 0 };
            uploaded += u64::from(is_running) * random.u64(..2) * random.u64(1..5_000_000);
            let event = match random.u8(..3) {
                _ if !is_running => AnnounceEvent::Started,
                0 => AnnounceEvent::Stopped,
                _ => AnnounceEvent::None,
            };
            is_running = event != AnnounceEvent::Stopped;
            if event == AnnounceEvent::Started && random.u8(..3) == 0 {
                moved += std::mem::take(&mut uploaded);
                now += 3;
                site.read_all();
            }
            let announce = with_event(event, seeder(1, now, uploaded));
            let is_anew = event == AnnounceEvent::Started && uploaded == 0;
            let first = random.usize(..2);
            for node in [first, 1 - first].into_iter().take(random.usize(1..=2)) {
                site.read_some(node, &mut random);
                site.receive(node, &announce);
            }
            if is_anew {
                site.read_all();
            }
        }
        moved += uploaded;
        let mut state = AccountState::default();
        assert_eq!(post_all(&mut state, &site.arrivals()).rejected, []);
        let credited = state.users[&user(1)].uploaded;
        assert!(credited <= u128::from(moved), "seed {seed}: {credited} for {moved}");
        credited_in_all += credited;
        moved_in_all += u128::from(moved);
    }
    // What is moved before the first announce to a node is unknown, and these histories are short.
    assert!(credited_in_all * 10 > moved_in_all * 7, "{credited_in_all} for {moved_in_all}");
}

/// Two consumers apply entries of another producer in the wrong order.
#[test]
fn j3_a_foreign_entry_that_comes_late_is_credited_for_its_time() {
    let foreign = |at| TrafficEntry {
        uploaded_delta: 36 * GB,
        since_last: Some(Seconds(1800)),
        ..one(AnnounceEvent::None, at, 0)
    };
    let mut state = AccountState::default();
    for (at, seq) in [(5400, 3), (3600, 2), (1800, 1)] {
        let posted = post_all(&mut state, &[arrival(foreign(at), seq)]);
        assert!(kinds(&posted).iter().all(|kind| *kind == RiskKind::UploadAheadOfDownload), "{posted:?}");
    }
    assert_eq!(state.users[&user(1)].uploaded, 3 * u128::from(36 * GB));
}

/// Peers that time out one after the other give a new user no tokens.
#[test]
fn j8_timeouts_do_not_fill_the_bucket_of_a_user() {
    let mut state = AccountState::default();
    post_all(&mut state, &[arrival(TrafficEntry { since_last: Some(Seconds(0)), ..ours(0, 1, 0) }, 0)]);
    for n in 1..=100 {
        let silent = TrafficEntry {
            event: AnnounceEvent::Stopped,
            cause: Cause::Timeout,
            since_last: Some(Seconds(2400)),
            ..ours(2410, 1, 0)
        };
        post_all(&mut state, &[arrival(silent, n)]);
    }
    let limit =
        crate::BucketLimit::of_user(RateCeiling { bytes_per_s: 2 * RateCeiling::DEFAULT.bytes_per_s });
    let all = Counters { uploaded: u64::MAX, downloaded: 0 };
    let mut tokens = state.user_buckets[&user(1)].tokens;
    // The slack, and the ten seconds in which its peers announced.
    assert_eq!(u128::from(tokens.grant(UnixTime(BEGIN), all, &limit).uploaded), 2 * USER_SLACK);
}

/// The tracker excludes upload without leechers from credit (`limits.credit_upload_without_leechers`).
#[test]
fn excluded_upload_is_not_credited_though_the_counters_contain_it() {
    let mut state = AccountState::default();
    let reported =
        |at, uploaded, uncredited_upload| TrafficEntry { uncredited_upload, ..ours(at, 1, uploaded) };
    let entries = [reported(0, 0, 0), reported(100, 5 * GB, 5 * GB), reported(200, 7 * GB, 0)];
    for (entry, seq) in entries.into_iter().zip(0..) {
        post_all(&mut state, &[arrival(entry, seq)]);
    }
    assert_eq!(state.users[&user(1)].uploaded, u128::from(2 * GB));
    assert_explained(&state);
}
