//! Operators who look on: a feed of what happens, over the same door as people's connections.
//!
//! # Guarantees
//!
//! - An operator is nobody's presence: they are in no roster, in no room, and have none of people's places. There is a
//!   bound of their own.
//! - What is told to all is made once, and its bytes are shared. To tell takes one short lock for each operator, and waits
//!   for nobody. The hub takes no part in it.
//! - Who reads slowly misses old overviews, since the newest says all; of what happened to people they miss the oldest, and
//!   are told how many.
//! - Who looks on does so in the name of an API key. Whoever's key no longer works is sent away within half a second of
//!   when this process learns it, and their token is worth nothing; so it is with who may no longer know who hides.
//! - A token is good for five minutes, and a connection for little longer than its token.
//!
//! # Deliberately absent
//!
//! Commands: an operator only looks on. What the overview says: whoever puts it together hands it over.
//!
//! # Layout
//!
//! - this file: who looks on, and what they are told
//! - `badge`: the token with which they connect

mod badge;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

use crate::counters::GatewayCounters;
use crate::hub::Hub;
use crate::mint::MintError;
use crate::outbox::Outbox;
use crate::protocol::{CloseCode, Frame};
use crate::recent_events::{Fresh, RecentEvent};
use crate::settings::Secret;
use crate::token::Rejected;
use badge::Badges;

pub use badge::{FeedToken, Operator, Standing, Standings};

/// The channel of what operators are told. They are in it from the start; nobody can enter it.
pub const CHANNEL: &str = "admin";

/// How often operators are told what happened to people, at the most.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// Of so many at once.
const TOLD_MAX: usize = 50;

/// Everybody who looks on.
pub struct Operators {
    badges: Badges,
    counters: Arc<GatewayCounters>,
    max: usize,
    watching: Mutex<Watching>,
}

#[derive(Default)]
struct Watching {
    last: u64,
    by_number: BTreeMap<u64, Watcher>,
    /// What whoever comes is told first.
    overview: Option<Overview>,
}

/// How everything is, for the two kinds of operators.
#[derive(Clone)]
struct Overview {
    /// For who may know who hides.
    whole: Frame,
    /// For everybody else.
    part: Frame,
}

impl Overview {
    fn seen_by(&self, is_admin: bool) -> Frame {
        let frame = if is_admin { &self.whole } else { &self.part };
        frame.clone()
    }
}

#[derive(Clone)]
struct Watcher {
    outbox: Arc<Outbox>,
    key: Arc<str>,
    is_admin: bool,
}

/// A place among those who look on; dropping it makes room for another.
pub(crate) struct Seat {
    operators: Arc<Operators>,
    number: u64,
    pub(crate) key: Arc<str>,
    pub(crate) is_admin: bool,
}

impl Operators {
    /// Nobody looks on yet. They will in the names of these keys; with what the tokens of people are signed, if that is a
    /// secret, theirs are signed, too.
    pub(crate) fn new(
        (standings, shared): (Standings, Option<Secret>),
        max: usize,
        clock: Arc<dyn Clock>,
        counters: Arc<GatewayCounters>,
    ) -> Operators {
        let badges = Badges::new(standings, shared, clock);
        Operators { badges, counters, max, watching: Mutex::default() }
    }

    /// A token with which somebody who has this key may look on for five minutes. Who may know who hides (`is_admin`) is
    /// told of them.
    pub fn token(&self, key: &str, is_admin: bool) -> Result<FeedToken, MintError> {
        self.badges.make(key, is_admin)
    }

    /// Which operator brings this token.
    pub fn identify(&self, token: &str) -> Result<Operator, Rejected> {
        self.badges.read(token)
    }

    /// How many look on.
    pub fn count(&self) -> usize {
        self.watching.lock().by_number.len()
    }

    /// How many may.
    pub fn max(&self) -> usize {
        self.max
    }

