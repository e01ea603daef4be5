//! Simulated users with one to three devices each, who connect, disconnect, fall silent, declare statuses and move
//! between gateways at random; and watchers, friends of all. Everything they do and see is recorded in the history.

use std::collections::BTreeMap;
use std::time::Duration;

use bench::friends;
use fastrand::Rng;
use simulate::websocket::protocol::{Protocol, tokens_signed_with};
use simulate::websocket::{ClientId, Event, WebSocketClients, WebSocketClientsPlan};

use crate::many_gateways::feed::Feed;
use crate::many_gateways::gateways::{BOUNDS, COUNT, Gateways, SECRET};
use crate::many_gateways::history::{Declaration, End, FaultKind, Gateway, History, OPEN, WatchSession};
use crate::many_gateways::spans::Ms;

/// Watchers of all users, two per gateway without faults.
pub const WATCHERS: usize = 2 * COUNT;
/// The first person's id; watchers come before.
pub const FIRST_PERSON: u64 = 1_000;
/// Friends that each person has among the others.
const FRIENDS: u32 = 2;
/// Actions per second and hundred users.
const DEEDS_PER_S_AND_HUNDRED: u64 = 10;
/// Connect timeout before another gateway is tried.
const OPENING_MS_MAX: Ms = 3_000;
/// Without any message for this long, the machine was stalled.
const STALL_MS: Ms = 1_000;

/// One device, or one watcher.
struct Connection {
    user: u64,
    device: u32,
    gateway: Gateway,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not connected, and wants to be from this moment on.
    Away {
        back_at: Ms,
    },
    Opening {
        since: Ms,
    },
    Up,
    /// Connected, and does not read any more until then.
    Silent {
        until: Ms,
    },
    /// Reads again, and has sent a ping.
    Waking,
}

/// The crowd and what is known of it.
pub struct Population {
    crowd: WebSocketClients,
    pub history: History,
    pub random: Rng,
    connections: Vec<Connection>,
    feeds: Vec<Feed>,
    /// Whether a gateway accepts clients.
    serves: [bool; COUNT],
    /// Words that are not confirmed: by member and number of the command, their place in the history.
    unconfirmed: BTreeMap<(usize, u32), usize>,
    /// Last declaration of each user, and its time.
    last_said: BTreeMap<u64, (Option<&'static str>, Ms)>,
    next_command: u32,
    next_deed: Ms,
    last_look: Ms,
    is_busy: bool,
    gateways: usize,
    count: u64,
}

impl Population {
    /// Users not connected yet; their friendships are in the database.
    pub fn new(gateways: &Gateways, count: u64, seed: u64) -> Population {
        bench::process::raise_file_limit();
        let mut random = Rng::with_seed(seed);
        let ids = || FIRST_PERSON..FIRST_PERSON + count;
        let ring = friends::ring(count as u32, FRIENDS).into_iter();
        let ring = ring.map(|(one, other)| (one + FIRST_PERSON - 1, other + FIRST_PERSON - 1));
        let watched = (1..=WATCHERS as u64).flat_map(|watcher| ids().map(move |id| (watcher, id)));
        friends::write_to(&gateways.database, &ring.chain(watched).collect::<Vec<_>>()).unwrap();
        let speech = Protocol::Centrifuge(tokens_signed_with(SECRET));
        let plan =
            WebSocketClientsPlan { server: gateways.address(0), protocol: speech, opening_max: 100_000 };
        let mut crowd = WebSocketClients::new(plan).unwrap();
        let mut connections = Vec::new();
        let mut join = |user: u64, device: u32, gateway: Gateway, back_at: Ms| {
            crowd.join(user, device);
            connections.push(Connection { user, device, gateway, state: State::Away { back_at } });
        };
        (0..WATCHERS).for_each(|watcher| join(watcher as u64 + 1, 0, watcher % gateways.count(), 0));
        for user in ids() {
            for device in 0..random.u32(1..=3) {
                // A third of the devices are not there at first.
                let back_at = if random.u8(..3) == 0 { OPEN } else { random.u64(..2_000) };
                join(user, device, random.usize(..gateways.count()), back_at);
            }
        }
        Population {
            crowd,
            history: History::default(),
            random,
            connections,
            feeds: std::iter::repeat_with(Feed::default).take(WATCHERS).collect(),
            serves: [true; COUNT],
            unconfirmed: BTreeMap::new(),
            last_said: BTreeMap::new(),
            next_command: 10,
            next_deed: 0,
            last_look: 0,
            is_busy: false,
            gateways: gateways.count(),
            count,
        }
    }

