//! A node of the register: joining, staying, leaving.
//!
//! # Guarantees
//!
//! - A node renews a lease. One whose lease ended is declared dead by another, but only by one that itself had contact
//!   with Redis for a lease's length without a break, and saw by its own clock that the lease was not renewed for about
//!   that long: after an outage, or where Redis's clock was set, nobody is blamed for it.
//! - A node that was declared dead never writes under the same incarnation again.
//! - Where Redis has lost its data, nobody was declared dead, and nodes are nodes again when they renew.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::UserId;
use domain::clock::{Clock, Stopwatch, SystemClock};
use keyspace::keys::presence::{NODES, NODES_GONE, NODES_INFO};
use keyspace::{PresenceKeys, Redis, Reply, Trouble, read_reply, scripts};
use parking_lot::Mutex;
use redis::Pipeline;
use tokio::sync::watch;

use crate::counters::RegisterCounters;
use crate::inbox::Inbox;
use crate::node::NodeName;
use crate::reap::Reaping;
use crate::record::Standing;
use crate::settings::{RegisterSettings, ms};
use crate::telling::Owed;

/// How long those who are gone are remembered, and refused.
pub(crate) const REMEMBER_GONE: Duration = Duration::from_secs(3600);
/// How long an inbox stays after its node renewed it.
const INBOX_KEEP: Duration = Duration::from_secs(600);
/// Former incarnations whose parts go when this node writes of a person. Those of older ones are cleared up by now.
const FORMER_MAX: usize = 4;
/// Commands of one pipeline.
pub(crate) const BATCH_MAX: usize = 1000;

/// A node of the register.
pub struct Register {
    pub(crate) redis: Redis,
    pub(crate) keys: PresenceKeys,
    pub(crate) settings: RegisterSettings,
    pub(crate) counters: Arc<RegisterCounters>,
    name: String,
    dice: Mutex<fastrand::Rng>,
    /// Who this is now, and where its inbox begins.
    place: watch::Sender<Place>,
    /// Who it was before, the last first.
    former: Mutex<VecDeque<NodeName>>,
    standing: Mutex<State>,
    /// Numbers calls, so that one that was not answered can be recognised.
    calls: AtomicU64,
    /// The first call about somebody that was not answered.
    pub(crate) doubts: Mutex<HashMap<UserId, u64>>,
    pub(crate) owed: Mutex<Owed>,
    pub(crate) reaping: Mutex<Reaping>,
}

/// Who this is, and where its inbox begins.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub node: NodeName,
    pub start: String,
}

/// The nodes as this one last saw them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    pub is_member: bool,
    /// The ends of all leases, as Redis writes them.
    leases: Vec<(NodeName, String)>,
    /// Those whose lease holds.
    pub live: Vec<NodeName>,
    /// Those whose lease ended, but who are not declared dead yet.
    pub lapsed: Vec<NodeName>,
    /// Those who are gone.
    pub gone: Vec<NodeName>,
}

struct State {
    around: Around,
    was_alone: bool,
    /// Since when there was contact without a break.
    contact: Option<Stopwatch>,
    /// When it last renewed.
    renewed: Stopwatch,
    /// The ends of the others' leases, and since when they were not seen to move.
    still: HashMap<NodeName, (String, Stopwatch)>,
}

impl State {
    fn new(around: Around, was_alone: bool, contact: Option<Stopwatch>) -> State {
        let renewed = Stopwatch::start();
        let mut state =
            State { around: Around::default(), was_alone, contact, renewed, still: HashMap::new() };
        state.see(around);
        state
    }

    /// Takes in how the nodes stand.
    fn see(&mut self, around: Around) {
        let mut before = std::mem::take(&mut self.still);
        let since = |(node, till): &(NodeName, String)| {
            let known = before.remove(node).filter(|(seen, _)| seen == till);
            (node.clone(), known.unwrap_or_else(|| (till.clone(), Stopwatch::start())))
        };
        self.still = around.leases.iter().map(since).collect();
        self.around = around;
    }

