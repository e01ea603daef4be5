//! The path of an announce, the same for every protocol: limit, admit, update the swarm, record, reply.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use access::verification::{OnAnswer, RequestOutcome};
use access::{Admission, Denied, Gate, Refusal};
use arc_swap::ArcSwap;
use domain::clock::Clock;
use domain::{
    AnnounceEvent, Cause, InfoHash, NodeId, Passkey, PeerId, RunId, Seconds, SilenceLimit, TrafficEvent,
    UnixTime, UserId,
};
use journal::risk::RiskThrottle;
use net::ConnectionPermits;
use net::proxy::network_of;
use parking_lot::Mutex;
use swarm::{Announce, AnnounceError, Departure, Outcome, PeerLists, Rules, SwarmCounts, Swarms};
use wire::ScrapeEntry;

use crate::counters::Counters;
use crate::denial::Denial;
use crate::eviction::{Eviction, Evictions};
use crate::limits::{FloodLimiter, RecentAddresses, Sender, SharedAddresses, UserLimiter, shared};
use crate::rejection::Rejection;
pub use crate::request::{Accepted, Answer, Request};
use crate::risks::RiskReporter;
use crate::secrets::Secrets;
use crate::settings::{Acknowledge, LiveSettings};
use crate::terms::AnnounceTerms;
use crate::traffic::{self, QueueSlot, TrafficSink, UnrecordedEvent};
use crate::waiting_packets::WaitingPackets;

/// Warning to a client that announces before `min interval`.
const TOO_SOON: &str = "you announce more often than min interval allows; no peers this time";

/// Announces of one client within this time count as simultaneous.
const SIMULTANEOUS: Seconds = Seconds(5);

/// The state of a tracker, shared by all its threads.
pub struct Tracker {
    gate: Arc<Gate>,
    swarms: Swarms,
    clock: Arc<dyn Clock>,
    live: ArcSwap<LiveSettings>,
    sink: Arc<dyn TrafficSink>,
    flood: FloodLimiter,
    user_limiter: UserLimiter,
    recent_addresses: RecentAddresses,
    connections: Arc<ConnectionPermits>,
    evictions: Evictions,
    previous_silence: Mutex<PreviousSilence>,
    counters: Counters,
    risks: RiskReporter,
    waiting_packets: WaitingPackets,
    node: NodeId,
}

/// Keeps the longer silence limit after the interval was shortened: peers were told the longer interval.
#[derive(Clone, Copy, Debug, Default)]
struct PreviousSilence {
    silence_max: Seconds,
    until: UnixTime,
}

impl PreviousSilence {
    fn at(self, now: UnixTime) -> Seconds {
        if now < self.until { self.silence_max } else { Seconds(0) }
    }
}

impl Tracker {
    pub fn new(
        gate: Arc<Gate>,
        clock: Arc<dyn Clock>,
        sink: Arc<dyn TrafficSink>,
        live: LiveSettings,
        secrets: &Secrets,
    ) -> Self {
        let [swarm_seed, node] = secrets.pair(3);
        let now = clock.steady();
        let swarms = Swarms::new(now, swarm_seed, first_run(&*clock));
        if live.leeches_per_user_max.is_some() {
            swarms.count_leeching();
        }
        Tracker {
            gate,
            swarms,
            clock,
            live: ArcSwap::from_pointee(live),
            sink,
            flood: FloodLimiter::new(secrets.pair(1)),
            user_limiter: UserLimiter::new(secrets.pair(4)),
            recent_addresses: RecentAddresses::new(secrets.pair(2)),
            connections: Arc::default(),
            evictions: Evictions::default(),
            previous_silence: Mutex::default(),
            counters: Counters::default(),
            risks: RiskReporter::default(),
            waiting_packets: WaitingPackets::default(),
            // A random name, until [`Tracker::with_node_name`].
            node: NodeId::starting(now, &node.to_string(), node),
        }
    }

