use super::*;
use crate::run::RunKey;
use domain::RunId;

const CEILING: RateCeiling = RateCeiling { bytes_per_s: 1000 };

/// A run reported by a node that never restarted. Uploads only; downloads are zero.
fn run(place: u64, number: u32, span: (u32, u32), uploaded: (u64, u64)) -> Run {
    run_of(place << 16, number, span, uploaded)
}

/// A run reported by one process of a tracker.
fn run_of_process(life: u64, number: u32, span: (u32, u32), uploaded: (u64, u64)) -> Run {
    run_of(life << 32, number, span, uploaded)
}

fn run_of(node: u64, number: u32, span: (u32, u32), uploaded: (u64, u64)) -> Run {
    Run {
        key: RunKey { run: RunId(number), node },
        low: Counters { uploaded: uploaded.0, downloaded: 0 },
        high: Counters { uploaded: uploaded.1, downloaded: 0 },
        first: UnixTime(span.0),
        last: UnixTime(span.1),
        first_id: EntryId { ms: u64::from(span.0) * 1000, seq: 0 },
        last_id: EntryId { ms: u64::from(span.1) * 1000, seq: 0 },
        is_settled: false,
        stopped: None,
        reported: Reported::NONE,
    }
}

/// Within a second, reports are in the order of the listed runs.
fn in_order(runs: &[Run]) -> Vec<Run> {
    let mut ordered = runs.to_vec();
    for (run, seq) in ordered.iter_mut().zip((0..).step_by(2)) {
        (run.first_id.seq, run.last_id.seq) = (seq, seq + 1);
        run.stopped = run.stopped.map(|_| run.last_id);
    }
    ordered
}

fn uploaded(runs: &[Run]) -> u128 {
    credit(&in_order(runs), CEILING, Bucket::default()).uploaded
}

#[test]
fn a_run_starts_at_its_first_reported_counters() {
    assert_eq!(uploaded(&[]), 0);
    assert_eq!(uploaded(&[run(1, 1, (0, 0), (700, 700))]), 0);
    assert_eq!(uploaded(&[run(1, 1, (0, 60), (700, 900))]), 200);
}

#[test]
fn a_tracker_that_lost_its_state_costs_the_client_nothing() {
    let runs = [run(1, 1, (0, 60), (0, 500)), run(2, 7, (90, 120), (800, 900))];
    assert_eq!(uploaded(&runs), 900);
}

#[test]
fn a_restarted_client_is_credited_from_its_first_report() {
    let runs = [run(1, 1, (0, 60), (0, 500)), run(1, 2, (90, 120), (100, 300))];
    assert_eq!(uploaded(&runs), 700);
}

#[test]
fn one_counter_that_went_back_is_a_restart_of_both() {
    let mut later = run(1, 2, (90, 120), (800, 900));
    let mut earlier = run(1, 1, (0, 60), (0, 500));
    earlier.high.downloaded = 50;
    later.high.downloaded = 20;
    assert_eq!(credit(&[earlier, later], CEILING, Bucket::default()).uploaded, 600);
    assert_eq!(credit(&[earlier, later], CEILING, Bucket::default()).downloaded, 70);
}

#[test]
fn a_client_on_two_nodes_counts_once() {
    let runs = [run(1, 1, (0, 60), (0, 500)), run(2, 1, (5, 90), (20, 700))];
    assert_eq!(uploaded(&runs), 700);
    // The first node loses the client's state; the second does not.
    let again = run(1, 2, (70, 100), (600, 750));
    assert_eq!(uploaded(&[runs[0], runs[1], again]), 750);
}

#[test]
fn one_run_that_moves_from_node_to_node_within_a_second_counts_once() {
    let runs =
        [run(1, 7, (0, 60), (0, 500)), run(2, 7, (60, 60), (200, 600)), run(3, 7, (60, 61), (100, 700))];
    assert_eq!(uploaded(&runs), 700);
    // A node with a slow clock reported the counters before they were as high as on the other.
    let slower = [run(1, 7, (10, 10), (100, 300)), run(2, 7, (11, 12), (50, 200))];
    assert_eq!(uploaded(&slower), 250);
}

