//! Messages between gateways that are not records: typing, sign-out, goodbye.
//!
//! # Guarantees
//!
//! - Senders do not wait: messages wait in a bounded queue, and are dropped and counted when it is full.
//! - A message goes to the gateways where the user has sessions now, by the record in Redis.
//! - The sending gateway has already applied visibility.
//!
//! # Deliberately absent
//!
//! Retries: a client that signs out or types repeats itself if nothing happens. What must not be lost is state, and
//! is published as such.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cluster::{ClusterStore, GatewayMessage, NodeName};
use domain::UserId;
use presence::Input;
use tokio::sync::{Mutex, mpsc};

use crate::counters::GatewayCounters;
use crate::hub::users::Users;
use crate::rooms::remote_member::RoomMessage;
use crate::typing::{Admission, Target, TypingStarted};

const WAITING_MAX: usize = 10_000;
/// Messages that are sent together.
const BATCH_MAX: usize = 500;

pub(crate) enum OutgoingMessage {
    /// To the other gateways with sessions of this user.
    ToUser(UserId, GatewayMessage),
    ToNodes(Vec<NodeName>, GatewayMessage),
}

/// Sends messages to other gateways, in order.
pub(crate) struct MessageSender {
    store: Arc<ClusterStore>,
    counters: Arc<GatewayCounters>,
    queue: mpsc::Sender<OutgoingMessage>,
    waiting: Mutex<mpsc::Receiver<OutgoingMessage>>,
}

impl MessageSender {
    pub(crate) fn new(store: Arc<ClusterStore>, counters: Arc<GatewayCounters>) -> MessageSender {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        MessageSender { store, counters, queue, waiting: Mutex::new(waiting) }
    }

    /// Puts something into the queue. Never waits.
    pub(crate) fn send(&self, message: OutgoingMessage) {
        let counters = &self.counters.messages;
        if self.queue.try_send(message).is_err() {
            counters.messages_dropped.increment();
        }
        counters.messages_waiting.set(WAITING_MAX - self.queue.capacity());
    }

    pub(crate) async fn run(&self) {
        let mut waiting = self.waiting.lock().await;
        loop {
            let mut messages = Vec::new();
            if waiting.recv_many(&mut messages, BATCH_MAX).await == 0 {
                return;
            }
            self.counters.messages.messages_waiting.set(waiting.len());
            self.send_all(messages).await;
        }
    }

    async fn send_all(&self, messages: Vec<OutgoingMessage>) {
        let mut users: Vec<UserId> = messages
            .iter()
            .filter_map(|message| match message {
                OutgoingMessage::ToUser(user, _) => Some(*user),
                OutgoingMessage::ToNodes(..) => None,
            })
            .collect();
        users.sort_unstable();
        users.dedup();
        let nodes_by_user = self.nodes_by_user(&users).await;
        let mut by_node: HashMap<NodeName, Vec<GatewayMessage>> = HashMap::new();
        for message in messages {
            let (nodes, message) = match message {
                OutgoingMessage::ToUser(user, message) => {
                    (nodes_by_user.get(&user).cloned().unwrap_or_default(), message)
                }
                OutgoingMessage::ToNodes(nodes, message) => (nodes, message),
            };
            for node in nodes {
                by_node.entry(node).or_default().push(message.clone());
            }
        }
        for (node, messages) in by_node {
            let count = messages.len() as u64;
            match self.store.send(&node, &messages).await {
                Ok(()) => self.counters.messages.messages_sent.add(count),
                Err(error) => {
                    self.counters.messages.messages_failed.add(count);
                    tracing::debug!(%error, %node, "cannot send messages to another gateway");
                }
            }
        }
    }

    /// Other gateways with sessions of each user.
    async fn nodes_by_user(&self, users: &[UserId]) -> HashMap<UserId, Vec<NodeName>> {
        if users.is_empty() {
            return HashMap::new();
        }
        let own = self.store.node();
        let records = self.store.read(users).await;
        let mut nodes_by_user = HashMap::new();
        for (user, record) in users.iter().zip(records) {
            match record {
                Ok(Some(record)) => {
                    let nodes =
                        record.entries.into_iter().map(|entry| entry.node).filter(|node| *node != own);
                    nodes_by_user.insert(*user, nodes.collect());
                }
                Ok(None) => {}
                Err(error) => {
                    self.counters.messages.messages_failed.increment();
                    tracing::debug!(%error, "cannot read the record of a message recipient");
                }
            }
        }
        nodes_by_user
    }
}

/// A message from another gateway.
pub(crate) fn receive(users: &Users, message: GatewayMessage) {
    users.context.counters.messages.messages_received.increment();
    match message {
        GatewayMessage::Typing { from, to, on } => receive_typing(users, from, Target::User(to), on),
        GatewayMessage::SignOut { user, device } => users.apply_input(user, Input::SignOut { device }),
        GatewayMessage::Goodbye { user, device } => users.apply_input(user, Input::Goodbye { device }),
        GatewayMessage::Disconnect { user, device, reconnect } => {
            users.disconnect(user, device.as_ref(), reconnect);
        }
        GatewayMessage::Room { room, body } => match RoomMessage::read(&body) {
            Some(RoomMessage::Typing { from, on }) => {
                if let Some(from) = UserId::new(from) {
                    receive_typing(users, from, Target::Room((*room).into()), on);
                }
            }
            Some(message) => users.rooms.receive(&room, message, || users.context.next_epoch()),
            // Of an unknown version; the periodic comparison corrects it.
            None => {}
        },
    }
}

fn receive_typing(users: &Users, from: UserId, target: Target, on: bool) {
    let now = users.now();
    if !on {
        return users.typing.end(from, &target, now);
    }
    let recipients = users.typing_recipients(from, &target).unwrap_or_default();
    let lasts = users.settings.limits.typing;
    if !recipients.is_empty() && users.typing.admit(from, &target, now, lasts) == Admission::PassOn {
        users.typing.begin(TypingStarted { from, target, now, lasts, nodes: None }, recipients);
    }
}
