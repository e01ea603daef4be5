//! The gain of one entry.

use domain::{AnnounceEvent, Cause, RateCeiling, RiskEvent, RiskKind, Seconds, UnixTime};
use journal::TrafficEntry;

use super::{Rules, reported_at, risk_of};
use crate::account_state::Client;
use crate::admit::Admitted;
use crate::bucket::{Bucket, BucketLimit};
use crate::run::Counters;

pub(super) type Span = (UnixTime, UnixTime);

#[derive(Clone, Copy, Debug)]
pub(super) struct EntryGain {
    pub(super) at: UnixTime,
    /// Bytes of an entry without totals. Our own entries are credited by their runs.
    pub(super) raw: Counters,
    pub(super) bonus_uploaded_x100: i128,
    pub(super) bonus_downloaded_x100: i128,
    pub(super) seeding: Option<Span>,
    pub(super) leeching: Option<Span>,
    pub(super) is_completion: bool,
}

pub(super) fn gain_of(
    entry: &Admitted<'_>,
    client: &mut Client,
    rules: &Rules<'_>,
    risks: &mut Vec<RiskEvent>,
) -> EntryGain {
    let announce = &entry.arrival.entry;
    let moved = match announce.totals {
        Some(_) => Counters { uploaded: announce.uploaded_delta, downloaded: announce.downloaded_delta },
        None => granted(entry, &mut client.sums.foreign_bucket, rules, risks),
    };
    // The bonus depends on the time of the entry, even if bytes follow from runs.
    let in_force = rules.multipliers.in_force(entry.user, entry.torrent, announce.at);
    let span = span_before(announce, rules);
    let was_seeding = announce.left == Some(0) && announce.event != AnnounceEvent::Completed;
    EntryGain {
        at: announce.at,
        raw: if announce.totals.is_some() { Counters::default() } else { moved },
        bonus_uploaded_x100: in_force.bonus_uploaded_x100(moved.uploaded),
        bonus_downloaded_x100: in_force.bonus_downloaded_x100(moved.downloaded),
        seeding: span.filter(|_| was_seeding && is_reachable(announce)),
        leeching: span.filter(|_| !was_seeding),
        is_completion: announce.event == AnnounceEvent::Completed,
    }
}

/// The time before an entry that counts as seeding or leeching (L4): none for timeouts and removals, for `started`, and
/// for a client that was away for longer than a peer is kept, which is a new session. Until it was completed, a torrent
/// was leeched.
fn span_before(entry: &TrafficEntry, rules: &Rules<'_>) -> Option<Span> {
    if entry.cause != Cause::Announce || entry.event == AnnounceEvent::Started {
        return None;
    }
    let elapsed = entry.since_last.unwrap_or(entry.interval);
    let to = reported_at(entry, rules);
    (elapsed <= entry.interval + rules.silence.grace).then_some((to - elapsed, to))
}

/// A client on port 0 cannot seed. Some clients send it with `stopped`.
fn is_reachable(entry: &TrafficEntry) -> bool {
    entry.port != 0 || entry.event == AnnounceEvent::Stopped
}

/// The time that an entry reports on: at most interval + grace, none for timeouts and removals. Without `dt`, as from
/// other producers, it is the interval.
pub(super) fn reported_time(entry: &TrafficEntry, peer_grace: Seconds) -> Seconds {
    if entry.cause != Cause::Announce {
        return Seconds(0);
    }
    let is_given = |elapsed: &Seconds| elapsed.0 > 0 || entry.totals.is_some();
    let elapsed = entry.since_last.filter(is_given).unwrap_or(entry.interval);
    elapsed.min(entry.interval + peer_grace)
}

/// The most that is plausible for a single entry. Entries with totals are limited by the bucket over their runs; others
/// have only their own claim.
pub(crate) fn plausible(entry: &TrafficEntry, ceiling: RateCeiling) -> Counters {
    let allowance = match entry.totals {
        Some(_) => u64::MAX,
        None => ceiling.allowance(entry.since_last.filter(|elapsed| elapsed.0 > 0).unwrap_or(entry.interval)),
    };
    Counters {
        uploaded: entry.uploaded_delta.min(allowance),
        downloaded: entry.downloaded_delta.min(allowance),
    }
}

/// The claim of an entry without totals, as far as its client's bucket allows (J8).
fn granted(
    entry: &Admitted<'_>,
    bucket: &mut Bucket,
    rules: &Rules<'_>,
    risks: &mut Vec<RiskEvent>,
) -> Counters {
    let announce = &entry.arrival.entry;
    let limit = BucketLimit::of_client(rules.ceiling);
    let claimed = Counters { uploaded: announce.uploaded_delta, downloaded: announce.downloaded_delta };
    let (to, time) = (reported_at(announce, rules), reported_time(announce, rules.silence.grace));
    let is_told_time = announce.since_last.is_some_and(|elapsed| elapsed.0 > 0);
    let granted = if bucket.is_unused() {
        *bucket = Bucket::full_at(to - time);
        bucket.grant(to, claimed, &limit)
    } else if is_told_time || to < bucket.at {
        // The producer measured the time itself.
        let granted = bucket.grant_late(time, claimed, &limit);
        bucket.at = bucket.at.max(to);
        granted
    } else {
        bucket.grant(to, claimed, &limit)
    };
    if granted != claimed {
        risks.push(RiskEvent {
            uploaded_claimed: claimed.uploaded,
            uploaded_credited: granted.uploaded,
            downloaded_claimed: claimed.downloaded,
            downloaded_credited: granted.downloaded,
            ..risk_of(RiskKind::ClientRate, entry, rules.ceiling)
        });
    }
    granted
}
