//! Listening: expired keys, and channels on which other programs speak.
//!
//! Messages of Redis are fire-and-forget. What is said while nobody listens is lost, so a listener also says when that
//! may have happened, and whoever uses it looks for itself then.
//!
//! # Guarantees
//!
//! - On a single server, and with sentinels, one connection to the master hears everything.
//! - On a cluster every master tells of its own expired keys only, so each of them is listened to. Channels are heard
//!   through any one node, since each message is passed on to all of them.
//! - Masters are looked for every second, so a failover is followed within seconds; a connection is probed every two
//!   seconds, so one that was silently lost is found. It connects again by itself, with growing, bounded pauses.
//! - [`Heard::Listening`] comes when everything is heard from now on: at first, and after every [`Heard::Gap`].
//! - Where keys that expire are wanted, each server is told to speak of them ([`crate::notify`]), also one that is new
//!   or was started again.
//! - A user that is too slow costs messages, which are counted and reported as a gap, and never memory without bound.
//!
//! # Deliberately absent
//!
//! Sharded channels: programs written for a single Redis do not use them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::handle::Redis;
use crate::notify::{self, Notifications};
use crate::settings::{Mode, Node};

mod ear;

use ear::{Ear, Place, Report};

/// How often the masters are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many messages may wait for a user, before further ones are lost.
const WAITING_MAX: usize = 16_384;

/// What to listen to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Keys whose expiry is to be heard, as patterns such as `t:ptimeout:*`.
    pub expiring: Vec<String>,
    /// Channels, by their whole names.
    pub channels: Vec<String>,
}

/// What is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Everything is heard from now on. What was said before may have been missed: look for yourself.
    Listening,
    /// Something may be missed from now on, until [`Heard::Listening`] comes again.
    Gap,
    /// This key expired.
    Expired(String),
    /// Somebody spoke on a channel.
    Said {
        /// Where.
        channel: String,
        /// What.
        payload: String,
    },
}

/// What happened, counted since the listener was made.
#[derive(Debug, Default)]
pub struct ListenCounters {
    /// Expired keys that were heard of.
    pub expired: AtomicU64,
    /// Messages that were heard on channels.
    pub said: AtomicU64,
    /// Messages that were thrown away, because too many were waiting.
    pub dropped: AtomicU64,
    /// Messages that are no text, which ours all are.
    pub unreadable: AtomicU64,
    /// Times that messages may have been missed.
    pub gaps: AtomicU64,
    /// Connections that were made to listen.
    pub connections: AtomicU64,
    /// Servers that do not tell of expired keys, although they were asked to.
    pub silent_servers: AtomicU64,
}

/// How well it listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    /// Raised whenever something may have been missed.
    gaps: u64,
    /// Whether all that is to be heard is heard.
    is_whole: bool,
}

/// Hears until it is dropped.
pub struct Listener {
    heard: mpsc::Receiver<Heard>,
    status: watch::Receiver<Status>,
    shared: Arc<Shared>,
    told: Told,
    supervisor: AbortHandle,
}

/// What the user was told last.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    is_listening: bool,
    gaps: u64,
}

impl Told {
    /// What the user must be told next of the status, if anything.
    fn next(&mut self, status: Status) -> Option<Heard> {
        if self.is_listening && (status.gaps != self.gaps || !status.is_whole) {
            self.is_listening = false;
            return Some(Heard::Gap);
        }
        if !self.is_listening && status.is_whole {
            *self = Told { is_listening: true, gaps: status.gaps };
            return Some(Heard::Listening);
        }
        None
    }
}

impl Redis {
    /// Begins to listen. Redis need not be there yet. Must be called within a Tokio runtime.
    pub fn listen(&self, wanted: Wanted) -> Listener {
        let (sender, heard) = mpsc::channel(WAITING_MAX);
        let (status_sender, status) = watch::channel(Status::default());
        let shared = Arc::new(Shared {
            redis: self.clone(),
            wanted,
            sender,
            status: status_sender,
            is_overrun: AtomicBool::new(false),
            counters: Arc::default(),
            notifications: Mutex::default(),
        });
        let supervisor = tokio::spawn(supervise(Arc::clone(&shared))).abort_handle();
        Listener { heard, status, shared, told: Told::default(), supervisor }
    }
}

