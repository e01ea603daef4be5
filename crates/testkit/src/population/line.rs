//! How announces travel: over real sockets, through lost replies and servers that die.

use std::time::Duration;

use domain::Passkey;
use domain::clock::Stopwatch;

use super::Destination;
use super::client::Road;
use crate::Family;
use crate::announce::Announce;
use crate::http::RawHttp;
use crate::reply::AnnounceReply;
use crate::udp::RawUdp;

/// How long an announce is repeated before the test has failed.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long to wait before an announce that failed is repeated.
const BEFORE_REPEAT: Duration = Duration::from_millis(30);
/// How long a UDP reply may take. Longer than the tracker waits for its journal, or no such announce would ever be
/// heard of again.
const UDP_PATIENCE: Duration = Duration::from_secs(7);

/// The sockets of some clients that announce one after the other.
pub(super) struct Line {
    to: Destination,
    http: [Option<RawHttp>; 2],
    udp: [Option<RawUdp>; 2],
}

/// What came of an announce.
#[derive(Debug)]
enum Heard {
    Accepted,
    /// Refused, or not answered: the client does not know what the tracker made of it.
    Not(String),
}

impl Line {
    pub(super) fn new(to: Destination) -> Self {
        Line { to, http: [None, None], udp: [None, None] }
    }

    /// Announces until it is accepted; over two families until it is accepted over one of them, since that is the
    /// same client.
    pub(super) fn deliver(&mut self, passkey: &Passkey, announce: &Announce, road: Road) {
        self.insist(|line| match road {
            Road::Http(family) => line.over_http(passkey, announce, family),
            Road::Udp(family) => line.over_udp(passkey, announce, family),
            Road::DualStack => line.over_both(passkey, announce, announce),
        });
    }

    /// Announces over both families at once, so that the newer totals overtake the older ones. The older are sent
    /// once only: whoever repeats an announce says what holds by then.
    pub(super) fn overtake(&mut self, passkey: &Passkey, newer: &Announce, older: &Announce) {
        if let Heard::Not(_) = self.over_both(passkey, newer, older) {
            self.insist(|line| line.over_both(passkey, newer, newer));
        }
    }

    /// Announces, and does not listen to the answer.
    pub(super) fn lose_reply(&mut self, passkey: &Passkey, announce: &Announce, road: Road) {
        match road {
            Road::Http(family) => drop(self.over_http(passkey, announce, family)),
            Road::Udp(family) => drop(self.over_udp(passkey, announce, family)),
            Road::DualStack => drop(self.over_both(passkey, announce, announce)),
        }
        // A client that hears nothing gives its connection up.
        self.http = [None, None];
    }

    fn insist(&mut self, mut announce: impl FnMut(&mut Self) -> Heard) {
        let since_start = Stopwatch::start();
        while let Heard::Not(reason) = announce(self) {
            assert!(since_start.elapsed() < PATIENCE, "an announce was never accepted, at last: {reason}");
            std::thread::sleep(BEFORE_REPEAT);
        }
    }

    fn over_http(&mut self, passkey: &Passkey, announce: &Announce, family: Family) -> Heard {
        match self.ask(passkey, announce, family) {
            Ok(()) => self.hear(family),
            Err(error) => Heard::Not(error.to_string()),
        }
    }

    /// Sends the newer one over IPv6 and the older one over IPv4 before either is answered. Both connections are
    /// open before: what dies with a server is not sent to the next.
    fn over_both(&mut self, passkey: &Passkey, newer: &Announce, older: &Announce) -> Heard {
        for family in [Family::V6, Family::V4] {
            if let Err(error) = self.connect(family) {
                return Heard::Not(error.to_string());
            }
        }
        let asked_newer = self.ask(passkey, newer, Family::V6);
        let asked_older = self.ask(passkey, older, Family::V4);
        let newer_heard = match asked_newer {
            Ok(()) => self.hear(Family::V6),
            Err(error) => Heard::Not(error.to_string()),
        };
        // It has to be waited for all the same: the next announce must not meet this one on its way.
        if asked_older.is_ok() {
            let _ = self.hear(Family::V4);
        }
        newer_heard
    }

    fn connect(&mut self, family: Family) -> std::io::Result<&mut RawHttp> {
        let server = self.server(family);
        let place = &mut self.http[family as usize];
        match place {
            Some(connection) => Ok(connection),
            None => Ok(place.insert(RawHttp::try_connect(server)?)),
        }
    }

    fn ask(&mut self, passkey: &Passkey, announce: &Announce, family: Family) -> std::io::Result<()> {
        let request = format!("GET {} HTTP/1.1\r\nHost: tracker\r\n\r\n", announce.target(passkey));
        let sent = self.connect(family)?.try_send(request.as_bytes());
        if sent.is_err() {
            self.http[family as usize] = None;
        }
        sent
    }

    fn hear(&mut self, family: Family) -> Heard {
        let Some(connection) = &mut self.http[family as usize] else {
            return Heard::Not("the connection is gone".to_owned());
        };
        match connection.try_read_reply() {
            Ok(reply) if reply.status() == 200 => match AnnounceReply::decode(&reply.body).failure_reason {
                None => Heard::Accepted,
                Some(reason) => Heard::Not(reason),
            },
            Ok(reply) => Heard::Not(reply.status_line),
            Err(error) => {
                self.http[family as usize] = None;
                Heard::Not(error.to_string())
            }
        }
    }

    fn over_udp(&mut self, passkey: &Passkey, announce: &Announce, family: Family) -> Heard {
        let server = self.server(family);
        let socket = self.udp[family as usize].get_or_insert_with(|| RawUdp::new(server));
        match socket.try_announce(announce, &format!("/{passkey}/announce"), UDP_PATIENCE) {
            Some(Ok(_)) => Heard::Accepted,
            Some(Err(reason)) => Heard::Not(reason),
            None => Heard::Not("no reply over UDP".to_owned()),
        }
    }

    fn server(&self, family: Family) -> std::net::SocketAddr {
        match family {
            Family::V4 => self.to.v4,
            Family::V6 => self.to.v6,
        }
    }
}