/// A dual-stack client sends `stopped` over both families; the second one, from a client that has left, is a run of its
/// own; in the same second the client restarts.
#[test]
fn a_repeated_stop_is_not_part_of_the_next_run() {
    let runs = [run(1, 1, (0, 5), (0, 700)), run(1, 2, (5, 5), (700, 700)), run(1, 3, (5, 9), (0, 40))];
    assert_eq!(uploaded(&runs), 740);
}

/// The reply to a `stopped` was lost with the tracker, so it is sent again to the next process; then the client
/// restarts, in the same second or the next.
#[test]
fn l6_a_stop_repeated_after_a_restart_of_the_tracker_does_not_count_again() {
    let (reported, lost) =
        (run_of_process(1, 1, (0, 3), (0, 3400)), run_of_process(2, 75, (24, 24), (3800, 3800)));
    let again = run_of_process(3, 86, (25, 25), (3800, 3800));
    for begun in [24, 25] {
        let anew = run_of_process(3, 88, (begun, 26), (0, 1600));
        assert_eq!(uploaded(&[reported, lost, anew]), 5400, "begun at {begun}");
    }
    let anew = run_of_process(3, 88, (25, 26), (0, 1600));
    assert_eq!(uploaded(&[reported, lost, again, anew]), 5400);
    // Nor within one second, as long as nothing more is reported.
    assert_eq!(uploaded(&[reported, lost, again, run_of_process(3, 88, (25, 25), (0, 1600))]), 5400);
}

/// A client that was known for a moment only, before the tracker was restarted.
#[test]
fn l6_a_restart_after_a_restart_of_the_tracker_is_credited_for_both_runs() {
    let later = [run_of_process(1, 1, (1, 1), (0, 640)), run_of_process(2, 9, (2, 2), (0, 120))];
    assert_eq!(uploaded(&later), 760);
    let at_once = [run_of_process(1, 1, (4, 5), (0, 800)), run_of_process(2, 9, (5, 7), (0, 600))];
    assert_eq!(uploaded(&at_once), 1400);
    // The second process continues the run of the first, and numbers what follows.
    let goes_on = [
        run_of_process(1, 1, (22, 22), (0, 0)),
        run_of_process(2, 1, (23, 23), (900, 1000)),
        run_of_process(2, 8, (23, 23), (1000, 1000)),
        run_of_process(2, 9, (23, 27), (0, 5000)),
    ];
    assert_eq!(uploaded(&goes_on), 6000);
    let ends_lower = [
        run_of_process(1, 1, (10, 10), (0, 0)),
        run_of_process(2, 1, (10, 11), (900, 900)),
        run_of_process(2, 9, (11, 12), (0, 800)),
    ];
    assert_eq!(uploaded(&ends_lower), 1700);
}

#[test]
fn a_restart_reported_by_two_nodes_counts_once() {
    let runs = [
        run(1, 1, (0, 60), (0, 500)),
        run(2, 1, (5, 65), (20, 500)),
        run(1, 2, (70, 100), (0, 300)),
        run(2, 2, (75, 105), (10, 310)),
    ];
    assert_eq!(uploaded(&runs), 810);
}

/// Each of two nodes receives a new client, and adopts the number that the other assigned.
#[test]
fn two_nodes_that_swap_run_numbers_count_bytes_once() {
    for numbers in [(5, 9), (9, 5)] {
        let runs = [
            run(1, numbers.0, (10, 10), (0, 5)),
            run(2, numbers.1, (10, 10), (7, 7)),
            run(1, numbers.1, (10, 1810), (9, 500)),
            run(2, numbers.0, (1810, 3610), (400, 800)),
        ];
        assert_eq!(uploaded(&runs), 800, "{numbers:?}");
        assert_eq!(stretches(&in_order(&runs), CEILING).len(), 1);
    }
}

#[test]
fn a_new_client_on_three_nodes_at_once_is_one() {
    let begun = [run(1, 9, (10, 10), (0, 0)), run(2, 5, (10, 11), (0, 40)), run(3, 7, (11, 11), (20, 40))];
    assert_eq!(uploaded(&begun), 40);
    let later = run(1, 7, (1810, 1810), (300, 300));
    assert_eq!(uploaded(&[begun[0], begun[1], begun[2], later]), 300);
}

