//! How an accepted announce is answered: intervals, whether peers are returned, leech slots.
//!
//! A pending torrent is announced like any other, and every announce is recorded; but its clients get a short
//! interval and no peers until it is approved.

use access::Admission;
use domain::{Announce, Seconds};
use swarm::{Rules, SlotLimits, Terms};

use crate::settings::LiveSettings;

#[derive(Clone, Copy, Debug)]
pub(crate) struct AnnounceTerms {
    pub(crate) interval: Seconds,
    /// `min interval` of the reply.
    pub(crate) min_interval: Seconds,
    pub(crate) granted: Terms,
}

impl AnnounceTerms {
    pub(crate) fn of(announce: &Announce, admission: &Admission, live: &LiveSettings) -> AnnounceTerms {
        let is_pending = admission.approval.is_pending();
        let soonest =
            |seconds: Seconds| if is_pending { seconds.min(live.pending_interval) } else { seconds };
        // Clients that announced while the torrent was pending were told a short interval. Counting from the
        // approval, their first announce after it gets peers, however early it comes.
        let since_approval =
            admission.approval.since().map_or(Seconds(u32::MAX), |then| announce.now.since(then));
        let min_interval = soonest(live.min_announce_interval);
        AnnounceTerms {
            interval: soonest(live.announce_interval),
            min_interval,
            granted: Terms {
                user: admission.user,
                wanted: if is_pending { 0 } else { live.wanted(announce.numwant) },
                slots: SlotLimits {
                    of_user: admission.user_slots.limit(live.leeches_per_user_max),
                    of_torrent: admission.torrent_slots.limit(live.leeches_per_torrent_max),
                },
                // An announce sooner than this after the previous one gets no peers.
                rules: Rules { min_interval: min_interval.min(since_approval), ..live.rules() },
            },
        }
    }
}
