//! What is remembered of an active peer, so that an entry about its end can be written.
//!
//! One text of words with a blank between them. Only we write it; what cannot be read is treated as not there. Nothing
//! in it is ever logged: it holds a passkey.

use std::net::IpAddr;
use std::str::FromStr;

use domain::{
    AnnounceEvent, Cause, ClientKey, InfoHash, NodeId, Passkey, PeerId, TorrentId, UnixTime, UserId,
};
use journal::{Fields, Totals, TrafficEntry};

/// What is written where a word is missing.
const NONE: &str = "-";

/// The last announce of a peer that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    passkey: Option<Passkey>,
    ip: IpAddr,
    port: u16,
    left: Option<u64>,
    interval_s: u32,
    min_interval_s: u32,
    /// Who heard it, its counters and its key: by these the other views know the client.
    node: Option<NodeId>,
    totals: Option<Totals>,
    key: Option<ClientKey>,
}

/// Who fell silent, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence<'a> {
    pub(super) torrent: TorrentId,
    pub(super) info_hash: &'a InfoHash,
    pub(super) peer: &'a PeerId,
    pub(super) user: UserId,
    /// Its last announce.
    pub(super) since: UnixTime,
    /// When the silence became too long, by steady time.
    pub(super) at: UnixTime,
    /// The same by the wall clock.
    pub(super) date: UnixTime,
}

fn word(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// The inner option is none where the word stands for nothing.
fn read<T: FromStr>(text: &str) -> Option<Option<T>> {
    if text == NONE { Some(None) } else { Some(Some(text.parse().ok()?)) }
}

impl Record {
    pub(super) fn of(entry: &TrafficEntry) -> Record {
        Record {
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
            (word(self.passkey), word(self.left), word(self.node), word(self.key));
        let session = word(self.totals.map(|totals| totals.session));
        let up = word(self.totals.map(|totals| totals.uploaded));
        let down = word(self.totals.map(|totals| totals.downloaded));
        let Record { ip, port, interval_s, min_interval_s, .. } = self;
        format!(
            "{passkey} {ip} {port} {left} {interval_s} {min_interval_s} {node} {session} {up} {down} {key}"
        )
    }

    pub(super) fn parse(text: &str) -> Option<Record> {
        let words: Vec<&str> = text.split(' ').collect();
        let [passkey, ip, port, left, interval_s, min_interval_s, node, session, up, down, key] =
            words.as_slice()
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
        Some(Record {
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

    /// The entry that says that this peer fell silent (M6): the fourteen fields, then ours. The counters are those of
    /// its last announce: told again they credit nothing, and every view knows whose end this is.
    pub(super) fn timeout_entry(&self, silence: &Silence<'_>) -> Fields {
        let mut fields = Fields::with_entry_capacity();
        match self.passkey {
            Some(passkey) => fields.push_text("passkey", passkey),
            None => fields.push("passkey", ""),
        }
        fields.push_text("infohash", silence.info_hash);
        fields.push_text("peer_id", silence.peer);
        fields.push_text("port", self.port);
        fields.push_text("ip", self.ip);
        fields.push("af", if self.ip.is_ipv4() { "IPv4" } else { "IPv6" });
        fields.push("du", "0");
        fields.push("dd", "0");
        fields.push_text("left", self.left.unwrap_or(i64::MAX as u64));
        fields.push("event", AnnounceEvent::Stopped.name());
        fields.push_text("ts", silence.date);
        fields.push_text("dt", silence.at.since(silence.since).0);
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
        fields.push_text("user", silence.user);
        fields.push_text("torrent", silence.torrent);
        if let Some(key) = self.key {
            fields.push_text("key", key);
        }
        if silence.at != silence.date {
            fields.push_text("steady", silence.at);
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
    fn m6_a_record_comes_back_as_the_entry_of_a_peer_that_fell_silent() {
        for text in TEXTS {
            let record = Record::parse(text).unwrap();
            assert_eq!(record.to_text(), text);
            let silence = Silence {
                torrent: TorrentId::new(42).unwrap(),
                info_hash: &InfoHash([1; 20]),
                peer: &PeerId([2; 20]),
                user: UserId::new(7).unwrap(),
                since: UnixTime(1_750_000_000),
                at: UnixTime(1_750_002_500),
                date: UnixTime(1_750_002_500),
            };
            let set_back = Silence { date: UnixTime(1_750_000_000), ..silence };
            let entry = TrafficEntry::parse(&record.timeout_entry(&set_back)).unwrap();
            assert_eq!((entry.at, entry.steady_at()), (set_back.date, set_back.at));
            let entry = TrafficEntry::parse(&record.timeout_entry(&silence)).unwrap();
            assert_eq!((entry.event, entry.cause), (AnnounceEvent::Stopped, Cause::Timeout));
            assert_eq!((entry.at.0, entry.since_last.unwrap().0), (1_750_002_500, 2500));
            assert_eq!((entry.left, entry.ip), (record.left, record.ip));
            assert_eq!((entry.user, entry.torrent), (Some(silence.user), Some(silence.torrent)));
            // Who heard it, its counters and its key: the other views know it by these.
            assert_eq!((entry.node, entry.totals, entry.key), (record.node, record.totals, record.key));
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        for text in ["", "1 2 3", "- x 0 17 1800 900 - - - - -", "- 10.0.0.1 0 17 1800 900 - - - - - -"] {
            assert_eq!(Record::parse(text), None, "{text}");
        }
    }
}
