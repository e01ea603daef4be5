//! The document's state machine, every combination (P9).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use presence::machine::{CHECKS_MAX, Machine, Phase, Probe, step};

use Phase::{Away, Offline, Online};

/// Section "状态机设计" of the document, `transition(connAlive, heartbeatOK, probeOK)`: state, inputs, next state, whether
/// the check is counted, and the line of the document that says so.
#[rustfmt::skip]
const DOCUMENT: [(Phase, bool, bool, bool, Phase, bool, &str); 24] = [
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

fn document_probe(ok: bool) -> Probe {
    if ok { Probe::Answered } else { Probe::Failed }
}

#[test]
fn p9_every_transition_of_the_document() {
    for (phase, alive, heartbeat, probe, next, counted, line) in DOCUMENT {
        let after = step(Machine { phase, checks: 0 }, alive, heartbeat, document_probe(probe));
        assert_eq!((after.phase, after.checks), (next, u8::from(counted)), "{phase:?}: {line}");
    }
}

#[test]
fn p9_the_table_has_every_combination_once() {
    let inputs: std::collections::HashSet<_> = DOCUMENT
        .iter()
        .map(|(phase, alive, heartbeat, probe, ..)| (phase, alive, heartbeat, probe))
        .collect();
    assert_eq!(inputs.len(), 3 * 2 * 2 * 2);
}

/// `sm.checkCount++; if sm.checkCount > 3 { sm.state = StatusOffline }`
#[test]
fn p9_the_fourth_failed_check_of_who_is_away_is_the_last() {
    let mut machine = Machine { phase: Away, checks: 0 };
    for check in 1..=CHECKS_MAX {
        machine = step(machine, true, false, Probe::Failed);
        assert_eq!(machine, Machine { phase: Away, checks: check });
        // An answered probe neither counts nor forgives.
        machine = step(machine, true, false, Probe::Answered);
        assert_eq!(machine, Machine { phase: Away, checks: check });
    }
    machine = step(machine, true, false, Probe::Failed);
    assert_eq!(machine.phase, Offline);
}

/// "网络突然断开": up to six probes are out before the check has failed.
#[test]
fn p7_an_unanswered_probe_makes_away_and_never_offline() {
    let mut machine = step(Machine::default(), true, false, Probe::Unanswered);
    assert_eq!(machine, Machine { phase: Away, checks: 0 });
    for check in 1..=6 {
        machine = step(machine, true, false, Probe::Unanswered);
        assert_eq!(machine, Machine { phase: Away, checks: check });
    }
    assert_eq!(step(machine, true, false, Probe::Failed).phase, Offline);
    for _ in 0..300 {
        machine = step(machine, true, false, Probe::Unanswered);
    }
    assert_eq!(machine.phase, Away);
    assert_eq!(step(Machine { phase: Offline, checks: 2 }, true, false, Probe::Unanswered).phase, Offline);
}

/// The one correction: failures do not count against a connection that was heard since.
#[test]
fn p9_a_heartbeat_ends_the_count() {
    for phase in [Away, Offline] {
        let machine = step(Machine { phase, checks: 3 }, true, true, Probe::Failed);
        assert_eq!(machine, Machine { phase: Online, checks: 0 });
    }
}
