//! Actions, as values that a property test can generate and shrink.

use domain::Seconds;
use presence::{AppState, Declared, Policy};
use proptest::prelude::*;
use proptest::sample::select;

/// Users have ids from 1 to this.
pub const USERS: u64 = 3;

/// Short timeouts, so that short histories reach every deadline.
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
        store_interval: Seconds(7),
    }
}

#[derive(Clone, Debug)]
pub struct Declares {
    pub app: AppState,
    pub declared: Option<Declared>,
}

/// A report from another gateway.
#[derive(Clone, Debug)]
pub struct Report {
    pub devices: Vec<(u8, AppState, bool, Option<Declared>)>,
    pub pending_ms: Option<u64>,
    pub hidden: bool,
    pub declared: Option<Declared>,
    pub versions: (u64, u64),
}

/// `pick` chooses among the open connections.
#[derive(Clone, Debug)]
pub enum Action {
    Pass { ms: u64 },
    Leap { ms: u64 },
    StepBack { ms: u64 },
    Connect { id: u64, device: u8, said: Declares },
    Heard { pick: usize },
    EveryoneHeard,
    Answered { pick: usize },
    Failed { pick: usize },
    App { pick: usize, state: AppState },
    Declare { pick: usize, status: Option<Declared>, text: bool, for_s: Option<u32> },
    Close { pick: usize, dropped: bool },
    Heartbeat { id: u64, device: u8, said: Declares },
    Goodbye { id: u64, device: u8 },
    SignOut { id: u64, device: u8 },
    Traffic { id: u64, seeding: u32 },
    Watch { id: u64, on: bool },
    RemoteSessions { id: u64, report: Report },
    Lose { id: u64 },
}

fn said() -> impl Strategy<Value = Declares> {
    let declared = prop_oneof![3 => Just(None), 1 => select(Declared::ALL.to_vec()).prop_map(Some)];
    (select(AppState::ALL.to_vec()), declared).prop_map(|(app, declared)| Declares { app, declared })
}

/// Actions in time that only moves forward.
fn ordinary() -> impl Strategy<Value = Action> {
    let id = || 1..=USERS;
    let device = || 0..3_u8;
    let pick = any::<usize>;
    prop_oneof![
        6 => (0..4000_u64).prop_map(|ms| Action::Pass { ms }),
        1 => (4000..25_000_u64).prop_map(|ms| Action::Pass { ms }),
        4 => (id(), device(), said()).prop_map(|(id, device, said)| Action::Connect { id, device, said }),
        3 => pick().prop_map(|pick| Action::Heard { pick }),
        3 => Just(Action::EveryoneHeard),
        2 => pick().prop_map(|pick| Action::Answered { pick }),
        1 => pick().prop_map(|pick| Action::Failed { pick }),
        2 => (pick(), select(AppState::ALL.to_vec())).prop_map(|(pick, state)| Action::App { pick, state }),
        2 => (pick(), proptest::option::of(select(Declared::ALL.to_vec())), any::<bool>(), proptest::option::of(0..20_u32))
            .prop_map(|(pick, status, text, for_s)| Action::Declare { pick, status, text, for_s }),
        3 => (pick(), prop::bool::weighted(0.7)).prop_map(|(pick, dropped)| Action::Close { pick, dropped }),
        1 => (id(), device(), said()).prop_map(|(id, device, said)| Action::Heartbeat { id, device, said }),
        1 => (id(), device()).prop_map(|(id, device)| Action::Goodbye { id, device }),
        1 => (id(), device()).prop_map(|(id, device)| Action::SignOut { id, device }),
        1 => (id(), 0..3_u32).prop_map(|(id, seeding)| Action::Traffic { id, seeding }),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let device = (0..3_u8, select(AppState::ALL.to_vec()), any::<bool>(), said()).prop_map(
        |(device, app, online, said)| {
            let online = online && app != AppState::Inactive;
            // Only effective declarations are reported.
            (device, app, online, said.declared.filter(|declared| online || *declared != Declared::Online))
        },
    );
    let devices = proptest::collection::vec(device, 0..3);
    let declared = proptest::option::weighted(0.3, select(Declared::ALL.to_vec()));
    (devices, proptest::option::of(0..20_000_u64), any::<bool>(), declared, (0..9_u64, 0..9_u64)).prop_map(
        |(devices, pending_ms, hidden, declared, versions)| Report {
            devices,
            pending_ms,
            hidden,
            declared,
            versions,
        },
    )
}

/// A history in forward time, of users with remote sessions.
pub fn shared_history() -> impl Strategy<Value = Vec<Action>> {
    let shared = prop_oneof![
        8 => ordinary(),
        2 => (1..=USERS, report()).prop_map(|(id, report)| Action::RemoteSessions { id, report }),
        1 => (1..=USERS).prop_map(|id| Action::Lose { id }),
    ];
    proptest::collection::vec(shared, 1..80)
}

/// As above, with clocks that leap and step back, and users that are watched or not.
pub fn wild_shared_history() -> impl Strategy<Value = Vec<Action>> {
    let wild = prop_oneof![
        10 => ordinary(),
        1 => (0..200_000_u64).prop_map(|ms| Action::Leap { ms }),
        1 => (0..200_000_u64).prop_map(|ms| Action::StepBack { ms }),
        1 => (1..=USERS, any::<bool>()).prop_map(|(id, on)| Action::Watch { id, on }),
        3 => (1..=USERS, report()).prop_map(|(id, report)| Action::RemoteSessions { id, report }),
        1 => (1..=USERS).prop_map(|id| Action::Lose { id }),
    ];
    proptest::collection::vec(wild, 1..80)
}

/// A history in forward time.
pub fn history() -> impl Strategy<Value = Vec<Action>> {
    proptest::collection::vec(ordinary(), 1..80)
}

/// A history in which clocks leap and step back, and users are watched or not.
pub fn wild_history() -> impl Strategy<Value = Vec<Action>> {
    let wild = prop_oneof![
        12 => ordinary(),
        1 => (0..200_000_u64).prop_map(|ms| Action::Leap { ms }),
        1 => (0..200_000_u64).prop_map(|ms| Action::StepBack { ms }),
        1 => (1..=USERS, any::<bool>()).prop_map(|(id, on)| Action::Watch { id, on }),
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
