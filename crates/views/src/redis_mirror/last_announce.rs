//! What the state has of an active peer's last announce, for a timeout entry.
//!
//! Fields separated by spaces. Only the mirror writes it; malformed text counts as missing. It contains a passkey and
//! is never logged.

use std::net::IpAddr;
use std::str::FromStr;

use domain::{
    AnnounceEvent, Cause, ClientKey, InfoHash, NodeId, Passkey, PeerId, TorrentId, UnixTime, UserId,
};
use journal::{Fields, Totals, TrafficEntry};

/// A missing value.
const NONE: &str = "-";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastAnnounce {
    passkey: Option<Passkey>,
    ip: IpAddr,
    port: u16,
    left: Option<u64>,
    interval_s: u32,
    min_interval_s: u32,
    /// Node, totals and key identify the client to the other views.
    node: Option<NodeId>,
    totals: Option<Totals>,
    key: Option<ClientKey>,
}

/// A peer that expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout<'a> {
    pub(super) torrent: TorrentId,
    pub(super) info_hash: &'a InfoHash,
    pub(super) peer: &'a PeerId,
    pub(super) user: UserId,
    /// Last announce.
    pub(super) since: UnixTime,
    /// Deadline, by steady time.
    pub(super) at: UnixTime,
    /// Deadline, by the wall clock.
    pub(super) date: UnixTime,
}

fn text_of(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// The outer option is none if malformed, the inner one if missing.
fn read<T: FromStr>(text: &str) -> Option<Option<T>> {
    if text == NONE { Some(None) } else { Some(Some(text.parse().ok()?)) }
}

impl LastAnnounce {
    pub(super) fn of(entry: &TrafficEntry) -> LastAnnounce {
        LastAnnounce {
            passkey: entry.passkey,
            ip: entry.ip,
            port: entry.port,
            left: entry.left,
            interval_s: entry.interval.0,
            min_interval_s: entry.min_interval.0,
            node: entry.node,
            totals: entry.totals,
            key: entry.key,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let (passkey, left, node, key) =
            (text_of(self.passkey), text_of(self.left), text_of(self.node), text_of(self.key));
        let session = text_of(self.totals.map(|totals| totals.session));
        let up = text_of(self.totals.map(|totals| totals.uploaded));
        let down = text_of(self.totals.map(|totals| totals.downloaded));
        let LastAnnounce { ip, port, interval_s, min_interval_s, .. } = self;
        format!(
            "{passkey} {ip} {port} {left} {interval_s} {min_interval_s} {node} {session} {up} {down} {key}"
        )
    }

    pub(super) fn parse(text: &str) -> Option<LastAnnounce> {
        let fields: Vec<&str> = text.split(' ').collect();
        let [passkey, ip, port, left, interval_s, min_interval_s, node, session, up, down, key] =
            fields.as_slice()
        else {
            return None;
        };
        let (session, uploaded, downloaded) = (read(session)?, read(up)?, read(down)?);
        let totals = match (session, uploaded, downloaded) {
            (Some(session), Some(uploaded), Some(downloaded)) => {
                Some(Totals { session, uploaded, downloaded })
            }
            _ => None,
        };
        Some(LastAnnounce {
            passkey: read(passkey)?,
            ip: ip.parse().ok()?,
            port: port.parse().ok()?,
            left: read(left)?,
            interval_s: interval_s.parse().ok()?,
            min_interval_s: min_interval_s.parse().ok()?,
            node: read(node)?,
            totals,
            key: read(key)?,
        })
    }

    /// The entry for the expired peer (M6): the fourteen fields, then additional ones. The totals are those of its last
    /// announce: repeated, they credit nothing, and they identify the client to every view.
    pub(super) fn timeout_entry(&self, timeout: &Timeout<'_>) -> Fields {
        let mut fields = Fields::with_entry_capacity();
        match self.passkey {
            Some(passkey) => fields.push_text("passkey", passkey),
            None => fields.push("passkey", ""),
        }
        fields.push_text("infohash", timeout.info_hash);
        fields.push_text("peer_id", timeout.peer);
        fields.push_text("port", self.port);
        fields.push_text("ip", self.ip);
        fields.push("af", if self.ip.is_ipv4() { "IPv4" } else { "IPv6" });
        fields.push("du", "0");
        fields.push("dd", "0");
        fields.push_text("left", self.left.unwrap_or(i64::MAX as u64));
        fields.push("event", AnnounceEvent::Stopped.name());
        fields.push_text("ts", timeout.date);
        fields.push_text("dt", timeout.at.since(timeout.since).0);
        fields.push_text("interval", self.interval_s);
        fields.push_text("min_interval", self.min_interval_s);
        if let Some(node) = self.node {
            fields.push_text("node", node);
        }
        if let Some(totals) = self.totals {
            fields.push_text("sid", totals.session);
            fields.push_text("up", totals.uploaded);
            fields.push_text("down", totals.downloaded);
        }
        fields.push("cause", Cause::Timeout.name());
        fields.push_text("user", timeout.user);
        fields.push_text("torrent", timeout.torrent);
        if let Some(key) = self.key {
            fields.push_text("key", key);
        }
        if timeout.at != timeout.date {
            fields.push_text("steady", timeout.at);
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 2] = [
        "0123456789abcdef 2001:db8::1 6881 - 1800 900 - - - - -",
        "- 10.0.0.1 0 17 1800 900 00000000000000ab 150b89c31afd823e-0000002a 7 18446744073709551615 0badcafe",
    ];

    #[test]
    fn m6_a_timeout_entry_has_the_fields_of_the_last_announce() {
        for text in TEXTS {
            let last_announce = LastAnnounce::parse(text).unwrap();
            assert_eq!(last_announce.to_text(), text);
            let timeout = Timeout {
                torrent: TorrentId::new(42).unwrap(),
                info_hash: &InfoHash([1; 20]),
                peer: &PeerId([2; 20]),
                user: UserId::new(7).unwrap(),
                since: UnixTime(1_750_000_000),
                at: UnixTime(1_750_002_500),
                date: UnixTime(1_750_002_500),
            };
            let set_back = Timeout { date: UnixTime(1_750_000_000), ..timeout };
            let entry = TrafficEntry::parse(&last_announce.timeout_entry(&set_back)).unwrap();
            assert_eq!((entry.at, entry.steady_at()), (set_back.date, set_back.at));
            let entry = TrafficEntry::parse(&last_announce.timeout_entry(&timeout)).unwrap();
            assert_eq!((entry.event, entry.cause), (AnnounceEvent::Stopped, Cause::Timeout));
            assert_eq!((entry.at.0, entry.since_last.unwrap().0), (1_750_002_500, 2500));
            assert_eq!((entry.left, entry.ip), (last_announce.left, last_announce.ip));
            assert_eq!((entry.user, entry.torrent), (Some(timeout.user), Some(timeout.torrent)));
            // These identify the client to the other views.
            assert_eq!(
                (entry.node, entry.totals, entry.key),
                (last_announce.node, last_announce.totals, last_announce.key)
            );
        }
    }

    #[test]
    fn malformed_text_is_none() {
        for text in ["", "1 2 3", "- x 0 17 1800 900 - - - - -", "- 10.0.0.1 0 17 1800 900 - - - - - -"] {
            assert_eq!(LastAnnounce::parse(text), None, "{text}");
        }
    }
}