    /// The time, as the history has it.
    pub fn now(&self) -> Ms {
        self.crowd.now().as_millis() as Ms
    }

    /// Whether users act at random, or only reconnect.
    pub fn set_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
        self.next_deed = self.now();
        if !is_busy {
            let silent = self
                .connections
                .iter_mut()
                .filter(|connection| matches!(connection.state, State::Silent { .. }));
            silent.for_each(|connection| connection.state = State::Silent { until: 0 });
        }
    }

    /// Whether a gateway accepts clients. Clients choose one that does.
    pub fn set_serves(&mut self, gateway: Gateway, serves: bool) {
        self.serves[gateway] = serves;
    }

    /// Advances every client by one step.
    pub fn live(&mut self, gateways: &Gateways) {
        let now = self.now();
        // A look waits for 20 ms at the most; what took longer was not for want of news.
        if now - self.last_look > STALL_MS {
            let stall = self.history.fault_started(FaultKind::Stall, None, self.last_look);
            self.history.fault_ended(stall, now);
        }
        self.last_look = now;
        self.come_and_wake(gateways, now);
        while self.is_busy && self.next_deed <= now {
            self.next_deed += 100_000 / (DEEDS_PER_S_AND_HUNDRED * self.count).max(1);
            self.do_something(now);
        }
        let mut heard = Vec::new();
        self.crowd
            .poll(Duration::from_millis(20), &mut |member, event| {
                let what = match event {
                    Event::Up => Received::Up,
                    Event::Down(_) => Received::Down,
                    Event::Reply { id, is_error, .. } => Received::Reply(id, is_error),
                    Event::Message(line) if member.0 < WATCHERS => Received::Line(line.to_vec()),
                    Event::Message(_) => return,
                };
                heard.push((member, what));
            })
            .unwrap();
        let now = self.now();
        heard.into_iter().for_each(|(member, what)| self.hear(member, what, now));
    }

    /// Lives until something is so.
    #[track_caller]
    pub fn until(
        &mut self,
        gateways: &Gateways,
        what: &str,
        limit: Duration,
        is_so: impl Fn(&Population) -> bool,
    ) {
        let until = self.now() + limit.as_millis() as Ms;
        while !is_so(self) {
            assert!(self.now() < until, "waited {limit:?} in vain: {what}; {}", self.summary());
            self.live(gateways);
        }
    }

    fn come_and_wake(&mut self, gateways: &Gateways, now: Ms) {
        for number in 0..self.connections.len() {
            match self.connections[number].state {
                State::Away { back_at } if back_at <= now => self.open(gateways, number, now),
                State::Opening { since } if now > since + OPENING_MS_MAX => {
                    self.crowd.close(ClientId(number), false);
                    self.connections[number].state = State::Away { back_at: now };
                    self.connections[number].gateway = self.random.usize(..self.gateways);
                }
                State::Silent { until } if until <= now => self.wake_or_break(number, now),
                _ => {}
            }
        }
    }

    fn open(&mut self, gateways: &Gateways, number: usize, now: Ms) {
        let mut gateway = self.connections[number].gateway;
        if !self.serves[gateway] {
            gateway = self.random.usize(..self.gateways);
        }
        self.connections[number].gateway = gateway;
        self.connections[number].state = State::Opening { since: now };
        self.crowd.send_to(ClientId(number), gateways.address(gateway));
        self.crowd.open(ClientId(number));
    }

    fn wake_or_break(&mut self, number: usize, now: Ms) {
        if self.is_busy && self.random.bool() {
            self.crowd.resume(ClientId(number));
            self.connections[number].state = State::Waking;
            self.command(number, "devices.list", "{}");
        } else {
            self.crowd.close(ClientId(number), false);
            self.connections[number].state = State::Away { back_at: now + self.random.u64(..2_000) };
        }
    }

