//! How an accepted announce is answered: intervals, whether peers are returned, leech slots.
//!
//! A pending torrent is announced like any other, and every announce is recorded; but its clients get a short
//! interval and no peers until it is approved.

use access::Admission;
use domain::{Seconds, UnixTime};
use swarm::{Rules, SlotLimits};

use crate::settings::LiveSettings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnounceTerms {
    pub(crate) interval: Seconds,
    /// `min interval` of the reply.
    pub(crate) min_interval: Seconds,
    /// An announce sooner than this after the previous one gets no peers.
    pub(crate) peer_list_interval: Seconds,
    pub(crate) gives_peers: bool,
    pub(crate) slots: SlotLimits,
}

impl AnnounceTerms {
    pub(crate) fn of(admission: &Admission, live: &LiveSettings, now: UnixTime) -> AnnounceTerms {
        let is_pending = admission.approval.is_pending();
        let soonest =
            |seconds: Seconds| if is_pending { seconds.min(live.pending_interval) } else { seconds };
        // Clients that announced while the torrent was pending were told a short interval. Counting from the
        // approval, their first announce after it gets peers, however early it comes.
        let since_approval = admission.approval.since().map_or(Seconds(u32::MAX), |then| now.since(then));
        let min_interval = soonest(live.min_announce_interval);
        AnnounceTerms {
            interval: soonest(live.announce_interval),
            min_interval,
            peer_list_interval: min_interval.min(since_approval),
            gives_peers: !is_pending,
            slots: SlotLimits {
                of_user: admission.user_slots.limit(live.leeches_per_user_max),
                of_torrent: admission.torrent_slots.limit(live.leeches_per_torrent_max),
            },
        }
    }

    /// For a `stopped` of a client that is not admitted.
    pub(crate) fn standard(live: &LiveSettings) -> AnnounceTerms {
        AnnounceTerms {
            interval: live.announce_interval,
            min_interval: live.min_announce_interval,
            peer_list_interval: live.min_announce_interval,
            gives_peers: true,
            slots: SlotLimits::default(),
        }
    }

    pub(crate) fn rules(&self, live: &LiveSettings) -> Rules {
        Rules { min_interval: self.peer_list_interval, ..live.rules() }
    }
}