    /// Sets a node name that outlasts the process, so that a restarted tracker recognises its earlier entries.
    pub fn with_node_name(mut self, slot: &str) -> Self {
        self.node = NodeId::starting(self.clock.steady(), slot, self.node.0);
        self
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn connections(&self) -> &Arc<ConnectionPermits> {
        &self.connections
    }

    pub fn flood_limiter(&self) -> &FloodLimiter {
        &self.flood
    }

    pub fn recent_addresses(&self) -> &RecentAddresses {
        &self.recent_addresses
    }

    pub fn user_limiter(&self) -> &UserLimiter {
        &self.user_limiter
    }

    pub fn shared_addresses(&self) -> &SharedAddresses {
        &self.risks.addresses
    }

    pub fn risk_throttle(&self) -> &RiskThrottle {
        &self.risks.throttle
    }

    /// Eviction orders that no pass has carried out yet.
    pub fn evictions_pending(&self) -> usize {
        self.evictions.pending()
    }

    pub fn swarms(&self) -> &Swarms {
        &self.swarms
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The node id in this process's events.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Wall clock; ids of journal entries use it.
    pub(crate) fn wall_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Steady time.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.steady_ms()
    }

    /// Converts steady time to wall time by their current difference.
    pub(crate) fn date_of(&self, steady: UnixTime) -> UnixTime {
        let (wall, now) = (self.clock.now(), self.clock.steady());
        // Both are rounded down separately.
        if wall.0.abs_diff(now.0) <= 1 {
            return steady;
        }
        UnixTime(wall.0.saturating_sub(now.0.saturating_sub(steady.0)))
    }

    pub fn live(&self) -> arc_swap::Guard<Arc<LiveSettings>> {
        self.live.load()
    }

    /// Peers that were told a longer interval do not expire sooner than that.
    pub fn set_live(&self, live: LiveSettings) {
        if live.leeches_per_user_max.is_some() {
            self.swarms.count_leeching();
        }
        let (now, silence_max) = (self.now(), live.rules().silence_max);
        let old_silence_max = self.live.swap(Arc::new(live)).rules().silence_max;
        let mut previous_silence = self.previous_silence.lock();
        if silence_max < old_silence_max && previous_silence.at(now) < old_silence_max {
            *previous_silence =
                PreviousSilence { silence_max: old_silence_max, until: now + old_silence_max };
        }
    }

    /// Steady time ([`domain::clock`]): only recorded events use wall time.
    pub fn now(&self) -> UnixTime {
        self.clock.steady()
    }

    pub fn check_flood(&self, ip: IpAddr, sender: Sender) -> Result<(), Rejection> {
        let live = self.live.load();
        let limits = &live.limits;
        let allowed = self.flood.allows(
            ip,
            sender,
            self.now(),
            limits.requests_per_address_per_s,
            limits.request_burst_per_address,
        );
        if allowed { Ok(()) } else { Err(Rejection::Flood) }
    }

    /// The returned peers are written to `lists`.
    pub fn announce(&self, request: &Request, lists: &mut PeerLists) -> Result<Accepted<'_>, Denial> {
        let live = self.live.load();
        let now = self.now();
        let admission = match self.gate.admit(&request.passkey, &request.info_hash, &request.peer_id, now) {
            Ok(admission) => admission,
            Err(Denied::Refused(refusal)) if is_ignorable_stop(request, refusal) => {
                lists.clear();
                let answer = answer(SwarmCounts::default(), &AnnounceTerms::standard(&live), None);
                return Ok(Accepted { answer, unrecorded: None });
            }
            Err(denied) => return Err(Denial::of(denied, &request.passkey)),
        };
        // `stopped` is accepted from a banned port: it removes the peer.
        if request.event != AnnounceEvent::Stopped && !self.gate.allows_port(request.port) {
            return Err(Refusal::PortBanned.into());
        }
        // Some clients repeat a refused `stopped` forever. That of a known peer is not counted, so that a client with
        // many torrents can restart.
        if request.event != AnnounceEvent::Stopped && self.is_over_limit(admission.user, now, &live) {
            return Err(Rejection::TooManyAnnounces.into());
        }
        let terms = AnnounceTerms::of(&admission, &live, now);
        let slot = QueueSlot::reserve(&*self.sink).ok_or(Rejection::JournalFull)?;
        let announce = Announce {
            info_hash: admission.info_hash,
            user: admission.user,
            peer_id: request.peer_id,
            key: request.key,
            ip: request.ip,
            port: request.port,
            uploaded: request.uploaded,
            downloaded: request.downloaded,
            left: request.left,
            event: request.event,
            wanted: if terms.gives_peers { live.wanted(request.numwant) } else { 0 },
            families: request.families,
            slots: terms.slots,
            now,
        };
        let outcome = match self.swarms.announce(&announce, &terms.rules(&live), lists) {
            Err(AnnounceError::TooManyPeerIds { count }) => {
                let at = self.date_of(now);
                self.risks.report_refused_peer_id(&announce, admission.torrent, count, at, &*self.sink);
                return Err(AnnounceError::TooManyPeerIds { count }.into());
            }
            outcome => outcome?,
        };
        let is_over_limit =
            || self.is_over_limit(admission.user, now, &live) || live.is_over_peer_ids(outcome.peer_ids);
        if outcome.unknown_stop && is_over_limit() {
            self.counters.stops_unrecorded.increment();
            return Ok(Accepted { answer: answer(outcome.counts, &terms, None), unrecorded: None });
        }
        let address = self.recent_addresses.note(request.ip, now, live.rules().silence_max);
        let mut event = self.traffic_event(request, &admission, &outcome, now, &live);
        (event.interval, event.min_interval) = (terms.interval, terms.min_interval);
        if outcome.completed && event.event == AnnounceEvent::Stopped {
            self.record_completion(&mut event);
        }
        let is_countable = shared::is_countable(request.ip);
        let address_users =
            is_countable.then(|| self.risks.addresses.note(address, admission.user, now)).flatten();
        self.risks.report_announce(&event, &outcome, address_users, &*self.sink);
        // Simultaneous announces get no warning: a hybrid torrent is announced under both hashes, and a torrent may
        // list this tracker twice.
        let is_early = outcome.list_withheld || outcome.too_soon && outcome.since_last > SIMULTANEOUS;
        let is_awaited = live.acknowledge.waits_for(event.event) || outcome.implausible.is_some();
        Ok(Accepted {
            answer: answer(outcome.counts, &terms, is_early.then_some(TOO_SOON)),
            unrecorded: Some(UnrecordedEvent::new(
                slot,
                event,
                is_awaited && live.acknowledge != Acknowledge::None,
            )),
        })
    }

