//! What is known of the clients of one user on one torrent, and what follows from it. Plain data.
//!
//! # Guarantees
//!
//! - Of two reports of one client the later counts ([`Stamp`]), in whichever order they come, however often.
//! - A client that stopped is remembered until everything older than its goodbye is too old to count, so that no
//!   older report brings it back.
//! - A client's goodbye says nothing about the others.
//!
//! The scripts for Redis follow the same rules on the same bytes; the conformance suite holds both against a model.

use domain::{ClientId, Seconds, UnixTime};
use journal::EntryId;

/// The most clients that are kept of one user on one torrent; the longest silent ones are forgotten first. A client
/// that calls itself something else at every announce must not fill the memory.
pub const CLIENTS_MAX: usize = 16;

/// The length of one client's report in bytes.
pub const REPORT_BYTES: usize = 33;

/// What a client does on a torrent; also what its user does there, which is the first of these that any client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientState {
    /// It has everything.
    Seeding,
    /// It wants more.
    Leeching,
    /// It said goodbye, or fell silent and its tracker said so.
    Stopped,
}

impl ClientState {
    /// All of them, the strongest first.
    pub const ALL: [ClientState; 3] = [ClientState::Seeding, ClientState::Leeching, ClientState::Stopped];

    /// The letter that stands for it in stored records.
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

/// When something was said: of two entries in the same second the one with the greater origin is the later.
///
/// A heartbeat that comes a second or more after its client's last announce (`dt`) is the first entry of that client
/// in its second. So it needs no origin: whatever else is said in the same second is later. One that changes nothing is
/// then a mere raising of times, which is what most entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The entry's `ts`, or its steady time where the node's wall clock was set.
    pub at: UnixTime,
    /// The entry's place in the traffic lane; of the first heartbeat of a second only whether it seeds, so that a
    /// producer that claims two of them still has one order.
    origin: EntryId,
}

impl Stamp {
    /// Of any entry.
    pub const fn of_entry(at: UnixTime, origin: EntryId) -> Self {
        Stamp { at, origin }
    }

    /// Of a plain heartbeat that is its client's first entry of the second.
    pub const fn of_heartbeat(at: UnixTime, state: ClientState) -> Self {
        let seq = matches!(state, ClientState::Seeding) as u64;
        Stamp { at, origin: EntryId { ms: 0, seq } }
    }
}

/// The last that was heard of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The client.
    pub client: ClientId,
    /// What it does.
    pub state: ClientState,
    /// How much longer than usual it may be silent, because it was told a longer interval (A4).
    pub extra_silence: Seconds,
    /// When it said so.
    pub stamp: Stamp,
}

impl Report {
    /// Whether it is a plain heartbeat, its client's first entry of the second.
    pub fn is_heartbeat(&self) -> bool {
        self.state != ClientState::Stopped && self.stamp == Stamp::of_heartbeat(self.stamp.at, self.state)
    }

    /// The report counts until the cutoff has reached this moment.
    pub fn counts_until(&self) -> UnixTime {
        self.stamp.at + self.extra_silence
    }

    /// The report as bytes: client, letter, extra silence, `ts`, origin, all numbers with the greatest byte first.
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

/// What follows from the clients of one user on one torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What the user does.
    pub state: ClientState,
    /// When a client last said so.
    pub at: UnixTime,
    /// It counts until the cutoff has reached this moment.
    pub until: UnixTime,
}

/// The clients of one user on one torrent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    reports: Vec<Report>,
}

