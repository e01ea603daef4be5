//! Timeouts and limits: the settings of `[presence]`.

use domain::Seconds;

use crate::device::AppState;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Expected interval of heartbeats of an app in the foreground (P7).
    pub heartbeat: Seconds,
    /// Interval of pings on each connection.
    pub ping: Seconds,
    /// How long to wait for the answer to a probe, and the interval of further probes.
    pub probe: Seconds,
    /// Probes without an answer after which a silent session ends.
    pub probes_max: u32,
    /// Missed heartbeats after which a session ends.
    pub missed_max: u32,
    /// Silence after which a session in the background is away (P8).
    pub background_away: Seconds,
    /// Silence after which a session in the background ends.
    pub background_gone: Seconds,
    /// How long users that were online before a restart have to reconnect (P11).
    pub pending: Seconds,
    /// Flap damping: how long a user whose connection keeps breaking stays shown, at first. Zero disables it.
    pub flap_grace: Seconds,
    /// The longest grace period.
    pub flap_grace_max: Seconds,
    /// A return within this time after a drop is a flap; staying this long removes one flap.
    pub flap_forget: Seconds,
    /// Devices of one user.
    pub devices_max: u32,
    /// The most that the stored `last_seen` of an online user may lag behind. Zero: unlimited.
    pub store_interval: Seconds,
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
            store_interval: Seconds(60),
        }
    }
}

/// How a session times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A connection in the foreground: it is probed before it ends.
    Probed,
    /// Silence alone decides: there is no connection to probe, or the app is in the background.
    Timeout { away: Seconds, gone: Seconds },
}

impl Policy {
    /// Sessions of one user: enough for every tab of a busy browser. Each message iterates over the user's sessions.
    pub const SESSIONS_MAX: u32 = 128;

    /// The least time that an offline user stays in the table, so that the last change can be read.
    pub(crate) const KEEP_MIN: Seconds = Seconds(60);

    /// Silence after which a session in the foreground ends.
    pub fn gone(&self) -> Seconds {
        Seconds(self.heartbeat.0.saturating_mul(self.missed_max.max(1)))
    }

    /// Silence after which probes are repeated: late enough that the last answer is due at the timeout, but not before
    /// the first probe had its time.
    pub(crate) fn probing(&self) -> Seconds {
        let asking = self.probe.0.saturating_mul(self.probes_max);
        Seconds(self.gone().0.saturating_sub(asking)).max(self.heartbeat + self.probe)
    }

    pub(crate) fn rule(&self, connected: bool, app: AppState) -> Rule {
        match app {
            AppState::Foreground if connected => Rule::Probed,
            AppState::Foreground => Rule::Timeout {
                away: Seconds(self.heartbeat.0.saturating_mul(2)).min(self.gone()),
                gone: self.gone(),
            },
            AppState::Background | AppState::Inactive => Rule::Timeout {
                away: self.background_away.min(self.background_gone),
                gone: self.background_gone,
            },
        }
    }

    /// Silence after which a session under this rule ends.
    pub(crate) fn gone_after(&self, rule: Rule) -> Seconds {
        match rule {
            Rule::Probed => self.gone(),
            Rule::Timeout { gone, .. } => gone,
        }
    }

    /// Interval of checks of each session: no longer than any timeout that a message can start, so that no message has
    /// to move a check.
    pub(crate) fn check_interval(&self) -> Seconds {
        let shortest = self.ping.min(self.heartbeat).min(self.background_away).min(self.background_gone);
        shortest.max(Seconds(1))
    }

    /// Grace period after a drop, by flap level.
    pub(crate) fn grace(&self, level: u8) -> Seconds {
        match level.checked_sub(2) {
            None => Seconds(0),
            Some(doublings) => {
                let factor = 1_u32.checked_shl(u32::from(doublings)).unwrap_or(u32::MAX);
                Seconds(self.flap_grace.0.saturating_mul(factor)).min(self.flap_grace_max)
            }
        }
    }

    /// Levels end where the grace period no longer grows.
    pub(crate) fn flap_level_above(&self, level: u8) -> u8 {
        let ends = self.flap_grace.0 == 0 || (level >= 2 && self.grace(level) >= self.flap_grace_max);
        if ends { level } else { level.saturating_add(1) }
    }

    /// How long an offline user stays in the table.
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
