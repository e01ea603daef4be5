//! From a batch of entries to those of each torrent. Pure.
//!
//! Entries of a torrent stay in order. Entries of unknown torrents or users are skipped and counted, and so are entries
//! too far ahead, which would keep a peer alive for too long.

use std::collections::HashMap;

use domain::{AHEAD_MAX, AnnounceEvent, Cause, InfoHash, PeerId, Seconds, TorrentId, UnixTime, UserId};
use journal::{DeliveredEntry, EntryId, TrafficEntry};

use super::last_announce::LastAnnounce;
use super::settings::{Directory, RedisMirrorSettings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Started, or a regular announce.
    Announce,
    Completed,
    Stopped,
    Timeout,
    /// Removed by the site.
    Removal,
}

impl EntryKind {
    fn of(entry: &TrafficEntry) -> EntryKind {
        match (entry.cause, entry.event) {
            (Cause::Timeout, _) => EntryKind::Timeout,
            (Cause::Removal, _) => EntryKind::Removal,
            (Cause::Announce, AnnounceEvent::Stopped) => EntryKind::Stopped,
            (Cause::Announce, AnnounceEvent::Completed) => EntryKind::Completed,
            (Cause::Announce, _) => EntryKind::Announce,
        }
    }
}

/// One entry, with user and torrent resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorEntry {
    pub id: EntryId,
    pub peer: PeerId,
    pub user: UserId,
    pub kind: EntryKind,
    /// None if a stopped client did not report what is left.
    pub is_complete: Option<bool>,
    pub at: UnixTime,
    /// Stopped, timeout and removal apply only if the peer's last announce was at this time or before.
    pub since: UnixTime,
    /// The peer expires this long after `at`.
    pub reap_after: Seconds,
    /// Bytes per second since the previous announce.
    pub speed_up: f64,
    pub speed_down: f64,
    /// Encoded [`LastAnnounce`]; empty for stopped, timeout and removal.
    pub last_announce: String,
}

/// A torrent and its infohash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub torrent: TorrentId,
    pub info_hash: InfoHash,
    /// Whether the site confirms that this torrent has this infohash. Entries may predate a change.
    pub is_confirmed: bool,
}

/// The entries of one torrent, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct TorrentEntries {
    pub target: Target,
    pub entries: Vec<MirrorEntry>,
}

#[derive(Debug, Default)]
pub struct Folded {
    pub torrents: Vec<TorrentEntries>,
    /// Entries of unknown torrents.
    pub unknown_torrent: u64,
    /// Entries of unknown users.
    pub unknown_user: u64,
    /// Entries too far in the future.
    pub ahead: u64,
}

impl Folded {
    /// Entries of unknown torrents or users.
    pub fn unknown(&self) -> u64 {
        self.unknown_torrent + self.unknown_user
    }
}

pub fn fold(
    arrivals: &[DeliveredEntry],
    directory: &dyn Directory,
    settings: &RedisMirrorSettings,
    now: UnixTime,
) -> Folded {
    let mut folded = Folded::default();
    let mut positions: HashMap<TorrentId, usize> = HashMap::new();
    for arrival in arrivals {
        let entry = &arrival.entry;
        let Some(target) = target_of(entry, directory) else {
            folded.unknown_torrent += 1;
            continue;
        };
        let user = entry.user.or_else(|| directory.user_of(entry.passkey.as_ref()?));
        let Some(user) = user else {
            folded.unknown_user += 1;
            continue;
        };
        let at = time_of(entry, now);
        if at > now + AHEAD_MAX {
            folded.ahead += 1;
            continue;
        }
        let position = *positions.entry(target.torrent).or_insert_with(|| {
            folded.torrents.push(TorrentEntries { target, entries: Vec::new() });
            folded.torrents.len() - 1
        });
        let torrent = &mut folded.torrents[position];
        if target.is_confirmed && !torrent.target.is_confirmed {
            torrent.target = target;
        }
        torrent.entries.push(mirror_entry(arrival, (user, at), settings));
    }
    folded
}

/// The torrent that an entry names, or that has its infohash.
fn target_of(entry: &TrafficEntry, directory: &dyn Directory) -> Option<Target> {
    let known = directory.torrent_of(&entry.info_hash);
    match (entry.torrent, known) {
        (Some(torrent), known) if known.is_none_or(|(other, _)| other != torrent) => {
            Some(Target { torrent, info_hash: entry.info_hash, is_confirmed: false })
        }
        (_, Some((torrent, info_hash))) => Some(Target { torrent, info_hash, is_confirmed: true }),
        (_, None) => None,
    }
}

/// Time of an entry: steady time, so that a set wall clock neither causes nor dates a timeout; the wall clock if steady
/// time is not valid, because the clock was wrong when the node started. Of both, the later one that is not in the
/// future: an entry dated too early would expire a live peer.
fn time_of(entry: &TrafficEntry, now: UnixTime) -> UnixTime {
    let (steady, wall) = (entry.steady_at(), entry.at);
    let plausible = [steady, wall].into_iter().filter(|at| *at <= now + AHEAD_MAX).max();
    plausible.unwrap_or(steady.min(wall))
}

fn mirror_entry(
    arrival: &DeliveredEntry,
    (user, at): (UserId, UnixTime),
    settings: &RedisMirrorSettings,
) -> MirrorEntry {
    let entry = &arrival.entry;
    let kind = EntryKind::of(entry);
    let since = match kind {
        EntryKind::Timeout => at - entry.since_last.unwrap_or_default(),
        _ => at,
    };
    let last_announce = match kind {
        EntryKind::Announce | EntryKind::Completed => LastAnnounce::of(entry).to_text(),
        EntryKind::Stopped | EntryKind::Timeout | EntryKind::Removal => String::new(),
    };
    MirrorEntry {
        id: arrival.id,
        peer: entry.peer_id,
        user,
        kind,
        is_complete: completeness(entry, kind),
        at,
        since,
        reap_after: settings.reap_after_of(entry.interval),
        speed_up: speed(entry.uploaded_delta, entry.since_last),
        speed_down: speed(entry.downloaded_delta, entry.since_last),
        last_announce,
    }
}

/// Unknown for a stopped client that does not report `left`. Any other client that does not report it is a leecher.
fn completeness(entry: &TrafficEntry, kind: EntryKind) -> Option<bool> {
    let is_silent = kind == EntryKind::Stopped && entry.left.is_none();
    (!is_silent).then(|| entry.is_complete())
}

/// Bytes per second, to the hundredth; zero if the time is zero or unknown.
fn speed(bytes: u64, over: Option<Seconds>) -> f64 {
    match over {
        Some(Seconds(seconds)) if seconds > 0 => (bytes as f64 / f64::from(seconds) * 100.0).round() / 100.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m5_speed_is_bytes_per_second() {
        assert_eq!(speed(1000, Some(Seconds(30))).to_string(), "33.33");
        assert_eq!(speed(3000, Some(Seconds(30))).to_string(), "100");
        assert_eq!(speed(3000, Some(Seconds(0))).to_string(), "0");
        assert_eq!(speed(3000, None).to_string(), "0");
        assert_eq!(speed(u64::MAX, Some(Seconds(1))).to_string(), "18446744073709552000");
    }
}
