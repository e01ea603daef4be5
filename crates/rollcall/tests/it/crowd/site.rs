//! A server with many connected users and a few watchers.

use std::time::Duration;

use bench::friends;
use domain::clock::Stopwatch;
use simulate::websocket::protocol::{Protocol, tokens_signed_with};
use simulate::websocket::{ClientId, CloseReason, Event, WebSocketClients, WebSocketClientsPlan};
use testkit::{Server, ServerBuilder, eventually, http};

use crate::crowd::watcher::Watcher;

const SECRET: &str = "a secret of tests, of at least 32 characters";
/// Users, unless `LOAD_SESSIONS` is set: what a debug build on a busy machine handles in a second or two.
const PEOPLE_DEFAULT: usize = 1_000;
/// Watchers; each watches every second user, because the number of friends is limited.
pub const WATCHERS: usize = 4;
/// The first person's id; watchers come before.
pub const FIRST_PERSON: u64 = 1_000;
/// Friends that each person has among the others.
const FRIENDS: u32 = 4;
/// Connections on their way at once: what waits in the program's queue.
const OPENING_MAX: usize = 512;
/// Generous: the machine may be busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Site {
    pub server: Server,
    pub crowd: WebSocketClients,
    pub watchers: Vec<Watcher>,
    /// Users in order of their ids.
    pub people: Vec<ClientId>,
    /// Unexpected disconnects since the last check.
    pub endings: Vec<(ClientId, CloseReason)>,
}

pub fn people_count() -> usize {
    let text = std::env::var("LOAD_SESSIONS").unwrap_or_else(|_| PEOPLE_DEFAULT.to_string());
    text.parse().unwrap_or_else(|_| panic!("LOAD_SESSIONS={text} is not a number"))
}

/// Whether this run is larger than the default.
pub fn is_long_run() -> bool {
    std::env::var_os("LOAD_SESSIONS").is_some()
}

/// A program that takes a crowd from one machine.
pub fn builder() -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .set("gateway.token_hmac_secret", format!("\"{SECRET}\""))
        .set("site.metrics_open", true)
        // On a busy machine users wait; only whether all are answered is checked.
        .set("gateway.connect_timeout_s", PATIENCE.as_secs())
        .set("log.level", "\"warn\"")
}

impl Site {
    /// Starts the server with all friendships and no connections.
    pub fn start(builder: ServerBuilder) -> Site {
        bench::process::raise_file_limit();
        let server = builder.start();
        let count = people_count();
        let ids = |position: usize| FIRST_PERSON + position as u64;
        let mut pairs: Vec<(u64, u64)> = friends::ring(count as u32, FRIENDS)
            .into_iter()
            .map(|(one, other)| (FIRST_PERSON - 1 + one, FIRST_PERSON - 1 + other))
            .collect();
        for watcher in 0..WATCHERS {
            let watched = (0..count).filter(|position| position % 2 == watcher % 2);
            pairs.extend(watched.map(|position| (watcher as u64 + 1, ids(position))));
        }
        friends::write(&server.data_folder(), &pairs).unwrap();
        let speech = Protocol::Centrifuge(tokens_signed_with(SECRET));
        let plan =
            WebSocketClientsPlan { server: server.site_addr(), protocol: speech, opening_max: OPENING_MAX };
        let mut crowd = WebSocketClients::new(plan).unwrap();
        let watchers = (0..WATCHERS).map(|watcher| crowd.join(watcher as u64 + 1, 0)).count();
        let watchers = std::iter::repeat_with(Watcher::default).take(watchers).collect();
        let people = (0..count).map(|position| crowd.join(ids(position), 0)).collect();
        Site { server, crowd, watchers, people, endings: Vec::new() }
    }

    /// Starts the server and connects all users; returns when every watcher sees all its users online.
    pub fn full(builder: ServerBuilder) -> Site {
        let mut site = Site::start(builder);
        site.open_watchers();
        site.open(&site.people.clone());
        site.all_up("every client to be connected");
        site.until("all users to be online", Site::all_online);
        site
    }

    /// Connects the watchers.
    pub fn open_watchers(&mut self) {
        let watchers: Vec<ClientId> = (0..WATCHERS).map(ClientId).collect();
        self.open(&watchers);
        self.until("the watchers to be connected", |site| {
            (0..WATCHERS).all(|n| site.crowd.is_up(ClientId(n)))
        });
    }

    /// Lets these connect.
    pub fn open(&mut self, members: &[ClientId]) {
        members.iter().for_each(|member| self.crowd.open(*member));
    }

    /// Listens once, for at most this long.
    pub fn listen(&mut self, wait: Duration) {
        let Site { crowd, watchers, endings, .. } = self;
        crowd
            .poll(wait, &mut |member, event| match event {
                Event::Up if member.0 < WATCHERS => watchers[member.0].connected(),
                Event::Message(line) if member.0 < WATCHERS => watchers[member.0].hear(line),
                Event::Down(ending) => endings.push((member, ending.clone())),
                _ => {}
            })
            .unwrap();
    }

    /// Listens until something is so.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_so: impl Fn(&Site) -> bool) {
        let watch = Stopwatch::start();
        while !is_so(self) {
            assert!(watch.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}; {}", self.summary());
            self.listen(Duration::from_millis(20));
        }
    }

    /// Waits until no connection is pending, and checks that each succeeded at the first attempt.
    #[track_caller]
    pub fn all_up(&mut self, what: &str) {
        self.until(what, |site| site.crowd.opening() == 0);
        assert!(self.endings.is_empty(), "{what}: {:?}", self.endings.first());
    }

    /// Whether every watcher sees all its users online.
    pub fn all_online(&self) -> bool {
        self.all_are("online")
    }

    /// Whether every watcher sees all its users with this status.
    pub fn all_are(&self, status: &str) -> bool {
        let watched =
            |watcher: usize| (0..self.people.len()).filter(|position| position % 2 == watcher % 2).count();
        self.watchers.iter().enumerate().all(|(number, watcher)| watcher.count(status) == watched(number))
    }

    /// Watchers look only at what comes from now on.
    pub fn forget_past(&mut self) {
        self.watchers.iter_mut().for_each(Watcher::forget_past);
    }

    /// A number from the metrics page.
    pub fn metric(&self, sample: &str) -> Option<f64> {
        let page = http::get(self.server.site_addr(), "/metrics").body;
        let page = String::from_utf8_lossy(&page);
        page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until the metrics page shows these numbers.
    #[track_caller]
    pub fn shows(&self, expected: &[(&str, f64)]) {
        for (sample, number) in expected {
            eventually(&format!("{sample} to be {number}"), PATIENCE, || {
                (self.metric(sample) == Some(*number)).then_some(())
            });
        }
    }

    fn summary(&self) -> String {
        let shown: Vec<usize> = self.watchers.iter().map(|watcher| watcher.count("online")).collect();
        format!(
            "{} connected, {} on their way, {} ended (such as {:?}); watchers see {shown:?} online",
            self.crowd.up(),
            self.crowd.opening(),
            self.endings.len(),
            self.endings.first()
        )
    }
}
