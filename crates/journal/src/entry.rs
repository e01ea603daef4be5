//! A parsed entry of the traffic lane: the fourteen fields of J2, then ours.
//!
//! Parsing is strict about the fourteen, for every producer, and reports which field is wrong. Unknown fields are
//! ignored (J2). Each of our own fields may be missing (J3), but must be well-formed if present.

use std::net::IpAddr;
use std::str::FromStr;

use domain::clock::Clock;
use domain::{
    AHEAD_MAX, AnnounceEvent, Cause, ClientId, ClientKey, InfoHash, NodeId, Passkey, PeerId, RunId, Seconds,
    SessionId, TorrentId, TrafficEvent, UnixTime, UserId,
};

use crate::event_fields::{LEFT_UNKNOWN, for_each_field};
use crate::fields::Fields;

/// No client continues a session after a longer absence.
const SINCE_LAST_MAX_S: u32 = 366 * 24 * 60 * 60;

/// A client's counters (`up`, `down`) and their run (`sid`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub session: SessionId,
    /// Running total of bytes uploaded.
    pub uploaded: u64,
    /// Running total of bytes downloaded.
    pub downloaded: u64,
}

/// One announce, or one peer that expired or was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficEntry {
    /// None if our own tracker no longer knew it: then `user` is set.
    pub passkey: Option<Passkey>,
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    pub port: u16,
    pub ip: IpAddr,
    /// Bytes uploaded since the client's last announce (`du`).
    pub uploaded_delta: u64,
    /// Bytes downloaded since the client's last announce (`dd`).
    pub downloaded_delta: u64,
    /// None if the client did not send it.
    pub left: Option<u64>,
    pub event: AnnounceEvent,
    /// Wall-clock time of the node (`ts`).
    pub at: UnixTime,
    /// Steady time of the node, if it differs from `at`; see [`TrafficEntry::steady_at`].
    pub steady: Option<UnixTime>,
    /// Time since the client's last announce, zero for the first (`dt`); none if the field is missing (L4).
    pub since_last: Option<Seconds>,
    /// The interval sent to the client.
    pub interval: Seconds,
    /// The min interval sent to the client.
    pub min_interval: Seconds,
    /// Set if our tracker wrote the entry.
    pub user: Option<UserId>,
    /// Set if our tracker wrote the entry and knew the torrent.
    pub torrent: Option<TorrentId>,
    /// The writing process, if it was one of our trackers.
    pub node: Option<NodeId>,
    pub totals: Option<Totals>,
    pub cause: Cause,
    /// Set if our tracker wrote the entry and the client sent one.
    pub key: Option<ClientKey>,
    /// Bytes claimed as uploaded that must not be credited, although the totals contain them (`nu`); zero if the field
    /// is missing.
    pub uncredited_upload: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// A required field is missing.
    #[error("{field}: the field is missing")]
    Missing { field: &'static str },
    #[error("{field}: expected {expected}, found \"{found}\"")]
    Malformed {
        field: &'static str,
        expected: &'static str,
        /// The first characters of the value.
        found: String,
    },
    /// `af` contradicts `ip`.
    #[error("af: does not match the address in ip")]
    WrongFamily,
    /// Neither passkey nor user.
    #[error("passkey: empty, and there is no user")]
    NoUser,
    /// Dated further ahead than clocks may differ.
    #[error(
        "ts: {at} is more than {AHEAD_MAX} ahead of this machine's clock ({now}); check the producer's clock"
    )]
    Ahead { at: UnixTime, now: UnixTime },
}

impl TrafficEntry {
    /// The fields of an event of our tracker, in the order of J2, then ours.
    pub fn fields_of(event: &TrafficEvent) -> Fields {
        let mut fields = Fields::with_entry_capacity();
        for_each_field(event, |name, value| fields.push(name, value));
        fields
    }

    /// Parses an entry of any producer.
    pub fn parse(fields: &Fields) -> Result<TrafficEntry, BadEntry> {
        match fields.as_event() {
            Some(event) => TrafficEntry::of_event(event),
            None => TrafficEntry::parse_text(fields),
        }
    }