    fn is_over_limit(&self, user: UserId, now: UnixTime, live: &LiveSettings) -> bool {
        let limits = &live.limits;
        !self.user_limiter.allows(user, now, limits.announces_per_user_per_s, limits.announce_burst_per_user)
    }

    pub(crate) fn note_address(&self, ip: IpAddr, at: UnixTime) {
        self.recent_addresses.note(ip, at, self.live.load().rules().silence_max);
    }

    pub fn admit_scrape(&self, passkey: &Passkey) -> Result<UserId, Denial> {
        self.gate.admit_user(passkey, self.now()).map_err(|denied| Denial::of(denied, passkey))
    }

    /// Starts the verification of an unknown passkey; see [`Denial::NeedsVerification`].
    pub fn verify_passkey(&self, passkey: Passkey, from: IpAddr, on_answer: OnAnswer) -> RequestOutcome {
        let unknown = self.gate.unknown_passkeys();
        unknown
            .map_or(RequestOutcome::Dropped, |unknown| unknown.request(passkey, network_of(from), on_answer))
    }

    /// Longest duration of a verification.
    pub fn verify_timeout(&self) -> Duration {
        self.gate.unknown_passkeys().map_or(Duration::ZERO, |unknown| unknown.answer_timeout())
    }

    pub(crate) fn waiting_packets(&self) -> &WaitingPackets {
        &self.waiting_packets
    }

    /// UDP scrapes carry no passkey: the address must have an accepted announce within the silence limit.
    pub fn admit_scrape_from(&self, ip: IpAddr) -> Result<(), Rejection> {
        let lately = self.live.load().rules().silence_max;
        let known = self.recent_addresses.has_seen(ip, self.now(), lately);
        if known { Ok(()) } else { Err(Rejection::ScrapeBeforeAnnounce) }
    }

