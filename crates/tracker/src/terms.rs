//! On which terms an accepted announce is answered: how soon the client may and should come back, whether it is given
//! peers, and how many may leech.
//!
//! A torrent that awaits approval is announced like any other, and every announce is written down; but its clients are
//! told to come back soon, and nobody is given anybody, until it is approved.

use access::Admission;
use domain::{Seconds, UnixTime};
use swarm::{Rules, SlotLimits};

use crate::settings::LiveSettings;

/// What applies to one announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// When the client is told to come back.
    pub(crate) interval: Seconds,
    /// When it may come back at the soonest, as it is told.
    pub(crate) min_interval: Seconds,
    /// When it must not have come back before, to be given peers.
    pub(crate) patience: Seconds,
    /// Whether it is given peers.
    pub(crate) gives_peers: bool,
    /// How many may leech at once.
    pub(crate) slots: SlotLimits,
}

impl Terms {
    pub(crate) fn of(admission: &Admission, live: &LiveSettings, now: UnixTime) -> Terms {
        let is_pending = admission.approval.is_pending();
        let soonest =
            |seconds: Seconds| if is_pending { seconds.min(live.pending_interval) } else { seconds };
        // Who last came while the torrent awaited approval was told to come back soon. So patience is counted from the
        // approval on: the first announce behind it is given peers, however early it comes.
        let since_approval = admission.approval.since().map_or(Seconds(u32::MAX), |then| now.since(then));
        let min_interval = soonest(live.min_announce_interval);
        Terms {
            interval: soonest(live.announce_interval),
            min_interval,
            patience: min_interval.min(since_approval),
            gives_peers: !is_pending,
            slots: SlotLimits {
                of_user: admission.user_slots.limit(live.leeches_per_user_max),
                of_torrent: admission.torrent_slots.limit(live.leeches_per_torrent_max),
            },
        }
    }

    /// What an announce that nobody is let in for is told: the usual.
    pub(crate) fn usual(live: &LiveSettings) -> Terms {
        Terms {
            interval: live.announce_interval,
            min_interval: live.min_announce_interval,
            patience: live.min_announce_interval,
            gives_peers: true,
            slots: SlotLimits::default(),
        }
    }

    /// What the swarms go by.
    pub(crate) fn rules(&self, live: &LiveSettings) -> Rules {
        Rules { min_interval: self.patience, ..live.rules() }
    }
}
