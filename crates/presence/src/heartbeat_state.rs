//! Heartbeats of one session: when the last one arrived, when to probe, when to end the session.
//!
//! Drives the [`crate::state_machine`] through time. For a connection in the foreground (P7), since its last activity,
//! with the default settings:
//!
//! | after | what happens |
//! |---|---|
//! | 30 s | the heartbeat is overdue: one probe |
//! | 35 s | away, whether the probe was answered or not: the network stack answers, the app does not |
//! | 60 s | not answered: a probe every 5 s, six of them |
//! | 90 s | the session ends |
//!
//! An answer is activity, but not a heartbeat: the session stays away, and the times count from the answer on. A
//! heartbeat makes it online at once. Before 35 s nothing changes, so jitter is not visible (P10).
//!
//! For all other sessions (P8: in the background, or without a connection) silence alone decides.
//!
//! # Guarantees
//!
//! - A session ends no later than its rule says after its last activity, if it is checked when it asks to be.
//! - A connection in the foreground is probed before it ends, also after a leap of time (the clock was set, the machine
//!   was suspended).

use crate::policy::{Policy, Rule};
use crate::state_machine::{ProbeOutcome, SessionState, SessionStateMachine, step};
use crate::wall_time::MonotonicTime;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatState {
    last_heartbeat: MonotonicTime,
    /// The last heartbeat or answered probe.
    last_activity: MonotonicTime,
    /// When the first and the last probe without an answer were sent. Probes are sent on whole seconds.
    first_probe_s: u32,
    last_probe_s: u32,
    /// Probes without an answer. Zero: none, or the last one was answered.
    open_probes: u8,
    /// The first probe was answered, and its time is not over yet.
    answered: bool,
    machine: SessionStateMachine,
    intervals: HeartbeatIntervals,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// Send a probe.
    pub probe: bool,
    /// The session has ended.
    pub expired: bool,
    pub next_at: MonotonicTime,
}

impl Check {
    fn next_at(at: MonotonicTime) -> Check {
        Check { probe: false, expired: false, next_at: at }
    }

    fn expired() -> Check {
        Check { probe: false, expired: true, next_at: MonotonicTime::default() }
    }
}

impl HeartbeatState {
    pub fn new(now: MonotonicTime) -> HeartbeatState {
        HeartbeatState {
            last_heartbeat: now,
            last_activity: now,
            first_probe_s: 0,
            last_probe_s: 0,
            open_probes: 0,
            answered: false,
            machine: SessionStateMachine::default(),
            intervals: HeartbeatIntervals::default(),
        }
    }

    pub fn state(&self) -> SessionState {
        self.machine.state
    }

    /// The last ten heartbeats, newest first.
    pub fn heartbeats(&self) -> impl Iterator<Item = MonotonicTime> {
        let mut at = self.last_heartbeat;
        let intervals = self.intervals.distances_ms().map(move |distance_ms| {
            at = MonotonicTime(at.0.saturating_sub(u64::from(distance_ms)));
            at
        });
        std::iter::once(self.last_heartbeat).chain(intervals)
    }

    pub fn last_activity(&self) -> MonotonicTime {
        self.last_activity
    }

    pub fn record(&mut self, now: MonotonicTime) {
        self.intervals.push(now.since_ms(self.last_heartbeat));
        self.last_heartbeat = now;
        self.last_activity = now;
        self.open_probes = 0;
        self.answered = false;
        self.machine = step(self.machine, true, true, ProbeOutcome::Answered);
    }

    pub fn probe_answered(&mut self, now: MonotonicTime) {
        self.last_activity = now;
        if self.state() == SessionState::Online && self.open_probes > 0 {
            self.answered = true;
        } else {
            self.open_probes = 0;
        }
    }

    /// A probe could not be written. Returns whether the session has ended.
    pub fn probe_failed(&mut self, policy: &Policy, rule: Rule, now: MonotonicTime) -> bool {
        let patience = match rule {
            Rule::Probed => policy.heartbeat,
            Rule::Timeout { away, .. } => away,
        };
        self.machine =
            step(self.machine, true, now < self.last_heartbeat.plus(patience), ProbeOutcome::Failed);
        self.state() == SessionState::Offline
    }

