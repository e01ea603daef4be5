//! The life of an announce, whatever wire it came over: limit, admit, count, answer, write down.

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
use parking_lot::Mutex;
use swarm::{Announce, AnnounceError, Departure, Outcome, PeerLists, Rules, SwarmCounts, Swarms};
use wire::ScrapeEntry;

use crate::counters::Counters;
use crate::eviction::{Eviction, Evictions};
use crate::halt::Halt;
use crate::limits::{
    Connections, FloodLimiter, RecentAddresses, Sender, SharedAddresses, UserLimiter, network_of, shared,
};
use crate::rejection::Rejection;
pub use crate::request::{Accepted, Answer, Request};
use crate::risks::Risks;
use crate::secrets::Secrets;
use crate::set_aside::SetAside;
use crate::settings::{Acknowledge, LiveSettings};
use crate::terms::Terms;
use crate::traffic::{self, Place, TrafficSink, Unwritten};

/// What a client is warned of when it comes back sooner than it may.
const TOO_SOON: &str = "you announce more often than min interval allows; no peers this time";

/// Announces of one client within this time were sent at once.
const AT_ONCE: Seconds = Seconds(5);

/// What the tracker is made of. Shared by all its threads.
pub struct Tracker {
    gate: Arc<Gate>,
    swarms: Swarms,
    clock: Arc<dyn Clock>,
    live: ArcSwap<LiveSettings>,
    sink: Arc<dyn TrafficSink>,
    flood: FloodLimiter,
    user_limiter: UserLimiter,
    announced_lately: RecentAddresses,
    connections: Arc<Connections>,
    evictions: Evictions,
    promised: Mutex<PromisedSilence>,
    counters: Counters,
    risks: Risks,
    packets_aside: SetAside,
    node: NodeId,
}

/// How long peers may be silent that were told so before the interval was made shorter.
#[derive(Clone, Copy, Debug, Default)]
struct PromisedSilence {
    silence_max: Seconds,
    until: UnixTime,
}

impl PromisedSilence {
    fn at(self, now: UnixTime) -> Seconds {
        if now < self.until { self.silence_max } else { Seconds(0) }
    }
}