    /// The reply repeats the requested hash, which may be either hash of a hybrid torrent.
    pub fn scrape(&self, info_hash: InfoHash) -> Option<ScrapeEntry> {
        let torrent = self.gate.torrent(&info_hash)?;
        let counts = self.swarms.scrape(&torrent.info_hash);
        self.counters.scrapes.increment();
        Some(ScrapeEntry {
            info_hash,
            complete: counts.seeders,
            downloaded: counts.snatches,
            incomplete: counts.leechers,
        })
    }

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

    /// Updates the counters and builds the event of an accepted announce.
    fn traffic_event(
        &self,
        request: &Request,
        admission: &Admission,
        outcome: &Outcome,
        now: UnixTime,
        live: &LiveSettings,
    ) -> TrafficEvent {
        if outcome.too_soon {
            self.counters.too_soon.increment();
        }
        if outcome.list_withheld {
            self.counters.lists_withheld.increment();
        }
        if outcome.upload_without_leechers > 0 {
            self.counters.upload_without_leechers.increment();
        }
        if outcome.implausible.is_some() {
            self.counters.implausible.increment();
        }
        self.counters.uploaded_bytes.add(outcome.uploaded_delta);
        self.counters.downloaded_bytes.add(outcome.downloaded_delta);
        TrafficEvent {
            passkey: Some(request.passkey),
            user: admission.user,
            torrent: Some(admission.torrent),
            info_hash: admission.info_hash,
            peer_id: request.peer_id,
            port: request.port,
            ip: request.ip,
            uploaded_delta: outcome.uploaded_delta,
            downloaded_delta: outcome.downloaded_delta,
            left: request.left,
            event: recorded_event(request.event, outcome),
            at: self.date_of(now),
            steady: now,
            since_last: outcome.since_last,
            interval: live.announce_interval,
            min_interval: live.min_announce_interval,
            node: self.node,
            session: outcome.session,
            uploaded_total: request.uploaded,
            downloaded_total: request.downloaded,
            cause: Cause::Announce,
            key: outcome.key,
            uncredited_upload: outcome.uncredited_upload,
        }
    }

    /// A leecher that stops with nothing left has completed and stopped: two entries, the first with all deltas. If
    /// the queue has room for one only, `completed` is omitted.
    fn record_completion(&self, stopped: &mut TrafficEvent) {
        let Some(slot) = QueueSlot::reserve(&*self.sink) else { return };
        let completed = TrafficEvent { event: AnnounceEvent::Completed, ..*stopped };
        UnrecordedEvent::new(slot, completed, false).record(None);
        (stopped.uploaded_delta, stopped.downloaded_delta, stopped.since_last) = (0, 0, Seconds(0));
        stopped.uncredited_upload = 0;
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

fn answer(counts: SwarmCounts, terms: &AnnounceTerms, warning: Option<&'static str>) -> Answer {
    Answer { counts, interval: terms.interval, min_interval: terms.min_interval, warning }
}

/// A repeated `completed`, or one of a client that never leeched, is recorded as a regular announce; a first announce
/// with nothing left is recorded as `completed`: each completion counts once (J8).
fn recorded_event(event: AnnounceEvent, outcome: &Outcome) -> AnnounceEvent {
    match event {
        AnnounceEvent::Completed if !outcome.completed => AnnounceEvent::None,
        AnnounceEvent::None | AnnounceEvent::Started if outcome.completed => AnnounceEvent::Completed,
        event => event,
    }
}

/// Runs are numbered from the current millisecond of steady time, so that a restarted tracker does not repeat
/// numbers.
fn first_run(clock: &dyn Clock) -> RunId {
    RunId(clock.steady_ms() as u32)
}

/// A known user's `stopped` is not refused because its torrent or client was removed or forbidden since: there is
/// nothing left to stop, and some clients repeat a refused one forever.
fn is_ignorable_stop(request: &Request, refusal: Refusal) -> bool {
    request.event == AnnounceEvent::Stopped
        && matches!(refusal, Refusal::UnknownTorrent | Refusal::TorrentDisabled | Refusal::ClientNotAllowed)
}
