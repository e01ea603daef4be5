//! Deletes clients after the retention time, step by step.
//!
//! Walks through all accounts in key order, continuing where it stopped: no index on a column that changes with every
//! entry is needed, and each step is short.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use database::{Database, Executor, Value, at_once};
use domain::{UnixTime, UserId};

use crate::account_state::{AccountState, Changes, ClientState, Clients};
use crate::consumers;
use crate::dead_letters;
use crate::error::LedgerError;
use crate::figures::AccountKey;
use crate::ledger::Ledger;
use crate::load;
use crate::rows::{ClientsRow, account_key_values};
use crate::table::CLIENTS_AFTER;

/// Accounts per step.
const STEP_ROWS: i64 = 1000;

/// Position of the walk.
#[derive(Debug, Default)]
pub(crate) struct Pruner(Mutex<Option<AccountKey>>);

impl Pruner {
    fn position(&self) -> Option<AccountKey> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn move_to(&self, position: Option<AccountKey>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Clients examined.
    pub examined: u64,
    /// Clients deleted.
    pub clients: u64,
    /// Consumers deleted, with the ids they applied.
    pub consumers: u64,
    /// Whether all accounts have been examined; the next step starts again.
    pub is_round_done: bool,
}

impl Ledger {
    /// Examines the next thousand accounts and deletes their clients past the retention time. Amounts stay. To be called
    /// every few seconds.
    pub async fn prune(&self, now: UnixTime) -> Result<Pruned, LedgerError> {
        let before = now - self.settings.session_retention;
        let candidates = self.next_accounts().await?;
        let is_round_done = (candidates.len() as i64) < STEP_ROWS;
        let is_stale = |(_, clients): &&(AccountKey, Clients)| {
            clients.iter().any(|(_, client)| client.latest.at < before)
        };
        let stale: BTreeSet<AccountKey> = candidates.iter().filter(is_stale).map(|(key, _)| *key).collect();
        let clients = if stale.is_empty() { 0 } else { self.delete_clients(stale, before).await? };
        self.pruner.move_to(candidates.last().map(|(key, _)| *key).filter(|_| !is_round_done));
        let mut consumers = 0;
        if is_round_done {
            consumers = consumers::drop_forgotten(&self.database, before).await?;
            dead_letters::forget(&self.database, before).await?;
        }
        self.counters.pruned_clients.fetch_add(clients, Ordering::Relaxed);
        let examined = candidates.iter().map(|(_, clients)| clients.len() as u64).sum();
        Ok(Pruned { examined, clients, consumers, is_round_done })
    }

    async fn next_accounts(&self) -> Result<Vec<(AccountKey, Clients)>, LedgerError> {
        let zero = Value::Integer(0);
        let after = self.pruner.position().map(|key| account_key_values(&key));
        let [user, torrent] = after.unwrap_or([zero.clone(), zero]);
        let values = [user.clone(), user, torrent, Value::Integer(STEP_ROWS)];
        let rows: Vec<ClientsRow> = self.database.query(CLIENTS_AFTER, &values).await?;
        rows.iter().map(ClientsRow::clients).collect()
    }

    /// Deletes clients that are still past the retention time once their users are locked.
    async fn delete_clients(
        &self,
        stale: BTreeSet<AccountKey>,
        before: UnixTime,
    ) -> Result<u64, LedgerError> {
        match &self.database {
            Database::Sqlite(file) => {
                file.write(move |mut session| at_once(delete_stale(&mut session, &stale, before))).await
            }
            Database::Postgres(_) | Database::MySql(_) => {
                let mut transaction = self.database.begin().await?;
                let deleted = delete_stale(&mut transaction, &stale, before).await?;
                transaction.commit().await?;
                Ok(deleted)
            }
        }
    }
}

async fn delete_stale(
    executor: &mut impl Executor,
    stale: &BTreeSet<AccountKey>,
    before: UnixTime,
) -> Result<u64, LedgerError> {
    let users: BTreeSet<UserId> = stale.iter().map(|key| key.user).collect();
    let mut state = AccountState::default();
    let cache = load::take_cache(executor)?;
    load::lock_users(executor, &cache, &users, &mut state).await?;
    load::find_accounts(executor, &cache, stale, &mut state).await?;
    let stored = state.clients.len();
    let changes = remove_stale(&mut state, before);
    load::save(executor, cache, &state, &changes).await?;
    Ok((stored - state.clients.len()) as u64)
}

/// A client that expired without an entry no longer seeds.
fn remove_stale(state: &mut AccountState, before: UnixTime) -> Changes {
    let mut changes = Changes::default();
    state.clients.retain(|key, client| {
        let is_kept = client.latest.at >= before;
        if !is_kept {
            let account = AccountKey { user: key.user, torrent: key.torrent };
            if let Some(known) = state.accounts.get_mut(&account) {
                known.move_client(client.state, ClientState::Inactive);
                changes.accounts.insert(account);
            }
        }
        is_kept
    });
    changes
}
