//! The path of an announce, the same for every protocol: limit, admit, update the swarm, record, reply.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use access::verification::{OnAnswer, RequestOutcome};
use access::{Admission, Gate};
use arc_swap::ArcSwap;
use domain::clock::Clock;
use domain::{
    Announce, AnnounceEvent, Cause, InfoHash, NodeId, Passkey, RunId, Seconds, TrafficEvent, UnixTime, UserId,
};
use journal::risk::RiskThrottle;
use net::ConnectionPermits;
use net::proxy::network_of;
use parking_lot::Mutex;
use swarm::{AnnounceError, Outcome, PeerLists, Rules, SlotLimits, SwarmCounts, Swarms, Terms};
use wire::ScrapeEntry;
use wire::http::QueryError;

use crate::counters::Counters;
use crate::eviction::Evictions;
use crate::limits::{FloodLimiter, RecentAddresses, Sender, SharedAddresses, UserLimiter, shared};
use crate::refusal::Refusal;
use crate::risks::RiskReporter;
use crate::secrets::Secrets;
use crate::settings::{Acknowledge, LiveSettings};
use crate::traffic::{QueueSlot, TrafficSink, UnrecordedEvent};
use crate::waiting_packets::WaitingPackets;

mod departures;

/// Warning to a client that announces before `min interval`.
const TOO_SOON: &str = "you announce more often than min interval allows; no peers this time";

/// Announces of one client within this time count as simultaneous.
const SIMULTANEOUS: Seconds = Seconds(5);

/// The same request is processed twice if its passkey has to be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    /// Its passkey was verified meanwhile: not counted again by the limits, and not verified again.
    AfterVerification,
}

