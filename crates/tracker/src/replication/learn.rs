//! An entry of the journal as the swarms learn it, if whoever it is about is let in here.

use std::time::Duration;

use domain::{AHEAD_MAX, AnnounceEvent, ClientKey, InfoHash, TorrentId, UnixTime, UserId};
use journal::TrafficEntry;
use swarm::{RemoteAnnounce, RemoteOutcome, RemoteTotals};

use crate::pipeline::Tracker;

impl Tracker {
    /// Takes in an entry that another node wrote, or this one in a former life, or another producer; none if it is
    /// about somebody or something that is not let in here.
    pub fn learn(&self, entry: &TrafficEntry) -> Option<RemoteOutcome> {
        let now = self.now();
        let heard = self.heard(entry, now)?;
        if !is_end(entry) && heard.at <= now {
            // A client that announced elsewhere may scrape here.
            self.note_address(entry.ip, heard.at);
        }
        Some(self.swarms().apply_remote(&heard, now, &self.expiry_rules(now)))
    }

    /// How long ago the journal was last read to its end; none before the first time.
    pub fn replication_lag(&self) -> Option<Duration> {
        self.counters().replication.lag_ms(self.now_ms()).map(Duration::from_millis)
    }

    /// Notes that a torrent was completed at least so often, as somebody else has counted.
    pub fn note_completions(&self, torrent: TorrentId, count: u64) {
        if let Some(info_hash) = self.gate().info_hash_of(torrent) {
            self.swarms().raise_snatches(&info_hash, u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    fn heard(&self, entry: &TrafficEntry, now: UnixTime) -> Option<RemoteAnnounce> {
        Some(RemoteAnnounce {
            info_hash: self.admit_heard_torrent(entry)?,
            user: self.admit_heard_user(entry)?,
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

    /// When an entry was written, by the steady time of this node.
    ///
    /// This node's earlier processes had the same steady time. That of another node began at its wall clock, as ours did
    /// at ours, so the two agree unless one of these clocks was wrong then; and the wall clocks agree unless one of them is
    /// wrong now. Of both, the later moment that can be right: what is taken for too old makes a live peer vanish.
    fn steady_time_of(&self, entry: &TrafficEntry, now: UnixTime) -> UnixTime {
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

    /// A torrent or user that this gate does not know is believed where another tracker of ours has let it in: the gate
    /// may hear of it a moment later.
    fn admit_heard_torrent(&self, entry: &TrafficEntry) -> Option<InfoHash> {
        match self.gate().torrent(&entry.info_hash) {
            Some(torrent) => (torrent.enabled || is_end(entry)).then_some(torrent.info_hash),
            None => entry.node.map(|_| entry.info_hash),
        }
    }

    fn admit_heard_user(&self, entry: &TrafficEntry) -> Option<UserId> {
        let by_passkey = || entry.passkey.and_then(|passkey| self.gate().user_of(&passkey));
        let user = entry.user.or_else(by_passkey)?;
        let gate = self.gate();
        let is_out =
            gate.is_disabled(user) || !gate.allows_client(&entry.peer_id) || !gate.allows_port(entry.port);
        (!is_out || is_end(entry)).then_some(user)
    }
}

/// Whoever leaves may always do so.
fn is_end(entry: &TrafficEntry) -> bool {
    entry.event == AnnounceEvent::Stopped
}
