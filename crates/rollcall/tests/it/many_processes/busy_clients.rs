//! Clients that announce almost without pause; any announce not accepted immediately is a failure.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::{AnnounceEvent, Passkey};
use testkit::population::{info_hash_of, passkey_of};
use testkit::udp::{announce_packet, request_head};
use testkit::{Announce, AnnounceReply, Moved, RawHttp, RawUdp, Truth};

/// Longer than any reply takes.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Pause between announces, for a busy machine.
const PAUSE: Duration = Duration::from_millis(5);

/// How a client announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionUse {
    /// One connection for as long as the server likes.
    KeptAlive,
    /// A connection for each announce.
    OneShot,
    /// With one connection id for all announces, as long as it is good.
    Udp,
}

/// A client of a user of its own, on torrent 1.
pub struct BusyClient {
    pub way: ConnectionUse,
    pub user: u64,
    pub server: SocketAddr,
}

/// Totals of all clients.
#[derive(Default)]
pub struct BusyClientTotals {
    pub accepted: AtomicU64,
    /// Connections that the server ended with an answer.
    pub parted: AtomicU64,
}

impl BusyClient {
    /// Announces until the end, then sends `stopped`; returns what it transferred.
    pub fn live(&self, is_on: &AtomicBool, tally: &BusyClientTotals) -> Moved {
        let mut line = ClientConnection::new(self, tally);
        let mut announce = Announce::leecher(info_hash_of(1), u32::try_from(self.user).unwrap());
        line.deliver(&announce.clone().with_event(AnnounceEvent::Started));
        while is_on.load(Ordering::Relaxed) {
            announce.uploaded += 1_000_003;
            announce.downloaded += 17;
            line.deliver(&announce);
            std::thread::sleep(PAUSE);
        }
        line.deliver(&announce.clone().with_event(AnnounceEvent::Stopped));
        Moved { uploaded: announce.uploaded.into(), downloaded: announce.downloaded.into() }
    }
}

/// How the announces of one client travel.
struct ClientConnection<'a> {
    client: &'a BusyClient,
    passkey: Passkey,
    tally: &'a BusyClientTotals,
    kept_alive: Option<RawHttp>,
    udp: Option<(RawUdp, u64)>,
    transaction: u32,
}

impl<'a> ClientConnection<'a> {
    fn new(client: &'a BusyClient, tally: &'a BusyClientTotals) -> Self {
        ClientConnection {
            client,
            passkey: passkey_of(client.user),
            tally,
            kept_alive: None,
            udp: None,
            transaction: 0,
        }
    }

    /// Once, and with success.
    fn deliver(&mut self, announce: &Announce) {
        match self.client.way {
            ConnectionUse::KeptAlive | ConnectionUse::OneShot => self.over_http(announce),
            ConnectionUse::Udp => self.over_udp(announce),
        }
        self.tally.accepted.fetch_add(1, Ordering::Relaxed);
    }

    fn over_http(&mut self, announce: &Announce) {
        let mut connection = self.kept_alive.take().unwrap_or_else(|| RawHttp::connect(self.client.server));
        let manner = if self.client.way == ConnectionUse::OneShot { "Connection: close\r\n" } else { "" };
        let request = format!("GET {} HTTP/1.1\r\nHost: t\r\n{manner}\r\n", announce.target(&self.passkey));
        connection.send(request.as_bytes());
        let reply = connection.read_reply();
        assert_eq!(reply.status(), 200, "{}", reply.status_line);
        assert_eq!(AnnounceReply::decode(&reply.body).failure_reason, None);
        if reply.header("connection") == Some("close") {
            assert!(connection.read_to_close().is_empty());
            self.tally
                .parted
                .fetch_add(u64::from(self.client.way == ConnectionUse::KeptAlive), Ordering::Relaxed);
        } else {
            self.kept_alive = Some(connection);
        }
    }

    /// A packet that is lost on loopback is one that a server has swallowed: it is not sent again.
    fn over_udp(&mut self, announce: &Announce) {
        let server = self.client.server;
        let (socket, id) = self.udp.get_or_insert_with(|| {
            let mut socket = RawUdp::new(server);
            let id = socket.connect();
            (socket, id)
        });
        self.transaction += 1;
        let url = format!("/{}/announce", self.passkey);
        socket.send(&announce_packet(*id, self.transaction, announce, &url));
        let reply = socket.receive(ANSWER_LIMIT).expect("every packet is answered");
        let expected = &request_head(0, 1, self.transaction)[8..];
        assert_eq!(&reply[..8], expected, "{}", String::from_utf8_lossy(&reply));
    }
}

/// The users and the torrent of these clients, as SQL.
pub fn registration(clients: &[BusyClient]) -> String {
    let users: Vec<String> =
        clients.iter().map(|client| format!("({}, '{}')", client.user, passkey_of(client.user))).collect();
    format!(
        "INSERT INTO users (id, passkey) VALUES {}; INSERT INTO torrents (id, infohash) VALUES (1, '{}');",
        users.join(", "),
        info_hash_of(1)
    )
}

/// What must be credited.
pub fn truth_of(moved: impl IntoIterator<Item = (u64, Moved)>) -> Truth {
    let mut truth = Truth::default();
    moved.into_iter().for_each(|(user, moved)| truth.add(user, 1, moved));
    truth
}