impl Record {
    /// Reads what [`Record::to_bytes`] gave. Of anything else nothing is taken: the next announce begins anew.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (reports, rest) = bytes.as_chunks::<REPORT_BYTES>();
        let reports = reports.iter().map(Report::from_bytes).collect::<Option<Vec<_>>>();
        Record { reports: reports.filter(|_| rest.is_empty()).unwrap_or_default() }
    }

    /// The record as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.reports.iter().flat_map(Report::to_bytes).collect()
    }

    /// Forgets what does not count any more.
    pub fn expire(&mut self, cutoff: UnixTime) {
        self.reports.retain(|report| report.counts_until() > cutoff);
    }

    /// Takes a report, unless it knows a later one of the same client. Returns how many clients had to be forgotten
    /// for it, because there are too many.
    pub fn take(&mut self, news: &Report) -> u64 {
        match self.reports.iter_mut().find(|known| known.client == news.client) {
            Some(known) if known.stamp >= news.stamp => return 0,
            Some(known) => *known = *news,
            None => self.reports.push(*news),
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

    /// What the user does on this torrent; none if nothing is known.
    pub fn summary(&self) -> Option<Summary> {
        let state = self.reports.iter().map(|report| report.state).min()?;
        let said = || self.reports.iter().filter(|report| report.state == state);
        let at = said().map(|report| report.stamp.at).max()?;
        let until = said().map(Report::counts_until).max()?;
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
    fn a4_a_client_that_was_told_a_longer_interval_counts_for_longer() {
        let mut record = Record::default();
        let long = Report { extra_silence: Seconds(50), ..report(1, ClientState::Seeding, 100) };
        record.take(&long);
        record.take(&report(2, ClientState::Seeding, 120));
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
        record.take(&report(1, ClientState::Seeding, 100));
        record.take(&report(2, ClientState::Leeching, 200));
        assert_eq!(state(&record), Some((ClientState::Seeding, UnixTime(100))));
        record.take(&report(1, ClientState::Stopped, 300));
        assert_eq!(state(&record), Some((ClientState::Leeching, UnixTime(200))));
        record.expire(UnixTime(200));
        assert_eq!(state(&record), Some((ClientState::Stopped, UnixTime(300))));
        record.expire(UnixTime(300));
        assert_eq!(state(&record), None);
    }

    #[test]
    fn the_later_origin_decides_within_a_second() {
        let mut record = Record::default();
        let mut goodbye = report(1, ClientState::Stopped, 100);
        goodbye.stamp.origin.seq = 9;
        record.take(&goodbye);
        record.take(&report(1, ClientState::Seeding, 100));
        assert_eq!(state(&record), Some((ClientState::Stopped, UnixTime(100))));
    }

    #[test]
    fn the_first_heartbeat_of_a_second_is_older_than_all_else_in_it() {
        let leeching = Stamp::of_heartbeat(UnixTime(100), ClientState::Leeching);
        let seeding = Stamp::of_heartbeat(UnixTime(100), ClientState::Seeding);
        let event = report(1, ClientState::Stopped, 100).stamp;
        assert!(leeching < seeding && seeding < event);
        assert!(event < Stamp::of_heartbeat(UnixTime(101), ClientState::Leeching));
    }

    #[test]
    fn a_record_survives_being_written_and_nothing_else_is_taken_for_one() {
        let mut record = Record::default();
        record.take(&report(u64::MAX, ClientState::Seeding, u32::MAX));
        record.take(&report(2, ClientState::Stopped, 7));
        let bytes = record.to_bytes();
        assert_eq!(Record::from_bytes(&bytes), record);
        assert_eq!(Record::from_bytes(&bytes[1..]), Record::default());
        assert_eq!(Record::from_bytes(&[0; REPORT_BYTES]), Record::default());
    }

    #[test]
    fn too_many_clients_push_out_the_longest_silent() {
        let mut record = Record::default();
        for client in 0..CLIENTS_MAX as u64 {
            assert_eq!(record.take(&report(client, ClientState::Leeching, 100 + client as u32)), 0);
        }
        assert_eq!(record.take(&report(99, ClientState::Leeching, 500)), 1);
        assert_eq!(record.to_bytes().len(), CLIENTS_MAX * REPORT_BYTES);
        assert!(record.reports.iter().all(|report| report.client != ClientId(0)));
    }
}
