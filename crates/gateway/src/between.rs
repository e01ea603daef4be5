//! What gateways say to each other beside records of people: typing, signing out, goodbyes.
//!
//! # Guarantees
//!
//! - Nobody waits: what is to be said waits in a bounded line, and is dropped and counted when there is too much.
//! - It is said to the gateways where the person is right now, by the register.
//! - Who may know was checked by who says it.
//!
//! # Deliberately absent
//!
//! Saying it again: whoever signs out or types says so themselves if nothing happens. What must not be lost is state,
//! and travels as such.

use std::collections::HashMap;
use std::sync::Arc;

use domain::UserId;
use presence::Input;
use register::{Message, NodeName, Register};
use tokio::sync::{Mutex, mpsc};

use crate::counters::GatewayCounters;
use crate::hub::Hub;
use crate::rooms::guest::Word;
use crate::typing::{Admitted, Said, Target};

/// Messages that may wait.
const WAITING_MAX: usize = 10_000;
/// Messages that are sent together.
const BATCH_MAX: usize = 500;

/// Something to say, and where.
pub(crate) enum Errand {
    /// Wherever else this person is.
    WhereverIs(UserId, Message),
    /// At these gateways.
    At(Vec<NodeName>, Message),
}

/// Says things to other gateways, one after the other.
pub(crate) struct Relay {
    register: Arc<Register>,
    counters: Arc<GatewayCounters>,
    line: mpsc::Sender<Errand>,
    waiting: Mutex<mpsc::Receiver<Errand>>,
}

impl Relay {
    pub(crate) fn new(register: Arc<Register>, counters: Arc<GatewayCounters>) -> Relay {
        let (line, waiting) = mpsc::channel(WAITING_MAX);
        Relay { register, counters, line, waiting: Mutex::new(waiting) }
    }

    /// Puts something into the line. Never waits.
    pub(crate) fn say(&self, errand: Errand) {
        let between = &self.counters.between;
        if self.line.try_send(errand).is_err() {
            between.messages_dropped.increment();
        }
        between.messages_waiting.set(WAITING_MAX - self.line.capacity());
    }

    /// Says what waits, for ever.
    pub(crate) async fn run(&self) {
        let mut waiting = self.waiting.lock().await;
        loop {
            let mut errands = Vec::new();
            if waiting.recv_many(&mut errands, BATCH_MAX).await == 0 {
                return;
            }
            self.counters.between.messages_waiting.set(waiting.len());
            self.say_all(errands).await;
        }
    }

    async fn say_all(&self, errands: Vec<Errand>) {
        let mut users: Vec<UserId> = errands
            .iter()
            .filter_map(|errand| match errand {
                Errand::WhereverIs(user, _) => Some(*user),
                Errand::At(..) => None,
            })
            .collect();
        users.sort_unstable();
        users.dedup();
        let places = self.places(&users).await;
        let mut letters: HashMap<NodeName, Vec<Message>> = HashMap::new();
        for errand in errands {
            let (nodes, message) = match errand {
                Errand::WhereverIs(user, message) => {
                    (places.get(&user).cloned().unwrap_or_default(), message)
                }
                Errand::At(nodes, message) => (nodes, message),
            };
            for node in nodes {
                letters.entry(node).or_default().push(message.clone());
            }
        }
        for (node, messages) in letters {
            let count = messages.len() as u64;
            match self.register.send(&node, &messages).await {
                Ok(()) => self.counters.between.messages_sent.add(count),
                Err(trouble) => {
                    self.counters.between.messages_failed.add(count);
                    tracing::debug!(%trouble, %node, "another gateway could not be told");
                }
            }
        }
    }

    /// At which other gateways these people are.
    async fn places(&self, users: &[UserId]) -> HashMap<UserId, Vec<NodeName>> {
        if users.is_empty() {
            return HashMap::new();
        }
        let own = self.register.node();
        let records = self.register.read(users).await;
        let mut places = HashMap::new();
        for (user, record) in users.iter().zip(records) {
            match record {
                Ok(Some(record)) => {
                    let nodes = record.parts.into_iter().map(|part| part.node).filter(|node| *node != own);
                    places.insert(*user, nodes.collect());
                }
                Ok(None) => {}
                Err(trouble) => {
                    self.counters.between.messages_failed.increment();
                    tracing::debug!(%trouble, "where somebody is cannot be asked");
                }
            }
        }
        places
    }
}

/// What is heard.
impl Hub {
    /// Says something to other gateways; nothing if there are none.
    pub(crate) fn say(&self, errand: Errand) {
        if let Some(relay) = &self.outside.relay {
            relay.say(errand);
        }
    }

    /// Something that other gateways said may have been missed. What they said of people is not meant.
    pub fn hear_gap(&self) {
        self.rooms.compare_all();
    }

    /// These gateways are alive, this one among them. Told again and again.
    pub fn hear_nodes(&self, alive: &[NodeName]) {
        self.rooms.keep_nodes(alive);
    }

    /// Another gateway says this.
    pub fn hear_message(&self, message: Message) {
        self.outside.counters.between.messages_heard.increment();
        match message {
            Message::Typing { from, to, on } => self.hear_typing(from, Target::Person(to), on),
            Message::SignOut { user, device } => self.tell(user, Input::SignOut { device }),
            Message::Goodbye { user, device } => self.tell(user, Input::Goodbye { device }),
            Message::Disconnect { user, device, reconnect } => {
                self.disconnect_here(user, device.as_ref(), reconnect);
            }
            Message::Room { room, body } => self.hear_room(&room, &body),
        }
    }

    fn hear_room(&self, room: &str, body: &str) {
        match Word::read(body) {
            Some(Word::Typing { from, on }) => {
                if let Some(from) = UserId::new(from) {
                    self.hear_typing(from, Target::Room(room.into()), on);
                }
            }
            Some(said) => self.rooms.hear(room, said, || self.outside.next_epoch()),
            // Of a version that is not ours; the parts are compared all the same.
            None => {}
        }
    }

    fn hear_typing(&self, from: UserId, target: Target, on: bool) {
        if !on {
            return self.typing.end(from, &target);
        }
        let recipients = match &target {
            Target::Person(to) => self.connections_of(*to),
            Target::Room(name) => {
                self.rooms.who_may_see(name, from, crate::commands::TYPING_RECIPIENTS_MAX).unwrap_or_default()
            }
        };
        let (now, lasts) = (self.now(), self.settings.load().people.typing);
        if !recipients.is_empty() && self.typing.admit(from, &target, now, lasts) == Admitted::PassOn {
            self.typing.begin(Said { from, target, now, lasts, nodes: None }, recipients);
        }
    }
}
