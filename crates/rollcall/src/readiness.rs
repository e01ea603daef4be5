//! What `/readyz` asks: each store that the server cannot do without, by a write where one can be tried, and by whether
//! the writes of this process succeed.
//!
//! A store may answer reads while every write fails: its disk is full, or another process holds a lock on its file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::{Audit, Passkeys, Store};
use database::Database;
use domain::{Passkey, counted};
use journal::{ConsumerCounters, Journal, Queue};
use keyspace::Redis;
use site::health::Dependency;
use views::Activity;

/// A single failure is repeated at once, and mostly over by then.
const FAILURES_MIN: u64 = 2;

/// What is asked.
pub struct Needs<'a> {
    pub store: &'a Store,
    pub journal: &'a Arc<dyn Journal>,
    pub queue: &'a Arc<Queue>,
    /// The views of this process.
    pub views: &'a [(&'static str, Arc<ConsumerCounters>)],
    pub passkeys: &'a Passkeys,
    pub activity: &'a Activity,
    pub audit: &'a Audit,
    /// The server in which journal, whitelist and activity are, where they are not embedded.
    pub redis: Option<&'a Redis>,
}

/// Each with the question that it must answer.
pub fn dependencies(needs: Needs<'_>) -> Vec<Dependency> {
    let queue = journal_queue(&needs).depends_on("journal");
    let (journal, whitelist, activity) = (journal(&needs), whitelist(&needs), activity(&needs));
    let (database, audit) = (database(&needs), audit(&needs));
    match needs.redis {
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

fn database(needs: &Needs<'_>) -> Dependency {
    let (store, ledger) = (needs.store.clone(), needs.counters_of("ledger"));
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

fn journal(needs: &Needs<'_>) -> Dependency {
    let (journal, queue) = (Arc::clone(needs.journal), Arc::clone(needs.queue));
    Dependency::new("journal", move || {
        let (journal, queue) = (Arc::clone(&journal), Arc::clone(&queue));
        async move {
            if let Some(failures) = failures_of(&queue.counters().failures_in_a_row) {
                return Err(format!("{failures} appends in a row failed; entries wait in memory"));
            }
            journal.check_writable().await.map_err(|error| error.to_string())
        }
    })
}

fn audit(needs: &Needs<'_>) -> Dependency {
    let audit = needs.audit.clone();
    Dependency::new("audit", move || {
        let audit = audit.clone();
        async move { audit.check_writable().await.map_err(|error| error.to_string()) }
    })
}

fn whitelist(needs: &Needs<'_>) -> Dependency {
    let passkeys = needs.passkeys.clone();
    Dependency::new("whitelist", move || {
        let passkeys = passkeys.clone();
        async move { passkeys.contains(&[no_user()]).await.map(drop).map_err(|error| error.to_string()) }
    })
}

fn activity(needs: &Needs<'_>) -> Dependency {
    let (activity, view) = (needs.activity.clone(), needs.counters_of("activity"));
    Dependency::new("activity", move || {
        let (activity, view) = (activity.clone(), view.clone());
        async move {
            is_applying("activity", view.as_deref())?;
            activity.counts(&no_user()).await.map(drop).map_err(|error| error.to_string())
        }
    })
}

fn journal_queue(needs: &Needs<'_>) -> Dependency {
    let queue = Arc::clone(needs.queue);
    Dependency::new("journal_queue", move || {
        let (occupied, capacity) = (queue.occupied(), queue.capacity());
        async move {
            match occupied < capacity {
                true => Ok(()),
                false => Err(format!(
                    "waiting for the journal: {}, which is all that may",
                    counted(occupied, "announce")
                )),
            }
        }
    })
}

impl Needs<'_> {
    fn counters_of(&self, view: &str) -> Option<Arc<ConsumerCounters>> {
        self.views.iter().find(|(name, _)| *name == view).map(|(_, counters)| Arc::clone(counters))
    }
}

fn is_applying(view: &str, counters: Option<&ConsumerCounters>) -> Result<(), String> {
    match counters.and_then(|counters| failures_of(&counters.failures_in_a_row)) {
        Some(failures) => Err(format!("the view {view} failed {failures} times in a row; its entries wait")),
        None => Ok(()),
    }
}

fn failures_of(in_a_row: &AtomicU64) -> Option<u64> {
    Some(in_a_row.load(Ordering::Relaxed)).filter(|failures| *failures >= FAILURES_MIN)
}

/// A passkey of no user: the question is whether there is an answer.
fn no_user() -> Passkey {
    Passkey::from_random_bytes([0; 16])
}
