//! Risk events that only the tracker can detect, from swarms and addresses (J8).
//!
//! Nothing here refuses an announce. The ledger reports implausible rates, because it knows what was credited.

use access::Admission;
use domain::{Announce, RateCeiling, RiskEvent, RiskKind, Seconds, TrafficEvent, UnixTime};
use journal::risk::RiskThrottle;
use swarm::Outcome;

use crate::limits::SharedAddresses;
use crate::traffic::TrafficSink;

/// Peer ids of one user on one torrent within an hour. A user who restarts a few clients a few times stays below.
const PEER_IDS_REPORTED: u8 = 15;

/// Only risks reported by the ledger have a ceiling.
const NO_CEILING: RateCeiling = RateCeiling { bytes_per_s: 0 };

#[derive(Debug, Default)]
pub struct RiskReporter {
    pub(crate) throttle: RiskThrottle,
    pub(crate) addresses: SharedAddresses,
}

impl RiskReporter {
    /// `address_users`: the number of users that share the address, if that is to be reported now.
    pub(crate) fn report_announce(
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

    pub(crate) fn report_refused_peer_id(
        &self,
        announce: &Announce,
        admission: &Admission,
        count: u8,
        at: UnixTime,
        sink: &dyn TrafficSink,
    ) {
        let risk = RiskEvent {
            kind: RiskKind::ManyPeerIds,
            user: admission.user,
            torrent: Some(admission.torrent),
            info_hash: admission.info_hash,
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
