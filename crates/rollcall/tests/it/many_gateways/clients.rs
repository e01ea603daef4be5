//! A few named clients, for scripted scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use simulate::websocket::protocol::{Protocol, tokens_signed_with};
use simulate::websocket::{ClientId, Event, WebSocketClients, WebSocketClientsPlan};

use crate::many_gateways::feed::Feed;
use crate::many_gateways::gateways::{Gateways, PATIENCE, SECRET};
use crate::many_gateways::history::{Gateway, Shown};
use crate::many_gateways::spans::Ms;

/// Clients, and what each of them was shown.
pub struct Clients {
    crowd: WebSocketClients,
    feeds: BTreeMap<ClientId, (Feed, Vec<Shown>)>,
    up: BTreeSet<ClientId>,
    /// Those whose connection ended without their doing.
    pub lost: BTreeSet<ClientId>,
    answered: BTreeSet<u32>,
    last_command: u32,
}

impl Clients {
    /// Empty.
    pub fn new(gateways: &Gateways) -> Clients {
        let speech = Protocol::Centrifuge(tokens_signed_with(SECRET));
        let plan = WebSocketClientsPlan { server: gateways.address(0), protocol: speech, opening_max: 100 };
        Clients {
            crowd: WebSocketClients::new(plan).unwrap(),
            feeds: BTreeMap::new(),
            up: BTreeSet::new(),
            lost: BTreeSet::new(),
            answered: BTreeSet::new(),
            last_command: 1,
        }
    }

    /// Connects a device of a person, and waits for the snapshot.
    #[track_caller]
    pub fn connect(&mut self, user: u64, device: u32, gateways: &Gateways, gateway: Gateway) -> ClientId {
        let member = self.crowd.join(user, device);
        self.crowd.send_to(member, gateways.address(gateway));
        self.crowd.open(member);
        self.until("a client to be connected", PATIENCE, |clients| {
            clients.feeds.get(&member).is_some_and(|(feed, _)| feed.is_whole())
        });
        member
    }

    /// Ends a connection, with a goodbye or without.
    pub fn close(&mut self, member: ClientId, says_goodbye: bool) {
        self.crowd.close(member, says_goodbye);
        self.up.remove(&member);
    }

    /// A command, whose answer is awaited.
    #[track_caller]
    pub fn rpc(&mut self, member: ClientId, method: &str, data: &str) {
        self.last_command += 1;
        let id = self.last_command;
        let line = format!(r#"{{"id":{id},"rpc":{{"method":"{method}","data":{data}}}}}"#);
        self.crowd.send(member, &line).unwrap();
        self.until("an answer", PATIENCE, |clients| clients.answered.contains(&id));
    }

    /// Declares a status.
    #[track_caller]
    pub fn declare(&mut self, member: ClientId, status: &str) {
        self.rpc(member, "status.set", &format!(r#"{{"status":"{status}"}}"#));
    }

    /// The time, in what was shown.
    pub fn now(&self) -> Ms {
        self.crowd.now().as_millis() as Ms
    }

    /// The state currently shown.
    pub fn sees(&self, viewer: ClientId, user: u64) -> &str {
        self.all_shown(viewer, user).last().map_or("nothing", |shown| shown.status.as_str())
    }

    /// All states shown on this connection, in order.
    pub fn all_shown(&self, viewer: ClientId, user: u64) -> impl DoubleEndedIterator<Item = &Shown> {
        self.feeds
            .get(&viewer)
            .into_iter()
            .flat_map(|(_, shown)| shown)
            .filter(move |shown| shown.user == user)
    }

    /// Waits for this state, and returns when it was shown.
    #[track_caller]
    pub fn until_sees(&mut self, viewer: ClientId, user: u64, status: &str) -> Ms {
        self.until_sees_within(viewer, user, status, PATIENCE)
    }

    /// The same with a limit of its own.
    #[track_caller]
    pub fn until_sees_within(&mut self, viewer: ClientId, user: u64, status: &str, limit: Duration) -> Ms {
        let what = format!("{user} to be shown {status}");
        self.until(&what, limit, |clients| clients.sees(viewer, user) == status);
        self.all_shown(viewer, user).next_back().unwrap().at
    }

    /// Listens for so long.
    pub fn listen_for(&mut self, length: Duration) {
        let until = self.crowd.now() + length;
        while self.crowd.now() < until {
            self.listen();
        }
    }

    /// Listens until something is so.
    #[track_caller]
    pub fn until(&mut self, what: &str, limit: Duration, is_so: impl Fn(&Clients) -> bool) {
        let until = self.crowd.now() + limit;
        while !is_so(self) {
            assert!(self.crowd.now() < until, "waited {limit:?} in vain: {what}; {:?}", self.feeds);
            self.listen();
        }
    }

    fn listen(&mut self) {
        let Clients { crowd, feeds, up, lost, answered, .. } = self;
        let now = crowd.now().as_millis() as Ms;
        crowd
            .poll(Duration::from_millis(20), &mut |member, event| match event {
                Event::Up => {
                    up.insert(member);
                    feeds.insert(member, (Feed::default(), Vec::new()));
                }
                Event::Down(_) => {
                    up.remove(&member);
                    lost.insert(member);
                }
                Event::Reply { id, is_error, line } => {
                    assert!(!is_error, "{}", String::from_utf8_lossy(line));
                    answered.insert(id);
                }
                Event::Message(line) => {
                    let (feed, shown) = feeds.get_mut(&member).expect("who hears is connected");
                    shown.extend(feed.read(line, now));
                }
            })
            .unwrap();
    }
}
