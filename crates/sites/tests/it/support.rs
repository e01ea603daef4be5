//! A site with tables of each profile, and a tracker's journal and ledger beside it.

pub mod tables;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use access::Store;
use database::Database;
use domain::clock::{Clock, SystemClock};
use domain::{
    AnnounceEvent, Cause, ClientId, ClientKey, InfoHash, NodeId, Passkey, PeerId, RateCeiling, RunId,
    Seconds, SessionId, TorrentId, TrafficEvent, UnixTime, UserId,
};
use journal::{
    AppendToken, Batch, DeliveredEntry, Journal, Lane, SqliteJournal, StartAt, TrafficEntry, View,
};
use ledger::{Directory, Ledger, LedgerSettings, LogRisks};
use sites::{Profile, SitesView, Stage, Writer, WriterCounters, WriterParts};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub const TIMEOUT: Duration = Duration::from_secs(60);
const LEDGER_GROUP: &str = "ztorrent";
const SITES_GROUP: &str = "sites";

pub fn user(id: u64) -> UserId {
    UserId::new(id).unwrap()
}

pub fn torrent(id: u64) -> TorrentId {
    TorrentId::new(id).unwrap()
}

pub fn info_hash(torrent: u64) -> InfoHash {
    InfoHash([torrent as u8; 20])
}

/// Entries of our own trackers contain the ids.
struct NoDirectory;

impl Directory for NoDirectory {
    fn user_of(&self, _: &Passkey) -> Option<UserId> {
        None
    }
    fn torrent_of(&self, _: &InfoHash) -> Option<TorrentId> {
        None
    }
}

/// A client's totals.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    uploaded: u64,
    downloaded: u64,
    at: Option<UnixTime>,
}

/// What a client does at an announce.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub user: u64,
    pub torrent: u64,
    /// Distinguishes the clients of a user.
    pub client: u8,
    pub uploaded: u64,
    pub downloaded: u64,
    pub left: u64,
    pub event: AnnounceEvent,
    pub ip: IpAddr,
}

impl Step {
    pub fn new(user: u64, torrent: u64, uploaded: u64, downloaded: u64) -> Step {
        Step {
            user,
            torrent,
            client: 1,
            uploaded,
            downloaded,
            left: 0,
            event: AnnounceEvent::None,
            ip: IpAddr::from([192, 0, 2, user as u8]),
        }
    }

    pub fn event(self, event: AnnounceEvent) -> Step {
        Step { event, ..self }
    }

    pub fn left(self, left: u64) -> Step {
        Step { left, ..self }
    }
}

/// A tracker: its journal, its ledger, and what its clients moved.
pub struct Tracker {
    pub ledger: Arc<Ledger>,
    pub journal: Arc<SqliteJournal>,
    pub store: Store,
    pub stage: Arc<Stage>,
    view: SitesView,
    ledger_number: i64,
    clients: BTreeMap<(u64, u64, u8), Client>,
    appended: u64,
    now: UnixTime,
    _folder: TempDir,
}

impl Tracker {
    pub async fn start() -> Tracker {
        Tracker::with_stage(Stage::default()).await
    }

