//! Many gateways, one register: what happens here is told to the others, and what they tell is shown here.
//!
//! # Guarantees
//!
//! - Local first: what happens to a session here is shown here at once. Nothing on that path waits for Redis, and a
//!   heartbeat costs neither a round trip nor memory.
//! - Who changed is marked, and published from the roster as it is then: marks are put together, and none is lost. A
//!   publication that failed, or may have, is made again.
//! - History, webhooks and what is remembered follow from what the register says has changed: each change once, by
//!   whoever made it.
//! - Nobody who is elsewhere is shown for longer than their gateway's last word may be believed: it is asked again in time,
//!   or they are pending.
//! - Without a register none of this exists, and nothing is paid for it.
//!
//! # Layout
//!
//! - `book`: what a shard has to tell, and what it was told; behind the lock of the shard
//! - `noting`: marks who changed; `flusher`: publishes them; `outcome`: what follows from what was published
//! - `interest`: asks about those who are watched here, before they are shown and then in turn
//! - `hearing`: takes in a person's record; `inbox`: what others tell
//! - `lease`: the standing of this gateway, and what follows from losing it
//! - `reaper`: clears up after gateways that died
//! - `looking`: people whom nobody here watches; `count`: how many are here, over all gateways
//!
//! # Deliberately absent
//!
//! Redis: that is the crate `register`. Any order between people.

mod book;
mod count;
mod flusher;
mod hearing;
mod inbox;
mod interest;
mod lease;
mod looking;
mod noting;
mod outcome;
mod reaper;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use presence::Moment;
use register::{NodeName, Register};
use tokio::sync::Notify;

use crate::hub::Hub;

pub(crate) use book::Book;
#[cfg(test)]
pub(crate) use book::Mark;
pub(crate) use noting::Noted;

/// When what is shared is told and asked again. The defaults are the document's (P13).
#[derive(Clone, Copy, Debug)]
pub struct SharingSettings {
    /// Who gave a sign of life within the last minute is told of again this often, if there was a new one.
    pub refresh_active: Duration,
    /// Others this often.
    pub refresh_quiet: Duration,
    /// Who has only devices in the background, this often.
    pub refresh_background: Duration,
    /// Who has sessions elsewhere is asked about again at least this often.
    pub ask_present: Duration,
    /// Others this often.
    pub ask_absent: Duration,
    /// Who connects waits this long at the most for what is known elsewhere of their friends.
    pub patience: Duration,
    /// The standing of this gateway is renewed this often.
    pub renew: Duration,
    /// It is looked for gateways that died this often.
    pub reap: Duration,
}

impl Default for SharingSettings {
    fn default() -> Self {
        SharingSettings {
            refresh_active: Duration::from_secs(10),
            refresh_quiet: Duration::from_secs(30),
            refresh_background: Duration::from_secs(300),
            ask_present: Duration::from_secs(60),
            ask_absent: Duration::from_secs(150),
            patience: Duration::from_secs(2),
            renew: Duration::from_secs(2),
            reap: Duration::from_millis(500),
        }
    }
}

/// What the shards of a hub share with other gateways.
pub(crate) struct Sharing {
    pub(crate) register: Arc<Register>,
    settings: SharingSettings,
    /// Shards take turns in being first.
    turn: AtomicUsize,
    /// Somebody is marked.
    marked: Notify,
    /// The register refused us: our standing is lost, whatever the list of gateways says.
    refused: Notify,
    is_refused: AtomicBool,
    /// Under which names this process has written. What stands under them is not elsewhere.
    names: RwLock<Vec<NodeName>>,
    /// Only sessions that gave a sign of life since are published; zero for all. Milliseconds.
    heard_since_ms: AtomicU64,
    /// When the register last answered that all is well. Milliseconds.
    contact_at_ms: AtomicU64,
    /// The last contact before it did not answer for so long that others may have taken this gateway for dead; zero if
    /// that never was. Milliseconds.
    gap_at_ms: AtomicU64,
    /// It does not answer.
    is_away: AtomicBool,
    /// What the clock said last. Milliseconds.
    latest_ms: AtomicU64,
}

/// Every task of it.
pub(crate) fn tasks(hub: &Arc<Hub>) -> Vec<Pin<Box<dyn Future<Output = ()> + Send>>> {
    if hub.outside.sharing.is_none() {
        return Vec::new();
    }
    vec![
        Box::pin(flusher::run(hub.clone())),
        Box::pin(interest::run(hub.clone())),
        Box::pin(inbox::run(hub.clone())),
        Box::pin(lease::run(hub.clone())),
        Box::pin(reaper::run(hub.clone())),
    ]
}

impl Sharing {
    pub(crate) fn new(register: Arc<Register>, settings: SharingSettings, now: Moment) -> Sharing {
        let names = RwLock::new(vec![register.node()]);
        Sharing {
            register,
            settings,
            turn: AtomicUsize::new(0),
            marked: Notify::new(),
            refused: Notify::new(),
            is_refused: AtomicBool::new(false),
            names,
            heard_since_ms: AtomicU64::new(0),
            contact_at_ms: AtomicU64::new(now.0),
            gap_at_ms: AtomicU64::new(0),
            is_away: AtomicBool::new(false),
            latest_ms: AtomicU64::new(now.0),
        }
    }

    /// Whether this process wrote under that name.
    fn is_own(&self, node: &NodeName) -> bool {
        // A new name is in use before the task that made it knows.
        self.names.read().contains(node) || *node == self.register.node()
    }

    fn heard_since(&self) -> Option<Moment> {
        Some(Moment(self.heard_since_ms.load(Ordering::Acquire))).filter(|since| since.0 > 0)
    }

    /// When the register last answered.
    pub(crate) fn contact_at(&self) -> Moment {
        Moment(self.contact_at_ms.load(Ordering::Relaxed))
    }

    /// The clock stepped back by so much.
    fn step_back(&self, by_ms: u64) {
        for at in [&self.heard_since_ms, &self.contact_at_ms, &self.gap_at_ms] {
            // Zero is for never.
            let earlier = |at: u64| (at > 0).then(|| at.saturating_sub(by_ms).max(1));
            let _ = at.fetch_update(Ordering::AcqRel, Ordering::Acquire, earlier);
        }
    }

    /// Whether the register does not answer.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }
}
