//! The rules of the ledger, on each database.

use std::sync::Arc;

use database::{Database, Migrations};
use domain::clock::{Clock, ManualClock};
use domain::{
    AnnounceEvent, Cause, ClientId, NodeId, Passkey, PeerId, RiskKind, RunId, Seconds, SessionId, UnixTime,
};
use journal::{DeliveredEntry, EntryId, Totals, TrafficEntry, View, ViewError};
use ledger::{
    ClientState, Discount, DiscountScope, HitAndRunPolicy, HitAndRunStatus, LedgerError, LedgerSettings,
    NewMultiplier, Percent, Scope,
};

use crate::support::simulator::{BEGIN, arrivals_of, entry, info_hash, torrent, user};
use crate::support::{
    self, Known, Place, Risks, account, apply, batch, boundless, clock, figures, open, open_with,
};

const PEER: PeerId = PeerId(*b"-TR3000-abcdefghijkl");

/// An entry of another producer, of user 1 on torrent 1.
fn foreign(at: u32, event: AnnounceEvent, left: u64) -> TrafficEntry {
    let entry = entry(1, 1, PEER, UnixTime(BEGIN + at), event, left);
    TrafficEntry { since_last: Some(Seconds(100)), ..entry }
}

fn moving(at: u32, uploaded: u64, downloaded: u64) -> TrafficEntry {
    TrafficEntry {
        uploaded_delta: uploaded,
        downloaded_delta: downloaded,
        ..foreign(at, AnnounceEvent::None, 5)
    }
}

/// An entry of our tracker.
fn ours(at: u32, run: u32, uploaded: u64) -> TrafficEntry {
    let session = SessionId { client: ClientId(u64::MAX - 7), run: RunId(run) };
    TrafficEntry {
        node: Some(NodeId(u64::MAX)),
        totals: Some(Totals { session, uploaded, downloaded: 0 }),
        ..foreign(at, AnnounceEvent::None, 0)
    }
}

async fn l1_users_and_torrents_are_found_by_passkey_and_infohash(place: Place) {
    let passkey: Passkey = "0123456789abcdef".parse().unwrap();
    let mut known = Known::default();
    known.users.insert(passkey, user(1));
    known.torrents.insert(info_hash(1), torrent(1));
    let ledger = open_with(&place, boundless(), known, clock(), Risks::default()).await;
    let by_passkey = TrafficEntry { passkey: Some(passkey), user: None, torrent: None, ..moving(0, 10, 1) };
    let unknown_passkey: Passkey = "fedcba9876543210".parse().unwrap();
    let of_unknown_user = TrafficEntry { passkey: Some(unknown_passkey), ..by_passkey };
    let of_nothing = TrafficEntry { info_hash: info_hash(99), ..by_passkey };
    let gone_torrent = TrafficEntry { torrent: None, info_hash: info_hash(98), ..ours(5, 1, 9) };
    let arrivals = arrivals_of(vec![by_passkey, of_unknown_user, of_nothing, gone_torrent, moving(9, 5, 5)]);
    let rejected = apply(&ledger, "a", &arrivals).await;
    let reasons: Vec<_> = rejected.iter().map(|r| (r.index, r.reason.as_str())).collect();
    let unknown = |number| format!("no torrent has the infohash {}", info_hash(number));
    assert_eq!(
        reasons,
        [(1, "no user has this passkey"), (2, unknown(99).as_str()), (3, unknown(98).as_str())]
    );
    // The rest is applied, and a rejected entry is applied when it comes again and is valid.
    assert_eq!((figures(&ledger, 1).await.uploaded, figures(&ledger, 1).await.downloaded), (15, 6));
    assert_eq!(ledger.counts().rejected, 3);
    let now_known = TrafficEntry { user: Some(user(1)), ..arrivals[1].entry };
    apply(&ledger, "a", &[DeliveredEntry { entry: now_known, ..arrivals[1] }]).await;
    assert_eq!(figures(&ledger, 1).await.uploaded, 25);
}

