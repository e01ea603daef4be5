//! Risk events that the tracker reports (J8): what it sees in swarms and addresses, and the ledger cannot.
//!
//! Reports only: nothing here refuses an announce. Rates are judged and reported by the ledger, which knows what was
//! credited.

use domain::{RateCeiling, RiskEvent, RiskKind, Seconds, TorrentId, TrafficEvent, UnixTime};
use journal::risk::RiskThrottle;
use swarm::{Announce, Outcome};

use crate::limits::SharedAddresses;
use crate::traffic::TrafficSink;

/// From this many peer ids of one user on one torrent within an hour on, the user is reported. A user who starts a few
/// clients a few times needs fewer.
const PEER_IDS_REPORTED: u8 = 15;

/// Only the ledger's risks are about a rate.
const NO_CEILING: RateCeiling = RateCeiling { bytes_per_s: 0 };

/// What is remembered to report risks.
#[derive(Debug, Default)]
pub struct Risks {
    pub(crate) throttle: RiskThrottle,
    pub(crate) addresses: SharedAddresses,
}

impl Risks {
    /// Reports what is suspicious about an accepted announce. `address_users` is how many users share its address, where
    /// that is news.
    pub(crate) fn judge(
        &self,
        event: &TrafficEvent,
        outcome: &Outcome,
        address_users: Option<u32>,
        sink: &dyn TrafficSink,
    ) {
        if outcome.upload_without_leechers > 0 {
            let claimed = outcome.upload_without_leechers;
            let risk =
                RiskEvent { uploaded_claimed: claimed, ..risk_of(RiskKind::UploadWithoutLeechers, event) };
            self.report(risk, sink);
        }
        if outcome.peer_ids >= PEER_IDS_REPORTED {
            let count = outcome.peer_ids.into();
            self.report(RiskEvent { count, ..risk_of(RiskKind::ManyPeerIds, event) }, sink);
        }
        if let Some(users) = address_users {
            let count = users.into();
            self.report(RiskEvent { count, ..risk_of(RiskKind::SharedAddress, event) }, sink);
        }
    }

    /// Reports a user whose announce was refused for too many peer ids.
    pub(crate) fn refused_peer_id(
        &self,
        announce: &Announce,
        torrent: TorrentId,
        count: u8,
        at: UnixTime,
        sink: &dyn TrafficSink,
    ) {
        let risk = RiskEvent {
            kind: RiskKind::ManyPeerIds,
            user: announce.user,
            torrent: Some(torrent),
            info_hash: announce.info_hash,
            peer_id: announce.peer_id,
            ip: announce.ip,
            at,
            elapsed: Seconds(0),
            uploaded_claimed: 0,
            downloaded_claimed: 0,
            uploaded_credited: 0,
            downloaded_credited: 0,
            ceiling: NO_CEILING,
            count: count.into(),
            unreported: 0,
        };
        self.report(risk, sink);
    }

    fn report(&self, risk: RiskEvent, sink: &dyn TrafficSink) {
        if let Some(unreported) = self.throttle.admit(risk.user, risk.kind, risk.at) {
            sink.report(&RiskEvent { unreported, ..risk });
        }
    }
}

/// A risk with the figures of the announce it is about.
fn risk_of(kind: RiskKind, event: &TrafficEvent) -> RiskEvent {
    RiskEvent {
        kind,
        user: event.user,
        torrent: event.torrent,
        info_hash: event.info_hash,
        peer_id: event.peer_id,
        ip: event.ip,
        at: event.at,
        elapsed: event.since_last,
        uploaded_claimed: event.uploaded_delta,
        downloaded_claimed: event.downloaded_delta,
        uploaded_credited: event.uploaded_delta,
        downloaded_credited: event.downloaded_delta,
        ceiling: NO_CEILING,
        count: 0,
        unreported: 0,
    }
}
