//! Loads the rows that a batch touches, under lock, and writes back what changed.

use std::collections::BTreeSet;

use database::{Executor, Kind, Rows, SqlError};
use domain::{TorrentId, UserId};

use crate::account_state::{AccountState, Changes, Clients};
use crate::admit::Admitted;
use crate::cache::Cache;
use crate::client_encoding;
use crate::error::LedgerError;
use crate::figures::AccountKey;
use crate::rows::{
    AccountRow, FiguresRow, UserRow, account_key_values, account_values, bucket_as_stored, torrent_of,
    torrent_value, torrent_values, user_of, user_value, user_values,
};
use crate::run::ClientRef;
use crate::table::{FIND_ACCOUNTS, LOCK_TORRENTS, LOCK_USERS, SAVE_ACCOUNTS, SAVE_TORRENTS, SAVE_USERS};

pub(crate) enum Loaded {
    State(AccountState),
    /// Rows to be created first: servers cannot lock missing rows.
    Missing {
        users: Vec<UserId>,
        torrents: Vec<TorrentId>,
    },
}

/// Takes the cache: a batch that fails leaves none.
pub(crate) fn take_cache(executor: &mut impl Executor) -> Result<Cache, SqlError> {
    Ok(executor.take_kept()?.map_or_else(Cache::default, |cache| *cache))
}

/// Loads the rows for these entries. Locks users, then torrents, each in numeric order.
pub(crate) async fn load(
    executor: &mut impl Executor,
    cache: &Cache,
    entries: &[Admitted<'_>],
) -> Result<Loaded, LedgerError> {
    let users: BTreeSet<UserId> = entries.iter().map(|entry| entry.user).collect();
    let torrents: BTreeSet<TorrentId> = entries.iter().map(|entry| entry.torrent).collect();
    let accounts: BTreeSet<AccountKey> = entries.iter().map(Admitted::account).collect();
    let mut state = AccountState::default();
    lock_users(executor, cache, &users, &mut state).await?;
    lock_torrents(executor, cache, &torrents, &mut state).await?;
    let are_missing = state.users.len() < users.len() || state.torrents.len() < torrents.len();
    // A transaction of SQLite locks them too.
    if are_missing && executor.kind() != Kind::Sqlite {
        let users = users.into_iter().filter(|user| !state.users.contains_key(user)).collect();
        let torrents = torrents.into_iter().filter(|torrent| !state.torrents.contains_key(torrent)).collect();
        return Ok(Loaded::Missing { users, torrents });
    }
    find_accounts(executor, cache, &accounts, &mut state).await?;
    Ok(Loaded::State(state))
}

pub(crate) async fn lock_users(
    executor: &mut impl Executor,
    cache: &Cache,
    users: &BTreeSet<UserId>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let mut others = Vec::new();
    for user in users {
        match cache.users.get(user) {
            Some((figures, bucket)) => {
                state.users.insert(*user, *figures);
                state.user_buckets.insert(*user, *bucket);
            }
            None => others.push([user_value(*user)]),
        }
    }
    for row in executor.find::<UserRow>(&LOCK_USERS, Rows::new(others)).await? {
        let user = user_of(row.figures.id)?;
        state.users.insert(user, row.figures.figures()?);
        state.user_buckets.insert(user, row.bucket()?);
    }
    Ok(())
}

async fn lock_torrents(
    executor: &mut impl Executor,
    cache: &Cache,
    torrents: &BTreeSet<TorrentId>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let mut others = Vec::new();
    for torrent in torrents {
        match cache.torrents.get(torrent) {
            Some(figures) => drop(state.torrents.insert(*torrent, *figures)),
            None => others.push([torrent_value(*torrent)]),
        }
    }
    for row in executor.find::<FiguresRow>(&LOCK_TORRENTS, Rows::new(others)).await? {
        state.torrents.insert(torrent_of(row.id)?, row.figures()?);
    }
    Ok(())
}

/// Loads accounts with their clients. The users must be locked.
pub(crate) async fn find_accounts(
    executor: &mut impl Executor,
    cache: &Cache,
    accounts: &BTreeSet<AccountKey>,
    state: &mut AccountState,
) -> Result<(), LedgerError> {
    let mut others = Vec::new();
    let mut add = |key: AccountKey, account, clients: Clients| {
        state.accounts.insert(key, account);
        let of = |client| ClientRef { user: key.user, torrent: key.torrent, client };
        state.clients.extend(clients.into_iter().map(|(client, known)| (of(client), known)));
    };
    for key in accounts {
        match cache.account(key) {
            Some((account, packed)) => add(*key, account, packed.clients),
            None => others.push(account_key_values(key)),
        }
    }
    for row in executor.find::<AccountRow>(&FIND_ACCOUNTS, Rows::new(others)).await? {
        let (key, account, clients) = row.with_clients()?;
        add(key, account, clients);
    }
    Ok(())
}

/// Writes what changed, and keeps it for the next batch. Returns whether the cache was full, and began again.
pub(crate) async fn save(
    executor: &mut impl Executor,
    mut cache: Cache,
    state: &AccountState,
    changes: &Changes,
) -> Result<bool, SqlError> {
    let is_cached = executor.kind() == Kind::Sqlite;
    let was_full = cache.is_full();
    if was_full {
        cache = Cache::default();
    }
    let bucket = |id| state.user_buckets.get(id).copied().unwrap_or_default();
    let users = || changes.users.iter().filter_map(|id| Some((id, state.users.get(id)?)));
    let rows = Rows::new(users().map(|(id, figures)| user_values(*id, figures, &bucket(id))));
    executor.write_rows(&SAVE_USERS, &rows).await?;
    let torrents = || changes.torrents.iter().filter_map(|id| Some((id, state.torrents.get(id)?)));
    let rows = Rows::new(torrents().map(|(id, figures)| torrent_values(*id, figures)));
    executor.write_rows(&SAVE_TORRENTS, &rows).await?;
    let accounts = changes.accounts.iter().filter_map(|key| Some((key, state.accounts.get(key)?)));
    let rows = Rows::new(accounts.map(|(key, account)| {
        let clients = client_encoding::pack(state.clients_of(*key), account.clients_removed_until);
        if is_cached {
            cache.insert_account(*key, account, &clients);
        }
        account_values(key, account, clients)
    }));
    executor.write_rows(&SAVE_ACCOUNTS, &rows).await?;
    if is_cached {
        cache.users.extend(users().map(|(id, figures)| (*id, (*figures, bucket_as_stored(bucket(id))))));
        cache.torrents.extend(torrents().map(|(id, figures)| (*id, *figures)));
    }
    executor.keep(cache)?;
    Ok(was_full)
}
