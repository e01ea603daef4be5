//! A tracker in this process, on real sockets, with a clock that tests move by hand.

pub mod certificates;

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use access::Gate;
use domain::clock::{ManualClock, Stopwatch};
use domain::{
    AnnounceEvent, InfoHash, Passkey, RiskEvent, Seconds, TorrentId, TrafficEvent, UnixTime, UserId,
};
use net::{ShutdownMode, TlsFiles};
use parking_lot::Mutex;
use testkit::{Announce, AnnounceReply, HttpReply, RawHttp, RawUdp, SwarmCounts};
use tracker::settings::{LiveSettings, Settings};
use tracker::{
    BoundSockets, ConnectionIds, OnStored, Prepared, Running, Secrets, StartError, Tracker, TrafficSink,
};

/// Long enough for a machine that does much else, too.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const TORRENT: InfoHash = InfoHash([0x11; 20]);
pub const OTHER_TORRENT: InfoHash = InfoHash([0x22; 20]);
pub const UNKNOWN_TORRENT: InfoHash = InfoHash([0x99; 20]);

/// Users 1 to 9 exist.
pub fn passkey(user: u64) -> Passkey {
    format!("{user:032x}").parse().unwrap()
}

/// Records events. Stores at once, unless held.
#[derive(Default)]
pub struct Recorder {
    pub events: Mutex<Vec<TrafficEvent>>,
    risks: Mutex<Vec<RiskEvent>>,
    /// Waiters for an event to be stored, while storing is held.
    held: Mutex<Option<Vec<OnStored>>>,
    is_full: AtomicBool,
    places: AtomicI64,
    not_handed_over: AtomicI64,
}

impl Recorder {
    /// Stores nothing until [`Recorder::store_held`].
    pub fn hold(&self) {
        *self.held.lock() = Some(Vec::new());
    }

    pub fn held_count(&self) -> usize {
        self.held.lock().as_ref().map_or(0, Vec::len)
    }

    pub fn store_held(&self) {
        for on_stored in self.held.lock().take().into_iter().flatten() {
            on_stored(true);
        }
    }

    pub fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    pub fn risks(&self) -> Vec<RiskEvent> {
        self.risks.lock().clone()
    }

    /// Events that were recorded since the last hand-over.
    pub fn not_handed_over(&self) -> i64 {
        self.not_handed_over.load(Ordering::SeqCst)
    }

    /// Places that were reserved and neither used nor given back.
    pub fn places_in_use(&self) -> i64 {
        self.places.load(Ordering::SeqCst)
    }
}

impl TrafficSink for Recorder {
    fn reserve(&self) -> bool {
        let is_free = !self.is_full.load(Ordering::SeqCst);
        self.places.fetch_add(is_free.into(), Ordering::SeqCst);
        is_free
    }

    fn release(&self) {
        self.places.fetch_sub(1, Ordering::SeqCst);
    }

    fn record(&self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        self.release();
        self.not_handed_over.fetch_add(1, Ordering::SeqCst);
        self.events.lock().push(*event);
        let Some(on_stored) = on_stored else { return };
        match &mut *self.held.lock() {
            Some(held) => held.push(on_stored),
            None => on_stored(true),
        }
    }

    fn hand_over(&self) {
        self.not_handed_over.store(0, Ordering::SeqCst);
    }

    fn record_blocking(&self, event: &TrafficEvent) {
        self.events.lock().push(*event);
    }

    fn report(&self, risk: &RiskEvent) {
        self.risks.lock().push(*risk);
    }
}

/// A running tracker, drained when the test ends.
pub struct TestTracker {
    running: Option<Running>,
    pub clock: ManualClock,
    pub gate: Arc<Gate>,
    pub recorder: Arc<Recorder>,
}

/// What tests change of the defaults.
pub struct Options {
    pub live: LiveSettings,
    pub tls: Option<TlsFiles>,
    pub workers: usize,
    pub drain_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            live: LiveSettings::default(),
            tls: None,
            workers: 1,
            drain_timeout: Duration::from_secs(3),
        }
    }
}

pub fn start() -> TestTracker {
    start_with(Options::default())
}

pub fn start_live(change: impl FnOnce(&mut LiveSettings)) -> TestTracker {
    let mut options = Options::default();
    change(&mut options.live);
    start_with(options)
}

pub fn start_with(options: Options) -> TestTracker {
    try_start(&settings_of(options)).unwrap()
}

