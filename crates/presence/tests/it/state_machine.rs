//! The state machine, every combination (P9).

use presence::state_machine::{CHECKS_MAX, ProbeOutcome, SessionState, SessionStateMachine, step};

use SessionState::{Away, Offline, Online};

/// Section "状态机设计" of the document, `transition(connAlive, heartbeatOK, probeOK)`: state, inputs, next state, whether
/// the check is counted, and the line of the document.
#[rustfmt::skip]
const DOCUMENT: [(SessionState, bool, bool, bool, SessionState, bool, &str); 24] = [
    (Online,  true,  true,  true,  Online,  false, "case StatusOnline: no branch taken"),
    (Online,  true,  true,  false, Online,  false, "case StatusOnline: no branch taken"),
    (Online,  true,  false, true,  Away,    false, "else if !heartbeatOK { if probeOK { StatusAway } }"),
    (Online,  true,  false, false, Offline, false, "else if !heartbeatOK { … else { StatusOffline } }"),
    (Online,  false, true,  true,  Offline, false, "if !connAlive { StatusOffline }"),
    (Online,  false, true,  false, Offline, false, "if !connAlive { StatusOffline }"),
    (Online,  false, false, true,  Offline, false, "if !connAlive { StatusOffline }"),
    (Online,  false, false, false, Offline, false, "if !connAlive { StatusOffline }"),
    (Away,    true,  true,  true,  Online,  false, "else if heartbeatOK { StatusOnline }"),
    (Away,    true,  true,  false, Online,  false, "else if heartbeatOK { StatusOnline }"),
    (Away,    true,  false, true,  Away,    false, "case StatusAway: no branch taken"),
    (Away,    true,  false, false, Away,    true,  "else if !probeOK { checkCount++ }"),
    (Away,    false, true,  true,  Offline, false, "if !connAlive { StatusOffline }"),
    (Away,    false, true,  false, Offline, false, "if !connAlive { StatusOffline }"),
    (Away,    false, false, true,  Offline, false, "if !connAlive { StatusOffline }"),
    (Away,    false, false, false, Offline, false, "if !connAlive { StatusOffline }"),
    (Offline, true,  true,  true,  Online,  false, "if connAlive && heartbeatOK { StatusOnline; checkCount = 0 }"),
    (Offline, true,  true,  false, Online,  false, "if connAlive && heartbeatOK { StatusOnline; checkCount = 0 }"),
    (Offline, true,  false, true,  Offline, false, "case StatusOffline: no branch taken"),
    (Offline, true,  false, false, Offline, false, "case StatusOffline: no branch taken"),
    (Offline, false, true,  true,  Offline, false, "case StatusOffline: no branch taken"),
    (Offline, false, true,  false, Offline, false, "case StatusOffline: no branch taken"),
    (Offline, false, false, true,  Offline, false, "case StatusOffline: no branch taken"),
    (Offline, false, false, false, Offline, false, "case StatusOffline: no branch taken"),
];

fn document_probe(ok: bool) -> ProbeOutcome {
    if ok { ProbeOutcome::Answered } else { ProbeOutcome::Failed }
}

#[test]
fn p9_every_transition_of_the_document() {
    for (state, alive, heartbeat, probe, next, counted, line) in DOCUMENT {
        let after = step(SessionStateMachine { state, checks: 0 }, alive, heartbeat, document_probe(probe));
        assert_eq!((after.state, after.checks), (next, u8::from(counted)), "{state:?}: {line}");
    }
}

#[test]
fn p9_the_table_has_every_combination_once() {
    let inputs: std::collections::HashSet<_> = DOCUMENT
        .iter()
        .map(|(state, alive, heartbeat, probe, ..)| (state, alive, heartbeat, probe))
        .collect();
    assert_eq!(inputs.len(), 3 * 2 * 2 * 2);
}

/// `sm.checkCount++; if sm.checkCount > 3 { sm.state = StatusOffline }`
#[test]
fn p9_the_fourth_failed_check_while_away_is_the_last() {
    let mut machine = SessionStateMachine { state: Away, checks: 0 };
    for check in 1..=CHECKS_MAX {
        machine = step(machine, true, false, ProbeOutcome::Failed);
        assert_eq!(machine, SessionStateMachine { state: Away, checks: check });
        // An answered probe neither counts nor resets the count.
        machine = step(machine, true, false, ProbeOutcome::Answered);
        assert_eq!(machine, SessionStateMachine { state: Away, checks: check });
    }
    machine = step(machine, true, false, ProbeOutcome::Failed);
    assert_eq!(machine.state, Offline);
}

/// "网络突然断开": up to six probes are sent before the check has failed.
#[test]
fn p7_an_unanswered_probe_makes_away_and_never_offline() {
    let mut machine = step(SessionStateMachine::default(), true, false, ProbeOutcome::Unanswered);
    assert_eq!(machine, SessionStateMachine { state: Away, checks: 0 });
    for check in 1..=6 {
        machine = step(machine, true, false, ProbeOutcome::Unanswered);
        assert_eq!(machine, SessionStateMachine { state: Away, checks: check });
    }
    assert_eq!(step(machine, true, false, ProbeOutcome::Failed).state, Offline);
    for _ in 0..300 {
        machine = step(machine, true, false, ProbeOutcome::Unanswered);
    }
    assert_eq!(machine.state, Away);
    assert_eq!(
        step(SessionStateMachine { state: Offline, checks: 2 }, true, false, ProbeOutcome::Unanswered).state,
        Offline
    );
}

/// The one correction: failures before a heartbeat do not count.
#[test]
fn p9_a_heartbeat_ends_the_count() {
    for state in [Away, Offline] {
        let machine = step(SessionStateMachine { state, checks: 3 }, true, true, ProbeOutcome::Failed);
        assert_eq!(machine, SessionStateMachine { state: Online, checks: 0 });
    }
}
