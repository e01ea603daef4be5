//! Sends announces over real sockets, through lost replies and killed servers.

use std::time::Duration;

use domain::Passkey;
use domain::clock::Stopwatch;

use super::Destination;
use super::client::Transport;
use crate::Family;
use crate::announce::Announce;
use crate::http::RawHttp;
use crate::reply::AnnounceReply;
use crate::udp::RawUdp;

/// How long an announce is repeated before the test fails.
const TIMEOUT: Duration = Duration::from_secs(90);
const REPEAT_DELAY: Duration = Duration::from_millis(30);
/// Timeout of a UDP reply. Longer than the tracker waits for its journal.
const UDP_TIMEOUT: Duration = Duration::from_secs(7);

/// The sockets of a group of clients that announce one after the other.
pub(super) struct Connections {
    to: Destination,
    http: [Option<RawHttp>; 2],
    udp: [Option<RawUdp>; 2],
}

#[derive(Debug)]
enum AnnounceOutcome {
    Accepted,
    /// Refused or without a reply: the client does not know whether it was accepted.
    Failed(String),
}

impl Connections {
    pub(super) fn new(to: Destination) -> Self {
        Connections { to, http: [None, None], udp: [None, None] }
    }

    /// Announces until it is accepted; over two address families until it is accepted over one of them, since that is
    /// the same client.
    pub(super) fn deliver(&mut self, passkey: &Passkey, announce: &Announce, transport: Transport) {
        self.insist(|connections| match transport {
            Transport::Http(family) => connections.over_http(passkey, announce, family),
            Transport::Udp(family) => connections.over_udp(passkey, announce, family),
            Transport::DualStack => connections.over_both(passkey, announce, announce),
        });
    }

    /// Announces over both address families at once, so that the newer totals overtake the older ones. The older are
    /// sent only once: a repeated announce has the current totals.
    pub(super) fn overtake(&mut self, passkey: &Passkey, newer: &Announce, older: &Announce) {
        if let AnnounceOutcome::Failed(_) = self.over_both(passkey, newer, older) {
            self.insist(|connections| connections.over_both(passkey, newer, newer));
        }
    }

    /// Announces without reading the reply.
    pub(super) fn lose_reply(&mut self, passkey: &Passkey, announce: &Announce, transport: Transport) {
        match transport {
            Transport::Http(family) => drop(self.over_http(passkey, announce, family)),
            Transport::Udp(family) => drop(self.over_udp(passkey, announce, family)),
            Transport::DualStack => drop(self.over_both(passkey, announce, announce)),
        }
        // A client without a reply closes its connection.
        self.http = [None, None];
    }

    fn insist(&mut self, mut announce: impl FnMut(&mut Self) -> AnnounceOutcome) {
        let since_start = Stopwatch::start();
        while let AnnounceOutcome::Failed(reason) = announce(self) {
            assert!(since_start.elapsed() < TIMEOUT, "an announce was never accepted, at last: {reason}");
            std::thread::sleep(REPEAT_DELAY);
        }
    }

    fn over_http(&mut self, passkey: &Passkey, announce: &Announce, family: Family) -> AnnounceOutcome {
        match self.send(passkey, announce, family) {
            Ok(()) => self.read_reply(family),
            Err(error) => AnnounceOutcome::Failed(error.to_string()),
        }
    }

    /// Sends the newer one over IPv6 and the older one over IPv4 before either is answered. Both connections are open
    /// before: nothing for a killed server is sent to the next.
    fn over_both(&mut self, passkey: &Passkey, newer: &Announce, older: &Announce) -> AnnounceOutcome {
        for family in [Family::V6, Family::V4] {
            if let Err(error) = self.connect(family) {
                return AnnounceOutcome::Failed(error.to_string());
            }
        }
        let sent_newer = self.send(passkey, newer, Family::V6);
        let sent_older = self.send(passkey, older, Family::V4);
        let newer_outcome = match sent_newer {
            Ok(()) => self.read_reply(Family::V6),
            Err(error) => AnnounceOutcome::Failed(error.to_string()),
        };
        // Wait for it all the same: the next announce must not meet this one in flight.
        if sent_older.is_ok() {
            let _ = self.read_reply(Family::V4);
        }
        newer_outcome
    }

    fn connect(&mut self, family: Family) -> std::io::Result<&mut RawHttp> {
        let server = self.server(family);
        let place = &mut self.http[family as usize];
        match place {
            Some(connection) => Ok(connection),
            None => Ok(place.insert(RawHttp::try_connect(server)?)),
        }
    }

    fn send(&mut self, passkey: &Passkey, announce: &Announce, family: Family) -> std::io::Result<()> {
        let request = format!("GET {} HTTP/1.1\r\nHost: tracker\r\n\r\n", announce.target(passkey));
        let sent = self.connect(family)?.try_send(request.as_bytes());
        if sent.is_err() {
            self.http[family as usize] = None;
        }
        sent
    }

    fn read_reply(&mut self, family: Family) -> AnnounceOutcome {
        let Some(connection) = &mut self.http[family as usize] else {
            return AnnounceOutcome::Failed("the connection is closed".to_owned());
        };
        match connection.try_read_reply() {
            Ok(reply) if reply.status() == 200 => match AnnounceReply::decode(&reply.body).failure_reason {
                None => AnnounceOutcome::Accepted,
                Some(reason) => AnnounceOutcome::Failed(reason),
            },
            Ok(reply) => AnnounceOutcome::Failed(reply.status_line),
            Err(error) => {
                self.http[family as usize] = None;
                AnnounceOutcome::Failed(error.to_string())
            }
        }
    }

    fn over_udp(&mut self, passkey: &Passkey, announce: &Announce, family: Family) -> AnnounceOutcome {
        let server = self.server(family);
        let socket = self.udp[family as usize].get_or_insert_with(|| RawUdp::new(server));
        match socket.try_announce(announce, &format!("/{passkey}/announce"), UDP_TIMEOUT) {
            Some(Ok(_)) => AnnounceOutcome::Accepted,
            Some(Err(reason)) => AnnounceOutcome::Failed(reason),
            None => AnnounceOutcome::Failed("no reply over UDP".to_owned()),
        }
    }

    fn server(&self, family: Family) -> std::net::SocketAddr {
        match family {
            Family::V4 => self.to.v4,
            Family::V6 => self.to.v6,
        }
    }
}