    /// Those who did not renew for so long, by the clock of this node.
    fn silent(&self, length: Duration) -> Vec<(NodeName, String)> {
        let silent = self.still.iter().filter(|(_, (_, since))| since.elapsed() >= length);
        silent.map(|(node, (till, _))| (node.clone(), till.clone())).collect()
    }
}

impl Register {
    /// Joins as the node `name`, which no other node has.
    pub async fn join(redis: Redis, name: &str, settings: RegisterSettings) -> Result<Register, Trouble> {
        let mut dice = fastrand::Rng::with_seed(settings.seed ^ SystemClock.now_ms());
        let node = NodeName::incarnate(name, SystemClock.now_ms(), dice.u16(..))?;
        let keys = PresenceKeys::new(redis.mode());
        let start = open_inbox(&redis, &keys, &node).await?;
        let around = change_nodes(&redis, &node, &Asking::join(&settings)).await?;
        let was_alone = around.live.iter().all(|other| *other == node);
        let contact = Some(Stopwatch::start());
        let state = State::new(around, was_alone, contact);
        let place = Place { node, start };
        Ok(Register::at(redis, settings, name, place, state))
    }

    /// Joins as [`Register::join`], but where Redis is away it becomes a node as soon as it renews.
    pub async fn join_when_possible(
        redis: Redis,
        name: &str,
        settings: RegisterSettings,
    ) -> Result<Register, Trouble> {
        match Register::join(redis.clone(), name, settings.clone()).await {
            Err(Trouble::Unavailable { .. } | Trouble::Unanswered { .. } | Trouble::Refused { .. }) => {}
            joined => return joined,
        }
        let mut dice = fastrand::Rng::with_seed(settings.seed ^ SystemClock.now_ms());
        let node = NodeName::incarnate(name, SystemClock.now_ms(), dice.u16(..))?;
        // Nobody knows who else is there: whoever was here before is not brought back from elsewhere.
        let state = State::new(Around::default(), false, None);
        let place = Place { node, start: "0-0".to_owned() };
        Ok(Register::at(redis, settings, name, place, state))
    }

    fn at(redis: Redis, settings: RegisterSettings, name: &str, place: Place, state: State) -> Register {
        let dice = fastrand::Rng::with_seed(settings.seed.rotate_left(32) ^ SystemClock.now_ms());
        Register {
            keys: PresenceKeys::new(redis.mode()),
            counters: Arc::default(),
            name: name.to_owned(),
            dice: Mutex::new(dice),
            place: watch::Sender::new(place),
            former: Mutex::default(),
            standing: Mutex::new(state),
            calls: AtomicU64::new(1),
            doubts: Mutex::default(),
            owed: Mutex::default(),
            reaping: Mutex::default(),
            redis,
            settings,
        }
    }

    /// Who this is now.
    pub fn node(&self) -> NodeName {
        self.place.borrow().node.clone()
    }

    /// Who it was before, with commas between: what those said of a person goes with whatever this one says.
    pub(crate) fn former(&self) -> String {
        let former = self.former.lock();
        former.iter().map(NodeName::as_str).collect::<Vec<&str>>().join(",")
    }

    /// What is counted.
    pub fn counters(&self) -> &Arc<RegisterCounters> {
        &self.counters
    }

    /// What others tell this node, from when it joined on. One at a time. Must be called within a Tokio runtime.
    pub fn inbox(&self) -> Inbox {
        Inbox::open(self.redis.clone(), self.keys, Arc::clone(&self.counters), self.place.subscribe())
    }