async fn l2_sums_are_exact_far_beyond_64_bits(place: Place) {
    let ledger = open_with(&place, boundless(), Known::default(), clock(), Risks::default()).await;
    let most = u64::MAX - 3;
    let arrivals = arrivals_of((0..50).map(|at| moving(at, most, most)).collect());
    apply(&ledger, "a", &arrivals[..20]).await;
    apply(&ledger, "a", &arrivals[20..]).await;
    let expected = 50 * u128::from(most);
    let sums = figures(&ledger, 1).await;
    assert_eq!((sums.uploaded, sums.downloaded), (expected, expected));
    assert_eq!(sums.uploaded.to_string(), "922337203685477580600");
    let of_torrent = ledger.torrent(torrent(1)).await.unwrap().unwrap();
    assert_eq!(of_torrent, sums);
    assert_eq!(account(&ledger, 1, 1).await.figures, sums);
    // Also counters at their limit.
    let arrivals = arrivals_of(vec![ours(60, 1, 0), ours(70, 1, u64::MAX)]);
    apply(&ledger, "a", &arrivals).await;
    assert_eq!(figures(&ledger, 1).await.uploaded, expected + u128::from(u64::MAX));
}

/// At a time at which the clients of short tests have not expired.
async fn open_soon(place: &Place) -> ledger::Ledger {
    let clock = ManualClock::at(UnixTime(BEGIN + 500));
    open_with(place, LedgerSettings::default(), Known::default(), clock, Risks::default()).await
}

async fn l3_l4_l5_states_times_and_completion_survive_a_restart(place: Place) {
    let ledger = open_soon(&place).await;
    let arrivals = arrivals_of(vec![
        foreign(0, AnnounceEvent::Started, 50),
        foreign(100, AnnounceEvent::None, 20),
        foreign(200, AnnounceEvent::Completed, 0),
        foreign(300, AnnounceEvent::None, 0),
    ]);
    apply(&ledger, "a", &arrivals[..2]).await;
    let leeching = account(&ledger, 1, 1).await;
    assert!(leeching.is_leeching() && !leeching.is_seeding() && !leeching.is_completed());
    assert_eq!((leeching.left, leeching.figures.leeching_s), (Some(20), 100));
    apply(&ledger, "a", &arrivals[2..]).await;
    drop(ledger);

    let ledger = open_soon(&place).await;
    let seeding = account(&ledger, 1, 1).await;
    assert!(seeding.is_seeding() && !seeding.is_leeching() && seeding.is_completed());
    assert_eq!(seeding.completed_at, Some(UnixTime(BEGIN + 200)));
    assert_eq!((seeding.figures.leeching_s, seeding.figures.seeding_s), (200, 100));
    assert_eq!(
        (seeding.figures.first_seen, seeding.figures.last_seen),
        (Some(UnixTime(BEGIN)), Some(UnixTime(BEGIN + 300)))
    );
    assert_eq!((seeding.client(), seeding.peer_id), ("-TR3000-".to_owned(), Some(PEER)));
    let stop = arrivals_of(vec![foreign(400, AnnounceEvent::Stopped, 0)]);
    apply(&ledger, "b", &stop).await;
    let gone = account(&ledger, 1, 1).await;
    assert!(!gone.is_seeding() && gone.is_completed());
    assert_eq!((gone.figures.seeding_s, gone.figures.completed_count), (200, 1));
}

async fn a_client_without_a_known_left_leeches(place: Place) {
    let ledger = open_soon(&place).await;
    let arrivals = arrivals_of(vec![TrafficEntry { left: None, ..foreign(0, AnnounceEvent::None, 0) }]);
    apply(&ledger, "a", &arrivals).await;
    let account = account(&ledger, 1, 1).await;
    assert!(account.is_leeching());
    assert_eq!(account.left, None);
}

