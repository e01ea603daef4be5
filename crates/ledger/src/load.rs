//! Loads the rows that a batch touches, under lock, and writes back what changed.

use std::collections::BTreeSet;

use domain::{TorrentId, UserId};

use crate::account_state::{AccountState, Changes};
use crate::admit::Admitted;
use crate::error::LedgerError;
use crate::figures::AccountKey;
use crate::rows::{
    AccountRow, ClientRow, FiguresRow, RunRow, UserRow, account_cells, account_key_cells, client_cells,
    client_key_cells, run_cells, run_key_cells, torrent_cell, torrent_cells, torrent_of, user_cell,
    user_cells, user_of,
};
use crate::run::ClientRef;
use crate::sql::table::{
    DELETE_CLIENTS, DELETE_RUNS, DELETE_RUNS_OF_CLIENTS, FIND_ACCOUNTS, FIND_CLIENTS, FIND_RUNS,
    LOCK_TORRENTS, LOCK_USERS, SAVE_ACCOUNTS, SAVE_CLIENTS, SAVE_RUNS, SAVE_TORRENTS, SAVE_USERS,
};
use crate::sql::{Rows, SqlTransaction};

pub(crate) enum Loaded {
    State(AccountState),
    /// Rows to be created first: missing rows cannot be locked.
    Missing {
        users: Vec<UserId>,
        torrents: Vec<TorrentId>,
    },
}

/// Loads the rows for these entries. Locks users, then torrents, each in numeric order.
pub(crate) async fn load(
    transaction: &mut SqlTransaction,
    entries: &[Admitted],
) -> Result<Loaded, LedgerError> {
    let users: BTreeSet<UserId> = entries.iter().map(|entry| entry.user).collect();
    let torrents: BTreeSet<TorrentId> = entries.iter().map(|entry| entry.torrent).collect();
    let accounts: BTreeSet<AccountKey> = entries.iter().map(Admitted::account).collect();
    let clients: BTreeSet<ClientRef> = entries.iter().map(Admitted::client).collect();
    let mut state = AccountState::default();
    lock_users(transaction, &users, &mut state).await?;
    lock_torrents(transaction, &torrents, &mut state).await?;
    if state.users.len() < users.len() || state.torrents.len() < torrents.len() {
        let users = users.into_iter().filter(|user| !state.users.contains_key(user)).collect();
        let torrents = torrents.into_iter().filter(|torrent| !state.torrents.contains_key(torrent)).collect();
        return Ok(Loaded::Missing { users, torrents });
    }
    find_accounts(transaction, &accounts, &mut state).await?;
    find_clients(transaction, &clients, &mut state).await?;
    Ok(Loaded::State(state))
}

pub(crate) async fn lock_users(
    transaction: &mut SqlTransaction,
    users: &BTreeSet<UserId>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(users.iter().map(|user| [user_cell(*user)]));
    for row in transaction.read_many::<UserRow>(&LOCK_USERS, &keys).await? {
        let user = user_of(row.figures.id)?;
        state.users.insert(user, row.figures.figures()?);
        state.user_buckets.insert(user, row.bucket()?);
    }
    Ok(())
}

async fn lock_torrents(
    transaction: &mut SqlTransaction,
    torrents: &BTreeSet<TorrentId>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(torrents.iter().map(|torrent| [torrent_cell(*torrent)]));
    for row in transaction.read_many::<FiguresRow>(&LOCK_TORRENTS, &keys).await? {
        state.torrents.insert(torrent_of(row.id)?, row.figures()?);
    }
    Ok(())
}

/// The users must be locked.
pub(crate) async fn find_accounts(
    transaction: &mut SqlTransaction,
    accounts: &BTreeSet<AccountKey>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(accounts.iter().map(account_key_cells));
    for row in transaction.read_many::<AccountRow>(&FIND_ACCOUNTS, &keys).await? {
        let (key, account) = row.account()?;
        state.accounts.insert(key, account);
    }
    Ok(())
}

/// Loads clients with their runs. The users must be locked.
pub(crate) async fn find_clients(
    transaction: &mut SqlTransaction,
    clients: &BTreeSet<ClientRef>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(clients.iter().map(client_key_cells));
    for row in transaction.read_many::<ClientRow>(&FIND_CLIENTS, &keys).await? {
        let (key, client) = row.client()?;
        state.clients.insert(key, client);
    }
    for row in transaction.read_many::<RunRow>(&FIND_RUNS, &keys).await? {
        let (key, run) = row.run()?;
        state.clients.entry(key).or_default().runs.push(run);
    }
    Ok(())
}

pub(crate) async fn save(
    transaction: &mut SqlTransaction,
    state: &AccountState,
    changes: &Changes,
) -> Result<(), sqlx::Error> {
    let bucket = |id| state.user_buckets.get(id).copied().unwrap_or_default();
    let users = changes.users.iter().filter_map(|id| Some((id, state.users.get(id)?)));
    let users = Rows::new(users.map(|(id, figures)| user_cells(*id, figures, &bucket(id))));
    transaction.write_many(&SAVE_USERS, &users).await?;
    let torrents = changes.torrents.iter().filter_map(|id| Some((id, state.torrents.get(id)?)));
    let torrents = Rows::new(torrents.map(|(id, figures)| torrent_cells(*id, figures)));
    transaction.write_many(&SAVE_TORRENTS, &torrents).await?;
    let accounts = changes.accounts.iter().filter_map(|key| Some((key, state.accounts.get(key)?)));
    let accounts = Rows::new(accounts.map(|(key, account)| account_cells(key, account)));
    transaction.write_many(&SAVE_ACCOUNTS, &accounts).await?;
    let clients = changes.clients.iter().filter_map(|key| Some((key, state.clients.get(key)?)));
    let clients = Rows::new(clients.map(|(key, client)| client_cells(key, client)));
    transaction.write_many(&SAVE_CLIENTS, &clients).await?;
    save_runs(transaction, changes).await
}

async fn save_runs(transaction: &mut SqlTransaction, changes: &Changes) -> Result<(), sqlx::Error> {
    let removed = Rows::new(changes.removed_runs.iter().map(|(client, key)| run_key_cells(client, key)));
    transaction.write_many(&DELETE_RUNS, &removed).await?;
    let runs = Rows::new(changes.runs.iter().map(|(client, run)| run_cells(client, run)));
    transaction.write_many(&SAVE_RUNS, &runs).await?;
    let removed_clients = Rows::new(changes.removed_clients.iter().map(client_key_cells));
    transaction.write_many(&DELETE_RUNS_OF_CLIENTS, &removed_clients).await?;
    transaction.write_many(&DELETE_CLIENTS, &removed_clients).await
}