/// Everything on loopback, both families, at ports that are free.
pub fn settings_of(options: Options) -> Settings {
    let loopback: Vec<SocketAddr> = vec!["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()];
    Settings {
        http_addresses: loopback.clone(),
        https_addresses: if options.tls.is_some() { loopback.clone() } else { Vec::new() },
        udp_addresses: loopback,
        tls: options.tls,
        workers: options.workers,
        share_ports: false,
        drain_timeout: options.drain_timeout,
        live: options.live,
    }
}

pub fn try_start(settings: &Settings) -> Result<TestTracker, StartError> {
    try_start_on(settings, BoundSockets::open(settings)?, None)
}

/// On these sockets, and with connection ids under the secret of another tracker.
pub fn try_start_on(
    settings: &Settings,
    ports: BoundSockets,
    ids: Option<ConnectionIds>,
) -> Result<TestTracker, StartError> {
    let gate = Arc::new(Gate::default());
    for user in 1..=9 {
        gate.put_user(UserId::new(user).unwrap(), passkey(user), true);
    }
    gate.put_torrent(TorrentId::new(1).unwrap(), TORRENT, None, true);
    gate.put_torrent(TorrentId::new(2).unwrap(), OTHER_TORRENT, None, true);
    let clock = ManualClock::at(UnixTime(1_700_000_000));
    let recorder = Arc::new(Recorder::default());
    let secrets = Secrets::draw().unwrap();
    let tracker = Arc::new(Tracker::new(
        Arc::clone(&gate),
        Arc::new(clock.clone()),
        Arc::clone(&recorder) as Arc<dyn TrafficSink>,
        settings.live.clone(),
        &secrets,
    ));
    let prepared = Prepared::new(settings, tracker)?;
    let running = prepared.start(ports, ids.unwrap_or(secrets.connection_ids()))?;
    Ok(TestTracker { running: Some(running), clock, gate, recorder })
}

/// A connection from any address of this machine, such as 127.0.0.2.
pub fn connect_from(local: impl Into<IpAddr>, server: SocketAddr) -> RawHttp {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(local.into(), 0).into()).unwrap();
    socket.connect(&server.into()).unwrap();
    let stream = TcpStream::from(socket);
    testkit::http::set_timeouts(&stream).unwrap();
    RawHttp::over(stream, server)
}

impl TestTracker {
    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub fn tracker(&self) -> &Arc<Tracker> {
        self.running().tracker()
    }

    pub fn http_v4(&self) -> SocketAddr {
        self.running().addresses().http[0]
    }

    pub fn http_v6(&self) -> SocketAddr {
        self.running().addresses().http[1]
    }

    pub fn https_v4(&self) -> SocketAddr {
        self.running().addresses().https[0]
    }

    pub fn https_v6(&self) -> SocketAddr {
        self.running().addresses().https[1]
    }

    pub fn udp_v4(&self) -> RawUdp {
        RawUdp::new(self.running().addresses().udp[0])
    }

    pub fn udp_v6(&self) -> RawUdp {
        RawUdp::new(self.running().addresses().udp[1])
    }

    pub fn connect(&self) -> RawHttp {
        RawHttp::connect(self.http_v4())
    }

    /// Sends a target over IPv4, on a connection of its own.
    pub fn get(&self, target: &str) -> HttpReply {
        self.connect().get(target)
    }

    /// An announce that may be refused, over IPv4.
    pub fn ask(&self, user: u64, announce: &Announce) -> AnnounceReply {
        AnnounceReply::decode(&self.get(&announce.target(&passkey(user))).body)
    }

    /// Likewise over IPv6.
    pub fn ask_v6(&self, user: u64, announce: &Announce) -> AnnounceReply {
        let reply = RawHttp::connect(self.http_v6()).get(&announce.target(&passkey(user)));
        AnnounceReply::decode(&reply.body)
    }

    /// An announce that is accepted, over IPv4.
    #[track_caller]
    pub fn announce(&self, user: u64, announce: &Announce) -> AnnounceReply {
        let reply = self.ask(user, announce);
        assert_eq!(reply.failure_reason, None);
        reply
    }

    /// Why a target is refused.
    #[track_caller]
    pub fn refusal(&self, target: &str) -> String {
        let reply = AnnounceReply::decode(&self.get(target).body);
        reply.failure_reason.expect("the request is refused")
    }

    pub fn scrape(&self, torrent: &InfoHash) -> SwarmCounts {
        let hash = domain::percent::encode(&torrent.0);
        let reply = self.get(&format!("/{}/scrape?info_hash={hash}", passkey(9)));
        SwarmCounts::decode(&reply.body, torrent).unwrap().unwrap_or_default()
    }

    /// Everything that has been written down so far.
    pub fn events(&self) -> Vec<TrafficEvent> {
        self.recorder.events.lock().clone()
    }

    pub fn last_event(&self) -> TrafficEvent {
        *self.recorder.events.lock().last().expect("something was written down")
    }

    pub fn refused(&self, reason: &str) -> u64 {
        self.tracker().counters().refused.get(reason)
    }

    /// Waits until so many requests were refused for this reason: a connection is counted a moment after it ends.
    #[track_caller]
    pub fn wait_refused(&self, reason: &str, count: u64) {
        testkit::eventually_equal(count, PATIENCE, || self.refused(reason));
    }

    pub fn pass(&self, seconds: u32) {
        self.clock.advance(Seconds(seconds));
    }

    /// Drains in a thread of its own, which gives back how long that took.
    pub fn begin_drain(&mut self) -> JoinHandle<Duration> {
        self.begin_shutdown(ShutdownMode::Drain)
    }

    /// Ends in a thread of its own, which gives back how long that took.
    pub fn begin_shutdown(&mut self, mode: ShutdownMode) -> JoinHandle<Duration> {
        let running = self.running.take().unwrap();
        std::thread::spawn(move || {
            let since_start = Stopwatch::start();
            running.drain(mode);
            since_start.elapsed()
        })
    }

    pub fn drain(&mut self) {
        if let Some(running) = self.running.take() {
            running.drain(ShutdownMode::Drain);
        }
    }
}

impl Drop for TestTracker {
    fn drop(&mut self) {
        self.drain();
    }
}

pub fn leecher(client: u32) -> Announce {
    Announce::leecher(TORRENT, client)
}

pub fn seeder(client: u32) -> Announce {
    Announce::seeder(TORRENT, client)
}

pub fn stopped(announce: &Announce) -> Announce {
    announce.with_event(AnnounceEvent::Stopped)
}
