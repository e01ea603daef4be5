//! Applies a journal entry to the swarms, if its user, torrent and client are admitted.

use std::time::Duration;

use domain::{AHEAD_MAX, AnnounceEvent, ClientKey, InfoHash, TorrentId, UnixTime, UserId};
use journal::TrafficEntry;
use swarm::{RemoteAnnounce, RemoteOutcome, RemoteTotals};

use crate::pipeline::Tracker;

impl Tracker {
    /// Applies an entry of another node, of an earlier process of this node, or of another producer; none if it is
    /// not admitted here.
    pub fn learn(&self, entry: &TrafficEntry) -> Option<RemoteOutcome> {
        let now = self.now();
        let announce = self.remote_announce(entry, now)?;
        if !is_stopped(entry) && announce.at <= now {
            // A client that announced to another node may scrape here.
            self.note_address(entry.ip, announce.at);
        }
        Some(self.swarms().apply_remote(&announce, now, &self.expiry_rules(now)))
    }

    /// None before the end of the journal was first reached.
    pub fn replication_lag(&self) -> Option<Duration> {
        self.counters().replication.lag_ms(self.now_ms()).map(Duration::from_millis)
    }

    /// Raises the completed count to at least `count`, as the ledger has it.
    pub fn raise_completions(&self, torrent: TorrentId, count: u64) {
        if let Some(info_hash) = self.gate().info_hash_of(torrent) {
            self.swarms().raise_snatches(&info_hash, u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    fn remote_announce(&self, entry: &TrafficEntry, now: UnixTime) -> Option<RemoteAnnounce> {
        Some(RemoteAnnounce {
            info_hash: self.admit_torrent(entry)?,
            user: self.admit_user(entry)?,
            peer_id: entry.peer_id,
            key: entry.key.unwrap_or(ClientKey::NONE),
            ip: entry.ip,
            port: entry.port,
            left: entry.left,
            event: entry.event,
            cause: entry.cause,
            at: self.steady_time_of(entry, now),
            since_last: entry.since_last,
            silence_max: self.silence_limit().of(entry.interval),
            totals: entry.totals.map(|totals| RemoteTotals {
                run: totals.session.run,
                uploaded: totals.uploaded,
                downloaded: totals.downloaded,
            }),
        })
    }

    /// The time of an entry in this node's steady time.
    ///
    /// This node's earlier processes shared its steady time. Another node's steady time started at its wall clock, as
    /// ours did, so both agree unless one of those clocks was wrong then; the wall clocks agree unless one is wrong
    /// now. Of both readings, the later one that is plausible: an entry taken for too old would remove a live peer.
    pub(super) fn steady_time_of(&self, entry: &TrafficEntry, now: UnixTime) -> UnixTime {
        let node = self.node();
        let is_own = entry.node.is_some_and(|writer| writer == node || node.is_restart_of(writer));
        if is_own {
            return entry.steady_at().min(now);
        }
        let ahead_of_wall_clock = i64::from(now.0) - i64::from(self.date_of(now).0);
        let by_wall_clock = i64::from(entry.at.0) + ahead_of_wall_clock;
        let by_wall_clock = UnixTime(u32::try_from(by_wall_clock.max(0)).unwrap_or(u32::MAX));
        let both = [entry.steady_at(), by_wall_clock];
        let plausible = both.into_iter().filter(|at| *at <= now + AHEAD_MAX).max();
        plausible.map_or(both[0].min(both[1]), |at| at.min(now))
    }

    /// An unknown torrent or user is accepted if another of our trackers admitted it: this gate may learn of it a
    /// moment later.
    fn admit_torrent(&self, entry: &TrafficEntry) -> Option<InfoHash> {
        match self.gate().torrent(&entry.info_hash) {
            Some(torrent) => (torrent.enabled || is_stopped(entry)).then_some(torrent.info_hash),
            None => entry.node.map(|_| entry.info_hash),
        }
    }

    fn admit_user(&self, entry: &TrafficEntry) -> Option<UserId> {
        let by_passkey = || entry.passkey.and_then(|passkey| self.gate().user_of(&passkey));
        let user = entry.user.or_else(by_passkey)?;
        let gate = self.gate();
        let is_refused =
            gate.is_disabled(user) || !gate.allows_client(&entry.peer_id) || !gate.allows_port(entry.port);
        (!is_refused || is_stopped(entry)).then_some(user)
    }
}

/// `stopped` is always applied.
fn is_stopped(entry: &TrafficEntry) -> bool {
    entry.event == AnnounceEvent::Stopped
}
