//! Deletes clients after the retention time, step by step.
//!
//! Walks through all clients in key order, continuing where it stopped: no index on a column that changes with every
//! entry is needed, and each step is short.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use database::Value;
use domain::{UnixTime, UserId};

use crate::account_state::{AccountState, Changes, ClientState};
use crate::consumers;
use crate::dead_letters;
use crate::error::LedgerError;
use crate::figures::AccountKey;
use crate::ledger::Ledger;
use crate::load;
use crate::rows::{ClientRow, client_key_values};
use crate::run::ClientRef;
use crate::table::CLIENTS_AFTER;

/// Clients per step.
const STEP_ROWS: i64 = 1000;

/// Position of the walk.
#[derive(Debug, Default)]
pub(crate) struct Pruner(Mutex<Option<ClientRef>>);

impl Pruner {
    fn position(&self) -> Option<ClientRef> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn move_to(&self, position: Option<ClientRef>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub examined: u64,
    /// Clients deleted.
    pub clients: u64,
    /// Consumers deleted, with the ids they applied.
    pub consumers: u64,
    /// Whether all clients have been examined; the next step starts again.
    pub is_round_done: bool,
}

impl Ledger {
    /// Examines the next thousand clients and deletes those past the retention time. Amounts stay. To be called every
    /// few seconds.
    pub async fn prune(&self, now: UnixTime) -> Result<Pruned, LedgerError> {
        let before = now - self.settings.session_retention;
        let candidates = self.next_clients().await?;
        let is_round_done = (candidates.len() as i64) < STEP_ROWS;
        let stale: BTreeSet<ClientRef> =
            candidates.iter().filter(|(_, latest)| *latest < before).map(|(key, _)| *key).collect();
        let clients = if stale.is_empty() { 0 } else { self.delete_clients(&stale, before).await? };
        self.pruner.move_to(candidates.last().map(|(key, _)| *key).filter(|_| !is_round_done));
        let mut consumers = 0;
        if is_round_done {
            consumers = consumers::drop_forgotten(&self.database, before).await?;
            dead_letters::forget(&self.database, before).await?;
        }
        self.counters.pruned_clients.fetch_add(clients, Ordering::Relaxed);
        Ok(Pruned { examined: candidates.len() as u64, clients, consumers, is_round_done })
    }

    async fn next_clients(&self) -> Result<Vec<(ClientRef, UnixTime)>, LedgerError> {
        let zero = Value::Integer(0);
        let after = self.pruner.position().map(|key| client_key_values(&key));
        let [user, torrent, client] = after.unwrap_or([zero.clone(), zero, Value::Integer(i64::MIN)]);
        let values = [user.clone(), user, torrent.clone(), torrent, client, Value::Integer(STEP_ROWS)];
        let rows: Vec<ClientRow> = self.database.query(&CLIENTS_AFTER, &values).await?;
        let latest = |row: &ClientRow| row.client().map(|(key, client)| (key, client.latest.at));
        rows.iter().map(latest).collect()
    }

    /// Deletes clients that are still past the retention time once their users are locked.
    async fn delete_clients(
        &self,
        stale: &BTreeSet<ClientRef>,
        before: UnixTime,
    ) -> Result<u64, LedgerError> {
        let users: BTreeSet<UserId> = stale.iter().map(|key| key.user).collect();
        let accounts: BTreeSet<AccountKey> =
            stale.iter().map(|key| AccountKey { user: key.user, torrent: key.torrent }).collect();
        let mut transaction = self.database.begin().await?;
        let mut state = AccountState::default();
        load::lock_users(&mut transaction, &users, &mut state).await?;
        load::find_accounts(&mut transaction, &accounts, &mut state).await?;
        load::find_clients(&mut transaction, stale, &mut state).await?;
        let changes = remove_stale(&mut state, before);
        load::save(&mut transaction, &state, &changes).await?;
        transaction.commit().await?;
        Ok(changes.removed_clients.len() as u64)
    }
}

/// A client that expired without an entry no longer seeds.
fn remove_stale(state: &mut AccountState, before: UnixTime) -> Changes {
    let mut changes = Changes::default();
    for (key, client) in state.clients.iter().filter(|(_, client)| client.latest.at < before) {
        changes.removed_clients.insert(*key);
        let account = AccountKey { user: key.user, torrent: key.torrent };
        if client.state != ClientState::Inactive
            && let Some(known) = state.accounts.get_mut(&account)
        {
            known.move_client(client.state, ClientState::Inactive);
            changes.accounts.insert(account);
        }
    }
    changes
}
