//! The timing wheel against a naive model: a map of deadlines that is scanned whole.

use std::collections::BTreeMap;

use domain::wheel::{TimingWheel, Verdict};
use domain::{Seconds, UnixTime};
use proptest::prelude::*;

/// An owner of slots with its wheel, and the model.
struct Watched {
    wheel: TimingWheel,
    /// The true deadline of each live slot.
    deadlines: Vec<Option<UnixTime>>,
    /// The latest deadline each slot ever had.
    latest: Vec<UnixTime>,
    /// The model.
    model: BTreeMap<u32, UnixTime>,
    now: UnixTime,
    judged: usize,
}

impl Watched {
    fn new(slots: usize, horizon_s: u32) -> Self {
        let now = UnixTime(1_700_000_000);
        Watched {
            wheel: TimingWheel::new(now, horizon_s),
            deadlines: vec![None; slots],
            latest: vec![UnixTime(0); slots],
            model: BTreeMap::new(),
            now,
            judged: 0,
        }
    }

    fn heartbeat(&mut self, slot: u32, lives_for: Seconds) {
        // A slot's deadlines only grow, also from one occupant to the next: the wheel requires that.
        let deadline = self.latest[slot as usize].max(self.now + lives_for);
        self.latest[slot as usize] = deadline;
        self.deadlines[slot as usize] = Some(deadline);
        self.model.insert(slot, deadline);
        self.wheel.arm(slot, deadline);
    }

    fn leave(&mut self, slot: u32) {
        self.deadlines[slot as usize] = None;
        self.model.remove(&slot);
    }

    fn advance(&mut self, by: Seconds) {
        self.now += by;
        let now = self.now;
        let mut expired = Vec::new();
        let deadlines = &mut self.deadlines;
        let judged = &mut self.judged;
        self.wheel.advance(now, |slot| {
            *judged += 1;
            match deadlines[slot as usize] {
                None => Verdict::Done,
                Some(deadline) if deadline <= now => {
                    deadlines[slot as usize] = None;
                    expired.push(slot);
                    Verdict::Done
                }
                Some(deadline) => Verdict::RearmAt(deadline),
            }
        });
        expired.sort_unstable();
        let due: Vec<u32> = self.model.iter().filter(|(_, d)| **d <= now).map(|(slot, _)| *slot).collect();
        self.model.retain(|_, deadline| *deadline > now);
        assert_eq!(expired, due, "at {now}");
        assert!(self.model.keys().all(|slot| self.wheel.is_armed(*slot)), "everything alive is watched");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Heartbeat(u32, u32),
    Leave(u32),
    Advance(u32),
}

fn step(slots: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..slots, 1..300_u32).prop_map(|(slot, lives)| Step::Heartbeat(slot, lives)),
        2 => (0..slots).prop_map(Step::Leave),
        3 => prop_oneof![8 => 0..4_u32, 2 => 0..100_u32, 1 => 0..5000_u32].prop_map(Step::Advance),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// Short wheels make deadlines beyond the horizon, and leaps over whole revolutions, common.
    #[test]
    fn expires_exactly_what_a_scan_would(
        horizon_s in 1..400_u32,
        steps in prop::collection::vec(step(40), 1..600),
    ) {
        let mut watched = Watched::new(40, horizon_s);
        for step in steps {
            match step {
                Step::Heartbeat(slot, lives) => watched.heartbeat(slot, Seconds(lives)),
                Step::Leave(slot) => watched.leave(slot),
                Step::Advance(by) => watched.advance(Seconds(by)),
            }
        }
    }
}

/// Millions of operations in realistic proportions: many heartbeats, few expiries.
#[test]
fn agrees_with_the_model_over_millions_of_heartbeats() {
    const SLOTS: u32 = 20_000;
    let mut random = fastrand::Rng::with_seed(7);
    let mut watched = Watched::new(SLOTS as usize, 2400);
    let mut operations = 0_u64;
    for _second in 0..300 {
        for _ in 0..8_000 {
            let slot = random.u32(..SLOTS);
            match random.u8(..100) {
                0..=3 => watched.leave(slot),
                _ => watched.heartbeat(slot, Seconds(random.u32(30..60))),
            }
            operations += 1;
        }
        watched.advance(Seconds(1));
    }
    assert!(operations > 2_000_000);
}

/// The cost of an advance is what is due, not what is armed.
#[test]
fn looks_only_at_what_is_due() {
    let mut watched = Watched::new(100_000, 4096);
    for slot in 0..100_000 {
        watched.heartbeat(slot, Seconds(2400));
    }
    for slot in 0..10 {
        watched.leave(slot);
    }
    watched.advance(Seconds(2399));
    assert_eq!(watched.judged, 0, "nothing was due");
    watched.advance(Seconds(1));
    assert_eq!(watched.judged, 100_000);
    assert_eq!(watched.wheel.armed(), 0);
}

/// A machine that booted with tomorrow's date must not keep today's peers for a day.
#[test]
fn a_clock_that_leapt_ahead_and_back_delays_no_expiry() {
    let start = UnixTime(1_700_000_000);
    let mut wheel = TimingWheel::new(start, 4096);
    wheel.advance(start + Seconds(86_400), |_| panic!("nothing is armed"));
    wheel.arm(1, start + Seconds(100));
    let mut judged = 0;
    for second in 0..=100 {
        let now = start + Seconds(second);
        wheel.advance(now, |_| {
            judged += 1;
            if now >= start + Seconds(100) { Verdict::Done } else { Verdict::RearmAt(start + Seconds(100)) }
        });
    }
    assert_eq!((judged, wheel.armed()), (2, 0), "once when the clock came back, once when it was due");
}

#[test]
fn a_clock_that_steps_back_moves_nothing() {
    let start = UnixTime(1000);
    let mut wheel = TimingWheel::new(start, 60);
    wheel.arm(3, start + Seconds(5));
    wheel.advance(UnixTime(950), |_| panic!("nothing is due"));
    wheel.advance(start + Seconds(4), |_| panic!("nothing is due"));
    let mut seen = Vec::new();
    wheel.advance(start + Seconds(5), |slot| {
        seen.push(slot);
        Verdict::Done
    });
    assert_eq!(seen, [3]);
}
