//! The state machine of a session (P9).
//!
//! It has three states. Its inputs are what is known of a connection: whether it is open, whether its heartbeat is in
//! time, and the outcome of the latest probe. It has no clock: `heartbeat_state` decides when to step it.
//!
//! A probe without an answer, while more follow, makes the session away and is counted
//! ([`ProbeOutcome::Unanswered`]); it never ends it. A probe that cannot be written, or the last one without an answer,
//! is a failed check ([`ProbeOutcome::Failed`]): too many checks end the session. A heartbeat resets the count.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// The heartbeat is in time.
    #[default]
    Online,
    /// The heartbeat is overdue.
    Away,
    /// The session has ended.
    Offline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeOutcome {
    Answered,
    /// No answer yet, and more probes will follow.
    Unanswered,
    /// Could not be written, or was the last one.
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionStateMachine {
    pub state: SessionState,
    /// Checks without an answer since the last heartbeat.
    pub checks: u8,
}

/// A session that is away ends with more failed checks than this.
pub const CHECKS_MAX: u8 = 3;

/// One transition.
pub fn step(
    machine: SessionStateMachine,
    connection_alive: bool,
    heartbeat_ok: bool,
    probe: ProbeOutcome,
) -> SessionStateMachine {
    let SessionStateMachine { state, checks } = machine;
    match state {
        SessionState::Online if !connection_alive => {
            SessionStateMachine { state: SessionState::Offline, checks }
        }
        SessionState::Online if heartbeat_ok => machine,
        SessionState::Online => match probe {
            ProbeOutcome::Answered | ProbeOutcome::Unanswered => {
                SessionStateMachine { state: SessionState::Away, checks }
            }
            ProbeOutcome::Failed => SessionStateMachine { state: SessionState::Offline, checks },
        },
        SessionState::Away if !connection_alive => {
            SessionStateMachine { state: SessionState::Offline, checks }
        }
        SessionState::Away if heartbeat_ok => SessionStateMachine { state: SessionState::Online, checks: 0 },
        SessionState::Away => {
            let checks = if probe == ProbeOutcome::Answered { checks } else { checks.saturating_add(1) };
            let over = probe == ProbeOutcome::Failed && checks > CHECKS_MAX;
            SessionStateMachine {
                state: if over { SessionState::Offline } else { SessionState::Away },
                checks,
            }
        }
        SessionState::Offline if connection_alive && heartbeat_ok => {
            SessionStateMachine { state: SessionState::Online, checks: 0 }
        }
        SessionState::Offline => machine,
    }
}