    /// The same as from the fields of the event.
    fn of_event(event: &TrafficEvent) -> Result<TrafficEntry, BadEntry> {
        if event.since_last.0 > SINCE_LAST_MAX_S {
            return Err(malformed(slot::DT, SINCE_LAST, event.since_last.0.to_string().as_bytes()));
        }
        let has_totals = event.session.run != RunId::NONE;
        Ok(TrafficEntry {
            passkey: event.passkey,
            info_hash: event.info_hash,
            peer_id: event.peer_id,
            port: event.port,
            ip: event.ip.to_canonical(),
            uploaded_delta: event.uploaded_delta,
            downloaded_delta: event.downloaded_delta,
            left: event.left.filter(|left| *left < LEFT_UNKNOWN),
            event: event.event,
            at: event.at,
            steady: (event.steady != event.at).then_some(event.steady),
            since_last: Some(event.since_last),
            interval: event.interval,
            min_interval: event.min_interval,
            user: Some(event.user),
            torrent: event.torrent,
            node: Some(event.node),
            totals: has_totals.then_some(Totals {
                session: event.session,
                uploaded: event.uploaded_total,
                downloaded: event.downloaded_total,
            }),
            cause: event.cause,
            key: event.key.is_some().then_some(event.key),
            uncredited_upload: event.uncredited_upload,
        })
    }

    /// The event of one of our trackers; none if another producer wrote the entry.
    pub(crate) fn to_event(self) -> Option<TrafficEvent> {
        let totals = self.totals.unwrap_or(Totals {
            session: SessionId { client: ClientId(0), run: RunId::NONE },
            uploaded: 0,
            downloaded: 0,
        });
        Some(TrafficEvent {
            passkey: self.passkey,
            user: self.user?,
            torrent: self.torrent,
            info_hash: self.info_hash,
            peer_id: self.peer_id,
            port: self.port,
            ip: self.ip,
            uploaded_delta: self.uploaded_delta,
            downloaded_delta: self.downloaded_delta,
            left: self.left,
            event: self.event,
            at: self.at,
            steady: self.steady_at(),
            since_last: self.since_last?,
            interval: self.interval,
            min_interval: self.min_interval,
            node: self.node?,
            session: totals.session,
            uploaded_total: totals.uploaded,
            downloaded_total: totals.downloaded,
            cause: self.cause,
            key: self.key.unwrap_or_default(),
            uncredited_upload: self.uncredited_upload,
        })
    }

    fn parse_text(fields: &Fields) -> Result<TrafficEntry, BadEntry> {
        let read = Reader::new(fields);
        let user = read.optional(slot::USER, "a user's number")?;
        let passkey = match read.text_or_empty(slot::PASSKEY) {
            Some("") if user.is_some() => None,
            Some("") => return Err(BadEntry::NoUser),
            _ => Some(read.required(slot::PASSKEY, "8 to 64 hexadecimal digits")?),
        };
        let ip = read.required::<IpAddr>(slot::IP, "an IP address")?;
        read.check_family(ip)?;
        let left = read.required::<u64>(slot::LEFT, UNSIGNED)?;
        Ok(TrafficEntry {
            passkey,
            info_hash: read.required(slot::INFOHASH, FORTY_HEX)?,
            peer_id: read.required(slot::PEER_ID, FORTY_HEX)?,
            port: read.required(slot::PORT, "a port from 0 to 65535")?,
            ip: ip.to_canonical(),
            uploaded_delta: read.required(slot::DU, UNSIGNED)?,
            downloaded_delta: read.required(slot::DD, UNSIGNED)?,
            left: (left < LEFT_UNKNOWN).then_some(left),
            event: read.required(slot::EVENT, "none, started, completed or stopped")?,
            at: UnixTime(read.required(slot::TS, "seconds since 1970")?),
            since_last: read.since_last()?,
            interval: Seconds(read.required(slot::INTERVAL, SECONDS)?),
            min_interval: Seconds(read.required(slot::MIN_INTERVAL, SECONDS)?),
            user,
            torrent: read.optional(slot::TORRENT, "a torrent's number")?,
            node: read.optional(slot::NODE, "16 hexadecimal digits")?,
            totals: read.totals()?,
            cause: read.optional(slot::CAUSE, "announce, timeout or removal")?.unwrap_or_default(),
            key: read.optional(slot::KEY, "8 hexadecimal digits")?.filter(|key: &ClientKey| key.is_some()),
            uncredited_upload: read.optional(slot::NU, UNSIGNED)?.unwrap_or_default(),
            steady: read.optional(slot::STEADY, "seconds since 1970")?.map(UnixTime),
        })
    }