/// An accepted announce, as it is answered. The peers are in the caller's lists.
pub struct Accepted<'t> {
    pub counts: SwarmCounts,
    pub interval: Seconds,
    pub min_interval: Seconds,
    /// `warning message` of the reply.
    pub warning: Option<&'static str>,
    /// None for a `stopped` that changed nothing.
    pub unrecorded: Option<UnrecordedEvent<'t>>,
}

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

    pub fn check_flood(&self, ip: IpAddr, sender: Sender, now: UnixTime) -> Result<(), Refusal> {
        let live = self.live.load();
        let limits = &live.limits;
        let allowed = self.flood.allows(
            ip,
            sender,
            now,
            limits.requests_per_address_per_s,
            limits.request_burst_per_address,
        );
        if allowed { Ok(()) } else { Err(Refusal::Flood) }
    }

    /// The returned peers are written to `lists`.
    pub fn announce(&self, announce: &Announce, lists: &mut PeerLists) -> Result<Accepted<'_>, Refusal> {
        let live = self.live.load();
        let now = announce.now;
        let passkey = announce.passkey.ok_or(QueryError::NoPasskey)?;
        let admission = match self.gate.admit(&passkey, &announce.info_hash, &announce.peer_id, now) {
            Ok(admission) => admission,
            Err(refusal) if is_ignorable_stop(announce, refusal) => {
                lists.clear();
                return Ok(Accepted {
                    counts: SwarmCounts::default(),
                    interval: live.announce_interval,
                    min_interval: live.min_announce_interval,
                    warning: None,
                    unrecorded: None,
                });
            }
            Err(refusal) => return Err(refusal.into()),
        };
        // `stopped` is accepted from a banned port: it removes the peer.
        if announce.event != AnnounceEvent::Stopped && !self.gate.allows_port(announce.port) {
            return Err(access::Refusal::PortBanned.into());
        }
        // Some clients repeat a refused `stopped` forever. That of a known peer is not counted, so that a client with
        // many torrents can restart.
        if announce.event != AnnounceEvent::Stopped && self.is_over_limit(admission.user, now, &live) {
            return Err(Refusal::TooManyAnnounces);
        }
        let announce = &Announce { info_hash: admission.info_hash, ..*announce };
        let terms = AnnounceTerms::of(announce, &admission, &live);
        let slot = QueueSlot::reserve(&*self.sink).ok_or(Refusal::JournalFull)?;
        let outcome = self.swarms.announce(announce, &terms.granted, lists);
        if let Err(AnnounceError::TooManyPeerIds { count }) = outcome {
            self.risks.report_refused_peer_id(announce, &admission, count, self.date_of(now), &*self.sink);
        }
        let outcome = outcome?;
        let mut accepted = Accepted {
            counts: outcome.counts,
            interval: terms.interval,
            min_interval: terms.min_interval,
            warning: None,
            unrecorded: None,
        };
        let is_over_limit =
            || self.is_over_limit(admission.user, now, &live) || live.is_over_peer_ids(outcome.peer_ids);
        if outcome.unknown_stop && is_over_limit() {
            self.counters.stops_unrecorded.increment();
            return Ok(accepted);
        }
        let address = self.recent_addresses.note(announce.ip, now, live.rules().silence_max);
        let mut event = self.traffic_event(announce, &admission, &terms, &outcome);
        if outcome.completed && event.event == AnnounceEvent::Stopped {
            self.record_completion(&mut event);
        }
        let is_countable = shared::is_countable(announce.ip);
        let address_users =
            is_countable.then(|| self.risks.addresses.note(address, admission.user, now)).flatten();
        self.risks.report_announce(&event, &outcome, address_users, &*self.sink);
        // Simultaneous announces get no warning: a hybrid torrent is announced under both hashes, and a torrent may
        // list this tracker twice.
        let is_early = outcome.list_withheld || outcome.too_soon && outcome.since_last > SIMULTANEOUS;
        accepted.warning = is_early.then_some(TOO_SOON);
        let is_awaited = live.acknowledge.waits_for(event.event) || outcome.implausible.is_some();
        let is_awaited = is_awaited && live.acknowledge != Acknowledge::None;
        accepted.unrecorded = Some(UnrecordedEvent::new(slot, event, is_awaited));
        Ok(accepted)
    }

    /// To be called by each thread that records events, at the end of its turn.
    pub fn hand_over(&self) {
        self.sink.hand_over();
    }

    fn is_over_limit(&self, user: UserId, now: UnixTime, live: &LiveSettings) -> bool {
        let limits = &live.limits;
        !self.user_limiter.allows(user, now, limits.announces_per_user_per_s, limits.announce_burst_per_user)
    }

    pub(crate) fn note_address(&self, ip: IpAddr, at: UnixTime) {
        self.recent_addresses.note(ip, at, self.live.load().rules().silence_max);
    }

    pub fn admit_scrape(&self, passkey: Option<Passkey>) -> Result<UserId, Refusal> {
        let passkey = passkey.ok_or(QueryError::NoPasskey)?;
        Ok(self.gate.admit_user(&passkey, self.now())?)
    }

    /// Starts the verification of an unknown passkey; see [`Refusal::needs_verification`].
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
    pub fn admit_scrape_from(&self, ip: IpAddr) -> Result<(), Refusal> {
        let lately = self.live.load().rules().silence_max;
        let known = self.recent_addresses.has_seen(ip, self.now(), lately);
        if known { Ok(()) } else { Err(Refusal::ScrapeBeforeAnnounce) }
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

    /// Updates the counters and builds the event of an accepted announce.
    fn traffic_event(
        &self,
        announce: &Announce,
        admission: &Admission,
        terms: &AnnounceTerms,
        outcome: &Outcome,
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
            passkey: announce.passkey,
            user: admission.user,
            torrent: Some(admission.torrent),
            info_hash: announce.info_hash,
            peer_id: announce.peer_id,
            port: announce.port,
            ip: announce.ip,
            uploaded_delta: outcome.uploaded_delta,
            downloaded_delta: outcome.downloaded_delta,
            left: announce.left,
            event: recorded_event(announce.event, outcome),
            at: self.date_of(announce.now),
            steady: announce.now,
            since_last: outcome.since_last,
            interval: terms.interval,
            min_interval: terms.min_interval,
            node: self.node,
            session: outcome.session,
            uploaded_total: announce.uploaded,
            downloaded_total: announce.downloaded,
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
}

/// How an accepted announce is answered.
///
/// A pending torrent is announced like any other, and every announce is recorded; but its clients get a short interval
/// and no peers until it is approved.
#[derive(Clone, Copy, Debug)]
struct AnnounceTerms {
    interval: Seconds,
    /// `min interval` of the reply.
    min_interval: Seconds,
    granted: Terms,
}

impl AnnounceTerms {
    fn of(announce: &Announce, admission: &Admission, live: &LiveSettings) -> AnnounceTerms {
        let is_pending = admission.approval.is_pending();
        let soonest =
            |seconds: Seconds| if is_pending { seconds.min(live.pending_interval) } else { seconds };
        // Clients that announced while the torrent was pending were told a short interval. Counting from the
        // approval, their first announce after it gets peers, however early it comes.
        let since_approval =
            admission.approval.since().map_or(Seconds(u32::MAX), |then| announce.now.since(then));
        let min_interval = soonest(live.min_announce_interval);
        AnnounceTerms {
            interval: soonest(live.announce_interval),
            min_interval,
            granted: Terms {
                user: admission.user,
                wanted: if is_pending { 0 } else { live.wanted(announce.numwant) },
                slots: SlotLimits {
                    of_user: admission.user_slots.limit(live.leeches_per_user_max),
                    of_torrent: admission.torrent_slots.limit(live.leeches_per_torrent_max),
                },
                // An announce sooner than this after the previous one gets no peers.
                rules: Rules { min_interval: min_interval.min(since_approval), ..live.rules() },
            },
        }
    }
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
fn is_ignorable_stop(announce: &Announce, refusal: access::Refusal) -> bool {
    use access::Refusal::{ClientNotAllowed, TorrentDisabled, UnknownTorrent};
    announce.event == AnnounceEvent::Stopped
        && matches!(refusal, UnknownTorrent | TorrentDisabled | ClientNotAllowed)
}
