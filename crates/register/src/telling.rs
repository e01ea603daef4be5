//! Telling others: entries into their inboxes.
//!
//! What could not be sent is owed, and tried again with the next step of clearing up; a newer entry about the same person
//! replaces an older one. Whoever is told of too late or never mends it by watching again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use domain::UserId;
use domain::clock::Stopwatch;
use keyspace::{Trouble, read_reply};
use redis::Cmd;

use crate::message::Message;
use crate::node::NodeName;
use crate::register::{BATCH_MAX, Register};
use crate::reply::{Fields, News};
use crate::settings::ms;

/// Entries that may be owed.
const OWED_MAX: usize = 100_000;

/// What could not be sent.
pub(crate) type Owed = BTreeMap<(UserId, NodeName), Letter>;

/// A record for a node.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    to: NodeName,
    user: UserId,
    now_ms: u64,
    /// Since then.
    waiting: Stopwatch,
    fields: Arc<Fields>,
}

impl Letter {
    /// Letters to all who are interested, but for `except`.
    pub(crate) fn to_all(news: News, except: Option<&NodeName>) -> impl Iterator<Item = Letter> {
        let News { user, fields, now_ms, watchers } = news;
        let fields = Arc::new(fields);
        let (except, waiting) = (except.cloned(), Stopwatch::start());
        let others = watchers.into_iter().filter(move |node| Some(node) != except.as_ref());
        others.map(move |to| Letter { to, user, now_ms, waiting, fields: Arc::clone(&fields) })
    }
}

impl Register {
    /// Tells another node something, if it is still there: who is gone is told nothing, and that is no failure.
    pub async fn send(&self, to: &NodeName, messages: &[Message]) -> Result<(), Trouble> {
        for batch in messages.chunks(BATCH_MAX) {
            let mut pipeline = redis::pipe();
            for message in batch {
                let mut entry = self.entry_for(to);
                entry.arg("m").arg(message.to_text());
                pipeline.add_command(entry);
            }
            for reply in self.send_all(&pipeline).await {
                self.note_sent(read_reply(reply)?);
            }
        }
        Ok(())
    }

    /// Sends letters. Returns those of whom somebody could not be told; that is owed.
    pub(crate) async fn tell(&self, letters: Vec<Letter>) -> HashSet<UserId> {
        let mut untold = HashSet::new();
        for batch in letters.chunks(BATCH_MAX) {
            let mut pipeline = redis::pipe();
            for letter in batch {
                pipeline.add_command(self.entry_of(letter));
            }
            for (letter, reply) in batch.iter().zip(self.send_all(&pipeline).await) {
                match read_reply(reply) {
                    Ok(id) => self.note_sent(id),
                    Err(_) => {
                        untold.insert(letter.user);
                        self.owe(letter.clone());
                    }
                }
            }
        }
        untold
    }

    /// Tries again what is owed, a bounded number.
    pub(crate) async fn pay(&self) {
        let letters: Vec<Letter> = {
            let mut owed = self.owed.lock();
            let letters = (0..BATCH_MAX).map_while(|_| owed.pop_first()).map(|(_, letter)| letter).collect();
            self.counters.entries_owed.set(owed.len());
            letters
        };
        self.tell(letters).await;
    }

    fn owe(&self, letter: Letter) {
        let mut owed = self.owed.lock();
        let key = (letter.user, letter.to.clone());
        if owed.len() >= OWED_MAX && !owed.contains_key(&key) {
            self.counters.entries_given_up.increment();
            return;
        }
        // The newer one counts: a later call found it at a later time, and a reader compares versions anyhow.
        match owed.get(&key) {
            Some(known) if known.now_ms > letter.now_ms => {}
            _ => drop(owed.insert(key, letter)),
        }
        self.counters.entries_owed.set(owed.len());
    }

    fn note_sent(&self, id: Option<String>) {
        match id {
            Some(_) => self.counters.entries_sent.increment(),
            None => self.counters.entries_undelivered.increment(),
        }
    }

    /// An entry to come. An inbox that is gone is not made again.
    fn entry_for(&self, to: &NodeName) -> Cmd {
        let mut command = redis::cmd("XADD");
        command.arg(self.keys.inbox(to.as_str())).arg("NOMKSTREAM");
        command.arg("MAXLEN").arg("~").arg(self.settings.inbox_max).arg("*");
        command
    }

    fn entry_of(&self, letter: &Letter) -> Cmd {
        let mut entry = self.entry_for(&letter.to);
        // What is owed is sent later than it was found, and holds for as much less.
        let now_ms = letter.now_ms.saturating_add(ms(letter.waiting.elapsed()));
        entry.arg("u").arg(letter.user.get()).arg("t").arg(now_ms);
        for (field, value) in letter.fields.iter() {
            // Fences and the last changes are nobody else's business.
            let is_private = field.starts_with(b"x:") || field.starts_with(b"z:");
            if !is_private && !matches!(field.as_slice(), b"w" | b"y" | b"r") {
                entry.arg(field).arg(value);
            }
        }
        entry
    }
}
