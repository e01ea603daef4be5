//! How long things may take. The settings of `[presence]`, as the core needs them.

use domain::Seconds;

use crate::device::AppState;

/// The rules by which silence becomes absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A device in use is to be heard this often (P7).
    pub heartbeat: Seconds,
    /// Each connection is pinged this often.
    pub ping: Seconds,
    /// How long a probe may take, and how often a silent device is asked again.
    pub probe: Seconds,
    /// How often a silent device is asked again at the most, before it is given up.
    pub probes_max: u32,
    /// Heartbeats that may be missing before a device is gone.
    pub missed_max: u32,
    /// A device in the background is away when silent for this long (P8).
    pub background_away: Seconds,
    /// And gone when silent for this long.
    pub background_gone: Seconds,
    /// How long those who were here before a restart have to come back (P11).
    pub pending: Seconds,
    /// How long somebody whose connection keeps breaking is still shown, at first. Zero turns this off.
    pub flap_grace: Seconds,
    /// And at the most.
    pub flap_grace_max: Seconds,
    /// A return within this time after a drop is flapping; staying for this long makes up for one.
    pub flap_forget: Seconds,
    /// Devices of one person.
    pub devices_max: u32,
    /// How old the remembered "last seen" of somebody who is here may get. Zero: as old as it likes.
    pub remember: Seconds,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            heartbeat: Seconds(30),
            ping: Seconds(25),
            probe: Seconds(5),
            probes_max: 6,
            missed_max: 3,
            background_away: Seconds(300),
            background_gone: Seconds(1800),
            pending: Seconds(300),
            flap_grace: Seconds(2),
            flap_grace_max: Seconds(60),
            flap_forget: Seconds(120),
            devices_max: 20,
            remember: Seconds(60),
        }
    }
}

/// The rule for one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A connection in use: it is asked before it is given up.
    Ladder,
    /// Nobody to ask, or no use in asking: silence alone decides.
    Silence {
        /// Away after this long.
        away: Seconds,
        /// Gone after this long.
        gone: Seconds,
    },
}

impl Policy {
    /// Sessions of one person: enough for every tab of a busy browser. Each message of a person looks through their
    /// sessions.
    pub const SESSIONS_MAX: u32 = 128;

    /// A person who left is remembered here for at least this long, so that what became of them can be read.
    pub(crate) const KEEP_MIN: Seconds = Seconds(60);

    /// Silence after which a device in use is gone.
    pub(crate) fn gone(&self) -> Seconds {
        Seconds(self.heartbeat.0.saturating_mul(self.missed_max.max(1)))
    }

    /// Silence after which a connection is asked again and again: late enough that the last answer is due when it would
    /// be gone, but not before the first probe had its time.
    pub(crate) fn probing(&self) -> Seconds {
        let asking = self.probe.0.saturating_mul(self.probes_max);
        Seconds(self.gone().0.saturating_sub(asking)).max(self.heartbeat + self.probe)
    }

    /// The rule for a session with or without a connection, in this state.
    pub(crate) fn rule(&self, connected: bool, app: AppState) -> Rule {
        match app {
            AppState::Foreground if connected => Rule::Ladder,
            AppState::Foreground => Rule::Silence {
                away: Seconds(self.heartbeat.0.saturating_mul(2)).min(self.gone()),
                gone: self.gone(),
            },
            AppState::Background | AppState::Inactive => Rule::Silence {
                away: self.background_away.min(self.background_gone),
                gone: self.background_gone,
            },
        }
    }

    /// Silence after which a session of this rule is gone.
    pub(crate) fn gone_by(&self, rule: Rule) -> Seconds {
        match rule {
            Rule::Ladder => self.gone(),
            Rule::Silence { gone, .. } => gone,
        }
    }

    /// Every session is looked at this often: never later than anything that can follow from a message, so that no
    /// message has to bring a look forward.
    pub(crate) fn look(&self) -> Seconds {
        let shortest = self.ping.min(self.heartbeat).min(self.background_away).min(self.background_gone);
        shortest.max(Seconds(1))
    }

    /// How long somebody is still shown whose connection broke, at this level of flapping.
    pub(crate) fn grace(&self, level: u8) -> Seconds {
        match level.checked_sub(2) {
            None => Seconds(0),
            Some(doublings) => {
                let factor = 1_u32.checked_shl(u32::from(doublings)).unwrap_or(u32::MAX);
                Seconds(self.flap_grace.0.saturating_mul(factor)).min(self.flap_grace_max)
            }
        }
    }

    /// The level above this one; levels end where the grace does not grow any more.
    pub(crate) fn flap_level_above(&self, level: u8) -> u8 {
        let ends = self.flap_grace.0 == 0 || (level >= 2 && self.grace(level) >= self.flap_grace_max);
        if ends { level } else { level.saturating_add(1) }
    }

    /// How long a person who left is kept here.
    pub(crate) fn keep_after_leaving(&self) -> Seconds {
        self.flap_forget.max(Policy::KEEP_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p7_probing_ends_when_a_device_is_gone() {
        let policy = Policy::default();
        assert_eq!((policy.probing(), policy.gone()), (Seconds(60), Seconds(90)));
        let hasty = Policy { missed_max: 2, ..Policy::default() };
        assert_eq!((hasty.probing(), hasty.gone()), (Seconds(35), Seconds(60)));
        let patient = Policy { missed_max: 5, ..Policy::default() };
        assert_eq!((patient.probing(), patient.gone()), (Seconds(120), Seconds(150)));
    }

    #[test]
    fn the_grace_doubles_up_to_its_bound() {
        let policy = Policy::default();
        let mut level = 0;
        let mut graces = Vec::new();
        for _ in 0..10 {
            level = policy.flap_level_above(level);
            graces.push(policy.grace(level).0);
        }
        assert_eq!(graces, [0, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert_eq!(level, 7);
        assert_eq!(policy.grace(255), Seconds(60));
    }
}
