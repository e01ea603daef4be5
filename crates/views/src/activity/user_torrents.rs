//! The torrents of one user, packed: forty bytes for each on which one client announces regularly. Plain data.

use std::cmp::Reverse;

use domain::{ClientId, InfoHash, Seconds, UnixTime};

use super::fold::Change;
use super::record::{ClientState, Record, Report, Stamp, Summary};
use super::store::{ActiveTorrent, Counts, Page};

/// Torrents of one user; beyond it the one that expires first is evicted. About 10 MB.
pub const USER_TORRENTS_MAX: usize = 1 << 18;

/// How much a full list grows: an eighth, because doubling would waste half of it.
const GROWTH_SHARE: usize = 8;

#[derive(Debug, Default)]
pub(super) struct UserTorrents {
    /// Sorted by infohash.
    torrents: Vec<Torrent>,
    seeding: u32,
    leeching: u32,
}

#[derive(Debug)]
struct Torrent {
    info_hash: InfoHash,
    /// Of `Clients::Regular`.
    at: UnixTime,
    clients: Clients,
}

#[derive(Debug)]
enum Clients {
    /// One client, whose last entry was a heartbeat with the usual interval.
    Regular {
        client: ClientId,
        state: ClientState,
    },
    Other(Box<Record>),
}

/// What a change did to a torrent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) before: Option<Summary>,
    pub(super) after: Option<Summary>,
    /// Clients and torrents beyond a maximum.
    pub(super) evicted: u64,
}

impl Torrent {
    fn of(info_hash: InfoHash, record: Record) -> Torrent {
        match record.only_report() {
            Some(Report { client, state, extra_silence: Seconds(0), stamp })
                if *stamp == Stamp::of_heartbeat(stamp.at, *state) && *state != ClientState::Stopped =>
            {
                let clients = Clients::Regular { client: *client, state: *state };
                Torrent { info_hash, at: stamp.at, clients }
            }
            _ => Torrent { info_hash, at: UnixTime(0), clients: Clients::Other(Box::new(record)) },
        }
    }

    fn record(&self) -> Record {
        match &self.clients {
            Clients::Regular { client, state } => Record::of(Report {
                client: *client,
                state: *state,
                extra_silence: Seconds(0),
                stamp: Stamp::of_heartbeat(self.at, *state),
            }),
            Clients::Other(record) => Record::clone(record),
        }
    }