async fn j8_claims_beyond_the_ceiling_are_reported_and_not_credited(place: Place) {
    let risks = Risks::default();
    let ledger = open_with(&place, LedgerSettings::default(), Known::default(), clock(), risks.clone()).await;
    let jump = arrivals_of(vec![ours(0, 1, 0), ours(10, 2, u64::MAX)]);
    apply(&ledger, "a", &jump).await;
    let allowed = u128::from(LedgerSettings::default().ceiling.allowance(Seconds(10)));
    assert_eq!(figures(&ledger, 1).await.uploaded, allowed);
    let reported = risks.0.lock().unwrap().clone();
    let kinds: Vec<_> = reported.iter().map(|risk| risk.kind).collect();
    assert_eq!(kinds, [RiskKind::ClientRate, RiskKind::UploadAheadOfDownload]);
    assert_eq!(
        (reported[0].uploaded_claimed, u128::from(reported[0].uploaded_credited)),
        (u64::MAX, allowed)
    );
    assert_eq!(
        (reported[0].user, reported[0].torrent, reported[0].peer_id),
        (user(1), Some(torrent(1)), PEER)
    );
    assert_eq!(ledger.counts().risks, 2);
}

fn terms(scope: Scope, upload: u32, download: u32, span: (u32, Option<u32>)) -> NewMultiplier {
    NewMultiplier {
        scope,
        upload: Percent::new(upload).unwrap(),
        download: Percent::new(download).unwrap(),
        starts_at: UnixTime(BEGIN + span.0),
        ends_at: span.1.map(|end| UnixTime(BEGIN + end)),
        note: "Frühjahrsputz: it's \"free\"".to_owned(),
    }
}

async fn multipliers_count_apart_and_from_their_start_until_their_end(place: Place) {
    let ledger = open(&place).await;
    let site = ledger.add_multiplier(terms(Scope::Site, 200, 50, (100, Some(200)))).await.unwrap();
    let own = ledger.add_multiplier(terms(Scope::User(user(1)), 150, 0, (150, None))).await.unwrap();
    assert!(own.id > site.id);
    assert_eq!(ledger.multipliers().await.unwrap(), [site.clone(), own.clone()]);
    // Before, at the start, with the second one, at the first one's end.
    let arrivals = arrivals_of(vec![
        moving(99, 100, 100),
        moving(100, 100, 100),
        moving(150, 100, 100),
        moving(200, 100, 100),
    ]);
    apply(&ledger, "a", &arrivals).await;
    let sums = figures(&ledger, 1).await;
    assert_eq!((sums.uploaded, sums.downloaded), (400, 400));
    assert_eq!(sums.bonus_uploaded_x100, (100 + 100 + 50) * 100);
    assert_eq!(sums.bonus_downloaded_x100, -(50 + 100 + 100) * 100);
    assert_eq!((sums.credited_uploaded(), sums.credited_downloaded()), (650, 150));
    assert!(ledger.end_multiplier(own.id).await.unwrap());
    assert!(!ledger.end_multiplier(own.id).await.unwrap());
    let after = support::simulator::SPAN_MAX + 1;
    apply(&ledger, "a", &arrivals_of(vec![moving(after, 100, 100)])).await;
    assert_eq!(figures(&ledger, 1).await.credited_uploaded(), 750);
    let backwards = ledger.add_multiplier(terms(Scope::Site, 200, 50, (100, Some(100)))).await;
    assert!(matches!(backwards, Err(LedgerError::EndsBeforeItStarts)));
}

async fn a_multiplier_added_by_another_process_is_in_force_within_a_second(place: Place) {
    let hands = clock();
    let ledger = open_with(&place, boundless(), Known::default(), hands.clone(), Risks::default()).await;
    let other = open(&place).await;
    apply(&ledger, "a", &arrivals_of(vec![moving(0, 100, 0)])).await;
    other.add_multiplier(terms(Scope::Torrent(torrent(1)), 300, 100, (0, None))).await.unwrap();
    hands.advance(Seconds(1));
    apply(&ledger, "a", &arrivals_of(vec![moving(10, 100, 0)])).await;
    assert_eq!(figures(&ledger, 1).await.credited_uploaded(), 400);
}

