//! A hub, users with friends, and clients that read what their outboxes would write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use database::Database;
use domain::clock::{ManualClock, Stopwatch};
use domain::{Seconds, UnixTime, UserId};
use friends::{FriendStore, FriendsSettings};
use presence::{AppState, CloseKind, DeviceId, Hello, Platform};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use gateway::counters::GatewayCounters;
use gateway::hub::{CommandError, ConnRef, ConnectRefusal, Hub, HubParts, HubSettings, Identity};
use gateway::leader_lease::LeaderLease;
use gateway::outbox::Outbox;
use gateway::protocol::Frame;
use gateway::settings::ConnectionSettings;
use gateway::torrent_counts::{NoTorrentCounts, TorrentCountSource};

pub const START: UnixTime = UnixTime(1_800_000_000);

pub fn user(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

/// A server's worth of state, with a clock that stands still.
pub struct Fixture {
    pub hub: Arc<Hub>,
    pub friend_store: FriendStore,
    pub clock: ManualClock,
    pub counters: Arc<GatewayCounters>,
    folder: Arc<tempfile::TempDir>,
}

pub async fn open(folder: &tempfile::TempDir) -> FriendStore {
    let url = format!("sqlite:{}", folder.path().join("people.db").display());
    FriendStore::open(Database::open(&url).await.unwrap(), FriendsSettings::default()).await.unwrap()
}

impl Fixture {
    pub async fn new() -> Fixture {
        Fixture::with(HubSettings::default(), Arc::new(NoTorrentCounts)).await
    }

    pub async fn with(settings: HubSettings, torrent_counts: Arc<dyn TorrentCountSource>) -> Fixture {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Fixture::on(folder, ManualClock::at(START), settings, torrent_counts).await
    }

    async fn on(
        folder: Arc<tempfile::TempDir>,
        clock: ManualClock,
        settings: HubSettings,
        torrent_counts: Arc<dyn TorrentCountSource>,
    ) -> Fixture {
        let friend_store = open(&folder).await;
        let counters = Arc::new(GatewayCounters::default());
        let parts = HubParts {
            friend_store: friend_store.clone(),
            clock: Arc::new(clock.clone()),
            settings,
            counters: counters.clone(),
            torrent_counts,
            is_disabled: Arc::new(|_| false),
            seed: 7,
            pruning: LeaderLease::always_held(),
            store: None,
            redis: None,
        };
        let hub = Hub::start(parts).await.unwrap();
        Fixture { hub, friend_store, clock, counters, folder }
    }

    /// Another hub on the same database, as after a restart.
    pub async fn again(&self) -> Fixture {
        let folder = self.folder.clone();
        Fixture::on(folder, self.clock.clone(), HubSettings::default(), Arc::new(NoTorrentCounts)).await
    }

    /// Another process's handle on the database.
    pub async fn elsewhere(&self) -> FriendStore {
        open(&self.folder).await
    }

    /// The database without anything between.
    pub fn database(&self) -> &Database {
        self.friend_store.database()
    }

    pub async fn befriend(&self, pairs: &[(u64, u64)]) {
        let pairs: Vec<(UserId, UserId)> =
            pairs.iter().map(|(one, other)| (user(*one), user(*other))).collect();
        self.friend_store.add_friends(&pairs, START).await.unwrap();
    }

    pub async fn connect(&self, number: u64, device: &str) -> Client {
        Client::connect(&self.hub, number, hello(device)).await.unwrap()
    }

    /// Lets time pass, second by second.
    pub fn pass(&self, seconds: u32) {
        for _ in 0..seconds {
            self.clock.advance(Seconds(1));
            self.hub.tick();
        }
    }

    /// Users the hub keeps besides the presence table: those with a connection or a watcher.
    pub fn kept(&self) -> usize {
        self.hub.sizes().users
    }
}

pub fn hello(device: &str) -> Hello {
    Hello {
        device: DeviceId::new(device).unwrap(),
        platform: Platform::Web,
        app: AppState::Foreground,
        declared: None,
    }
}

/// A client, as a published SDK would keep the feed.
pub struct Client {
    pub hub: Arc<Hub>,
    pub conn: ConnRef,
    pub outbox: Arc<Outbox>,
    /// The feed: the last received state of each user.
    pub users: BTreeMap<String, Value>,
    /// Every message of the feed, in order.
    pub received: Vec<Value>,
    /// Everything else that was pushed.
    pub pushes: Vec<Value>,
}

impl Client {
    pub async fn connect(hub: &Arc<Hub>, number: u64, hello: Hello) -> Result<Client, ConnectRefusal> {
        let outbox = Outbox::new(&ConnectionSettings::default(), Arc::default());
        let identity = Identity { user: user(number), expires_at: None, info: None };
        let welcome = hub.connect(identity, hello, outbox.clone()).await?;
        outbox.open(welcome.conn, Frame::text("{}"));
        let mut client = Client {
            hub: hub.clone(),
            conn: welcome.conn,
            outbox,
            users: BTreeMap::new(),
            received: Vec::new(),
            pushes: Vec::new(),
        };
        client.read();
        Ok(client)
    }

    pub fn read(&mut self) {
        let mut bytes = Vec::new();
        while self.outbox.take(&mut bytes, true).more {}
        for text in texts(&bytes) {
            for line in text.lines() {
                self.take_in(serde_json::from_str(line).unwrap());
            }
        }
    }

    fn take_in(&mut self, message: Value) {
        let data = &message["push"]["pub"]["data"];
        let kind = data["type"].as_str().unwrap_or_default();
        if !matches!(kind, "snapshot" | "changes") {
            if message.get("push").is_some() {
                self.pushes.push(message);
            }
            return;
        }
        assert_eq!(message["push"]["channel"], format!("feed:#{}", self.conn.user));
        if kind == "snapshot" {
            self.users.clear();
        }
        for shown in data["users"].as_array().unwrap() {
            let mut shown = shown.clone();
            let at_ms = shown.as_object_mut().unwrap().remove("at_ms");
            assert_eq!(at_ms.is_some(), kind == "changes", "P18: each change has its time: {message}");
            let id = shown["id"].as_str().unwrap().to_owned();
            let before = self.users.insert(id, shown.clone());
            // Versions only grow, except for users that are not visible to this viewer.
            if let Some(before) = before
                && shown["version"] != 0
            {
                assert!(shown["version"].as_u64() >= before["version"].as_u64(), "{before} {shown}");
            }
        }
        for gone in data["removed"].as_array().into_iter().flatten() {
            self.users.remove(gone.as_str().unwrap());
        }
        self.received.push(data.clone());
    }

    /// The status of a user in the feed; empty if the user is not in it.
    pub fn sees(&mut self, number: u64) -> String {
        self.read();
        self.users.get(&number.to_string()).map_or("", |shown| shown["status"].as_str().unwrap()).to_owned()
    }

    /// The JSON of a user in the feed.
    pub fn shown(&mut self, number: u64) -> Value {
        self.read();
        self.users.get(&number.to_string()).cloned().unwrap_or(Value::Null)
    }

    /// Whether nothing was written since the last call.
    pub fn receives_nothing(&mut self) -> bool {
        let before = (self.received.len(), self.pushes.len());
        self.read();
        before == (self.received.len(), self.pushes.len())
    }

    /// Pushes besides the feed since the last call.
    pub fn pushed(&mut self) -> Vec<Value> {
        self.read();
        std::mem::take(&mut self.pushes)
    }

    pub async fn rpc(&self, method: &str, data: Value) -> Result<Value, CommandError> {
        let data = RawValue::from_string(data.to_string()).unwrap();
        let result = self.hub.commands.rpc(self.conn, method, &*data).await?;
        Ok(serde_json::from_str(result.get()).unwrap())
    }

    pub async fn set_status(&self, status: &str) {
        self.rpc("status.set", json!({"status": status})).await.unwrap();
    }

    pub async fn enter(&self, room: &str) {
        self.hub.commands.subscribe(self.conn, room).await.unwrap();
    }

    /// Users in a room.
    pub async fn in_room(&self, room: &str) -> Vec<String> {
        let result = self.hub.commands.presence(self.conn, room).await.unwrap();
        let result: Value = serde_json::from_str(result.get()).unwrap();
        let mut users: Vec<String> = result["presence"]
            .as_object()
            .unwrap()
            .values()
            .map(|one| one["user"].as_str().unwrap().to_owned())
            .collect();
        users.sort_unstable();
        users
    }

    pub fn drop_connection(self) {
        self.hub.closed(self.conn, CloseKind::Dropped);
    }

    pub fn close(self) {
        self.hub.closed(self.conn, CloseKind::Clean);
    }
}

/// The texts in frames of a server, which have no mask.
fn texts(mut bytes: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    while let [kind, length, rest @ ..] = bytes {
        let (length, rest) = match length {
            126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
            127 => (u64::from_be_bytes(rest[..8].try_into().unwrap()) as usize, &rest[8..]),
            short => (usize::from(*short), rest),
        };
        if *kind == 0x81 {
            texts.push(String::from_utf8(rest[..length].to_vec()).unwrap());
        }
        bytes = &rest[length..];
    }
    texts
}

pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = Stopwatch::start();
    while !is_so() {
        assert!(waited.elapsed() < Duration::from_secs(30), "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