    fn summary(&self) -> Option<Summary> {
        match &self.clients {
            Clients::Regular { state, .. } => Some(Summary { state: *state, at: self.at, until: self.at }),
            Clients::Other(record) => record.summary(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.clients {
            Clients::Regular { .. } => 0,
            Clients::Other(record) => record.bytes(),
        }
    }
}

impl UserTorrents {
    pub(super) fn is_empty(&self) -> bool {
        self.torrents.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.torrents.len()
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let others: usize = self.torrents.iter().map(Torrent::bytes).sum();
        size_of::<UserTorrents>() + self.torrents.capacity() * size_of::<Torrent>() + others
    }

    /// Lengths of the lists, expired torrents included.
    pub(super) fn counts(&self) -> Counts {
        Counts { seeding: self.seeding.into(), leeching: self.leeching.into() }
    }

    /// Applies a report, after expired ones of its torrent are removed.
    pub(super) fn apply(&mut self, change: &Change, cutoff: UnixTime) -> Changed {
        let found = self.torrents.binary_search_by(|torrent| torrent.info_hash.cmp(&change.info_hash));
        let Ok(index) = found else {
            return self.insert(found.unwrap_or_else(|index| index), change, cutoff);
        };
        let report = &change.report;
        let torrent = &mut self.torrents[index];
        let before = torrent.summary();
        if let Clients::Regular { client, state } = &torrent.clients
            && (*client, *state, Seconds(0)) == (report.client, report.state, report.extra_silence)
            && report.is_heartbeat()
        {
            torrent.at = torrent.at.max(report.stamp.at);
            return Changed { before, after: torrent.summary(), evicted: 0 };
        }
        let mut record = torrent.record();
        record.expire(cutoff);
        let evicted = record.add(report);
        *torrent = Torrent::of(change.info_hash, record);
        let after = torrent.summary();
        self.count(before, after);
        Changed { before, after, evicted }
    }

    fn insert(&mut self, index: usize, change: &Change, cutoff: UnixTime) -> Changed {
        if change.report.expires_at() <= cutoff {
            return Changed::default();
        }
        let torrent = Torrent::of(change.info_hash, Record::of(change.report));
        let after = torrent.summary();
        if self.torrents.len() == self.torrents.capacity() {
            self.torrents.reserve_exact(self.torrents.len() / GROWTH_SHARE + 1);
        }
        self.torrents.insert(index, torrent);
        self.count(None, after);
        let is_full = self.torrents.len() > USER_TORRENTS_MAX;
        if is_full {
            self.evict();
        }
        Changed { before: None, after, evicted: is_full.into() }
    }

    fn evict(&mut self) {
        let expiry = |index: &usize| self.torrents[*index].summary().map(|summary| summary.until);
        if let Some(index) = (0..self.torrents.len()).min_by_key(expiry) {
            let evicted = self.torrents.remove(index);
            self.count(evicted.summary(), None);
        }
    }

    /// Removes expired reports from up to `torrents_max` torrents. Returns the number of torrents.
    pub(super) fn expire(&mut self, cutoff: UnixTime, torrents_max: usize) -> usize {
        let is_due = |summary: &Option<Summary>| summary.is_none_or(|summary| summary.until <= cutoff);
        let mut expired = 0;
        let (mut seeding, mut leeching) = (self.seeding, self.leeching);
        self.torrents.retain_mut(|torrent| {
            let before = torrent.summary();
            if expired >= torrents_max || !is_due(&before) {
                return true;
            }
            expired += 1;
            let mut record = torrent.record();
            record.expire(cutoff);
            let after = record.summary();
            if after.is_some() {
                *torrent = Torrent::of(torrent.info_hash, record);
            }
            count(&mut seeding, &mut leeching, before, after);
            after.is_some()
        });
        (self.seeding, self.leeching) = (seeding, leeching);
        if self.torrents.len() < self.torrents.capacity() / 2 {
            self.torrents.shrink_to_fit();
        }
        expired
    }

    /// The lowest cutoff at which a torrent has expired reports in its present state.
    pub(super) fn due(&self) -> Option<UnixTime> {
        self.torrents.iter().filter_map(Torrent::summary).map(|summary| summary.until).min()
    }

    /// A page of a list and, if there is a next page, one torrent more. Newest first, then by infohash, descending.
    pub(super) fn page(&self, state: ClientState, page: &Page) -> Vec<ActiveTorrent> {
        let newest_first = |torrent: &ActiveTorrent| Reverse((torrent.at, torrent.info_hash));
        let listed = self.torrents.iter().filter_map(|torrent| {
            let summary = torrent.summary().filter(|summary| summary.state == state)?;
            Some(ActiveTorrent { info_hash: torrent.info_hash, at: summary.at })
        });
        let is_after = |torrent: &ActiveTorrent| {
            page.after.is_none_or(|after| (torrent.at, torrent.info_hash) < (after.at, after.info_hash))
        };
        let mut listed: Vec<ActiveTorrent> = listed.filter(is_after).collect();
        let count = page.torrents_max() + 1;
        if listed.len() > count {
            listed.select_nth_unstable_by_key(count, newest_first);
            listed.truncate(count);
        }
        listed.sort_unstable_by_key(newest_first);
        listed
    }

    fn count(&mut self, before: Option<Summary>, after: Option<Summary>) {
        count(&mut self.seeding, &mut self.leeching, before, after);
    }
}

fn count(seeding: &mut u32, leeching: &mut u32, before: Option<Summary>, after: Option<Summary>) {
    let is_in =
        |summary: Option<Summary>, state| u32::from(summary.is_some_and(|found| found.state == state));
    for (count, state) in [(seeding, ClientState::Seeding), (leeching, ClientState::Leeching)] {
        *count = *count + is_in(after, state) - is_in(before, state);
    }
}

#[cfg(test)]
mod tests {
    use journal::EntryId;

    use super::*;

    fn change(torrent: u8, stamp: Stamp, state: ClientState) -> Change {
        let report = Report { client: ClientId(1), state, extra_silence: Seconds(0), stamp };
        Change { info_hash: InfoHash([torrent; 20]), report }
    }

    #[test]
    fn a_torrent_with_one_regular_client_takes_forty_bytes() {
        assert_eq!(size_of::<Torrent>(), 40);
        let mut torrents = UserTorrents::default();
        let (at, state) = (UnixTime(100), ClientState::Seeding);
        let event = Stamp::of_entry(at, EntryId { ms: 1, seq: 1 });
        torrents.apply(&change(1, event, state), UnixTime(0));
        let with_event = torrents.bytes();
        let changed =
            torrents.apply(&change(1, Stamp::of_heartbeat(UnixTime(200), state), state), UnixTime(0));
        assert_eq!(changed.after.map(|after| after.at), Some(UnixTime(200)));
        assert!(torrents.bytes() < with_event);
        assert_eq!(torrents.bytes(), size_of::<UserTorrents>() + 40);
    }

    #[test]
    fn the_torrents_of_a_user_are_bounded() {
        let mut torrents = UserTorrents::default();
        let state = ClientState::Leeching;
        for number in 0..=USER_TORRENTS_MAX as u32 {
            let mut change = change(0, Stamp::of_heartbeat(UnixTime(10 + number), state), state);
            change.info_hash.0[..4].copy_from_slice(&number.to_be_bytes());
            let changed = torrents.apply(&change, UnixTime(0));
            assert_eq!(changed.evicted, u64::from(number == USER_TORRENTS_MAX as u32));
        }
        assert_eq!(
            (torrents.len(), torrents.counts().leeching),
            (USER_TORRENTS_MAX, USER_TORRENTS_MAX as u64)
        );
        assert_eq!(torrents.due(), Some(UnixTime(11)), "the one that expires first was evicted");
    }
}
