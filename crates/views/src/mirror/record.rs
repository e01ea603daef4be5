//! What is remembered of an active peer, so that an entry about its end can be written.
//!
//! One text of eight words. Only we write it; what cannot be read is treated as not there.

use std::net::IpAddr;

use domain::{AnnounceEvent, Cause, InfoHash, Passkey, PeerId, TorrentId, UnixTime, UserId};
use journal::{Fields, TrafficEntry};

/// What is written where a word is missing.
const NONE: &str = "-";

/// The last announce of a peer that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) at: UnixTime,
    pub(super) user: UserId,
    passkey: Option<Passkey>,
    ip: IpAddr,
    port: u16,
    left: Option<u64>,
    interval_s: u32,
    min_interval_s: u32,
}

impl Record {
    pub(super) fn of(entry: &TrafficEntry, user: UserId) -> Record {
        Record {
            at: entry.at,
            user,
            passkey: entry.passkey,
            ip: entry.ip,
            port: entry.port,
            left: entry.left,
            interval_s: entry.interval.0,
            min_interval_s: entry.min_interval.0,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let passkey = self.passkey.map_or_else(|| NONE.to_owned(), |passkey| passkey.to_string());
        let left = self.left.map_or_else(|| NONE.to_owned(), |left| left.to_string());
        let Record { at, user, ip, port, interval_s, min_interval_s, .. } = self;
        format!("{at} {user} {passkey} {ip} {port} {left} {interval_s} {min_interval_s}")
    }

    pub(super) fn parse(text: &str) -> Option<Record> {
        let words: Vec<&str> = text.split(' ').collect();
        let [at, user, passkey, ip, port, left, interval_s, min_interval_s] = words.as_slice() else {
            return None;
        };
        Some(Record {
            at: UnixTime(at.parse().ok()?),
            user: user.parse().ok()?,
            passkey: if *passkey == NONE { None } else { Some(passkey.parse().ok()?) },
            ip: ip.parse().ok()?,
            port: port.parse().ok()?,
            left: if *left == NONE { None } else { Some(left.parse().ok()?) },
            interval_s: interval_s.parse().ok()?,
            min_interval_s: min_interval_s.parse().ok()?,
        })
    }

    /// The entry that says that this peer fell silent (M6): the fourteen fields, then who and what, and why. No totals:
    /// nobody heard any.
    pub(super) fn timeout_entry(
        &self,
        (torrent, info_hash): (TorrentId, &InfoHash),
        peer: &PeerId,
        now: UnixTime,
    ) -> Fields {
        let at = now.max(self.at);
        let mut fields = Fields::with_room();
        match self.passkey {
            Some(passkey) => fields.push_text("passkey", passkey),
            None => fields.push("passkey", ""),
        }
        fields.push_text("infohash", info_hash);
        fields.push_text("peer_id", peer);
        fields.push_text("port", self.port);
        fields.push_text("ip", self.ip);
        fields.push("af", if self.ip.is_ipv4() { "IPv4" } else { "IPv6" });
        fields.push("du", "0");
        fields.push("dd", "0");
        fields.push_text("left", self.left.unwrap_or(i64::MAX as u64));
        fields.push("event", AnnounceEvent::Stopped.name());
        fields.push_text("ts", at);
        fields.push_text("dt", at.since(self.at).0);
        fields.push_text("interval", self.interval_s);
        fields.push_text("min_interval", self.min_interval_s);
        fields.push("cause", Cause::Timeout.name());
        fields.push_text("user", self.user);
        fields.push_text("torrent", torrent);
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m6_a_record_comes_back_as_the_entry_of_a_peer_that_fell_silent() {
        let texts = [
            "1750000000 7 0123456789abcdef 2001:db8::1 6881 - 1800 900",
            "1750000000 7 - 10.0.0.1 0 17 1800 900",
        ];
        for text in texts {
            let record = Record::parse(text).unwrap();
            assert_eq!(record.to_text(), text);
            let torrent = (TorrentId::new(42).unwrap(), &InfoHash([1; 20]));
            let fields = record.timeout_entry(torrent, &PeerId([2; 20]), UnixTime(1_750_002_500));
            let entry = TrafficEntry::parse(&fields).unwrap();
            assert_eq!((entry.event, entry.cause), (AnnounceEvent::Stopped, Cause::Timeout));
            assert_eq!((entry.at.0, entry.since_last.unwrap().0), (1_750_002_500, 2500));
            assert_eq!((entry.left, entry.ip), (record.left, record.ip));
            assert_eq!((entry.user, entry.totals), (Some(record.user), None));
        }
        for text in ["", "1 2 3", "x 7 - 10.0.0.1 0 17 1800 900", "1 7 - 10.0.0.1 0 17 1800 900 5"] {
            assert_eq!(Record::parse(text), None, "{text}");
        }
    }
}
