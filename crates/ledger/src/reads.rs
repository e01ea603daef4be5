//! Queries of commands and the site.

use std::cmp::Reverse;

use database::{Rows, Value};
use domain::{TorrentId, UnixTime, UserId};

use crate::account_state::Clients;
use crate::error::LedgerError;
use crate::explain::{Explanation, explain};
use crate::figures::{Account, AccountKey, Figures};
use crate::hit_and_run::{HitAndRunPolicy, HitAndRunStatus, hit_and_run_status};
use crate::ledger::Ledger;
use crate::rows::{AccountRow, FiguresRow, account_key_values, torrent_value, user_value};
use crate::table::{
    ACCOUNT, ACCOUNTS_OF, ACCOUNTS_ON, FIND_ACCOUNTS, FIND_USERS, GONE_ACCOUNTS_AFTER, TORRENT, USER,
    USERS_AFTER,
};

/// Accounts per page.
pub const PAGE_ROWS_MAX: u32 = 1000;
/// Clients explained per account; each may have as many stretches as runs are stored.
pub const EXPLAINED_CLIENTS_MAX: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountPage {
    /// Ordered by torrent.
    pub accounts: Vec<(AccountKey, Account)>,
    /// Where to continue; none on the last page.
    pub next: Option<TorrentId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorrentAccountPage {
    /// Most recently seen first.
    pub accounts: Vec<(AccountKey, Account)>,
    /// Where to continue: after this time and user; none on the last page.
    pub next: Option<(UnixTime, UserId)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitAndRunPage {
    /// Accounts, and when the user left.
    pub hit_and_runs: Vec<(AccountKey, UnixTime)>,
    /// Where to continue; none on the last page.
    pub next: Option<AccountKey>,
}

impl Ledger {
    /// The account at the present time.
    fn account_of(&self, row: &AccountRow) -> Result<(AccountKey, Account), LedgerError> {
        let (key, account) = row.account()?;
        Ok((key, account.at(self.clock.steady())))
    }

    /// None without entries.
    pub async fn user(&self, user: UserId) -> Result<Option<Figures>, LedgerError> {
        let rows: Vec<FiguresRow> = self.database.query(&USER, &[user_value(user)]).await?;
        rows.first().map(FiguresRow::figures).transpose()
    }

    /// The figures of these users, unordered; users without entries are left out. At most [`PAGE_ROWS_MAX`] are read.
    pub async fn users(&self, users: &[UserId]) -> Result<Vec<(UserId, Figures)>, LedgerError> {
        let some = &users[..users.len().min(PAGE_ROWS_MAX as usize)];
        let keys = Rows::new(some.iter().map(|user| [user_value(*user)]));
        let rows: Vec<FiguresRow> = self.database.find(&FIND_USERS, keys).await?;
        rows.iter().map(FiguresRow::of_user).collect()
    }

    /// The figures of all users, by id: up to [`PAGE_ROWS_MAX`] after `after`.
    pub async fn users_after(&self, after: Option<UserId>) -> Result<Vec<(UserId, Figures)>, LedgerError> {
        let values = [after.map_or(Value::Integer(0), user_value), Value::Integer(PAGE_ROWS_MAX.into())];
        let rows: Vec<FiguresRow> = self.database.query(&USERS_AFTER, &values).await?;
        rows.iter().map(FiguresRow::of_user).collect()
    }

    /// None without entries.
    pub async fn torrent(&self, torrent: TorrentId) -> Result<Option<Figures>, LedgerError> {
        let rows: Vec<FiguresRow> = self.database.query(&TORRENT, &[torrent_value(torrent)]).await?;
        rows.first().map(FiguresRow::figures).transpose()
    }

    /// None without entries.
    pub async fn account(&self, key: AccountKey) -> Result<Option<Account>, LedgerError> {
        let rows: Vec<AccountRow> = self.database.query(&ACCOUNT, &account_key_values(&key)).await?;
        rows.first().map(|row| self.account_of(row).map(|(_, account)| account)).transpose()
    }

    /// A user's accounts: up to `limit` with torrents after `after`.
    pub async fn accounts_of(
        &self,
        user: UserId,
        after: Option<TorrentId>,
        limit: u32,
    ) -> Result<AccountPage, LedgerError> {
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let after = after.map_or(Value::Integer(0), torrent_value);
        // One more row than requested shows whether there is a next page.
        let values = [user_value(user), after, Value::Integer(i64::from(limit) + 1)];
        let rows: Vec<AccountRow> = self.database.query(&ACCOUNTS_OF, &values).await?;
        let mut accounts = rows.iter().map(|row| self.account_of(row)).collect::<Result<Vec<_>, _>>()?;
        let is_more = accounts.len() > limit as usize;
        accounts.truncate(limit as usize);
        let next = accounts.last().map(|(key, _)| key.torrent).filter(|_| is_more);
        Ok(AccountPage { accounts, next })
    }

    /// The accounts on a torrent, most recently seen first: up to `limit` after `after`.
    pub async fn accounts_on(
        &self,
        torrent: TorrentId,
        after: Option<(UnixTime, UserId)>,
        limit: u32,
    ) -> Result<TorrentAccountPage, LedgerError> {
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let (at, user) = match after {
            Some((at, user)) => (Value::Integer(at.0.into()), user_value(user)),
            None => (Value::Integer(i64::MAX), Value::Integer(i64::MAX)),
        };
        let values = [torrent_value(torrent), at.clone(), at, user, Value::Integer(i64::from(limit) + 1)];
        let rows: Vec<AccountRow> = self.database.query(&ACCOUNTS_ON, &values).await?;
        let mut accounts = rows.iter().map(|row| self.account_of(row)).collect::<Result<Vec<_>, _>>()?;
        let is_more = accounts.len() > limit as usize;
        accounts.truncate(limit as usize);
        let last = accounts.last().filter(|_| is_more);
        let next = last.map(|(key, account)| (account.latest.at, key.user));
        Ok(TorrentAccountPage { accounts, next })
    }

    /// These accounts, unordered; those without entries are left out. At most [`PAGE_ROWS_MAX`] are read.
    pub async fn accounts(&self, keys: &[AccountKey]) -> Result<Vec<(AccountKey, Account)>, LedgerError> {
        let some = &keys[..keys.len().min(PAGE_ROWS_MAX as usize)];
        let values = Rows::new(some.iter().map(account_key_values));
        let rows: Vec<AccountRow> = self.database.find(&FIND_ACCOUNTS, values).await?;
        rows.iter().map(|row| self.account_of(row)).collect()
    }

    /// Every account of a user whose hit-and-run status is not clear, ordered by torrent.
    pub async fn hit_and_runs(
        &self,
        user: UserId,
        policy: &HitAndRunPolicy,
    ) -> Result<Vec<(AccountKey, Account, HitAndRunStatus)>, LedgerError> {
        let mut owing = Vec::new();
        let mut after = None;
        loop {
            let page = self.accounts_of(user, after, PAGE_ROWS_MAX).await?;
            for (key, account) in page.accounts {
                let hit_and_run_status = hit_and_run_status(&account, policy);
                if hit_and_run_status != HitAndRunStatus::Clear {
                    owing.push((key, account, hit_and_run_status));
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(owing),
            }
        }
    }

    /// Hit-and-runs of all users, by user and torrent: one page after `after`. Reads all accounts, so callers cache the
    /// result.
    pub async fn hit_and_runs_after(
        &self,
        after: Option<AccountKey>,
        policy: &HitAndRunPolicy,
    ) -> Result<HitAndRunPage, LedgerError> {
        let [user, torrent] =
            after.map_or([Value::Integer(0), Value::Integer(0)], |key| account_key_values(&key));
        let values = [
            user.clone(),
            user,
            torrent,
            Value::Integer(policy.active_min.0.into()),
            Value::Integer(PAGE_ROWS_MAX.into()),
        ];
        let rows: Vec<AccountRow> = self.database.query(&GONE_ACCOUNTS_AFTER, &values).await?;
        let accounts = rows.iter().map(|row| self.account_of(row)).collect::<Result<Vec<_>, _>>()?;
        let next = accounts.last().map(|(key, _)| *key).filter(|_| rows.len() >= PAGE_ROWS_MAX as usize);
        let hit_and_runs =
            accounts.iter().filter_map(|(key, account)| match hit_and_run_status(account, policy) {
                HitAndRunStatus::HitAndRun { since } => Some((*key, since)),
                HitAndRunStatus::Clear | HitAndRunStatus::Owing { .. } => None,
            });
        Ok(HitAndRunPage { hit_and_runs: hit_and_runs.collect(), next })
    }

    /// The clients of a user on a torrent with their runs, most recently seen first.
    pub async fn sessions_of(&self, user: UserId, torrent: TorrentId) -> Result<Clients, LedgerError> {
        let key = AccountKey { user, torrent };
        Ok(self.with_clients(key).await?.map(|(_, clients)| clients).unwrap_or_default())
    }

    /// The contributions to an account: of up to `limit` clients, most recently seen first, and the sum of all others.
    /// None without entries.
    pub async fn explain(&self, key: AccountKey, limit: u32) -> Result<Option<Explanation>, LedgerError> {
        let limit = limit.clamp(1, EXPLAINED_CLIENTS_MAX) as usize;
        let Some((account, mut clients)) = self.with_clients(key).await? else { return Ok(None) };
        let is_cut = clients.len() > limit;
        clients.truncate(limit);
        Ok(Some(explain(account, clients, is_cut, self.settings.ceiling)))
    }

    /// An account with its clients, most recently seen first.
    async fn with_clients(&self, key: AccountKey) -> Result<Option<(Account, Clients)>, LedgerError> {
        let row: Option<AccountRow> = self.database.query_one(&ACCOUNT, &account_key_values(&key)).await?;
        let Some(row) = row else { return Ok(None) };
        let (_, account, mut clients) = row.with_clients()?;
        clients.sort_by_key(|(client, known)| (Reverse(known.latest.at), client.0.cast_signed()));
        for (_, client) in &mut clients {
            client.runs.sort_by_key(|run| (run.first, run.key));
        }
        Ok(Some((account.at(self.clock.steady()), clients)))
    }
}