    pub async fn with_stage(stage: Stage) -> Tracker {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("rollcall.db").display());
        let store = Store::open(&url).await.unwrap();
        let database = store.database().clone();
        database::migrate(&database, sites::MIGRATIONS).await.unwrap();
        let ledger_number = sites::ledger_number(&database).await.unwrap();
        assert_eq!(sites::ledger_number(&database).await.unwrap(), ledger_number);
        let all = RateCeiling { bytes_per_s: u64::MAX };
        let settings = LedgerSettings { ceiling: all, user_ceiling: all, ..LedgerSettings::default() };
        let ledger = Ledger::open(
            database,
            settings,
            Arc::new(NoDirectory),
            Arc::new(SystemClock),
            Arc::new(LogRisks),
        );
        let ledger = Arc::new(ledger.await.unwrap());
        let journal =
            SqliteJournal::open(&folder.path().join("journal.db"), Arc::new(SystemClock)).await.unwrap();
        let journal = Arc::new(journal);
        for group in [LEDGER_GROUP, SITES_GROUP] {
            journal.ensure_group(Lane::Traffic, group, StartAt::Beginning).await.unwrap();
        }
        let stage = Arc::new(stage);
        let view = SitesView::new(Arc::clone(&stage), Arc::new(NoDirectory));
        Tracker {
            ledger,
            journal,
            store,
            stage,
            view,
            ledger_number,
            clients: BTreeMap::new(),
            appended: 0,
            now: UnixTime(SystemClock.now().0 - 1500),
            _folder: folder,
        }
    }

    pub fn pass(&mut self, seconds: u32) {
        self.now += Seconds(seconds);
    }

    pub fn now(&self) -> UnixTime {
        self.now
    }

    /// Appends announces to the journal.
    pub async fn announce(&mut self, steps: &[Step]) {
        let fields: Vec<_> = steps.iter().map(|step| TrafficEntry::fields_of(&self.event_of(step))).collect();
        self.appended += 1;
        let token = AppendToken { producer: "test".to_owned(), number: self.appended };
        self.journal.append(Lane::Traffic, &fields, &token).await.unwrap();
    }

    fn event_of(&mut self, step: &Step) -> TrafficEvent {
        let client = self.clients.entry((step.user, step.torrent, step.client)).or_default();
        client.uploaded += step.uploaded;
        client.downloaded += step.downloaded;
        let since_last = client.at.map_or(Seconds(0), |at| Seconds(self.now.0 - at.0));
        client.at = Some(self.now);
        let mut peer_id = *b"-qB5020-000000000000";
        peer_id[19] = step.client;
        peer_id[18] = step.user as u8;
        let peer_id = PeerId(peer_id);
        let info_hash = info_hash(step.torrent);
        let key = ClientKey(u32::from(step.client));
        TrafficEvent {
            passkey: None,
            user: user(step.user),
            torrent: Some(torrent(step.torrent)),
            info_hash,
            peer_id,
            port: 50_000,
            ip: step.ip,
            uploaded_delta: step.uploaded,
            downloaded_delta: step.downloaded,
            left: Some(step.left),
            event: step.event,
            at: self.now,
            steady: self.now,
            since_last,
            interval: Seconds(1800),
            min_interval: Seconds(900),
            node: NodeId(7),
            session: SessionId {
                client: ClientId::derive(user(step.user), &info_hash, key, &peer_id),
                run: RunId(1),
            },
            uploaded_total: client.uploaded,
            downloaded_total: client.downloaded,
            cause: Cause::Announce,
            key,
            uncredited_upload: 0,
        }
    }

    /// The ledger applies all entries.
    pub async fn apply_to_ledger(&self) {
        self.deliver(LEDGER_GROUP, &*self.ledger).await;
    }

    /// The view of the site's tables gets all entries.
    pub async fn apply_to_view(&self) {
        self.deliver(SITES_GROUP, &self.view).await;
    }

    pub async fn apply(&self) {
        self.apply_to_ledger().await;
        self.apply_to_view().await;
    }

    async fn deliver(&self, group: &str, view: &dyn View) {
        loop {
            let read = self.journal.read(Lane::Traffic, group, "one", 1000, Duration::ZERO).await.unwrap();
            if read.is_empty() {
                return;
            }
            let arrivals: Vec<DeliveredEntry> = read
                .iter()
                .map(|stored| DeliveredEntry {
                    id: stored.id,
                    origin: stored.id,
                    entry: TrafficEntry::parse(&stored.fields).unwrap(),
                })
                .collect();
            let batch = Batch {
                lane: Lane::Traffic,
                consumer: "one",
                taken_from: None,
                is_retry: false,
                arrivals: &arrivals,
            };
            assert_eq!(view.apply(&batch).await.unwrap(), []);
            let ids: Vec<_> = read.iter().map(|stored| stored.id).collect();
            self.journal.acknowledge(Lane::Traffic, group, &ids).await.unwrap();
        }
    }

    /// The sum of what the clients of a user moved: uploaded, downloaded.
    pub fn moved_by(&self, user: u64) -> (u64, u64) {
        let of_user = self.clients.iter().filter(|((owner, _, _), _)| *owner == user);
        of_user.fold((0, 0), |(up, down), (_, client)| (up + client.uploaded, down + client.downloaded))
    }

    /// The same on one torrent.
    pub fn moved_on(&self, user: u64, torrent: u64) -> (u64, u64) {
        let of = self.clients.iter().filter(|((owner, on, _), _)| (*owner, *on) == (user, torrent));
        of.fold((0, 0), |(up, down), (_, client)| (up + client.uploaded, down + client.downloaded))
    }

    pub fn accounts(&self) -> Vec<(u64, u64)> {
        let mut accounts: Vec<_> = self.clients.keys().map(|(user, torrent, _)| (*user, *torrent)).collect();
        accounts.dedup();
        accounts
    }

    pub fn write_to(&self, site: &str, profile: &Profile) -> RunningWriter {
        let writer = Writer::new(WriterParts {
            profile: Arc::new(profile.clone()),
            url: site.to_owned(),
            ledger_number: self.ledger_number,
            ledger: Arc::clone(&self.ledger),
            ledger_group: LEDGER_GROUP.to_owned(),
            journal: Arc::clone(&self.journal) as Arc<dyn Journal>,
            stage: Arc::clone(&self.stage),
            directory: Arc::new(NoDirectory),
            clock: Arc::new(SystemClock),
            silence: Seconds(2400),
        })
        .flush_interval(Duration::from_millis(20));
        let counters = writer.counters();
        let (stop, stopped) = oneshot::channel::<()>();
        RunningWriter { counters, stop, task: tokio::spawn(writer.run(stopped)) }
    }
}

pub struct RunningWriter {
    pub counters: Arc<WriterCounters>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningWriter {
    /// As a kill: what it does is left undone. What is staged is lost with the process.
    pub async fn kill(self, tracker: &Tracker) {
        self.task.abort();
        let _ = self.task.await;
        tracker.stage.close();
    }

    pub async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }

    /// Waits until a flush that began after this call left nothing.
    pub async fn settle(&self, tracker: &Tracker) {
        for _ in 0..2 {
            let before = self.counters.rounds.get();
            testkit::wait::eventually_async("a flush", TIMEOUT, async || {
                let is_done = self.counters.rounds.get() > before
                    && tracker.stage.is_open()
                    && tracker.stage.is_empty();
                is_done.then_some(())
            })
            .await;
        }
    }
}

pub async fn open(url: &str) -> Database {
    Database::open(url).await.unwrap()
}