    /// Like [`TrafficEntry::parse`]. An entry dated ahead is malformed for every view.
    pub fn parse_dated(fields: &Fields, clock: &dyn Clock) -> Result<TrafficEntry, BadEntry> {
        TrafficEntry::parse_at(fields, (clock.now(), clock.steady()))
    }

    /// The same, where wall time and steady time are these: for many entries the clock is read once.
    pub fn parse_at(
        fields: &Fields,
        (now, steady_now): (UnixTime, UnixTime),
    ) -> Result<TrafficEntry, BadEntry> {
        let entry = TrafficEntry::parse(fields)?;
        let at = entry.at;
        match entry.is_ahead(now, steady_now) {
            true => Err(BadEntry::Ahead { at, now }),
            false => Ok(entry),
        }
    }

    /// Whether the entry is dated further ahead than clocks may differ. For entries of our own trackers steady time
    /// must be ahead as well: the wall clock may have been set back since.
    pub fn is_ahead(&self, now: UnixTime, steady_now: UnixTime) -> bool {
        let is_by_steady_time = self.node.is_none() || self.steady_at() > steady_now + AHEAD_MAX;
        self.at > now + AHEAD_MAX && is_by_steady_time
    }

    /// Steady time of the node that wrote the entry. Orders the entries of one node and of its earlier processes, and
    /// measures the time between them, however the wall clock was set meanwhile.
    pub fn steady_at(&self) -> UnixTime {
        self.steady.unwrap_or(self.at)
    }

    /// The writing process, without parsing the rest.
    pub fn node_of(fields: &Fields) -> Option<NodeId> {
        if let Some(event) = fields.as_event() {
            return Some(event.node);
        }
        let value = fields.get(slot::NAMES[slot::NODE])?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Whether the client has everything (L3). Also true for a `stopped` with nothing left.
    pub fn is_complete(&self) -> bool {
        self.left == Some(0) || self.event == AnnounceEvent::Completed
    }
}

const FORTY_HEX: &str = "40 hexadecimal digits";
const UNSIGNED: &str = "a whole number from 0 to 18446744073709551615";
const SECONDS: &str = "a number of seconds";
const SINCE_LAST: &str = "a number of seconds, at most a year";

/// The known fields by number: one pass over an entry finds them all.
mod slot {
    pub(super) const NAMES: [&str; 24] = [
        "passkey",
        "infohash",
        "peer_id",
        "port",
        "ip",
        "af",
        "du",
        "dd",
        "left",
        "event",
        "ts",
        "dt",
        "interval",
        "min_interval",
        "node",
        "sid",
        "up",
        "down",
        "cause",
        "user",
        "torrent",
        "key",
        "nu",
        "steady",
    ];
    pub(super) const PASSKEY: usize = 0;
    pub(super) const INFOHASH: usize = 1;
    pub(super) const PEER_ID: usize = 2;
    pub(super) const PORT: usize = 3;
    pub(super) const IP: usize = 4;
    pub(super) const AF: usize = 5;
    pub(super) const DU: usize = 6;
    pub(super) const DD: usize = 7;
    pub(super) const LEFT: usize = 8;
    pub(super) const EVENT: usize = 9;
    pub(super) const TS: usize = 10;
    pub(super) const DT: usize = 11;
    pub(super) const INTERVAL: usize = 12;
    pub(super) const MIN_INTERVAL: usize = 13;
    pub(super) const NODE: usize = 14;
    pub(super) const SID: usize = 15;
    pub(super) const UP: usize = 16;
    pub(super) const DOWN: usize = 17;
    pub(super) const CAUSE: usize = 18;
    pub(super) const USER: usize = 19;
    pub(super) const TORRENT: usize = 20;
    pub(super) const KEY: usize = 21;
    pub(super) const NU: usize = 22;
    pub(super) const STEADY: usize = 23;
}

struct Reader<'a> {
    values: [Option<&'a [u8]>; slot::NAMES.len()],
}

impl<'a> Reader<'a> {
    fn new(fields: &'a Fields) -> Self {
        let mut values = [None; slot::NAMES.len()];
        for (position, (name, value)) in fields.iter().enumerate() {
            // Our own entries have the fields in this order; others are searched.
            let expected =
                slot::NAMES.get(position).filter(|known| known.as_bytes() == name).map(|_| position);
            let found = expected.or_else(|| slot::NAMES.iter().position(|known| known.as_bytes() == name));
            if let Some(slot) = found {
                // Of repeated fields the first counts.
                values[slot].get_or_insert(value);
            }
        }
        Reader { values }
    }