    /// A place, if there is one.
    pub(crate) fn enter(self: &Arc<Self>, operator: Operator, outbox: &Arc<Outbox>) -> Option<Seat> {
        let counters = &self.counters.operators;
        let mut watching = self.watching.lock();
        if watching.by_number.len() >= self.max {
            counters.refused.increment();
            return None;
        }
        watching.last += 1;
        let number = watching.last;
        let (key, is_admin) = (Arc::<str>::from(operator.key), operator.is_admin);
        let watcher = Watcher { outbox: Arc::clone(outbox), key: Arc::clone(&key), is_admin };
        watching.by_number.insert(number, watcher);
        counters.connected.increment();
        counters.here.set(watching.by_number.len());
        Some(Seat { operators: Arc::clone(self), number, key, is_admin })
    }

    /// The newest overview, for whoever has just come.
    pub(crate) fn overview(&self, is_admin: bool) -> Option<Frame> {
        self.watching.lock().overview.as_ref().map(|overview| overview.seen_by(is_admin))
    }

    /// Tells all who look on how everything is: JSON objects, the whole for those who may know who hides, and the part of
    /// it that everybody else may know.
    pub fn publish_overview(&self, whole: &str, part: &str) {
        let frame =
            |json| Frame::publication(CHANNEL, &format!(r#"{{"type":"overview","overview":{json}}}"#));
        let overview = Overview { whole: frame(whole), part: frame(part) };
        self.watching.lock().overview = Some(overview.clone());
        for watcher in self.watchers() {
            watcher.outbox.overview(overview.seen_by(watcher.is_admin));
            self.counters.operators.published.increment();
        }
    }

    /// Tells what happened to people.
    fn tell(&self, fresh: &Fresh) {
        let watchers = self.watchers();
        if watchers.is_empty() || (fresh.recent_events.is_empty() && fresh.left_out == 0) {
            return;
        }
        let whole = people_frame(&fresh.recent_events, fresh.left_out);
        let seen: Vec<RecentEvent> = fresh.recent_events.iter().filter_map(RecentEvent::public).collect();
        let part = match seen == fresh.recent_events {
            true => whole.clone(),
            false => people_frame(&seen, fresh.left_out),
        };
        for watcher in watchers {
            let (frame, count) = match watcher.is_admin {
                true => (&whole, fresh.recent_events.len()),
                false if seen.is_empty() && fresh.left_out == 0 => continue,
                false => (&part, seen.len()),
            };
            watcher.outbox.happened(frame.clone(), count as u64 + fresh.left_out);
            self.counters.operators.published.increment();
        }
        self.counters.operators.left_out.add(fresh.left_out);
    }

    /// Sends away whose key no longer works, or no longer lets them know what they are told.
    fn let_go(&self) {
        for watcher in self.watchers() {
            let code = match self.badges.standing(&watcher.key) {
                Some(standing) if standing.is_admin || !watcher.is_admin => continue,
                // They may come back with another token, and are told less.
                Some(_) => CloseCode::Expired,
                None => CloseCode::InvalidToken,
            };
            watcher.outbox.close(code);
        }
    }

    fn watchers(&self) -> Vec<Watcher> {
        self.watching.lock().by_number.values().cloned().collect()
    }

    /// Tells and asks those who look on, until it is dropped.
    pub(crate) async fn run(&self, hub: &Hub, ping: Duration) {
        let mut telling = tokio::time::interval(TELL_EVERY);
        telling.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asking = tokio::time::interval(ping.max(TELL_EVERY));
        asking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = telling.tick() => {
                    self.let_go();
                    self.tell(&hub.fresh_events(TOLD_MAX));
                }
                _ = asking.tick() => self.watchers().iter().for_each(|watcher| watcher.outbox.ask_operator()),
            }
        }
    }
}

fn people_frame(recent_events: &[RecentEvent], left_out: u64) -> Frame {
    // They are plain numbers and names, so this cannot fail.
    let events = serde_json::to_string(recent_events).unwrap_or_else(|_| "[]".to_owned());
    Frame::publication(CHANNEL, &format!(r#"{{"type":"people","events":{events},"left_out":{left_out}}}"#))
}

/// What somebody is told who has missed so many and nothing since.
pub(crate) fn missed_frame(left_out: u64) -> Frame {
    people_frame(&[], left_out)
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut watching = self.operators.watching.lock();
        watching.by_number.remove(&self.number);
        self.operators.counters.operators.here.set(watching.by_number.len());
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat").field("number", &self.number).field("key", &self.key).finish_non_exhaustive()
    }
}