impl Tracker {
    /// A tracker without peers.
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
            announced_lately: RecentAddresses::new(secrets.pair(2)),
            connections: Arc::default(),
            evictions: Evictions::default(),
            promised: Mutex::default(),
            counters: Counters::default(),
            risks: Risks::default(),
            packets_aside: SetAside::default(),
            // A place that nobody else knows, unless it is told another.
            node: NodeId::starting(now, &node.to_string(), node),
        }
    }

    /// Where this tracker lives: a name that outlasts the process, by which it is known to be the next life of another.
    pub fn living_at(mut self, place: &str) -> Self {
        self.node = NodeId::starting(self.clock.steady(), place, self.node.0);
        self
    }

    /// What is counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The HTTP connections that are open.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// The table of busy addresses.
    pub fn flood_limiter(&self) -> &FloodLimiter {
        &self.flood
    }

    /// The table of addresses that announced lately.
    pub fn recent_addresses(&self) -> &RecentAddresses {
        &self.announced_lately
    }

    /// The table of busy users.
    pub fn user_limiter(&self) -> &UserLimiter {
        &self.user_limiter
    }

    /// The table of addresses and how many users announce from them.
    pub fn shared_addresses(&self) -> &SharedAddresses {
        &self.risks.addresses
    }

    /// Which users were reported as risks within the last minute.
    pub fn risk_throttle(&self) -> &RiskThrottle {
        &self.risks.throttle
    }

    /// Orders to evict that have yet to be carried out.
    pub fn evictions_pending(&self) -> usize {
        self.evictions.pending()
    }

    /// The swarms.
    pub fn swarms(&self) -> &Swarms {
        &self.swarms
    }

    /// Who may announce.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The name under which this process writes events.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The wall clock in milliseconds, as journals count them.
    pub(crate) fn wall_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Steady time in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.steady_ms()
    }

    /// The date of a moment of steady time, as the wall clock counts now: the same, unless that was set.
    pub(crate) fn date_of(&self, steady: UnixTime) -> UnixTime {
        let (wall, now) = (self.clock.now(), self.clock.steady());
        // Both are rounded down, each by itself.
        if wall.0.abs_diff(now.0) <= 1 {
            return steady;
        }
        UnixTime(wall.0.saturating_sub(now.0.saturating_sub(steady.0)))
    }

    /// The settings in force.
    pub fn live(&self) -> arc_swap::Guard<Arc<LiveSettings>> {
        self.live.load()
    }

    /// Puts other settings in force.
    ///
    /// Peers that were told a longer interval are not expected sooner than that.
    pub fn set_live(&self, live: LiveSettings) {
        if live.leeches_per_user_max.is_some() {
            self.swarms.count_leeching();
        }
        let (now, silence_max) = (self.now(), live.rules().silence_max);
        let old_silence_max = self.live.swap(Arc::new(live)).rules().silence_max;
        let mut promised = self.promised.lock();
        if silence_max < old_silence_max && promised.at(now) < old_silence_max {
            *promised = PromisedSilence { silence_max: old_silence_max, until: now + old_silence_max };
        }
    }

    /// The present moment of steady time ([`domain::clock`]): a tracker goes by durations. Only entries have a date.
    pub fn now(&self) -> UnixTime {
        self.clock.steady()
    }

    /// Counts one request of an address and says whether it is one too many.
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

    /// Takes an announce. The peers it is given are written to `lists`.
    pub fn announce(&self, request: &Request, lists: &mut PeerLists) -> Result<Accepted<'_>, Halt> {
        let live = self.live.load();
        let now = self.now();
        let admission = match self.gate.admit(&request.passkey, &request.info_hash, &request.peer_id, now) {
            Ok(admission) => admission,
            Err(Denied::Refused(refusal)) if is_goodbye(request, refusal) => {
                lists.clear();
                let answer = answer(SwarmCounts::default(), &Terms::usual(&live), None);
                return Ok(Accepted { answer, unwritten: None });
            }
            Err(denied) => return Err(Halt::of(denied, &request.passkey)),
        };
        // A goodbye is taken from anywhere: it makes the client leave.
        if request.event != AnnounceEvent::Stopped && !self.gate.allows_port(request.port) {
            return Err(Refusal::PortBanned.into());
        }
        // A `stopped` that is refused is repeated for ever by some clients; that of a known peer costs its user nothing, so
        // that a client with many torrents can be restarted.
        if request.event != AnnounceEvent::Stopped && self.is_over_limit(admission.user, now, &live) {
            return Err(Rejection::TooManyAnnounces.into());
        }
        let terms = Terms::of(&admission, &live, now);
        let place = Place::reserve(&*self.sink).ok_or(Rejection::JournalFull)?;
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
                self.risks.refused_peer_id(&announce, admission.torrent, count, at, &*self.sink);
                return Err(AnnounceError::TooManyPeerIds { count }.into());
            }
            outcome => outcome?,
        };
        let is_over_limit =
            || self.is_over_limit(admission.user, now, &live) || live.is_over_peer_ids(outcome.peer_ids);
        if outcome.unknown_stop && is_over_limit() {
            self.counters.stops_unwritten.increment();
            return Ok(Accepted { answer: answer(outcome.counts, &terms, None), unwritten: None });
        }
        let address = self.announced_lately.note(request.ip, now, live.rules().silence_max);
        let mut event = self.count(request, &admission, &outcome, now, &live);
        (event.interval, event.min_interval) = (terms.interval, terms.min_interval);
        if outcome.completed && event.event == AnnounceEvent::Stopped {
            self.write_down_completion(&mut event);
        }
        let is_countable = shared::is_worth_counting(request.ip);
        let address_users =
            is_countable.then(|| self.risks.addresses.note(address, admission.user, now)).flatten();
        self.risks.judge(&event, &outcome, address_users, &*self.sink);
        // Twice at once is not impatience: a hybrid torrent is announced under both its hashes, and a torrent may
        // list this tracker twice.
        let impatient = outcome.list_withheld || outcome.too_soon && outcome.since_last > AT_ONCE;
        let is_awaited = live.acknowledge.waits_for(event.event) || outcome.implausible.is_some();
        Ok(Accepted {
            answer: answer(outcome.counts, &terms, impatient.then_some(TOO_SOON)),
            unwritten: Some(Unwritten::new(
                place,
                event,
                is_awaited && live.acknowledge != Acknowledge::None,
            )),
        })
    }

    /// Counts one announce of a user and says whether it is one too many.
    fn is_over_limit(&self, user: UserId, now: UnixTime, live: &LiveSettings) -> bool {
        let limits = &live.limits;
        !self.user_limiter.allows(user, now, limits.announces_per_user_per_s, limits.announce_burst_per_user)
    }

    /// Notes that an accepted announce came from this address.
    pub(crate) fn note_address(&self, ip: IpAddr, at: UnixTime) {
        self.announced_lately.note(ip, at, self.live.load().rules().silence_max);
    }

    /// Whether a passkey may scrape.
    pub fn admit_scrape(&self, passkey: &Passkey) -> Result<UserId, Halt> {
        self.gate.admit_user(passkey, self.now()).map_err(|denied| Halt::of(denied, passkey))
    }

    /// Asks about an unknown passkey on behalf of the client at this address; see [`Halt::Ask`].
    pub fn ask(&self, passkey: Passkey, from: IpAddr, on_answer: OnAnswer) -> RequestOutcome {
        let verification = self.gate.unknown_passkeys();
        verification
            .map_or(RequestOutcome::Dropped, |queue| queue.request(passkey, network_of(from), on_answer))
    }

    /// How long an answer may take.
    pub fn ask_patience(&self) -> Duration {
        self.gate.unknown_passkeys().map_or(Duration::ZERO, |verification| verification.answer_timeout())
    }

    /// Packets that wait for an answer about their passkey.
    pub(crate) fn packets_aside(&self) -> &SetAside {
        &self.packets_aside
    }

    /// Whether an address may scrape without a passkey, as over UDP: it has an accepted announce behind it.
    pub fn admit_scrape_from(&self, ip: IpAddr) -> Result<(), Rejection> {
        let lately = self.live.load().rules().silence_max;
        let known = self.announced_lately.has_seen(ip, self.now(), lately);
        if known { Ok(()) } else { Err(Rejection::ScrapeBeforeAnnounce) }
    }

    /// The counts of one torrent, under the hash it was asked by; none for an unknown one.
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

    /// Takes out the peers that have been silent for too long (T3).
    pub fn expire_peers(&self) {
        let now = self.now();
        let rules = self.expiry_rules(now);
        let mut departed = Vec::new();
        self.swarms.expire(now, &rules, |departure| departed.push(departure));
        self.counters.peers_expired.add(departed.len() as u64);
        self.write_down_departed(&departed, Cause::Timeout);
    }

    /// The rules for those who may have been told of a longer interval.
    pub(crate) fn expiry_rules(&self, now: UnixTime) -> Rules {
        let rules = self.live.load().rules();
        Rules { silence_max: rules.silence_max.max(self.promised.lock().at(now)), ..rules }
    }

    /// How long peers may be silent that were told other intervals.
    pub(crate) fn silence_limit(&self) -> SilenceLimit {
        let live = self.live.load();
        SilenceLimit { interval: live.announce_interval, grace: live.peer_grace }
    }

    /// Sees to it that whoever is no longer allowed leaves the swarms. See [`Tracker::evict_ordered`].
    pub fn order_eviction(&self, eviction: Eviction) {
        self.evictions.order(eviction);
    }

    /// Carries out the evictions ordered since the last time, all in one pass, and those of the time before again: an
    /// announce that had passed the gate just before the change may have come in behind the first pass.
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
            let is_out = |user, peer_id: &PeerId| {
                ordered.users.contains(&user) && !self.gate.is_enabled(user, now)
                    || ordered.clients && !self.gate.allows_client(peer_id)
            };
            self.swarms.remove_peers(is_out, |departure| departed.push(departure));
        }
        if ordered.ports {
            let is_banned = |port| !self.gate.allows_port(port);
            self.swarms.remove_peers_on_ports(is_banned, |departure| departed.push(departure));
        }
        self.counters.peers_evicted.add(departed.len() as u64);
        self.write_down_departed(&departed, Cause::Removal);
    }

    /// Counts an accepted announce and makes its event.
    fn count(
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
            event: event_of_weight(request.event, outcome),
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

    /// A leecher that has everything when it stops has completed the torrent and stopped: two entries, of which the first
    /// has all that was moved. Where the queue has no room for two, it counts as a seeder's.
    fn write_down_completion(&self, stopped: &mut TrafficEvent) {
        let Some(place) = Place::reserve(&*self.sink) else { return };
        let completed = TrafficEvent { event: AnnounceEvent::Completed, ..*stopped };
        Unwritten::new(place, completed, false).write(None);
        (stopped.uploaded_delta, stopped.downloaded_delta, stopped.since_last) = (0, 0, Seconds(0));
        stopped.uncredited_upload = 0;
    }

    /// A peer that left without a word is an event too: `stopped`, with nothing moved.
    fn write_down_departed(&self, departed: &[Departure], cause: Cause) {
        let (live, now) = (self.live.load(), self.now());
        for departure in departed {
            // A timeout happened when the silence became too long. A later announce is later in the journal, too.
            let steady = match cause {
                Cause::Timeout => {
                    let usual = self.expiry_rules(now).silence_max;
                    now.min(departure.last_announce + usual.max(departure.silence_max))
                }
                Cause::Announce | Cause::Removal => now,
            };
            // As long as the announces before it count, so must its end.
            let told_interval = Seconds(departure.silence_max.0.saturating_sub(live.peer_grace.0));
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
                interval: live.announce_interval.max(told_interval),
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
            self.sink.record_patiently(&event);
        }
    }
}