    fn text_or_empty(&self, slot: usize) -> Option<&'a str> {
        std::str::from_utf8(self.values[slot]?).ok()
    }

    fn optional<T: FromStr>(&self, slot: usize, expected: &'static str) -> Result<Option<T>, BadEntry> {
        let Some(value) = self.values[slot] else {
            return Ok(None);
        };
        // Rust accepts a leading plus; the journal does not.
        let text = std::str::from_utf8(value).ok().filter(|text| !text.starts_with('+'));
        let parsed = text.and_then(|text| text.parse().ok());
        parsed.map(Some).ok_or_else(|| malformed(slot, expected, value))
    }

    fn required<T: FromStr>(&self, slot: usize, expected: &'static str) -> Result<T, BadEntry> {
        self.optional(slot, expected)?.ok_or(BadEntry::Missing { field: slot::NAMES[slot] })
    }

    fn check_family(&self, ip: IpAddr) -> Result<(), BadEntry> {
        match (self.text_or_empty(slot::AF), ip, ip.to_canonical()) {
            (Some("IPv4"), _, IpAddr::V4(_)) | (Some("IPv6"), IpAddr::V6(_), _) => Ok(()),
            (Some("IPv4" | "IPv6"), ..) => Err(BadEntry::WrongFamily),
            _ => match self.values[slot::AF] {
                Some(value) => Err(malformed(slot::AF, "IPv4 or IPv6", value)),
                None => Err(BadEntry::Missing { field: "af" }),
            },
        }
    }

    fn since_last(&self) -> Result<Option<Seconds>, BadEntry> {
        match self.optional(slot::DT, SINCE_LAST)? {
            Some(seconds) if seconds > SINCE_LAST_MAX_S => {
                Err(malformed(slot::DT, SINCE_LAST, self.values[slot::DT].unwrap_or_default()))
            }
            seconds => Ok(seconds.map(Seconds)),
        }
    }

    /// A session without both totals, or totals without a session, are credited like an entry of another producer.
    fn totals(&self) -> Result<Option<Totals>, BadEntry> {
        let session = self.optional(slot::SID, "a session such as 150b89c31afd823e-0000002a")?;
        let uploaded = self.optional(slot::UP, UNSIGNED)?;
        let downloaded = self.optional(slot::DOWN, UNSIGNED)?;
        Ok(match (session, uploaded, downloaded) {
            (Some(session), Some(uploaded), Some(downloaded)) => {
                Some(Totals { session, uploaded, downloaded })
            }
            _ => None,
        })
    }
}

fn malformed(slot: usize, expected: &'static str, found: &[u8]) -> BadEntry {
    // Passkeys are not logged, not even malformed ones.
    let found = match slot {
        slot::PASSKEY => format!("{} bytes", found.len()),
        _ => String::from_utf8_lossy(found).chars().take(60).collect(),
    };
    BadEntry::Malformed { field: slot::NAMES[slot], expected, found }
}
