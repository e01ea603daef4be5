//! Loads the rows that a batch touches, under lock, and writes back what changed.

use std::collections::BTreeSet;

use database::{Rows, SqlError, Statement, Transaction};
use domain::{TorrentId, UserId};

use crate::account_state::{AccountState, Changes};
use crate::admit::Admitted;
use crate::error::LedgerError;
use crate::figures::AccountKey;
use crate::rows::{
    AccountRow, ClientRow, FiguresRow, RunRow, UserRow, account_key_values, account_values,
    client_key_values, client_values, run_key_values, run_values, torrent_of, torrent_value, torrent_values,
    user_of, user_value, user_values,
};
use crate::run::ClientRef;
use crate::table::{
    DELETE_CLIENTS, DELETE_RUNS, DELETE_RUNS_OF_CLIENTS, FIND_ACCOUNTS, FIND_CLIENTS, FIND_RUNS,
    LOCK_TORRENTS, LOCK_USERS, SAVE_ACCOUNTS, SAVE_CLIENTS, SAVE_RUNS, SAVE_TORRENTS, SAVE_USERS,
};

pub(crate) enum Loaded {
    State(AccountState),
    /// Rows to be created first: missing rows cannot be locked.
    Missing {
        users: Vec<UserId>,
        torrents: Vec<TorrentId>,
    },
}

/// Loads the rows for these entries. Locks users, then torrents, each in numeric order.
pub(crate) async fn load(transaction: &mut Transaction, entries: &[Admitted]) -> Result<Loaded, LedgerError> {
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
    transaction: &mut Transaction,
    users: &BTreeSet<UserId>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(users.iter().map(|user| [user_value(*user)]));
    for row in transaction.find::<UserRow>(&LOCK_USERS, keys).await? {
        let user = user_of(row.figures.id)?;
        state.users.insert(user, row.figures.figures()?);
        state.user_buckets.insert(user, row.bucket()?);
    }
    Ok(())
}

async fn lock_torrents(
    transaction: &mut Transaction,
    torrents: &BTreeSet<TorrentId>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(torrents.iter().map(|torrent| [torrent_value(*torrent)]));
    for row in transaction.find::<FiguresRow>(&LOCK_TORRENTS, keys).await? {
        state.torrents.insert(torrent_of(row.id)?, row.figures()?);
    }
    Ok(())
}

/// The users must be locked.
pub(crate) async fn find_accounts(
    transaction: &mut Transaction,
    accounts: &BTreeSet<AccountKey>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(accounts.iter().map(account_key_values));
    for row in transaction.find::<AccountRow>(&FIND_ACCOUNTS, keys).await? {
        let (key, account) = row.account()?;
        state.accounts.insert(key, account);
    }
    Ok(())
}

/// Loads clients with their runs. The users must be locked.
pub(crate) async fn find_clients(
    transaction: &mut Transaction,
    clients: &BTreeSet<ClientRef>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let keys = Rows::new(clients.iter().map(client_key_values));
    for row in transaction.find::<ClientRow>(&FIND_CLIENTS, keys.clone()).await? {
        let (key, client) = row.client()?;
        state.clients.insert(key, client);
    }
    for row in transaction.find::<RunRow>(&FIND_RUNS, keys).await? {
        let (key, run) = row.run()?;
        state.clients.entry(key).or_default().runs.push(run);
    }
    Ok(())
}

pub(crate) async fn save(
    transaction: &mut Transaction,
    state: &AccountState,
    changes: &Changes,
) -> Result<(), SqlError> {
    let bucket = |id| state.user_buckets.get(id).copied().unwrap_or_default();
    let users = changes.users.iter().filter_map(|id| Some((id, state.users.get(id)?)));
    let users = Rows::new(users.map(|(id, figures)| user_values(*id, figures, &bucket(id))));
    let torrents = changes.torrents.iter().filter_map(|id| Some((id, state.torrents.get(id)?)));
    let torrents = Rows::new(torrents.map(|(id, figures)| torrent_values(*id, figures)));
    let accounts = changes.accounts.iter().filter_map(|key| Some((key, state.accounts.get(key)?)));
    let accounts = Rows::new(accounts.map(|(key, account)| account_values(key, account)));
    let clients = changes.clients.iter().filter_map(|key| Some((key, state.clients.get(key)?)));
    let clients = Rows::new(clients.map(|(key, client)| client_values(key, client)));
    let removed_runs =
        Rows::new(changes.removed_runs.iter().map(|(client, key)| run_key_values(client, key)));
    let runs = Rows::new(changes.runs.iter().map(|(client, run)| run_values(client, run)));
    let removed_clients = Rows::new(changes.removed_clients.iter().map(client_key_values));
    let writes = vec![
        (Statement::from(&SAVE_USERS), users),
        (Statement::from(&SAVE_TORRENTS), torrents),
        (Statement::from(&SAVE_ACCOUNTS), accounts),
        (Statement::from(&SAVE_CLIENTS), clients),
        (Statement::from(&DELETE_RUNS), removed_runs),
        (Statement::from(&SAVE_RUNS), runs),
        (Statement::from(&DELETE_RUNS_OF_CLIENTS), removed_clients.clone()),
        (Statement::from(&DELETE_CLIENTS), removed_clients),
    ];
    transaction.write_all(writes).await
}
