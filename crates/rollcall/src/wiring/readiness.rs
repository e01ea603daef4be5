//! The checks of `/readyz`: a write to each store where one is possible, and the recent failures of this process.
//!
//! A store may answer reads while every write fails: its disk is full, or another process locks its file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::{Passkeys, Store};
use admin::Audit;
use database::Database;
use domain::{Passkey, counted};
use journal::{ConsumerCounters, Journal, Queue};
use keyspace::Redis;
use site::health::Dependency;
use views::Activity;

/// A single failure is retried immediately and does not count.
const FAILURES_MIN: u64 = 2;

pub struct ReadinessInputs<'a> {
    pub store: &'a Store,
    pub journal: &'a Arc<dyn Journal>,
    pub queue: &'a Arc<Queue>,
    pub views: &'a [(&'static str, Arc<ConsumerCounters>)],
    pub passkeys: &'a Passkeys,
    pub activity: &'a Activity,
    pub audit: &'a Audit,
    /// The server of journal, whitelist and activity, unless they are embedded.
    pub redis: Option<&'a Redis>,
}

pub fn dependencies(inputs: ReadinessInputs<'_>) -> Vec<Dependency> {
    let queue = journal_queue(&inputs).depends_on("journal");
    let (journal, whitelist, activity) = (journal(&inputs), whitelist(&inputs), activity(&inputs));
    let (database, audit) = (database(&inputs), audit(&inputs));
    match inputs.redis {
        None => vec![database, journal, audit, whitelist.depends_on("database"), activity, queue],
        Some(server) => {
            let [journal, whitelist, activity] =
                [journal, whitelist, activity].map(|dependency| dependency.depends_on("redis"));
            vec![database, redis(server), journal, audit, whitelist, activity, queue]
        }
    }
}

fn redis(server: &Redis) -> Dependency {
    let server = server.clone();
    Dependency::new("redis", move || {
        let server = server.clone();
        async move { server.ping().await.map_err(|error| error.to_string()) }
    })
}

fn database(inputs: &ReadinessInputs<'_>) -> Dependency {
    let (store, ledger) = (inputs.store.clone(), inputs.counters_of("ledger"));
    Dependency::new("database", move || {
        let (store, ledger) = (store.clone(), ledger.clone());
        async move {
            is_applying("ledger", ledger.as_deref())?;
            match store.database() {
                Database::Sqlite(file) => file.check_writable().await.map_err(|error| error.to_string()),
                Database::Postgres(_) | Database::MySql(_) => {
                    store.count_users().await.map(drop).map_err(|error| error.to_string())
                }
            }
        }
    })
}

fn journal(inputs: &ReadinessInputs<'_>) -> Dependency {
    let (journal, queue) = (Arc::clone(inputs.journal), Arc::clone(inputs.queue));
    Dependency::new("journal", move || {
        let (journal, queue) = (Arc::clone(&journal), Arc::clone(&queue));
        async move {
            if let Some(failures) = failures_of(&queue.counters().failures_in_a_row) {
                return Err(format!("{failures} appends in a row failed; entries are queued in memory"));
            }
            journal.check_writable().await.map_err(|error| error.to_string())
        }
    })
}

fn audit(inputs: &ReadinessInputs<'_>) -> Dependency {
    let audit = inputs.audit.clone();
    Dependency::new("audit", move || {
        let audit = audit.clone();
        async move { audit.check().await.map_err(|error| error.to_string()) }
    })
}

fn whitelist(inputs: &ReadinessInputs<'_>) -> Dependency {
    let passkeys = inputs.passkeys.clone();
    Dependency::new("whitelist", move || {
        let passkeys = passkeys.clone();
        async move { passkeys.contains(&[unused_passkey()]).await.map(drop).map_err(|error| error.to_string()) }
    })
}

fn activity(inputs: &ReadinessInputs<'_>) -> Dependency {
    let (activity, view) = (inputs.activity.clone(), inputs.counters_of("activity"));
    Dependency::new("activity", move || {
        let (activity, view) = (activity.clone(), view.clone());
        async move {
            is_applying("activity", view.as_deref())?;
            activity.counts(&unused_passkey()).await.map(drop).map_err(|error| error.to_string())
        }
    })
}

fn journal_queue(inputs: &ReadinessInputs<'_>) -> Dependency {
    let queue = Arc::clone(inputs.queue);
    Dependency::new("journal_queue", move || {
        let (occupied, capacity) = (queue.occupied(), queue.capacity());
        async move {
            match occupied < capacity {
                true => Ok(()),
                false => {
                    Err(format!("the queue into the journal is full: {}", counted(occupied, "announce")))
                }
            }
        }
    })
}

impl ReadinessInputs<'_> {
    fn counters_of(&self, view: &str) -> Option<Arc<ConsumerCounters>> {
        self.views.iter().find(|(name, _)| *name == view).map(|(_, counters)| Arc::clone(counters))
    }
}

fn is_applying(view: &str, counters: Option<&ConsumerCounters>) -> Result<(), String> {
    match counters.and_then(|counters| failures_of(&counters.failures_in_a_row)) {
        Some(failures) => {
            Err(format!("the view {view} failed {failures} times in a row; its entries are retried"))
        }
        None => Ok(()),
    }
}

fn failures_of(in_a_row: &AtomicU64) -> Option<u64> {
    Some(in_a_row.load(Ordering::Relaxed)).filter(|failures| *failures >= FAILURES_MIN)
}

/// Belongs to no user: only whether the store answers matters.
fn unused_passkey() -> Passkey {
    Passkey::from_random_bytes([0; 16])
}
