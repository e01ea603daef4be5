//! What can happen, as values that a property test can draw and shrink.

use domain::Seconds;
use presence::{AppState, Declared, Policy};
use proptest::prelude::*;
use proptest::sample::select;

/// Persons on the stage: 1 to this many.
pub const PERSONS: u64 = 3;

/// Small numbers, so that short histories see every deadline.
pub fn hasty() -> Policy {
    Policy {
        heartbeat: Seconds(6),
        ping: Seconds(5),
        probe: Seconds(2),
        probes_max: 2,
        missed_max: 3,
        background_away: Seconds(12),
        background_gone: Seconds(20),
        pending: Seconds(15),
        flap_grace: Seconds(2),
        flap_grace_max: Seconds(6),
        flap_forget: Seconds(10),
        devices_max: 2,
        remember: Seconds(7),
    }
}

#[derive(Clone, Debug)]
pub struct Said {
    pub app: AppState,
    pub declared: Option<Declared>,
}

/// What is told of somebody from elsewhere.
#[derive(Clone, Debug)]
pub struct Told {
    pub devices: Vec<(u8, AppState, bool, Option<Declared>)>,
    pub pending_ms: Option<u64>,
    pub hidden: bool,
    pub declared: Option<Declared>,
    pub versions: (u64, u64),
}

/// `pick` chooses among the connections that are open.
#[derive(Clone, Debug)]
pub enum Action {
    Pass { ms: u64 },
    Leap { ms: u64 },
    StepBack { ms: u64 },
    Connect { who: u64, device: u8, said: Said },
    Heard { pick: usize },
    EveryoneHeard,
    Answered { pick: usize },
    Failed { pick: usize },
    App { pick: usize, state: AppState },
    Declare { pick: usize, status: Option<Declared>, text: bool, for_s: Option<u32> },
    Close { pick: usize, dropped: bool },
    Heartbeat { who: u64, device: u8, said: Said },
    Goodbye { who: u64, device: u8 },
    SignOut { who: u64, device: u8 },
    Traffic { who: u64, seeding: u32 },
    Watch { who: u64, on: bool },
    Elsewhere { who: u64, told: Told },
    Lose { who: u64 },
}

fn said() -> impl Strategy<Value = Said> {
    let declared = prop_oneof![3 => Just(None), 1 => select(Declared::ALL.to_vec()).prop_map(Some)];
    (select(AppState::ALL.to_vec()), declared).prop_map(|(app, declared)| Said { app, declared })
}

/// What happens in time that goes on.
fn ordinary() -> impl Strategy<Value = Action> {
    let who = || 1..=PERSONS;
    let device = || 0..3_u8;
    let pick = any::<usize>;
    prop_oneof![
        6 => (0..4000_u64).prop_map(|ms| Action::Pass { ms }),
        1 => (4000..25_000_u64).prop_map(|ms| Action::Pass { ms }),
        4 => (who(), device(), said()).prop_map(|(who, device, said)| Action::Connect { who, device, said }),
        3 => pick().prop_map(|pick| Action::Heard { pick }),
        3 => Just(Action::EveryoneHeard),
        2 => pick().prop_map(|pick| Action::Answered { pick }),
        1 => pick().prop_map(|pick| Action::Failed { pick }),
        2 => (pick(), select(AppState::ALL.to_vec())).prop_map(|(pick, state)| Action::App { pick, state }),
        2 => (pick(), proptest::option::of(select(Declared::ALL.to_vec())), any::<bool>(), proptest::option::of(0..20_u32))
            .prop_map(|(pick, status, text, for_s)| Action::Declare { pick, status, text, for_s }),
        3 => (pick(), prop::bool::weighted(0.7)).prop_map(|(pick, dropped)| Action::Close { pick, dropped }),
        1 => (who(), device(), said()).prop_map(|(who, device, said)| Action::Heartbeat { who, device, said }),
        1 => (who(), device()).prop_map(|(who, device)| Action::Goodbye { who, device }),
        1 => (who(), device()).prop_map(|(who, device)| Action::SignOut { who, device }),
        1 => (who(), 0..3_u32).prop_map(|(who, seeding)| Action::Traffic { who, seeding }),
    ]
}

fn told() -> impl Strategy<Value = Told> {
    let device = (0..3_u8, select(AppState::ALL.to_vec()), any::<bool>(), said()).prop_map(
        |(device, app, online, said)| {
            let online = online && app != AppState::Inactive;
            // What does not count is not told.
            (device, app, online, said.declared.filter(|said| online || *said != Declared::Online))
        },
    );
    let devices = proptest::collection::vec(device, 0..3);
    let declared = proptest::option::weighted(0.3, select(Declared::ALL.to_vec()));
    (devices, proptest::option::of(0..20_000_u64), any::<bool>(), declared, (0..9_u64, 0..9_u64)).prop_map(
        |(devices, pending_ms, hidden, declared, versions)| Told {
            devices,
            pending_ms,
            hidden,
            declared,
            versions,
        },
    )
}

/// A history in time that goes on, of people who are elsewhere too.
pub fn shared_history() -> impl Strategy<Value = Vec<Action>> {
    let shared = prop_oneof![
        8 => ordinary(),
        2 => (1..=PERSONS, told()).prop_map(|(who, told)| Action::Elsewhere { who, told }),
        1 => (1..=PERSONS).prop_map(|who| Action::Lose { who }),
    ];
    proptest::collection::vec(shared, 1..80)
}

/// Likewise, with clocks that leap and step back, and people who are watched or not.
pub fn wild_shared_history() -> impl Strategy<Value = Vec<Action>> {
    let wild = prop_oneof![
        10 => ordinary(),
        1 => (0..200_000_u64).prop_map(|ms| Action::Leap { ms }),
        1 => (0..200_000_u64).prop_map(|ms| Action::StepBack { ms }),
        1 => (1..=PERSONS, any::<bool>()).prop_map(|(who, on)| Action::Watch { who, on }),
        3 => (1..=PERSONS, told()).prop_map(|(who, told)| Action::Elsewhere { who, told }),
        1 => (1..=PERSONS).prop_map(|who| Action::Lose { who }),
    ];
    proptest::collection::vec(wild, 1..80)
}

/// A history in time that goes on.
pub fn history() -> impl Strategy<Value = Vec<Action>> {
    proptest::collection::vec(ordinary(), 1..80)
}

/// A history in which clocks leap and step back, and people are watched or not.
pub fn wild_history() -> impl Strategy<Value = Vec<Action>> {
    let wild = prop_oneof![
        12 => ordinary(),
        1 => (0..200_000_u64).prop_map(|ms| Action::Leap { ms }),
        1 => (0..200_000_u64).prop_map(|ms| Action::StepBack { ms }),
        1 => (1..=PERSONS, any::<bool>()).prop_map(|(who, on)| Action::Watch { who, on }),
    ];
    proptest::collection::vec(wild, 1..80)
}

/// The same histories at each run.
pub fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value))
where
    S::Value: std::fmt::Debug,
{
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let rng = proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, rng);
    let result = runner.run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
