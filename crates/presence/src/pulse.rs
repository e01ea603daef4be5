//! The pulse of one session: when it was heard, when it is asked, when it is given up.
//!
//! Drives the document's [`machine`] through time. For a connection in use (P7), from its last sign of life on, with the
//! default settings:
//!
//! | after | what happens |
//! |---|---|
//! | 30 s | the heartbeat is overdue: one probe |
//! | 35 s | away, whether the probe was answered or not: the network stack lives, the app does not |
//! | 60 s | not answered: a probe every 5 s, six of them |
//! | 90 s | gone |
//!
//! An answer is a sign of life, but no heartbeat: the session stays away, and the ladder starts again from the answer. A
//! heartbeat makes it online at once. Before 35 s nothing changes whatever happens, so jitter shows nowhere (P10).
//!
//! For everything else (P8: in the background, or without a connection) silence alone decides.
//!
//! # Guarantees
//!
//! - Gone no later than the rule says after the last sign of life, if it is looked at every second it asked for.
//! - Nobody with a connection in use is given up unasked: after a leap of time (the clock was set, the machine slept) a
//!   probe gets its time first. What we did not hear then is ours to find out, not theirs to have sent.

use crate::machine::{Machine, Phase, Probe, step};
use crate::moment::Steady;
use crate::policy::{Policy, Rule};

/// When a session was heard and asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulse {
    /// The last heartbeat.
    heard: Steady,
    /// The last sign of life: a heartbeat or an answered probe.
    sign: Steady,
    /// When the first and the last probe went out that are not answered, in seconds. Probes go out on whole seconds.
    asked_first_s: u32,
    asked_last_s: u32,
    /// How many that are. Zero: none, or the last one was answered.
    asked: u8,
    /// The first probe was answered, and its time is not over yet.
    answered: bool,
    machine: Machine,
    earlier: Earlier,
}

/// What a look at a pulse found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Send a probe.
    pub ask: bool,
    /// It is over.
    pub gone: bool,
    /// Look again then.
    pub again: Steady,
}

impl Look {
    fn again(at: Steady) -> Look {
        Look { ask: false, gone: false, again: at }
    }

    fn gone() -> Look {
        Look { ask: false, gone: true, again: Steady::default() }
    }
}

impl Pulse {
    pub fn new(now: Steady) -> Pulse {
        Pulse {
            heard: now,
            sign: now,
            asked_first_s: 0,
            asked_last_s: 0,
            asked: 0,
            answered: false,
            machine: Machine::default(),
            earlier: Earlier::default(),
        }
    }

    pub fn phase(&self) -> Phase {
        self.machine.phase
    }

    /// The last ten heartbeats, the latest first.
    pub fn heartbeats(&self) -> impl Iterator<Item = Steady> {
        let mut at = self.heard;
        let earlier = self.earlier.distances_ms().map(move |distance_ms| {
            at = Steady(at.0.saturating_sub(u64::from(distance_ms)));
            at
        });
        std::iter::once(self.heard).chain(earlier)
    }

    pub fn sign(&self) -> Steady {
        self.sign
    }

    /// A heartbeat.
    pub fn heard(&mut self, now: Steady) {
        self.earlier.push(now.since_ms(self.heard));
        self.heard = now;
        self.sign = now;
        self.asked = 0;
        self.answered = false;
        self.machine = step(self.machine, true, true, Probe::Answered);
    }

    /// An answered probe.
    pub fn answered(&mut self, now: Steady) {
        self.sign = now;
        if self.phase() == Phase::Online && self.asked > 0 {
            self.answered = true;
        } else {
            self.asked = 0;
        }
    }

    /// A probe that could not be written. Whether it is over.
    pub fn failed(&mut self, policy: &Policy, rule: Rule, now: Steady) -> bool {
        let patience = match rule {
            Rule::Ladder => policy.heartbeat,
            Rule::Silence { away, .. } => away,
        };
        self.machine = step(self.machine, true, now < self.heard.plus(patience), Probe::Failed);
        self.phase() == Phase::Offline
    }

    /// Looks at the pulse. `now` is a whole second.
    pub fn look(&mut self, policy: &Policy, rule: Rule, now: Steady) -> Look {
        match rule {
            Rule::Silence { away, gone } => {
                let gone_at = self.sign.plus(gone).floor();
                if now >= gone_at {
                    return self.give_up();
                }
                let away_at = self.heard.plus(away);
                if self.phase() == Phase::Online && now >= away_at {
                    self.machine = step(self.machine, true, false, Probe::Unanswered);
                }
                Look::again(if self.phase() == Phase::Online { away_at.min(gone_at) } else { gone_at })
            }
            Rule::Ladder if self.phase() == Phase::Online => self.look_at_online(policy, now),
            Rule::Ladder => self.look_at_away(policy, now),
        }
    }

    fn look_at_online(&mut self, policy: &Policy, now: Steady) -> Look {
        let overdue_at = self.heard.plus(policy.heartbeat);
        if now < overdue_at {
            return Look::again(overdue_at);
        }
        let answer_due = self.answer_due(policy);
        if self.asked == 0 {
            return self.ask(now, now.plus(policy.probe));
        }
        if now < answer_due {
            return Look::again(answer_due);
        }
        let probe = if self.answered { Probe::Answered } else { Probe::Unanswered };
        self.machine = step(self.machine, true, false, probe);
        if std::mem::take(&mut self.answered) {
            self.asked = 0;
        }
        self.look_at_away(policy, now)
    }

    fn look_at_away(&mut self, policy: &Policy, now: Steady) -> Look {
        if self.asked == 0 {
            let ask_at = self.sign.plus(policy.heartbeat);
            if now < ask_at {
                return Look::again(ask_at);
            }
            return self.ask(now, now.plus(policy.probe));
        }
        let gone_at = self.sign.plus(policy.gone()).floor().max(self.answer_due(policy));
        if now >= gone_at {
            return self.give_up();
        }
        if u32::from(self.asked) > policy.probes_max {
            return Look::again(gone_at);
        }
        let last_due = Steady(u64::from(self.asked_last_s) * 1000).plus(policy.probe);
        let ask_at = self.sign.plus(policy.probing()).max(last_due);
        if now < ask_at {
            return Look::again(ask_at.min(gone_at));
        }
        self.machine = step(self.machine, true, false, Probe::Unanswered);
        self.ask(now, gone_at.min(now.plus(policy.probe)))
    }

    /// When the first unanswered probe should have been answered; no later than a device in use may be silent.
    fn answer_due(&self, policy: &Policy) -> Steady {
        let asked_at = Steady(u64::from(self.asked_first_s) * 1000);
        let patience = policy.gone().0.saturating_sub(policy.heartbeat.0).max(1);
        asked_at.plus(policy.probe.min(domain::Seconds(patience)))
    }

    fn ask(&mut self, now: Steady, again: Steady) -> Look {
        if self.asked == 0 {
            self.asked_first_s = now.seconds();
        }
        self.asked_last_s = now.seconds();
        self.asked = self.asked.saturating_add(1);
        Look { ask: true, gone: false, again }
    }

    fn give_up(&mut self) -> Look {
        self.machine = step(self.machine, false, false, Probe::Failed);
        Look::gone()
    }
}

/// The nine heartbeats before the last one (P10), as distances: the first is the latest.
#[derive(Clone, Copy, Debug, Default)]
struct Earlier {
    distances: [[u8; 3]; 9],
    len: u8,
}

impl Earlier {
    /// What three bytes hold: 4.6 hours. A greater distance is kept as this.
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
