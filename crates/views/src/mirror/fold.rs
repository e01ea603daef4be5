//! From a batch of entries to the work on each torrent. Pure.
//!
//! Entries of a torrent stay in their order. What names a torrent or a user that nobody knows is left out and counted, and
//! so is what comes from too far ahead: it would keep a peer alive for too long.

use std::collections::HashMap;

use domain::{AHEAD_MAX, AnnounceEvent, Cause, InfoHash, PeerId, Seconds, TorrentId, UnixTime, UserId};
use journal::{Arrival, EntryId, TrafficEntry};

use super::last_announce::LastAnnounce;
use super::settings::{Directory, MirrorSettings};

/// What an entry is about, as the script calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A heartbeat, or a beginning.
    Announce,
    /// The client has just got the last piece.
    Completed,
    /// The client said goodbye.
    Stopped,
    /// The client fell silent.
    Timeout,
    /// The site turned the client out.
    Removal,
}

impl Kind {
    fn of(entry: &TrafficEntry) -> Kind {
        match (entry.cause, entry.event) {
            (Cause::Timeout, _) => Kind::Timeout,
            (Cause::Removal, _) => Kind::Removal,
            (Cause::Announce, AnnounceEvent::Stopped) => Kind::Stopped,
            (Cause::Announce, AnnounceEvent::Completed) => Kind::Completed,
            (Cause::Announce, _) => Kind::Announce,
        }
    }

    /// Its letter in the script.
    pub const fn letter(self) -> &'static str {
        match self {
            Kind::Announce => "a",
            Kind::Completed => "c",
            Kind::Stopped => "s",
            Kind::Timeout => "t",
            Kind::Removal => "r",
        }
    }
}

/// One entry, as the script takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its place in the journal.
    pub id: EntryId,
    /// The client.
    pub peer: PeerId,
    /// PeerKey it is.
    pub user: UserId,
    /// What it is about.
    pub kind: Kind,
    /// Whether the client has everything; none if it said goodbye and did not say.
    pub is_complete: Option<bool>,
    /// When.
    pub at: UnixTime,
    /// Who goes, goes only if its last announce was then or before.
    pub since: UnixTime,
    /// The client is gone this long after it, unless it announces.
    pub reap_after: Seconds,
    /// Bytes a second since the announce before.
    pub speed_up: f64,
    /// Likewise, downloaded.
    pub speed_down: f64,
    /// What an entry about its end will need; empty if this is its end.
    pub last_announce: String,
}

/// A torrent and the name it goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The torrent's number.
    pub torrent: TorrentId,
    /// The torrent's one name.
    pub info_hash: InfoHash,
    /// Whether the site says that this torrent has this name. Entries may be older than the last change.
    pub is_confirmed: bool,
}

/// The entries of one torrent, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct TorrentWork {
    /// The torrent.
    pub target: Target,
    /// The entries.
    pub steps: Vec<Step>,
}

/// A batch, folded.
#[derive(Debug, Default)]
pub struct Folded {
    /// What there is to do.
    pub torrents: Vec<TorrentWork>,
    /// Entries of torrents that nobody knows.
    pub unknown_torrent: u64,
    /// Entries of users whom nobody knows.
    pub unknown_user: u64,
    /// Entries from too far ahead.
    pub ahead: u64,
}

impl Folded {
    /// Entries of torrents or users that are not known.
    pub fn unknown(&self) -> u64 {
        self.unknown_torrent + self.unknown_user
    }
}

/// Folds a batch.
pub fn fold(
    arrivals: &[Arrival],
    directory: &dyn Directory,
    settings: &MirrorSettings,
    now: UnixTime,
) -> Folded {
    let mut folded = Folded::default();
    let mut places: HashMap<TorrentId, usize> = HashMap::new();
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
        let place = *places.entry(target.torrent).or_insert_with(|| {
            folded.torrents.push(TorrentWork { target, steps: Vec::new() });
            folded.torrents.len() - 1
        });
        let work = &mut folded.torrents[place];
        if target.is_confirmed && !work.target.is_confirmed {
            work.target = target;
        }
        work.steps.push(step_of(arrival, (user, at), settings));
    }
    folded
}

/// The torrent that an entry names, or that the site says it means.
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

/// When an entry was written: by steady time, so that a timeout is neither found nor dated by a wall clock that was set
/// meanwhile; by the wall clock where steady time does not fit, since that clock was wrong when the node started. Of both,
/// the later moment that does not lie ahead: what is taken for too old makes a live peer vanish.
fn time_of(entry: &TrafficEntry, now: UnixTime) -> UnixTime {
    let (steady, wall) = (entry.steady_at(), entry.at);
    let plausible = [steady, wall].into_iter().filter(|at| *at <= now + AHEAD_MAX).max();
    plausible.unwrap_or(steady.min(wall))
}

fn step_of(arrival: &Arrival, (user, at): (UserId, UnixTime), settings: &MirrorSettings) -> Step {
    let entry = &arrival.entry;
    let kind = Kind::of(entry);
    let since = match kind {
        Kind::Timeout => at - entry.since_last.unwrap_or_default(),
        _ => at,
    };
    let last_announce = match kind {
        Kind::Announce | Kind::Completed => LastAnnounce::of(entry).to_text(),
        Kind::Stopped | Kind::Timeout | Kind::Removal => String::new(),
    };
    Step {
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

/// A goodbye that does not say what is left says nothing about it. Any other client that does not say is a leecher.
fn completeness(entry: &TrafficEntry, kind: Kind) -> Option<bool> {
    let is_silent = kind == Kind::Stopped && entry.left.is_none();
    (!is_silent).then(|| entry.is_complete())
}

/// Bytes a second, to the hundredth; zero where no time has passed, or nobody knows how much.
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
    fn m5_a_speed_is_what_was_moved_by_the_time_it_took() {
        assert_eq!(speed(1000, Some(Seconds(30))).to_string(), "33.33");
        assert_eq!(speed(3000, Some(Seconds(30))).to_string(), "100");
        assert_eq!(speed(3000, Some(Seconds(0))).to_string(), "0");
        assert_eq!(speed(3000, None).to_string(), "0");
        assert_eq!(speed(u64::MAX, Some(Seconds(1))).to_string(), "18446744073709552000");
    }
}