#[test]
fn counters_that_grow_on_two_nodes_before_replication_count_once() {
    let runs = [run(1, 5, (10, 11), (0, 50)), run(2, 9, (11, 12), (10, 60))];
    assert_eq!(uploaded(&runs), 60);
    // Later than at once, and the first node has received nothing more: no tracker received announces in between.
    let apart = [run(1, 5, (10, 10), (0, 0)), run(2, 9, (12, 12), (10, 60))];
    assert_eq!((uploaded(&apart), stretches(&in_order(&apart), CEILING).len()), (60, 2));
}

#[test]
fn a_stop_on_one_node_and_a_start_on_another_in_the_same_second_are_two_runs() {
    let runs = [run(1, 5, (0, 100), (0, 700)), run(2, 9, (100, 160), (0, 40))];
    assert_eq!(uploaded(&runs), 740);
    let by_both = [runs[0], runs[1], run(1, 6, (100, 130), (0, 30)), run(2, 5, (50, 99), (300, 600))];
    assert_eq!(uploaded(&by_both), 740);
    assert_eq!(stretches(&in_order(&by_both), CEILING).len(), 2);
}

/// The second node knows about the `stopped` when the client sends it there, the third does not; both a second later.
#[test]
fn a_stop_sent_to_three_nodes_belongs_to_the_run_it_ends() {
    let reported =
        [run(1, 5, (0, 10), (0, 700)), run(2, 2, (11, 11), (700, 700)), run(3, 5, (11, 11), (700, 700))];
    let stretches = stretches(&reported, CEILING);
    let nodes = stretches.iter().map(|stretch| stretch.runs.iter().map(|run| run.key.node).collect());
    assert_eq!(nodes.collect::<Vec<Vec<u64>>>(), [vec![1 << 16, 3 << 16], vec![2 << 16]]);
    let again = run(1, 6, (50, 60), (700, 750));
    assert_eq!(uploaded(&[reported[0], reported[1], reported[2], again]), 750);
}

#[test]
fn j8_beginning_on_two_nodes_at_once_does_not_circumvent_the_ceiling() {
    let lie = run(2, 9, (10, 10), (1_000_000, 1_000_000));
    let credited = credit(&[run(1, 5, (10, 70), (0, 500)), lie], CEILING, Bucket::default());
    assert_eq!(credited.uploaded, 500 + 10_000);
}

#[test]
fn j8_what_lies_between_two_runs_is_credited_up_to_the_ceiling() {
    let runs = [run(1, 1, (0, 60), (0, 500)), run(1, 2, (90, 120), (1_000_500, 1_000_500))];
    let credited = credit(&runs, CEILING, Bucket::default());
    // Thirty seconds, and ten of slack.
    assert_eq!((credited.uploaded, credited.withheld_uploaded), (40_500, 960_000));
}

#[test]
fn j8_a_second_node_does_not_circumvent_the_ceiling() {
    let lie = run(2, 1, (30, 90), (1_000_000, 1_000_000));
    let credited = credit(&[run(1, 1, (0, 60), (0, 500)), lie], CEILING, Bucket::default());
    assert_eq!(credited.uploaded, 500 + 10_000);
    assert!(credited.withheld_uploaded > 0);
}

#[test]
fn counters_at_their_limit_do_not_overflow() {
    let most = run(1, 1, (0, u32::MAX), (0, u64::MAX));
    let again = run(1, 2, (u32::MAX, u32::MAX), (0, u64::MAX));
    let boundless = RateCeiling { bytes_per_s: u64::MAX };
    let credited = credit(&in_order(&[most, again]), boundless, Bucket::default());
    assert_eq!(credited.uploaded, 2 * u128::from(u64::MAX));
}

/// Two nodes number a new client in the same second; one receives the other's number and continues with it. Then it is
/// restarted, and restores its state.
#[test]
fn l6_the_owner_of_a_run_number_does_not_depend_on_node_names() {
    for (a, b) in [(1, 2), (2, 1)] {
        let runs = [
            run(b, 5, (10, 10), (0, 0)),
            run(a, 9, (10, 10), (0, 0)),
            run(a, 5, (10, 1810), (0, 800)),
            run(3, 5, (3610, 3610), (900, 900)),
        ];
        assert_eq!(uploaded(&runs), 900, "{a} {b}");
        assert_eq!(stretches(&in_order(&runs), CEILING).len(), 1);
    }
}