    /// Renews the lease, and says of this node what `info` says: a small JSON. To be called several times within the
    /// length of a lease.
    pub async fn renew(&self, info: &str) -> Result<Standing, Trouble> {
        let node = self.node();
        if self.standing.lock().renewed.elapsed() > REMEMBER_GONE / 2 {
            // Whoever declared this node dead may have forgotten it by now.
            self.standing.lock().around.is_member = false;
            return Ok(self.standing());
        }
        let silent = self.may_judge().then(|| self.standing.lock().silent(self.settings.lease / 5 * 4));
        let asking = Asking { change: "renew", info, silent, lease: self.settings.lease };
        match change_nodes(&self.redis, &node, &asking).await {
            Ok(around) => {
                let mut state = self.standing.lock();
                self.counters.nodes.set(around.live.len());
                state.renewed = Stopwatch::start();
                state.contact.get_or_insert_with(Stopwatch::start);
                state.see(around);
            }
            Err(trouble) => {
                self.counters.failures.increment();
                self.standing.lock().contact = None;
                return Err(trouble);
            }
        }
        if self.standing.lock().around.is_member {
            self.keep_inbox(&node).await;
        }
        Ok(self.standing())
    }

    /// What the nodes say of themselves whose lease held when this one last renewed.
    pub async fn infos(&self) -> Result<Vec<(NodeName, String)>, Trouble> {
        let mut command = redis::cmd("HGETALL");
        command.arg(NODES_INFO);
        let mut infos: HashMap<String, String> = self.counted(self.redis.query(&command).await)?;
        let live = self.around().live;
        Ok(live.into_iter().filter_map(|node| Some((node.clone(), infos.remove(node.as_str())?))).collect())
    }

    /// Joins anew, under another incarnation and with another inbox. What the one before said of people is taken back by
    /// others, so everybody is to be published and watched again.
    pub async fn rejoin(&self) -> Result<(), Trouble> {
        let before = self.node();
        let random = self.dice.lock().u16(..);
        let node = NodeName::incarnate(&self.name, SystemClock.now_ms(), random)?;
        let start = self.counted(open_inbox(&self.redis, &self.keys, &node).await)?;
        let asking = Asking::join(&self.settings);
        let around = self.counted(change_nodes(&self.redis, &node, &asking).await)?;
        {
            let mut state = self.standing.lock();
            state.see(around);
            state.renewed = Stopwatch::start();
        }
        self.doubts.lock().clear();
        {
            let mut former = self.former.lock();
            former.push_front(before.clone());
            former.truncate(FORMER_MAX);
        }
        self.place.send_replace(Place { node, start });
        self.counters.rejoins.increment();
        // If this fails, its lease ends by itself.
        self.counted(self.bury(&before).await).ok();
        Ok(())
    }

    /// Leaves. The people here become pending at once.
    pub async fn leave(&self) -> Result<(), Trouble> {
        self.standing.lock().around.is_member = false;
        self.counted(self.bury(&self.node()).await)
    }

    async fn bury(&self, node: &NodeName) -> Result<(), Trouble> {
        let asking = Asking { change: "leave", ..Asking::join(&self.settings) };
        change_nodes(&self.redis, node, &asking).await?;
        let mut command = redis::cmd("UNLINK");
        command.arg(self.keys.inbox(node.as_str()));
        self.redis.query::<u8>(&command).await.map(drop)
    }

    /// Whether this node may declare others dead.
    fn may_judge(&self) -> bool {
        let mut state = self.standing.lock();
        if state.renewed.elapsed() > self.settings.lease {
            // It slept, and Redis may have been away meanwhile.
            state.contact = None;
        }
        state.contact.is_some_and(|since| since.elapsed() >= self.settings.lease)
    }

    /// Makes the inbox last, and makes it again if it is not there.
    async fn keep_inbox(&self, node: &NodeName) {
        let key = self.keys.inbox(node.as_str());
        let mut pipeline = redis::pipe();
        pipeline.cmd("PEXPIRE").arg(&key).arg(ms(INBOX_KEEP)).cmd("XLEN").arg(&key);
        let mut replies = self.send_all(&pipeline).await.into_iter();
        let is_there = self.counted(read_reply::<bool>(replies.next().unwrap_or(Ok(redis::Value::Int(1)))));
        if let Some(Ok(length)) = replies.next().map(read_reply::<usize>) {
            self.counters.inbox_length.set(length);
            if length >= self.settings.inbox_max {
                self.counters.inbox_full.increment();
            }
        }
        if is_there == Ok(false) {
            // Its reader finds that its place is gone.
            self.counted(open_inbox(&self.redis, &self.keys, node).await).ok();
        }
    }

