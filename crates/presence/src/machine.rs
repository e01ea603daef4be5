//! The document's state machine (P9), transition by transition.
//!
//! It knows three states and is fed what was found out about a connection: whether it is open, whether its heartbeat is
//! in time, and what became of the probe. It has no clock: `pulse` decides when to feed it.
//!
//! # Two limits, reconciled
//!
//! The document gives up after three failed checks of somebody who is away ("状态机设计", `checkCount > 3`) and after six
//! probes ("网络突然断开", `probeCount > 6`). They bound different things. A probe that is still unanswered while more are
//! to come is no failed check yet: [`Probe::Unanswered`] makes somebody away and is counted, but never offline. A check
//! has failed when a probe could not be written, or when the six are exhausted: [`Probe::Failed`], the document's
//! `!probeOK`. So the six probes of a silent connection, all of them counted, run first, and the failure after the last is
//! beyond three; while a connection that cannot be written to is given up by the fourth failure.
//!
//! # One correction
//!
//! The document forgets its count only when somebody comes back from offline. Failures of a connection that has since
//! been heard would then count against it for the rest of its life, so the count also ends with a heartbeat.

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Heard in time.
    #[default]
    Online,
    /// Not heard in time, but not given up.
    Away,
    /// Given up.
    Offline,
}

/// What became of the latest probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// It was answered: the document's `probeOK`.
    Answered,
    /// Not yet, and there are more to come.
    Unanswered,
    /// It could not be written, or was the last: the document's `!probeOK`.
    Failed,
}

/// The machine: a state, and the document's count of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Machine {
    /// The state.
    pub phase: Phase,
    /// Checks without an answer since the last heartbeat.
    pub checks: u8,
}

/// Failed checks after which somebody who is away is offline: more than this many.
pub const CHECKS_MAX: u8 = 3;

/// One transition of the document's machine.
pub fn step(machine: Machine, connection_alive: bool, heartbeat_ok: bool, probe: Probe) -> Machine {
    let Machine { phase, checks } = machine;
    match phase {
        Phase::Online if !connection_alive => Machine { phase: Phase::Offline, checks },
        Phase::Online if heartbeat_ok => machine,
        Phase::Online => match probe {
            Probe::Answered | Probe::Unanswered => Machine { phase: Phase::Away, checks },
            Probe::Failed => Machine { phase: Phase::Offline, checks },
        },
        Phase::Away if !connection_alive => Machine { phase: Phase::Offline, checks },
        Phase::Away if heartbeat_ok => Machine { phase: Phase::Online, checks: 0 },
        Phase::Away => {
            let checks = if probe == Probe::Answered { checks } else { checks.saturating_add(1) };
            let over = probe == Probe::Failed && checks > CHECKS_MAX;
            Machine { phase: if over { Phase::Offline } else { Phase::Away }, checks }
        }
        Phase::Offline if connection_alive && heartbeat_ok => Machine { phase: Phase::Online, checks: 0 },
        Phase::Offline => machine,
    }
}