fn answer(counts: SwarmCounts, terms: &Terms, warning: Option<&'static str>) -> Answer {
    Answer { counts, interval: terms.interval, min_interval: terms.min_interval, warning }
}

/// A `completed` that was sent again, or by a client that never leeched, is a plain announce, and one that completes the
/// download without saying so is a `completed`: each completion counts once (J8).
fn event_of_weight(event: AnnounceEvent, outcome: &Outcome) -> AnnounceEvent {
    match event {
        AnnounceEvent::Completed if !outcome.completed => AnnounceEvent::None,
        AnnounceEvent::None | AnnounceEvent::Started if outcome.completed => AnnounceEvent::Completed,
        event => event,
    }
}

/// Runs are numbered from the present millisecond of steady time on, so that a restarted tracker does not repeat numbers.
fn first_run(clock: &dyn Clock) -> RunId {
    RunId(clock.steady_ms() as u32)
}

/// A known user's `stopped` is not refused for its torrent or its client, which may have been removed or forbidden
/// since: there is nothing left to stop, and some clients repeat a refused one for ever.
fn is_goodbye(request: &Request, refusal: Refusal) -> bool {
    request.event == AnnounceEvent::Stopped
        && matches!(refusal, Refusal::UnknownTorrent | Refusal::TorrentDisabled | Refusal::ClientNotAllowed)
}