    /// `now` is a whole second.
    pub fn check(&mut self, policy: &Policy, rule: Rule, now: MonotonicTime) -> Check {
        match rule {
            Rule::Timeout { away, gone } => {
                let gone_at = self.last_activity.plus(gone).floor();
                if now >= gone_at {
                    return self.expire();
                }
                let away_at = self.last_heartbeat.plus(away);
                if self.state() == SessionState::Online && now >= away_at {
                    self.machine = step(self.machine, true, false, ProbeOutcome::Unanswered);
                }
                Check::next_at(if self.state() == SessionState::Online {
                    away_at.min(gone_at)
                } else {
                    gone_at
                })
            }
            Rule::Probed if self.state() == SessionState::Online => self.check_online(policy, now),
            Rule::Probed => self.check_away(policy, now),
        }
    }

    fn check_online(&mut self, policy: &Policy, now: MonotonicTime) -> Check {
        let overdue_at = self.last_heartbeat.plus(policy.heartbeat);
        if now < overdue_at {
            return Check::next_at(overdue_at);
        }
        let answer_due = self.answer_due(policy);
        if self.open_probes == 0 {
            return self.send_probe(now, now.plus(policy.probe));
        }
        if now < answer_due {
            return Check::next_at(answer_due);
        }
        let probe = if self.answered { ProbeOutcome::Answered } else { ProbeOutcome::Unanswered };
        self.machine = step(self.machine, true, false, probe);
        if std::mem::take(&mut self.answered) {
            self.open_probes = 0;
        }
        self.check_away(policy, now)
    }

    fn check_away(&mut self, policy: &Policy, now: MonotonicTime) -> Check {
        if self.open_probes == 0 {
            let probe_at = self.last_activity.plus(policy.heartbeat);
            if now < probe_at {
                return Check::next_at(probe_at);
            }
            return self.send_probe(now, now.plus(policy.probe));
        }
        let gone_at = self.last_activity.plus(policy.gone()).floor().max(self.answer_due(policy));
        if now >= gone_at {
            return self.expire();
        }
        if u32::from(self.open_probes) > policy.probes_max {
            return Check::next_at(gone_at);
        }
        let last_due = MonotonicTime(u64::from(self.last_probe_s) * 1000).plus(policy.probe);
        let probe_at = self.last_activity.plus(policy.probing()).max(last_due);
        if now < probe_at {
            return Check::next_at(probe_at.min(gone_at));
        }
        self.machine = step(self.machine, true, false, ProbeOutcome::Unanswered);
        self.send_probe(now, gone_at.min(now.plus(policy.probe)))
    }

    /// When the answer to the first open probe is due; no later than the timeout in the foreground.
    fn answer_due(&self, policy: &Policy) -> MonotonicTime {
        let probed_at = MonotonicTime(u64::from(self.first_probe_s) * 1000);
        let patience = policy.gone().0.saturating_sub(policy.heartbeat.0).max(1);
        probed_at.plus(policy.probe.min(domain::Seconds(patience)))
    }

    fn send_probe(&mut self, now: MonotonicTime, again: MonotonicTime) -> Check {
        if self.open_probes == 0 {
            self.first_probe_s = now.seconds();
        }
        self.last_probe_s = now.seconds();
        self.open_probes = self.open_probes.saturating_add(1);
        Check { probe: true, expired: false, next_at: again }
    }

    fn expire(&mut self) -> Check {
        self.machine = step(self.machine, false, false, ProbeOutcome::Failed);
        Check::expired()
    }
}

/// The nine heartbeats before the last one (P10), as distances, newest first.
#[derive(Clone, Copy, Debug, Default)]
struct HeartbeatIntervals {
    distances: [[u8; 3]; 9],
    len: u8,
}

impl HeartbeatIntervals {
    /// 4.6 hours, the most that three bytes hold. Longer distances are stored as this.
    const DISTANCE_MS_MAX: u64 = 0xff_ffff;

    fn push(&mut self, distance_ms: u64) {
        let [a, b, c, ..] = distance_ms.min(Self::DISTANCE_MS_MAX).to_le_bytes();
        self.distances.copy_within(..8, 1);
        self.distances[0] = [a, b, c];
        self.len = (self.len + 1).min(9);
    }

    fn distances_ms(&self) -> impl Iterator<Item = u32> {
        let kept = &self.distances[..usize::from(self.len)];
        kept.iter().map(|[a, b, c]| u32::from_le_bytes([*a, *b, *c, 0]))
    }
}
