//! The clients of one user on one torrent, and the user's resulting state. Plain data.
//!
//! # Guarantees
//!
//! - Of two reports of one client the later counts ([`Stamp`]), in any order and number.
//! - A stopped client is kept until all earlier reports have expired, so that none of them restores it.
//! - A stopped client does not affect the others.
//!
//! The Redis scripts apply the same rules to the same bytes; the conformance suite compares every store with a model.

use domain::{ClientId, Seconds, UnixTime};
use journal::EntryId;

/// Clients of one user on one torrent; those with the oldest reports are evicted. Bounds the memory for a client that
/// changes its id with every announce.
pub const CLIENTS_MAX: usize = 16;

/// Length of an encoded report.
pub const REPORT_BYTES: usize = 33;

/// State of a client on a torrent. The user's state is the first of these that any client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientState {
    Seeding,
    Leeching,
    /// By a stopped announce, or by a tracker's timeout.
    Stopped,
}

impl ClientState {
    pub const ALL: [ClientState; 3] = [ClientState::Seeding, ClientState::Leeching, ClientState::Stopped];

    /// In encoded reports.
    pub const fn letter(self) -> u8 {
        match self {
            ClientState::Seeding => b's',
            ClientState::Leeching => b'l',
            ClientState::Stopped => b'x',
        }
    }

    fn from_letter(letter: u8) -> Option<Self> {
        ClientState::ALL.into_iter().find(|state| state.letter() == letter)
    }
}

/// Time of a report. Of two entries in the same second the one with the greater origin is later.
///
/// A regular announce a second or more after its client's last one (`dt`) is the client's first entry of its second. It
/// needs no origin: any other entry of that second is later. If it changes nothing, it only updates a time, which is
/// true of most entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The entry's `ts`, or its steady time if the node's wall clock was set.
    pub at: UnixTime,
    /// The entry's id in the traffic lane; for the first heartbeat of a second only whether it seeds, so that two of
    /// them from a faulty producer still have an order.
    origin: EntryId,
}

impl Stamp {
    pub const fn of_entry(at: UnixTime, origin: EntryId) -> Self {
        Stamp { at, origin }
    }

    /// For a regular announce that is its client's first entry of the second.
    pub const fn of_heartbeat(at: UnixTime, state: ClientState) -> Self {
        let seq = matches!(state, ClientState::Seeding) as u64;
        Stamp { at, origin: EntryId { ms: 0, seq } }
    }
}

/// The latest state of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub client: ClientId,
    pub state: ClientState,
    /// Silence allowed beyond the usual limit, because the client's interval is longer (A4).
    pub extra_silence: Seconds,
    pub stamp: Stamp,
}

impl Report {
    /// Whether it is a regular announce and its client's first entry of the second.
    pub fn is_heartbeat(&self) -> bool {
        self.state != ClientState::Stopped && self.stamp == Stamp::of_heartbeat(self.stamp.at, self.state)
    }

    /// The report expires when the cutoff reaches this time.
    pub fn expires_at(&self) -> UnixTime {
        self.stamp.at + self.extra_silence
    }

    /// Client, letter of the state, extra silence, `ts`, origin; big-endian.
    pub fn to_bytes(&self) -> [u8; REPORT_BYTES] {
        let mut bytes = [0; REPORT_BYTES];
        bytes[..8].copy_from_slice(&self.client.0.to_be_bytes());
        bytes[8] = self.state.letter();
        bytes[9..13].copy_from_slice(&self.extra_silence.0.to_be_bytes());
        bytes[13..17].copy_from_slice(&self.stamp.at.0.to_be_bytes());
        bytes[17..25].copy_from_slice(&self.stamp.origin.ms.to_be_bytes());
        bytes[25..].copy_from_slice(&self.stamp.origin.seq.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; REPORT_BYTES]) -> Option<Self> {
        let (client, rest) = bytes.split_first_chunk()?;
        let (letter, rest) = rest.split_first()?;
        let (extra_silence, rest) = rest.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (ms, rest) = rest.split_first_chunk()?;
        let seq = rest.try_into().ok()?;
        let origin = EntryId { ms: u64::from_be_bytes(*ms), seq: u64::from_be_bytes(seq) };
        Some(Report {
            client: ClientId(u64::from_be_bytes(*client)),
            state: ClientState::from_letter(*letter)?,
            extra_silence: Seconds(u32::from_be_bytes(*extra_silence)),
            stamp: Stamp { at: UnixTime(u32::from_be_bytes(*at)), origin },
        })
    }
}

/// State of one user on one torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub state: ClientState,
    /// Last announce of a client in this state.
    pub at: UnixTime,
    /// Expires when the cutoff reaches this time.
    pub until: UnixTime,
}

/// The clients of one user on one torrent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    reports: Vec<Report>,
}

impl Record {
    pub fn of(report: Report) -> Self {
        Record { reports: vec![report] }
    }

    /// None unless there is exactly one client.
    pub fn only_report(&self) -> Option<&Report> {
        self.reports.first().filter(|_| self.reports.len() == 1)
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Record>() + self.reports.capacity() * size_of::<Report>()
    }