    fn standing(&self) -> Standing {
        let state = self.standing.lock();
        Standing {
            is_member: state.around.is_member,
            nodes: state.around.live.clone(),
            was_alone: state.was_alone,
        }
    }

    /// The nodes as they were last seen.
    pub(crate) fn around(&self) -> Around {
        self.standing.lock().around.clone()
    }

    pub(crate) fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends commands together; counts how long it took and what failed.
    pub(crate) async fn send_all(&self, pipeline: &Pipeline) -> Vec<Reply> {
        if pipeline.is_empty() {
            return Vec::new();
        }
        let since = Stopwatch::start();
        let replies = self.redis.pipeline(pipeline).await;
        self.counters.pipeline_seconds.record(since.elapsed());
        self.counters.failures.add(replies.iter().filter(|reply| reply.is_err()).count() as u64);
        replies
    }

    pub(crate) fn counted<T>(&self, result: Result<T, Trouble>) -> Result<T, Trouble> {
        result.inspect_err(|_| self.counters.failures.increment())
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Register({})", self.node())
    }
}

/// What to ask of the list of nodes.
struct Asking<'a> {
    change: &'static str,
    info: &'a str,
    /// Others who did not renew; none if this node may declare nobody dead.
    silent: Option<Vec<(NodeName, String)>>,
    lease: Duration,
}

impl Asking<'_> {
    fn join(settings: &RegisterSettings) -> Asking<'static> {
        Asking { change: "join", info: "{}", silent: None, lease: settings.lease }
    }
}

async fn change_nodes(redis: &Redis, node: &NodeName, asking: &Asking<'_>) -> Result<Around, Trouble> {
    let mut call = scripts::PRESENCE_NODES.call(&[NODES, NODES_GONE, NODES_INFO]);
    call.arg(asking.change).arg(node.as_str()).arg(ms(asking.lease)).arg(asking.info);
    call.arg(u8::from(asking.silent.is_some())).arg(ms(REMEMBER_GONE));
    for (silent, till) in asking.silent.iter().flatten() {
        call.arg(silent.as_str()).arg(till);
    }
    type Leases = Vec<(String, String)>;
    let (is_member, live, lapsed, gone): (bool, Leases, Leases, Vec<String>) = redis.query(&call).await?;
    let read = |names: &mut dyn Iterator<Item = &String>| {
        let mut nodes: Vec<NodeName> = names.filter_map(|name| NodeName::read(name)).collect();
        nodes.sort();
        nodes
    };
    let leases = live.iter().chain(&lapsed);
    Ok(Around {
        is_member,
        leases: leases.filter_map(|(name, till)| Some((NodeName::read(name)?, till.clone()))).collect(),
        live: read(&mut live.iter().map(|(name, _)| name)),
        lapsed: read(&mut lapsed.iter().map(|(name, _)| name)),
        gone: read(&mut gone.iter()),
    })
}

/// Makes an inbox with one entry in it, whose id is where reading begins.
pub(crate) async fn open_inbox(
    redis: &Redis,
    keys: &PresenceKeys,
    node: &NodeName,
) -> Result<String, Trouble> {
    let key = keys.inbox(node.as_str());
    let mut pipeline = redis::pipe();
    pipeline.cmd("XADD").arg(&key).arg("*").arg("j").arg(1);
    pipeline.cmd("PEXPIRE").arg(&key).arg(ms(INBOX_KEEP));
    let replies = redis.transaction(&pipeline).await?;
    read_reply(replies.into_iter().next().ok_or_else(crate::reply::unexpected)?)
}