/// A beginning reaches the second node a second late, after the first has reported more; with or without a repetition.
#[test]
fn l6_a_beginning_that_comes_late_to_another_node_counts_once() {
    const MOVED: u64 = 5000;
    let reported = [run(1, 5, (10, 10), (0, MOVED)), run(2, 9, (11, 1811), (0, MOVED))];
    assert_eq!(uploaded(&reported), u128::from(MOVED));
    for at in [11, 1811] {
        let goes_on = run(1, 9, (at, at), (MOVED, MOVED));
        assert_eq!(uploaded(&[reported[0], reported[1], goes_on]), u128::from(MOVED), "{at}");
    }
    // In the next process of the first node, it is another run.
    let lives = [run_of_process(1, 5, (10, 10), (0, MOVED)), run_of_process(2, 9, (11, 1811), (0, MOVED))];
    assert_eq!(uploaded(&lives), 2 * u128::from(MOVED));
}

/// The second node has itself reported growing counters: zero counters are a restart, on any process.
#[test]
fn zero_counters_on_a_node_that_reported_higher_ones_are_a_restart() {
    let runs = [
        run(1, 1, (10, 10), (0, 0)),
        run(2, 1, (10, 10), (900, 900)),
        run(2, 9, (11, 12), (0, 1000)),
        run(1, 9, (50, 50), (1000, 1000)),
    ];
    assert_eq!(uploaded(&runs), 1900);
}

/// Numbers of two nodes do not show the order within a second.
#[test]
fn l6_a_stop_precedes_a_beginning_in_the_same_second_whatever_their_numbers() {
    for stop in [75, 90] {
        let runs = [
            run(1, 1, (0, 3), (0, 3400)),
            run(2, stop, (24, 24), (3800, 3800)),
            run(3, 88, (24, 26), (0, 1600)),
        ];
        assert_eq!(uploaded(&runs), 5400, "{stop}");
    }
}

/// One node assigns numbers in order: a later number came later, and is measured from the beginning before it.
#[test]
fn j8_a_leap_after_a_beginning_in_the_same_second_is_limited() {
    let runs = [
        run(1, 1, (0, 60), (0, 500)),
        run(1, 2, (100, 100), (0, 0)),
        run(1, 3, (100, 100), (99_000, 99_000)),
    ];
    assert_eq!(uploaded(&runs), 500 + 10_000);
}

/// The next process of a tracker receives the client before replication of the run that its predecessor began in that
/// second.
#[test]
fn l6_reports_after_a_restart_of_the_tracker_follow_the_beginning() {
    let runs = [
        run_of_process(1, 334, (1, 1), (0, 0)),
        run_of_process(1, 335, (2, 2), (0, 0)),
        run_of_process(2, 421, (2, 2), (259, 259)),
        run_of_process(2, 335, (3, 5), (259, 1861)),
    ];
    assert_eq!(uploaded(&runs), 1861);
}

proptest::proptest! {
    #[test]
    fn the_part_of_an_only_run_is_that_of_its_only_stretch(
        span: (u32, u32), uploaded: (u64, u64), spent in 0..100_000_u128, at: u32, uncredited in 0..5_000_u64,
        is_stop: bool, is_settled: bool, ceiling in proptest::prelude::prop_oneof![0..5_000_u64, 0..=u64::MAX],
    ) {
        let mut run = Run { is_settled, ..run(1, 1, span, uploaded) };
        run.stopped = is_stop.then_some(run.last_id);
        run.reported.uncredited_upload = uncredited;
        let (bucket, ceiling) = (Bucket { at: UnixTime(at), spent_up: spent, spent_down: 0 }, RateCeiling { bytes_per_s: ceiling });
        let all = stretches(&[run], ceiling);
        let parts = parts_of(&all, ceiling, bucket);
        match part_of_only(&run, ceiling, bucket) {
            Some(part) => {
                proptest::prop_assert_eq!(&parts[..], &[part][..]);
                proptest::prop_assert_eq!(crate::excess::excess(&all, &parts), crate::excess::Excess::default());
            }
            None => proptest::prop_assert!(parts[0].withheld != Counters::default()),
        }
    }
}