    /// Decodes [`Record::to_bytes`]. Malformed bytes give an empty record.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (reports, rest) = bytes.as_chunks::<REPORT_BYTES>();
        let reports = reports.iter().map(Report::from_bytes).collect::<Option<Vec<_>>>();
        Record { reports: reports.filter(|_| rest.is_empty()).unwrap_or_default() }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.reports.iter().flat_map(Report::to_bytes).collect()
    }

    /// Removes expired reports.
    pub fn expire(&mut self, cutoff: UnixTime) {
        self.reports.retain(|report| report.expires_at() > cutoff);
    }

    /// Adds a report, unless there is a later one of the same client. Returns the number of evicted clients.
    pub fn add(&mut self, new: &Report) -> u64 {
        match self.reports.iter_mut().find(|known| known.client == new.client) {
            Some(known) if known.stamp >= new.stamp => return 0,
            Some(known) => *known = *new,
            None => self.reports.push(*new),
        }
        if self.reports.len() <= CLIENTS_MAX {
            return 0;
        }
        let oldest = (0..self.reports.len()).min_by_key(|index| self.reports[*index].stamp);
        if let Some(index) = oldest {
            self.reports.swap_remove(index);
        }
        1
    }

    /// None without clients.
    pub fn summary(&self) -> Option<Summary> {
        let state = self.reports.iter().map(|report| report.state).min()?;
        let reports = || self.reports.iter().filter(|report| report.state == state);
        let at = reports().map(|report| report.stamp.at).max()?;
        let until = reports().map(Report::expires_at).max()?;
        Some(Summary { state, at, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(client: u64, state: ClientState, at: u32) -> Report {
        let origin = EntryId { ms: u64::from(at) * 1000, seq: client };
        let stamp = Stamp::of_entry(UnixTime(at), origin);
        Report { client: ClientId(client), state, extra_silence: Seconds(0), stamp }
    }

    fn state(record: &Record) -> Option<(ClientState, UnixTime)> {
        record.summary().map(|shown| (shown.state, shown.at))
    }

    #[test]
    fn a4_a_client_with_a_longer_interval_expires_later() {
        let mut record = Record::default();
        let long = Report { extra_silence: Seconds(50), ..report(1, ClientState::Seeding, 100) };
        record.add(&long);
        record.add(&report(2, ClientState::Seeding, 120));
        let shown = record.summary().unwrap();
        assert_eq!((shown.at, shown.until), (UnixTime(120), UnixTime(150)));
        record.expire(UnixTime(149));
        assert_eq!(state(&record), Some((ClientState::Seeding, UnixTime(100))));
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
        record.expire(UnixTime(150));
        assert_eq!(state(&record), None);
    }

    #[test]
    fn a2_any_client_that_seeds_makes_the_user_a_seeder() {
        let mut record = Record::default();
        assert_eq!(state(&record), None);
        record.add(&report(1, ClientState::Seeding, 100));
        record.add(&report(2, ClientState::Leeching, 200));
        assert_eq!(state(&record), Some((ClientState::Seeding, UnixTime(100))));
        record.add(&report(1, ClientState::Stopped, 300));
        assert_eq!(state(&record), Some((ClientState::Leeching, UnixTime(200))));
        record.expire(UnixTime(200));
        assert_eq!(state(&record), Some((ClientState::Stopped, UnixTime(300))));
        record.expire(UnixTime(300));
        assert_eq!(state(&record), None);
    }

    #[test]
    fn the_later_origin_decides_within_a_second() {
        let mut record = Record::default();
        let mut stopped = report(1, ClientState::Stopped, 100);
        stopped.stamp.origin.seq = 9;
        record.add(&stopped);
        record.add(&report(1, ClientState::Seeding, 100));
        assert_eq!(state(&record), Some((ClientState::Stopped, UnixTime(100))));
    }

    #[test]
    fn the_first_heartbeat_of_a_second_is_earlier_than_other_entries_of_it() {
        let leeching = Stamp::of_heartbeat(UnixTime(100), ClientState::Leeching);
        let seeding = Stamp::of_heartbeat(UnixTime(100), ClientState::Seeding);
        let event = report(1, ClientState::Stopped, 100).stamp;
        assert!(leeching < seeding && seeding < event);
        assert!(event < Stamp::of_heartbeat(UnixTime(101), ClientState::Leeching));
    }

    #[test]
    fn records_round_trip_and_malformed_bytes_give_an_empty_record() {
        let mut record = Record::default();
        record.add(&report(u64::MAX, ClientState::Seeding, u32::MAX));
        record.add(&report(2, ClientState::Stopped, 7));
        let bytes = record.to_bytes();
        assert_eq!(Record::from_bytes(&bytes), record);
        assert_eq!(Record::from_bytes(&bytes[1..]), Record::default());
        assert_eq!(Record::from_bytes(&[0; REPORT_BYTES]), Record::default());
    }

    #[test]
    fn clients_beyond_the_maximum_evict_the_oldest() {
        let mut record = Record::default();
        for client in 0..CLIENTS_MAX as u64 {
            assert_eq!(record.add(&report(client, ClientState::Leeching, 100 + client as u32)), 0);
        }
        assert_eq!(record.add(&report(99, ClientState::Leeching, 500)), 1);
        assert_eq!(record.to_bytes().len(), CLIENTS_MAX * REPORT_BYTES);
        assert!(record.reports.iter().all(|report| report.client != ClientId(0)));
    }
}