fn discount(owner: Option<u64>, on: Option<u64>, upload: u32, download: u32, is_exact: bool) -> Discount {
    Discount {
        scope: DiscountScope { user: owner.map(user), torrent: on.map(torrent) },
        upload: Percent::new(upload).unwrap(),
        download: Percent::new(download).unwrap(),
        is_exact,
    }
}

async fn l8_discounts_of_a_site_count_from_the_next_second_and_an_exact_one_alone(place: Place) {
    let hands = ManualClock::at(UnixTime(BEGIN + 100));
    let ledger = open_with(&place, boundless(), Known::default(), hands.clone(), Risks::default()).await;
    ledger.add_multiplier(terms(Scope::Site, 100, 50, (0, None))).await.unwrap();
    let others = discount(Some(1), Some(2), 500, 0, true);
    let wanted =
        [discount(Some(1), None, 200, 100, false), discount(Some(1), Some(1), 100, 25, false), others];
    assert_eq!(ledger.set_discounts(&wanted.into()).await.unwrap(), 3);
    assert_eq!(ledger.set_discounts(&wanted.into()).await.unwrap(), 0);
    // In the second of the change, and after it: the most generous of all scopes in each direction.
    apply(&ledger, "a", &arrivals_of(vec![moving(100, 100, 100)])).await;
    assert_eq!(figures(&ledger, 1).await.credited_downloaded(), 50);
    hands.advance(Seconds(10));
    apply(&ledger, "a", &arrivals_of(vec![moving(101, 100, 100)])).await;
    let sums = figures(&ledger, 1).await;
    assert_eq!((sums.credited_uploaded(), sums.credited_downloaded()), (300, 75));
    // Nothing improves on an exact one.
    let exact = [discount(None, Some(1), 100, 100, true), discount(Some(1), Some(1), 100, 0, false)];
    assert_eq!(ledger.set_discounts(&exact.into()).await.unwrap(), 5);
    hands.advance(Seconds(10));
    // A late entry is credited by what was in force at its time.
    apply(&ledger, "a", &arrivals_of(vec![moving(110, 100, 100), moving(111, 100, 100)])).await;
    let sums = figures(&ledger, 1).await;
    assert_eq!((sums.credited_uploaded(), sums.credited_downloaded()), (600, 200));
    assert_eq!(ledger.discounts().await.unwrap().len(), 2);
    assert_eq!(ledger.set_discounts(&[].into()).await.unwrap(), 2);
    hands.advance(Seconds(10));
    apply(&ledger, "a", &arrivals_of(vec![moving(125, 100, 100)])).await;
    assert_eq!(figures(&ledger, 1).await.credited_downloaded(), 250);
}

async fn hit_and_runs_are_listed_until_enough_was_seeded(place: Place) {
    let clock = ManualClock::at(UnixTime(BEGIN + 200));
    let ledger =
        open_with(&place, LedgerSettings::default(), Known::default(), clock, Risks::default()).await;
    let policy = HitAndRunPolicy { active_min: Seconds(300) };
    let done = arrivals_of(vec![
        foreign(0, AnnounceEvent::Completed, 0),
        foreign(100, AnnounceEvent::Stopped, 0),
        // Never leeched, and active.
        TrafficEntry { torrent: Some(torrent(2)), ..foreign(0, AnnounceEvent::None, 0) },
    ]);
    apply(&ledger, "a", &done).await;
    let owing = ledger.hit_and_runs(user(1), &policy).await.unwrap();
    assert_eq!(owing.len(), 1);
    assert_eq!(
        (owing[0].0.torrent, owing[0].2),
        (torrent(1), HitAndRunStatus::HitAndRun { since: UnixTime(BEGIN + 100) })
    );
    // Returning makes it owed again, and enough active time clears it.
    let on = arrivals_of(vec![foreign(110, AnnounceEvent::Started, 0), foreign(150, AnnounceEvent::None, 0)]);
    apply(&ledger, "a", &on).await;
    let owing = ledger.hit_and_runs(user(1), &policy).await.unwrap();
    assert!(matches!(owing[0].2, HitAndRunStatus::Owing { seeding_s_left: 1..=150 }), "{owing:?}");
    apply(&ledger, "a", &arrivals_of(vec![foreign(400, AnnounceEvent::None, 0)])).await;
    assert_eq!(ledger.hit_and_runs(user(1), &policy).await.unwrap(), []);
}

