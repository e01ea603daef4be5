//! A gateway behind a small HTTP server, and clients of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use database::{Database, SqliteDatabase, SqliteOptions};
use domain::clock::{Clock, SystemClock};
use domain::{Seconds, UnixTime, UserId};
use friends::{FriendStore, FriendsSettings};
use futures_util::{SinkExt, StreamExt};
use gateway::accept::ConnectionRequest;
use gateway::mint::{TokenClaims, mint};
use gateway::settings::Secret;
use gateway::{Gateway, GatewayParts, GatewaySettings, NoTorrentCounts};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use net::Socket;
use presence::Policy;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::eventually_async;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const SECRET: &str = "a secret of the site's, of more than enough letters";

pub struct Fixture {
    _folder: TempDir,
    pub friend_store: FriendStore,
    /// The gateway's own, to keep it waiting.
    pub database: SqliteDatabase,
    pub gateway: Arc<Gateway>,
    /// Users that the tracker has disabled.
    pub disabled: Arc<Mutex<BTreeSet<UserId>>>,
    pub address: SocketAddr,
}

impl Fixture {
    pub async fn start() -> Fixture {
        Fixture::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut GatewaySettings)) -> Fixture {
        Fixture::with_policy(Policy::default(), change).await
    }

    pub async fn with_policy(policy: Policy, change: impl FnOnce(&mut GatewaySettings)) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people.db");
        let database = SqliteDatabase::open(&path, SqliteOptions::default()).await.unwrap();
        let friend_store =
            FriendStore::open(Database::Sqlite(database.clone()), FriendsSettings::default()).await.unwrap();
        let mut settings = GatewaySettings::default();
        settings.tokens.hmac_secret = Some(Secret::new(SECRET));
        change(&mut settings);
        let disabled = Arc::new(Mutex::new(BTreeSet::new()));
        let shut_out = Arc::clone(&disabled);
        let parts = GatewayParts {
            friend_store: friend_store.clone(),
            clock: Arc::new(SystemClock),
            torrent_counts: Arc::new(NoTorrentCounts),
            is_disabled: Arc::new(move |user| shut_out.lock().unwrap().contains(&user)),
            policy,
            settings,
            seed: 7,
            cluster: None,
        };
        let gateway = Gateway::start(parts).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(accept(listener, Arc::clone(&gateway)));
        Fixture { _folder: folder, friend_store, database, gateway, disabled, address }
    }

    /// A WebSocket before `connect`.
    pub async fn open(&self) -> Client {
        self.try_open().await.unwrap()
    }

    /// The same, or the status with which it was refused.
    pub async fn try_open(&self) -> Result<Client, u16> {
        self.try_open_offering("").await.map(|(client, _)| client)
    }

    /// The same with subprotocols, unless there are none; with the one that was chosen.
    pub async fn try_open_offering(&self, offered: &str) -> Result<(Client, Option<String>), u16> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let url = format!("ws://{}/connection/websocket", self.address);
        let mut request = url.into_client_request().unwrap();
        if !offered.is_empty() {
            request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, offered.parse().unwrap());
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, response)) => {
                let chosen = response.headers().get(SEC_WEBSOCKET_PROTOCOL);
                let chosen = chosen.map(|chosen| chosen.to_str().unwrap().to_owned());
                Ok((Client { socket }, chosen))
            }
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// A connected client that has read the snapshot.
    pub async fn member(&self, user: u64) -> Client {
        let mut client = self.open().await;
        client.send(&json!({"id": 1, "connect": {"token": token(user)}})).await;
        let reply = client.next().await;
        assert!(reply["connect"]["client"].is_string(), "{reply}");
        let snapshot = client.next().await;
        assert_eq!(snapshot["push"]["pub"]["data"]["type"], "snapshot", "{snapshot}");
        client
    }

    /// Connections in the hub.
    pub fn connections(&self) -> u64 {
        u64::from(self.gateway.hub.users.online_count().tally.connections)
    }

    /// Waits for a condition.
    pub async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        eventually_async(what, PATIENCE, async || is_so().then_some(())).await;
    }
}

async fn accept(listener: TcpListener, gateway: Arc<Gateway>) {
    while let Ok((stream, from)) = listener.accept().await {
        let gateway = Arc::clone(&gateway);
        let comer = ConnectionRequest { from: from.ip(), is_from_our_page: false };
        let service = service_fn(move |mut request: Request<Incoming>| {
            let answer = gateway.acceptor.upgrade(&mut request, comer, unwrap);
            async move {
                Ok::<_, std::convert::Infallible>(
                    answer.map_or_else(refused, |answer| answer.map(|()| String::new())),
                )
            }
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::spawn(serving);
    }
}

fn refused(_: gateway::counters::UpgradeRefusal) -> Response<String> {
    Response::builder().status(403).body(String::new()).unwrap()
}

fn unwrap(upgraded: Upgraded) -> Option<(Socket, Vec<u8>)> {
    let parts = upgraded.downcast::<TokioIo<TcpStream>>().ok()?;
    Some((Socket::Plain(parts.io.into_inner()), parts.read_buf.to_vec()))
}

pub fn now() -> UnixTime {
    SystemClock.now()
}

/// A token as the site makes it.
pub fn token(user: u64) -> String {
    token_until(user, now() + Seconds(3600), None)
}

pub fn token_until(user: u64, expires_at: UnixTime, channel: Option<&str>) -> String {
    let user = UserId::new(user).unwrap();
    let claims = TokenClaims { user, issued_at: now(), expires_at, audience: "", issuer: "", channel };
    mint(SECRET, &claims).unwrap()
}

pub struct Client {
    pub socket: WebSocketStream<TcpStream>,
}

impl Client {
    pub async fn send(&mut self, message: &Value) {
        self.say(message.to_string()).await;
    }

    pub async fn say(&mut self, text: impl Into<String>) {
        self.socket.send(Message::text(text.into())).await.unwrap();
    }

    /// The next message of any kind.
    pub async fn hear(&mut self) -> Message {
        let message = tokio::time::timeout(PATIENCE, self.socket.next()).await;
        message.expect("no message").expect("the connection ended").expect("the connection broke")
    }

    /// The next message that is JSON.
    pub async fn next(&mut self) -> Value {
        match self.hear().await {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("not a text: {other:?}"),
        }
    }

    /// The reply to the command of this number; earlier messages are skipped.
    pub async fn reply(&mut self, id: u32) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Close code and reason; earlier messages are skipped.
    pub async fn closed(&mut self) -> (u16, String) {
        loop {
            if let Message::Close(frame) = self.hear().await {
                let frame = frame.unwrap();
                return (frame.code.into(), frame.reason.to_string());
            }
        }
    }
}
