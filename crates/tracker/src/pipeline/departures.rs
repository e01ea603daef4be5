//! Peers that leave without a `stopped`: expired, or no longer admitted. Each is recorded.

use domain::{AnnounceEvent, Cause, PeerId, Seconds, SilenceLimit, TrafficEvent, UnixTime};
use swarm::{Departure, Rules};

use super::Tracker;
use crate::eviction::Eviction;
use crate::traffic;

impl Tracker {
    /// Removes peers that have been silent too long (T3).
    pub fn expire_peers(&self) {
        let now = self.now();
        let rules = self.expiry_rules(now);
        let mut departed = Vec::new();
        self.swarms.expire(now, &rules, |departure| departed.push(departure));
        self.counters.peers_expired.add(departed.len() as u64);
        self.record_departures(&departed, Cause::Timeout);
    }

    /// With the longer silence limit of peers that were told a longer interval.
    pub(crate) fn expiry_rules(&self, now: UnixTime) -> Rules {
        let rules = self.live.load().rules();
        Rules { silence_max: rules.silence_max.max(self.previous_silence.lock().at(now)), ..rules }
    }

    pub(crate) fn silence_limit(&self) -> SilenceLimit {
        let live = self.live.load();
        SilenceLimit { interval: live.announce_interval, grace: live.peer_grace }
    }

    /// Carried out by [`Tracker::evict_ordered`].
    pub fn order_eviction(&self, eviction: Eviction) {
        self.evictions.order(eviction);
    }

    /// Carries out new eviction orders in one pass over the peers, and those of the previous pass again: an announce
    /// may have passed the gate just before the change.
    pub fn evict_ordered(&self) {
        let Some(ordered) = self.evictions.take_due() else {
            return;
        };
        let now = self.now();
        let mut departed = Vec::new();
        for info_hash in &ordered.torrents {
            if !self.gate.torrent(info_hash).is_some_and(|torrent| torrent.enabled) {
                self.swarms.remove_torrent(info_hash, |departure| departed.push(departure));
            }
        }
        if !ordered.users.is_empty() || ordered.clients {
            let is_evicted = |user, peer_id: &PeerId| {
                ordered.users.contains(&user) && !self.gate.is_enabled(user, now)
                    || ordered.clients && !self.gate.allows_client(peer_id)
            };
            self.swarms.remove_peers(is_evicted, |departure| departed.push(departure));
        }
        if ordered.ports {
            let is_banned = |port| !self.gate.allows_port(port);
            self.swarms.remove_peers_on_ports(is_banned, |departure| departed.push(departure));
        }
        self.counters.peers_evicted.add(departed.len() as u64);
        self.record_departures(&departed, Cause::Removal);
    }

    /// Expired and evicted peers are recorded as `stopped`, without deltas.
    fn record_departures(&self, departed: &[Departure], cause: Cause) {
        let (live, now) = (self.live.load(), self.now());
        for departure in departed {
            // The moment at which the peer expired; a later announce is also later in the journal.
            let steady = match cause {
                Cause::Timeout => {
                    let usual = self.expiry_rules(now).silence_max;
                    now.min(departure.last_announce + usual.max(departure.silence_max))
                }
                Cause::Announce | Cause::Removal => now,
            };
            // With the interval that the peer was told, so that views expire the departure and the announces before
            // it alike.
            let peer_interval = Seconds(departure.silence_max.0.saturating_sub(live.peer_grace.0));
            let event = TrafficEvent {
                passkey: self.gate.passkey_of(departure.user),
                user: departure.user,
                torrent: self.gate.present_or_removed_torrent_of(&departure.info_hash),
                info_hash: departure.info_hash,
                peer_id: departure.peer_id,
                port: departure.address.port(),
                ip: departure.address.ip(),
                uploaded_delta: 0,
                downloaded_delta: 0,
                left: departure.seeder.then_some(0),
                event: AnnounceEvent::Stopped,
                at: self.date_of(steady),
                steady,
                since_last: steady.since(departure.last_announce),
                interval: live.announce_interval.max(peer_interval),
                min_interval: live.min_announce_interval,
                node: self.node,
                session: departure.session,
                uploaded_total: departure.uploaded,
                downloaded_total: departure.downloaded,
                cause,
                key: departure.key,
                uncredited_upload: 0,
            };
            traffic::log(&event);
            self.sink.record_blocking(&event);
        }
    }
}