async fn a4_a_client_expires_after_its_own_interval_and_the_grace(place: Place) {
    let clock = ManualClock::at(UnixTime(BEGIN));
    let ledger =
        open_with(&place, LedgerSettings::default(), Known::default(), clock.clone(), Risks::default()).await;
    let seeds = |torrent_number, interval| TrafficEntry {
        torrent: Some(torrent(torrent_number)),
        interval: Seconds(interval),
        ..foreign(0, AnnounceEvent::None, 0)
    };
    apply(&ledger, "a", &arrivals_of(vec![seeds(1, 1800), seeds(2, 7200), seeds(3, 60)])).await;
    let one_left = [false, true, false];
    for (passed, seeding) in [(2399, [true; 3]), (2400, one_left), (7799, one_left), (7800, [false; 3])] {
        clock.advance(UnixTime(BEGIN + passed).since(clock.now()));
        let page = ledger.accounts_of(user(1), None, 10).await.unwrap();
        let found: Vec<bool> = page.accounts.iter().map(|(_, account)| account.is_seeding()).collect();
        assert_eq!(found, seeding, "after {passed} s");
    }
}

async fn accounts_come_in_pages_and_sessions_with_their_runs(place: Place) {
    let ledger = open(&place).await;
    let on = |number| TrafficEntry {
        torrent: Some(torrent(number)),
        ..foreign(number as u32, AnnounceEvent::None, 0)
    };
    let mut entries: Vec<TrafficEntry> = (1..=25).map(on).collect();
    entries.extend([ours(100, 1, 5), ours(160, 1, 9), ours(200, 2, 3)]);
    apply(&ledger, "a", &arrivals_of(entries)).await;
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = ledger.accounts_of(user(1), after, 10).await.unwrap();
        seen.extend(page.accounts.iter().map(|(key, _)| key.torrent.get()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, (1..=25).collect::<Vec<_>>());
    let sessions = ledger.sessions_of(user(1), torrent(1)).await.unwrap();
    assert_eq!(sessions.len(), 2);
    let (client, session) = &sessions[0];
    assert_eq!(
        (*client, session.state, session.runs.len()),
        (ClientId(u64::MAX - 7), ClientState::Seeding, 2)
    );
    assert_eq!((session.runs[0].low.uploaded, session.runs[0].high.uploaded), (5, 9));
    assert!(
        ledger.user(user(9)).await.unwrap().is_none() && ledger.torrent(torrent(99)).await.unwrap().is_none()
    );
}

async fn clients_are_deleted_after_the_retention_and_their_bytes_stay(place: Place) {
    let hands = ManualClock::at(UnixTime(BEGIN));
    let ledger =
        open_with(&place, LedgerSettings::default(), Known::default(), hands.clone(), Risks::default()).await;
    let first = arrivals_of(vec![ours(0, 1, 5), ours(60, 1, 9), foreign(0, AnnounceEvent::None, 0)]);
    apply(&ledger, "a", &first).await;
    assert_eq!(account(&ledger, 1, 1).await.seeding_clients, 2);
    assert_eq!(ledger.prune(hands.now()).await.unwrap().clients, 0);
    hands.advance(Seconds(30 * 24 * 3600 + 61));
    let still = arrivals_of(vec![foreign(30 * 24 * 3600, AnnounceEvent::None, 0)]);
    apply(&ledger, "a", &still).await;
    let pruned = ledger.prune(hands.now()).await.unwrap();
    assert_eq!((pruned.examined, pruned.clients, pruned.is_round_done), (2, 1, true));
    let left = account(&ledger, 1, 1).await;
    assert_eq!((left.seeding_clients, left.figures.uploaded), (1, 4));
    assert_eq!(ledger.sessions_of(user(1), torrent(1)).await.unwrap().len(), 1);
    // A replay of deleted entries is rejected, not credited again.
    let again = apply(&ledger, "b", &arrivals_of(vec![ours(60, 1, 9), ours(0, 1, 5)])).await;
    assert_eq!(again.len(), 2);
    assert!(again[0].reason.contains("30 days"), "{again:?}");
    assert_eq!(figures(&ledger, 1).await.uploaded, 4);
}

async fn forgotten_consumers_are_deleted_after_the_retention(place: Place) {
    let hands = ManualClock::at(UnixTime(BEGIN + 1000));
    let ledger =
        open_with(&place, LedgerSettings::default(), Known::default(), hands.clone(), Risks::default()).await;
    let arrivals = arrivals_of(vec![moving(0, 10, 0)]);
    apply(&ledger, "a", &arrivals).await;
    ledger.forget("a").await.unwrap();
    hands.advance(Seconds(31 * 24 * 3600));
    ledger.prune(hands.now()).await.unwrap();
    // Its name may be used again, and the resume position is still known.
    assert_eq!(ledger.resume_after().await.unwrap(), Some(arrivals[0].id));
    let later = TrafficEntry { at: hands.now(), ..moving(0, 5, 0) };
    apply(&ledger, "a", &arrivals_of(vec![later])).await;
    assert_eq!(figures(&ledger, 1).await.uploaded, 15);
}

async fn many_processes_that_open_an_empty_database_at_once_agree(place: Place) {
    let place = Arc::new(place);
    let openers: Vec<_> = (0..6)
        .map(|number| {
            let place = Arc::clone(&place);
            tokio::spawn(async move {
                let ledger = open(&place).await;
                let id = EntryId { ms: 1000 + number, seq: 0 };
                let arrival = DeliveredEntry { id, origin: id, entry: moving(number as u32, 10, 1) };
                apply(&ledger, &format!("c{number}"), &[arrival]).await;
            })
        })
        .collect();
    for opener in openers {
        opener.await.unwrap();
    }
    assert_eq!(figures(&open(&place).await, 1).await.uploaded, 60);
}

/// Writes to the tables directly.
async fn damage(place: &Place, sql: &'static str) {
    Database::open(&place.url).await.unwrap().execute(sql, &[]).await.unwrap();
}

async fn a_malformed_row_rejects_only_its_entry(place: Place) {
    let ledger = open(&place).await;
    let two = vec![moving(0, 10, 1), TrafficEntry { user: Some(user(2)), ..moving(1, 10, 1) }];
    apply(&ledger, "a", &arrivals_of(two.clone())).await;
    damage(&place, "UPDATE ledger_users SET seeding_s = -1 WHERE id = 1").await;
    let again =
        arrivals_of(two.iter().map(|entry| TrafficEntry { at: entry.at + Seconds(50), ..*entry }).collect());
    let outcome = ledger.apply(&batch("a", &again)).await;
    assert!(
        matches!(&outcome, Err(ViewError::Entry { reason }) if reason.contains("seeding_s")),
        "{outcome:?}"
    );
    apply(&ledger, "a", &again[1..]).await;
    assert_eq!(figures(&ledger, 2).await.uploaded, 20);
}

async fn a_malformed_multiplier_is_ignored(place: Place) {
    let ledger = open(&place).await;
    let kept = ledger.add_multiplier(terms(Scope::Site, 200, 100, (0, None))).await.unwrap();
    damage(&place, "INSERT INTO ledger_multipliers (scope, subject, upload_percent, download_percent, starts_at, note) VALUES ('galaxy', 0, 900, 0, 0, '')").await;
    assert_eq!(ledger.multipliers().await.unwrap(), [kept]);
    apply(&ledger, "a", &arrivals_of(vec![moving(0, 10, 10)])).await;
    assert_eq!(figures(&ledger, 1).await.credited_uploaded(), 20);
}

async fn l6_a_damaged_consumer_row_stops_its_consumer_and_loses_nothing(place: Place) {
    let ledger = open(&place).await;
    let arrivals = arrivals_of(vec![moving(0, 10, 10)]);
    apply(&ledger, "a", &arrivals).await;
    damage(&place, "UPDATE ledger_consumers SET applied = 'x' WHERE name = 'a'").await;
    let outcome = ledger.apply(&batch("a", &arrivals)).await;
    assert!(matches!(outcome, Err(ViewError::Transient { .. })), "{outcome:?}");
}

async fn names_that_are_none_are_refused(place: Place) {
    let ledger = open(&place).await;
    let arrivals = arrivals_of(vec![moving(0, 10, 1)]);
    for name in ["", "with space", &"x".repeat(201)] {
        let outcome = ledger.apply(&batch(name, &arrivals)).await;
        assert!(matches!(outcome, Err(ViewError::Transient { .. })), "{name:?}: {outcome:?}");
    }
    apply(&ledger, &"x".repeat(200), &arrivals).await;
}

async fn an_expired_peer_no_longer_seeds_and_earns_no_time(place: Place) {
    let ledger = open(&place).await;
    let vanished = TrafficEntry {
        cause: Cause::Timeout,
        event: AnnounceEvent::Stopped,
        since_last: Some(Seconds(2400)),
        ..ours(2460, 1, 9)
    };
    apply(&ledger, "a", &arrivals_of(vec![ours(0, 1, 5), ours(60, 1, 9), vanished])).await;
    let account = account(&ledger, 1, 1).await;
    assert!(!account.is_seeding());
    // Two announces a minute apart, each for a hundred seconds.
    assert_eq!((account.figures.seeding_s, account.figures.uploaded), (160, 4));
    let sessions = ledger.sessions_of(user(1), torrent(1)).await.unwrap();
    assert_eq!(sessions[0].1.runs[0].last, UnixTime(BEGIN + 60));
}

/// Entries of three nodes for the same announces, each before replication.
fn from_three_nodes() -> Vec<TrafficEntry> {
    let word = |at: u32, event, left, uploaded, since: (u32, u64)| {
        (1..=3).map(move |node| TrafficEntry {
            node: Some(NodeId::starting(UnixTime(BEGIN), &node.to_string(), 0)),
            event,
            left: Some(left),
            since_last: Some(Seconds(since.0)),
            uploaded_delta: since.1,
            // Each node numbers the run of a new client; later they have agreed on one.
            ..ours(at, if at == 0 { node as u32 + 6 } else { 7 }, uploaded)
        })
    };
    let begun = word(0, AnnounceEvent::Started, 5, 0, (0, 0));
    let completed = word(100, AnnounceEvent::Completed, 0, 1000, (100, 1000));
    begun.chain(completed).chain(word(400, AnnounceEvent::None, 0, 5000, (300, 4000))).collect()
}

async fn l2_l4_l5_an_announce_to_three_nodes_at_once_counts_once(place: Place) {
    let ledger = open(&place).await;
    ledger.add_multiplier(terms(Scope::Site, 150, 100, (0, None))).await.unwrap();
    let arrivals = arrivals_of(from_three_nodes());
    apply(&ledger, "a", &arrivals[..5]).await;
    let sessions = ledger.sessions_of(user(1), torrent(1)).await.unwrap();
    drop(ledger);

    let ledger = open(&place).await;
    assert_eq!(ledger.sessions_of(user(1), torrent(1)).await.unwrap(), sessions);
    assert_eq!(sessions[0].1.runs.iter().map(|run| run.reported.completions).sum::<u64>(), 2);
    apply(&ledger, "b", &arrivals[5..]).await;
    let sums = figures(&ledger, 1).await;
    assert_eq!((sums.leeching_s, sums.seeding_s, sums.completed_count), (100, 300, 1));
    assert_eq!((sums.uploaded, sums.bonus_uploaded_x100), (5000, 5000 * 50));
    assert_eq!(account(&ledger, 1, 1).await.figures, sums);
    assert_eq!(ledger.torrent(torrent(1)).await.unwrap(), Some(sums));
}

/// The tables before runs had reported sums.
async fn open_as_it_was(place: &Place) {
    let migrations = Migrations { list: &ledger::MIGRATIONS.list[..1], ..ledger::MIGRATIONS };
    database::migrate(&Database::open(&place.url).await.unwrap(), migrations).await.unwrap();
}

async fn a_database_without_reported_sums_is_upgraded(place: Place) {
    open_as_it_was(&place).await;
    // The first two reports of three nodes, of which two have been posted.
    damage(&place, "INSERT INTO ledger_clients VALUES (1, 1, -8, 1, 1794000100, 0, 0, 0)").await;
    damage(&place, "INSERT INTO ledger_runs VALUES (1, 1, -8, 7, 1, 0, 1000, 0, 0, 1794000000, 1794000100, 0), (1, 1, -8, 7, 2, 0, 1000, 0, 0, 1794000000, 1794000100, 0)").await;
    let ledger = open(&place).await;
    let sessions = ledger.sessions_of(user(1), torrent(1)).await.unwrap();
    assert!(sessions[0].1.runs.iter().all(|run| run.reported.is_none()), "{sessions:?}");
    apply(&ledger, "a", &arrivals_of(from_three_nodes())[6..]).await;
    let sums = figures(&ledger, 1).await;
    assert_eq!((sums.uploaded, sums.seeding_s), (4000, 300));
    assert_eq!((sums.leeching_s, sums.completed_count), (0, 0));
    damage(&place, "UPDATE ledger_accounts SET clients = 'x'").await;
    let later = arrivals_of(vec![ours(500, 7, 6000)]);
    let outcome = ledger.apply(&batch("a", &later)).await;
    assert!(
        matches!(&outcome, Err(ViewError::Entry { reason }) if reason.contains("ledger_accounts.clients")),
        "{outcome:?}"
    );
}

on_every_database!(
    l2_l4_l5_an_announce_to_three_nodes_at_once_counts_once,
    a_database_without_reported_sums_is_upgraded,
    l1_users_and_torrents_are_found_by_passkey_and_infohash,
    l2_sums_are_exact_far_beyond_64_bits,
    l3_l4_l5_states_times_and_completion_survive_a_restart,
    a_client_without_a_known_left_leeches,
    j8_claims_beyond_the_ceiling_are_reported_and_not_credited,
    multipliers_count_apart_and_from_their_start_until_their_end,
    a_multiplier_added_by_another_process_is_in_force_within_a_second,
    l8_discounts_of_a_site_count_from_the_next_second_and_an_exact_one_alone,
    hit_and_runs_are_listed_until_enough_was_seeded,
    a4_a_client_expires_after_its_own_interval_and_the_grace,
    accounts_come_in_pages_and_sessions_with_their_runs,
    clients_are_deleted_after_the_retention_and_their_bytes_stay,
    forgotten_consumers_are_deleted_after_the_retention,
    many_processes_that_open_an_empty_database_at_once_agree,
    a_malformed_row_rejects_only_its_entry,
    a_malformed_multiplier_is_ignored,
    l6_a_damaged_consumer_row_stops_its_consumer_and_loses_nothing,
    names_that_are_none_are_refused,
    an_expired_peer_no_longer_seeds_and_earns_no_time,
);
