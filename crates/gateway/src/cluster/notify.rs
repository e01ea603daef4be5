//! Appends entries to the inboxes of other nodes.
//!
//! Entries that could not be appended are kept and retried at the next reap step; a newer entry about the same user
//! replaces an older one. A node that misses an entry corrects its state when it reads the record again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use domain::UserId;
use domain::clock::Stopwatch;
use keyspace::{RedisError, read_reply};
use redis::Cmd;

use super::message::GatewayMessage;
use super::node::NodeName;
use super::reply::{Fields, Notification};
use super::settings::ms;
use super::store::{BATCH_MAX, ClusterStore};

/// Entries that may be unsent.
const UNSENT_MAX: usize = 100_000;

/// Entries that could not be appended.
pub(crate) type UnsentEntries = BTreeMap<(UserId, NodeName), InboxEntry>;

/// A record for a node.
#[derive(Clone, Debug)]
pub(crate) struct InboxEntry {
    to: NodeName,
    user: UserId,
    now_ms: u64,
    waiting: Stopwatch,
    fields: Arc<Fields>,
}

impl InboxEntry {
    /// One entry for each watching node except `except`.
    pub(crate) fn for_watchers(
        notification: Notification,
        except: Option<&NodeName>,
    ) -> impl Iterator<Item = InboxEntry> {
        let Notification { user, fields, now_ms, watchers } = notification;
        let fields = Arc::new(fields);
        let (except, waiting) = (except.cloned(), Stopwatch::start());
        let others = watchers.into_iter().filter(move |node| Some(node) != except.as_ref());
        others.map(move |to| InboxEntry { to, user, now_ms, waiting, fields: Arc::clone(&fields) })
    }
}

impl ClusterStore {
    /// Sends messages to another node. A node without an inbox is gone: its messages are dropped without an error.
    pub async fn send(&self, to: &NodeName, messages: &[GatewayMessage]) -> Result<(), RedisError> {
        for batch in messages.chunks(BATCH_MAX) {
            let mut pipeline = redis::pipe();
            for message in batch {
                let mut entry = self.append_command(to);
                entry.arg("m").arg(message.to_text());
                pipeline.add_command(entry);
            }
            for reply in self.send_all(&pipeline).await {
                self.count_sent(read_reply(reply)?);
            }
        }
        Ok(())
    }

    /// Appends entries. Returns the users with an entry that could not be appended; those are retried.
    pub(crate) async fn append_entries(&self, entries: Vec<InboxEntry>) -> HashSet<UserId> {
        let mut unnotified = HashSet::new();
        for batch in entries.chunks(BATCH_MAX) {
            let mut pipeline = redis::pipe();
            for entry in batch {
                pipeline.add_command(self.record_command(entry));
            }
            for (entry, reply) in batch.iter().zip(self.send_all(&pipeline).await) {
                match read_reply(reply) {
                    Ok(id) => self.count_sent(id),
                    Err(_) => {
                        unnotified.insert(entry.user);
                        self.keep_unsent(entry.clone());
                    }
                }
            }
        }
        unnotified
    }

    /// Retries a bounded number of unsent entries.
    pub(crate) async fn retry_unsent(&self) {
        let entries: Vec<InboxEntry> = {
            let mut unsent = self.unsent.lock();
            let entries = (0..BATCH_MAX).map_while(|_| unsent.pop_first()).map(|(_, entry)| entry).collect();
            self.counters.entries_unsent.set(unsent.len());
            entries
        };
        self.append_entries(entries).await;
    }

    fn keep_unsent(&self, entry: InboxEntry) {
        let mut unsent = self.unsent.lock();
        let key = (entry.user, entry.to.clone());
        if unsent.len() >= UNSENT_MAX && !unsent.contains_key(&key) {
            self.counters.entries_dropped.increment();
            return;
        }
        // The newer one counts: a later call found it at a later time, and a reader compares versions anyhow.
        match unsent.get(&key) {
            Some(known) if known.now_ms > entry.now_ms => {}
            _ => drop(unsent.insert(key, entry)),
        }
        self.counters.entries_unsent.set(unsent.len());
    }

    fn count_sent(&self, id: Option<String>) {
        match id {
            Some(_) => self.counters.entries_sent.increment(),
            None => self.counters.entries_undelivered.increment(),
        }
    }

    /// `NOMKSTREAM`: the inbox of a dead node is not created again.
    fn append_command(&self, to: &NodeName) -> Cmd {
        let mut command = redis::cmd("XADD");
        command.arg(self.keys.inbox(to.as_str())).arg("NOMKSTREAM");
        command.arg("MAXLEN").arg("~").arg(self.settings.inbox_max).arg("*");
        command
    }

    fn record_command(&self, entry: &InboxEntry) -> Cmd {
        let mut command = self.append_command(&entry.to);
        // A retried entry is older than its read time: its durations are shorter by the waiting time.
        let now_ms = entry.now_ms.saturating_add(ms(entry.waiting.elapsed()));
        command.arg("u").arg(entry.user.get()).arg("t").arg(now_ms);
        for (field, value) in entry.fields.iter() {
            // Fences and last changes are internal to the record.
            let is_private = field.starts_with(b"x:") || field.starts_with(b"z:");
            if !is_private && !matches!(field.as_slice(), b"w" | b"y" | b"r" | b"k") {
                command.arg(field).arg(value);
            }
        }
        command
    }
}