    fn command(&mut self, number: usize, method: &str, data: &str) -> u32 {
        self.next_command += 1;
        let id = self.next_command;
        let line = format!(r#"{{"id":{id},"rpc":{{"method":"{method}","data":{data}}}}}"#);
        self.crowd.send(ClientId(number), &line).unwrap();
        id
    }

    /// One random action.
    fn do_something(&mut self, now: Ms) {
        let number = self.random.usize(WATCHERS..self.connections.len());
        match self.connections[number].state {
            State::Away { back_at: OPEN } => {
                let back_at = now;
                self.connections[number].state = State::Away { back_at };
            }
            State::Up => match self.random.u8(..10) {
                0 | 1 => self.leave(number, true, OPEN),
                2 => self.leave(number, false, OPEN),
                3 => {
                    self.history.device_ended(
                        self.connections[number].user,
                        self.connections[number].device,
                        now,
                        End::Silent,
                    );
                    self.crowd.silence(ClientId(number));
                    let until = now + self.random.u64(500..16_000);
                    self.connections[number].state = State::Silent { until };
                }
                // To another gateway, with a moment in between.
                4 | 5 => {
                    let back_at = now + self.random.u64(..500);
                    self.leave(number, true, back_at);
                    self.connections[number].gateway = self.random.usize(..self.gateways);
                }
                _ => self.say_something(number, now),
            },
            _ => {}
        }
    }

    fn leave(&mut self, number: usize, says_goodbye: bool, back_at: Ms) {
        let now = self.now();
        let Connection { user, device, .. } = self.connections[number];
        self.history.device_ended(user, device, now, End::Closed);
        self.crowd.close(ClientId(number), says_goodbye);
        self.connections[number].state = State::Away { back_at };
    }

    /// Declares a status, unless another device of the user has just done so: the order of two concurrent
    /// declarations is undefined.
    fn say_something(&mut self, number: usize, now: Ms) {
        let user = self.connections[number].user;
        let is_early = self.last_said.get(&user).is_some_and(|(_, at)| now < at + BOUNDS.settle);
        if !is_early {
            let what = [Some("busy"), Some("away"), Some("invisible"), None][self.random.usize(..4)];
            self.say(number, what, now);
        }
    }

    fn say(&mut self, number: usize, what: Option<&'static str>, now: Ms) {
        let Connection { user, gateway, .. } = self.connections[number];
        let id = match what {
            Some(status) => self.command(number, "status.set", &format!(r#"{{"status":"{status}"}}"#)),
            None => self.command(number, "status.clear", "{}"),
        };
        self.history.declarations.push(Declaration { user, gateway, what, sent: now, confirmed: OPEN });
        self.unconfirmed.insert((number, id), self.history.declarations.len() - 1);
        self.last_said.insert(user, (what, now));
    }

    fn hear(&mut self, member: ClientId, what: Received, now: Ms) {
        let number = member.0;
        let Connection { user, device, gateway, state } = self.connections[number];
        let is_watcher = number < WATCHERS;
        match what {
            Received::Up if is_watcher => {
                self.connections[number].state = State::Up;
                self.feeds[number] = Feed::default();
                self.history.watch_sessions.push(WatchSession {
                    viewer: user,
                    gateway,
                    from: now,
                    to: OPEN,
                    shown: Vec::new(),
                });
            }
            Received::Up => {
                self.connections[number].state = State::Up;
                self.history.device_connected(user, device, gateway, now);
            }
            Received::Down => {
                if let Some(look) = self.history.watch_session_of(user).filter(|_| is_watcher) {
                    look.to = now;
                }
                self.history.device_ended(user, device, now, End::ByGateway);
                let soon = now + self.random.u64(100..1_500);
                self.connections[number].state = State::Away { back_at: soon };
            }
            Received::Reply(id, is_error) => {
                if let Some(place) = self.unconfirmed.remove(&(number, id)).filter(|_| !is_error) {
                    self.history.declarations[place].confirmed = now;
                } else if state == State::Waking {
                    self.connections[number].state = State::Up;
                    self.history.device_connected(user, device, gateway, now);
                }
            }
            Received::Line(line) => {
                let shown = self.feeds[number].read(&line, now);
                // Events after the end are not recorded.
                let is_over = self.history.end > 0;
                match self.history.watch_session_of(user) {
                    Some(look) => look.shown.extend(shown),
                    None => assert!(is_over, "a watcher hears while it looks"),
                }
            }
        }
    }

    /// Whether all wanted connections exist.
    pub fn is_settled(&self) -> bool {
        let is_settled =
            |connection: &Connection| matches!(connection.state, State::Up | State::Away { back_at: OPEN });
        self.connections.iter().all(is_settled) && self.feeds.iter().all(Feed::is_whole)
    }

    /// All connected users declare a final status, so that the last one is unambiguous.
    pub fn say_last_words(&mut self) {
        let now = self.now();
        let mut spoken = std::collections::BTreeSet::new();
        for number in WATCHERS..self.connections.len() {
            let Connection { user, state, .. } = self.connections[number];
            if state == State::Up && spoken.insert(user) {
                let what =
                    [Some("busy"), Some("away"), Some("invisible"), None, None][self.random.usize(..5)];
                self.say(number, what, now);
            }
        }
    }

    /// Whether all declarations of connected users are confirmed.
    pub fn is_understood(&self) -> bool {
        let of_last = |user: u64| self.history.declarations.iter().rev().find(|said| said.user == user);
        let mut here =
            self.connections.iter().skip(WATCHERS).filter(|connection| connection.state == State::Up);
        here.all(|connection| of_last(connection.user).is_none_or(|said| said.confirmed != OPEN))
    }

    /// Expected state of all users.
    pub fn truth(&self) -> BTreeMap<u64, String> {
        let mut truth: BTreeMap<u64, String> =
            (FIRST_PERSON..FIRST_PERSON + self.count).map(|user| (user, "offline".to_owned())).collect();
        for user in self.places().into_keys() {
            let said = self.last_said.get(&user).and_then(|(what, _)| *what);
            let status = match said {
                Some("invisible") => "offline",
                Some(status) => status,
                None => "online",
            };
            truth.insert(user, status.to_owned());
        }
        truth
    }

    /// The gateways at which each person has a device now.
    pub fn places(&self) -> BTreeMap<u64, Vec<Gateway>> {
        let mut places: BTreeMap<u64, Vec<Gateway>> = BTreeMap::new();
        for connection in
            self.connections.iter().skip(WATCHERS).filter(|connection| connection.state == State::Up)
        {
            let of_user = places.entry(connection.user).or_default();
            of_user.push(connection.gateway);
            of_user.sort_unstable();
            of_user.dedup();
        }
        places
    }

    /// What is shown and is not so: watcher, person, shown, true.
    pub fn differences(&self) -> Vec<(u64, u64, String, String)> {
        let truth = self.truth();
        let mut differences = Vec::new();
        for viewer in 1..=WATCHERS as u64 {
            let look = self
                .history
                .watch_sessions
                .iter()
                .rev()
                .find(|look| look.viewer == viewer && look.to == OPEN);
            let mut view: BTreeMap<u64, &str> = BTreeMap::new();
            look.iter().flat_map(|look| &look.shown).for_each(|shown| {
                view.insert(shown.user, &shown.status);
            });
            for (user, status) in &truth {
                let shown = view.get(user).copied().unwrap_or("nothing");
                if shown != status {
                    differences.push((viewer, *user, shown.to_owned(), status.clone()));
                }
            }
        }
        differences
    }

    fn summary(&self) -> String {
        let differences = self.differences();
        let count = |is_it: fn(&State) -> bool| {
            self.connections.iter().filter(|connection| is_it(&connection.state)).count()
        };
        format!(
            "{} up, {} opening, {} silent, {} on their way back; {} views differ, such as {:?}",
            count(|state| *state == State::Up),
            count(|state| matches!(state, State::Opening { .. })),
            count(|state| matches!(state, State::Silent { .. } | State::Waking)),
            count(|state| matches!(state, State::Away { back_at } if *back_at != OPEN)),
            differences.len(),
            &differences[..differences.len().min(10)],
        )
    }
}

enum Received {
    Up,
    Down,
    Reply(u32, bool),
    Line(Vec<u8>),
}