impl Listener {
    /// What is heard next. May be given up while it waits; nothing is lost by that.
    pub async fn next(&mut self) -> Heard {
        loop {
            let status = *self.status.borrow_and_update();
            if let Some(news) = self.told.next(status) {
                return news;
            }
            if let Ok(heard) = self.heard.try_recv() {
                return heard;
            }
            // Told when the user has caught up, or it would look for what was lost again and again meanwhile.
            if self.shared.is_overrun.swap(false, Ordering::AcqRel) {
                self.shared.note_gap();
                continue;
            }
            tokio::select! {
                biased;
                // Both senders live as long as this does.
                _ = self.status.changed() => {}
                Some(heard) = self.heard.recv() => return heard,
            }
        }
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<ListenCounters> {
        Arc::clone(&self.shared.counters)
    }

    /// Whether each server that was met tells of expired keys.
    pub fn notifications(&self) -> Vec<(Node, Notifications)> {
        let met = self.shared.notifications.lock();
        met.iter().map(|(node, found)| (node.clone(), found.clone())).collect()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

/// What the supervisor, the ears and the user share.
struct Shared {
    redis: Redis,
    wanted: Wanted,
    sender: mpsc::Sender<Heard>,
    status: watch::Sender<Status>,
    /// Whether messages were thrown away that the user was not told of yet.
    is_overrun: AtomicBool,
    counters: Arc<ListenCounters>,
    notifications: Mutex<HashMap<Node, Notifications>>,
}

impl Shared {
    /// Passes something on, unless too much is waiting already.
    fn pass_on(&self, heard: Heard) {
        let counter = match &heard {
            Heard::Expired(_) => &self.counters.expired,
            _ => &self.counters.said,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(heard).is_err() {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            self.is_overrun.store(true, Ordering::Release);
        }
    }

    fn note_gap(&self) {
        self.counters.gaps.fetch_add(1, Ordering::Relaxed);
        self.status.send_modify(|status| status.gaps = status.gaps.wrapping_add(1));
    }

    fn set_whole(&self, is_whole: bool) {
        self.status.send_if_modified(|status| std::mem::replace(&mut status.is_whole, is_whole) != is_whole);
    }

    /// Takes note of what a server says about expired keys; warns where that is news.
    fn note_notifications(&self, node: &Node, found: Notifications) {
        let mut met = self.notifications.lock();
        if met.get(node) != Some(&found) {
            match &found {
                Notifications::AlreadyOn => {}
                Notifications::SetByUs { flags } => {
                    tracing::info!(server = %node, flags, "redis was told to speak of expired keys");
                }
                Notifications::Refused { reason } => {
                    tracing::warn!(server = %node, reason, "redis does not tell of expired keys: {}", notify::REMEDY);
                }
            }
        }
        met.insert(node.clone(), found);
        self.count_silent(&met);
    }

    /// Forgets servers that are no masters any longer.
    fn forget_others(&self, masters: &[Node]) {
        let mut met = self.notifications.lock();
        met.retain(|node, _| masters.contains(node));
        self.count_silent(&met);
    }

    fn count_silent(&self, met: &HashMap<Node, Notifications>) {
        let silent = met.values().filter(|found| !found.is_on()).count();
        self.counters.silent_servers.store(silent as u64, Ordering::Relaxed);
    }
}

/// Keeps an ear on every place that must be listened to.
struct Supervisor {
    shared: Arc<Shared>,
    reports: mpsc::Sender<Report>,
    masters: Vec<Node>,
    ears: HashMap<Place, Kept>,
}

/// An ear that listens, or tries to.
struct Kept {
    /// Where it hears, while it does.
    up_on: Option<Node>,
    _ear: Ear,
}

async fn supervise(shared: Arc<Shared>) {
    let (reports, mut reported) = mpsc::channel(64);
    let _scout = ear::scout(shared.redis.clone(), reports.clone(), LOOK_EVERY);
    let mut supervisor = Supervisor { shared, reports, masters: Vec::new(), ears: HashMap::new() };
    supervisor.settle();
    while let Some(report) = reported.recv().await {
        supervisor.take(report);
        supervisor.settle();
    }
}

impl Supervisor {
    fn take(&mut self, report: Report) {
        match report {
            Report::Masters(masters) => {
                self.shared.forget_others(&masters);
                self.masters = masters;
            }
            Report::Up(place, node) => {
                self.shared.counters.connections.fetch_add(1, Ordering::Relaxed);
                if let Some(kept) = self.ears.get_mut(&place) {
                    kept.up_on = Some(node);
                }
            }
            Report::Down(place) => {
                let was_up = self.ears.get_mut(&place).and_then(|kept| kept.up_on.take()).is_some();
                if was_up {
                    self.shared.note_gap();
                }
            }
        }
    }

    /// Drops ears that are of no use, gets those that are missing, and says how well it listens now.
    fn settle(&mut self) {
        let places = self.places();
        let is_whole_possible = !places.is_empty();
        let (mode, masters) = (self.shared.redis.mode(), &self.masters);
        let is_of_use = |place: &Place, kept: &Kept| {
            // Whoever is no master any longer says nothing, or only what the others have said.
            let is_deposed =
                |node: &Node| mode != Mode::Single && !masters.is_empty() && !masters.contains(node);
            places.contains(place) && !kept.up_on.as_ref().is_some_and(is_deposed)
        };
        let mut was_heard = false;
        self.ears.retain(|place, kept| {
            let stays = is_of_use(place, kept);
            was_heard |= !stays && kept.up_on.is_some();
            stays
        });
        if was_heard {
            self.shared.note_gap();
        }
        for place in places {
            if !self.ears.contains_key(&place) {
                let ear = Ear::grow(Arc::clone(&self.shared), place.clone(), self.reports.clone());
                self.ears.insert(place, Kept { up_on: None, _ear: ear });
            }
        }
        self.shared.set_whole(is_whole_possible && self.ears.values().all(|kept| kept.up_on.is_some()));
    }

    /// Where to listen.
    fn places(&self) -> Vec<Place> {
        if self.shared.redis.mode() != Mode::Cluster {
            return vec![Place::All];
        }
        if self.masters.is_empty() {
            return Vec::new();
        }
        let wanted = &self.shared.wanted;
        let keys = self.masters.iter().filter(|_| !wanted.expiring.is_empty()).cloned().map(Place::Keys);
        let channels = (!wanted.channels.is_empty()).then_some(Place::Channels);
        keys.chain(channels).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_listens_is_told_of_every_gap_once() {
        let mut told = Told::default();
        let status = |gaps, is_whole| Status { gaps, is_whole };
        assert_eq!(told.next(status(0, false)), None);
        assert_eq!(told.next(status(0, true)), Some(Heard::Listening));
        assert_eq!(told.next(status(0, true)), None);
        // It broke and came back before anybody looked.
        assert_eq!(told.next(status(2, true)), Some(Heard::Gap));
        assert_eq!(told.next(status(2, true)), Some(Heard::Listening));
        assert_eq!(told.next(status(2, false)), Some(Heard::Gap));
        assert_eq!(told.next(status(3, false)), None);
        assert_eq!(told.next(status(3, true)), Some(Heard::Listening));
        assert_eq!(told.next(status(3, true)), None);
    }
}
