//! What commands and the site ask.

use domain::{ClientId, TorrentId, UnixTime, UserId};

use crate::account_state::Client;
use crate::error::LedgerError;
use crate::explain::{Explanation, explain};
use crate::figures::{Account, AccountKey, Figures};
use crate::hit_and_run::{HitAndRunPolicy, HitAndRunStatus, hit_and_run_status};
use crate::ledger::Ledger;
use crate::rows::{
    AccountRow, ClientRow, FiguresRow, RunRow, account_key_cells, client_key_cells, torrent_cell, user_cell,
};
use crate::sql::table::{
    ACCOUNT, ACCOUNTS_OF, ACCOUNTS_ON, CLIENTS_OF, FIND_ACCOUNTS, FIND_RUNS, FIND_USERS, GONE_ACCOUNTS_AFTER,
    RUNS_OF, TORRENT, USER, USERS_AFTER,
};
use crate::sql::{Cell, Page, Rows, read, read_many};

/// Accounts in one page, at the most.
pub const PAGE_ROWS_MAX: u32 = 1000;
/// Clients, and runs, that are shown of one account.
const SESSION_ROWS_MAX: i64 = 1000;
/// Clients of one account that are explained: of each there may be as many stretches as runs are kept.
pub const EXPLAINED_CLIENTS_MAX: u32 = 100;

/// A part of a user's accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountPage {
    /// The accounts, in the order of their torrents.
    pub accounts: Vec<(AccountKey, Account)>,
    /// Where to go on; none if that was all.
    pub next: Option<TorrentId>,
}

/// A part of the accounts on a torrent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorrentAccountPage {
    /// The accounts, those heard of last first.
    pub accounts: Vec<(AccountKey, Account)>,
    /// Where to go on: behind this time and user; none if that was all.
    pub next: Option<(UnixTime, UserId)>,
}

/// A part of all hit-and-runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitAndRunPage {
    /// Which accounts, and since when the user is gone.
    pub hit_and_runs: Vec<(AccountKey, UnixTime)>,
    /// Where to go on; none if that was all.
    pub next: Option<AccountKey>,
}

impl Ledger {
    /// An account as it is now.
    fn account_of(&self, row: &AccountRow) -> Result<(AccountKey, Account), LedgerError> {
        let (key, account) = row.account()?;
        Ok((key, account.at(self.clock.steady())))
    }

    /// What a user moved; none if never heard of.
    pub async fn user(&self, user: UserId) -> Result<Option<Figures>, LedgerError> {
        let rows: Vec<FiguresRow> = read(&self.database, &USER, &[user_cell(user)]).await?;
        rows.first().map(FiguresRow::figures).transpose()
    }

    /// What these users moved, as far as they were ever heard of, in no order. No more than [`PAGE_ROWS_MAX`] are looked
    /// for.
    pub async fn users(&self, users: &[UserId]) -> Result<Vec<(UserId, Figures)>, LedgerError> {
        let some = &users[..users.len().min(PAGE_ROWS_MAX as usize)];
        let keys = Rows::new(some.iter().map(|user| [user_cell(*user)]));
        let rows: Vec<FiguresRow> = read_many(&self.database, &FIND_USERS, &keys).await?;
        rows.iter().map(FiguresRow::of_user).collect()
    }

    /// What all users moved, by their numbers: up to [`PAGE_ROWS_MAX`] of those behind `after`.
    pub async fn users_after(&self, after: Option<UserId>) -> Result<Vec<(UserId, Figures)>, LedgerError> {
        let cells = [after.map_or(Cell::Number(0), user_cell), Cell::Number(PAGE_ROWS_MAX.into())];
        let rows: Vec<FiguresRow> = read(&self.database, &USERS_AFTER, &cells).await?;
        rows.iter().map(FiguresRow::of_user).collect()
    }

    /// What was moved of a torrent; none if never heard of.
    pub async fn torrent(&self, torrent: TorrentId) -> Result<Option<Figures>, LedgerError> {
        let rows: Vec<FiguresRow> = read(&self.database, &TORRENT, &[torrent_cell(torrent)]).await?;
        rows.first().map(FiguresRow::figures).transpose()
    }

    /// A user on a torrent; none if never heard of.
    pub async fn account(&self, key: AccountKey) -> Result<Option<Account>, LedgerError> {
        let rows: Vec<AccountRow> = read(&self.database, &ACCOUNT, &account_key_cells(&key)).await?;
        rows.first().map(|row| self.account_of(row).map(|(_, account)| account)).transpose()
    }

    /// A user's accounts: up to `limit` of those with torrents behind `after`.
    pub async fn accounts_of(
        &self,
        user: UserId,
        after: Option<TorrentId>,
        limit: u32,
    ) -> Result<AccountPage, LedgerError> {
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let after = after.map_or(Cell::Number(0), torrent_cell);
        // One more than asked for tells whether there is more.
        let cells = [user_cell(user), after, Cell::Number(i64::from(limit) + 1)];
        let rows: Vec<AccountRow> = read(&self.database, &ACCOUNTS_OF, &cells).await?;
        let mut accounts = rows.iter().map(|row| self.account_of(row)).collect::<Result<Vec<_>, _>>()?;
        let is_more = accounts.len() > limit as usize;
        accounts.truncate(limit as usize);
        let next = accounts.last().map(|(key, _)| key.torrent).filter(|_| is_more);
        Ok(AccountPage { accounts, next })
    }

    /// The accounts on a torrent, those heard of last first: up to `limit` of those behind `after`.
    pub async fn accounts_on(
        &self,
        torrent: TorrentId,
        after: Option<(UnixTime, UserId)>,
        limit: u32,
    ) -> Result<TorrentAccountPage, LedgerError> {
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let (at, user) = match after {
            Some((at, user)) => (Cell::Number(at.0.into()), user_cell(user)),
            None => (Cell::Number(i64::MAX), Cell::Number(i64::MAX)),
        };
        let cells = [torrent_cell(torrent), at.clone(), at, user, Cell::Number(i64::from(limit) + 1)];
        let rows: Vec<AccountRow> = read(&self.database, &ACCOUNTS_ON, &cells).await?;
        let mut accounts = rows.iter().map(|row| self.account_of(row)).collect::<Result<Vec<_>, _>>()?;
        let is_more = accounts.len() > limit as usize;
        accounts.truncate(limit as usize);
        let last = accounts.last().filter(|_| is_more);
        let next = last.map(|(key, account)| (account.latest.at, key.user));
        Ok(TorrentAccountPage { accounts, next })
    }

    /// These accounts, as far as they were ever heard of, in no order. No more than [`PAGE_ROWS_MAX`] are looked for.
    pub async fn accounts(&self, keys: &[AccountKey]) -> Result<Vec<(AccountKey, Account)>, LedgerError> {
        let some = &keys[..keys.len().min(PAGE_ROWS_MAX as usize)];
        let cells = Rows::new(some.iter().map(account_key_cells));
        let rows: Vec<AccountRow> = read_many(&self.database, &FIND_ACCOUNTS, &cells).await?;
        rows.iter().map(|row| self.account_of(row)).collect()
    }

    /// Where a user owes seeding: every account whose hit_and_run_status is not clear, in the order of their torrents.
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

    /// Hit-and-runs of all users, by user and torrent: a part of those behind `after`. All accounts are looked through
    /// for them, so callers keep what they find.
    pub async fn hit_and_runs_after(
        &self,
        after: Option<AccountKey>,
        policy: &HitAndRunPolicy,
    ) -> Result<HitAndRunPage, LedgerError> {
        let [user, torrent] = after.map_or([Cell::Number(0), Cell::Number(0)], |key| account_key_cells(&key));
        let cells = [
            user.clone(),
            user,
            torrent,
            Cell::Number(policy.active_min.0.into()),
            Cell::Number(PAGE_ROWS_MAX.into()),
        ];
        let rows: Vec<AccountRow> = read(&self.database, &GONE_ACCOUNTS_AFTER, &cells).await?;
        let accounts = rows.iter().map(|row| self.account_of(row)).collect::<Result<Vec<_>, _>>()?;
        let next = accounts.last().map(|(key, _)| *key).filter(|_| rows.len() >= PAGE_ROWS_MAX as usize);
        let gone = accounts.iter().filter_map(|(key, account)| match hit_and_run_status(account, policy) {
            HitAndRunStatus::HitAndRun { since } => Some((*key, since)),
            HitAndRunStatus::Clear | HitAndRunStatus::Owing { .. } => None,
        });
        Ok(HitAndRunPage { hit_and_runs: gone.collect(), next })
    }

    /// The clients of a user on a torrent with their runs, those heard of last first.
    pub async fn sessions_of(
        &self,
        user: UserId,
        torrent: TorrentId,
    ) -> Result<Vec<(ClientId, Client)>, LedgerError> {
        let cells = [user_cell(user), torrent_cell(torrent), Cell::Number(SESSION_ROWS_MAX)];
        let mut sessions = Vec::new();
        for row in read::<ClientRow>(&self.database, &CLIENTS_OF, &cells).await? {
            let (key, client) = row.client()?;
            sessions.push((key.client, client));
        }
        for row in read::<RunRow>(&self.database, &RUNS_OF, &cells).await? {
            let (key, run) = row.run()?;
            if let Some((_, client)) = sessions.iter_mut().find(|(client, _)| *client == key.client) {
                client.runs.push(run);
            }
        }
        Ok(sessions)
    }

    /// Why an account is what it is: what each client contribution, up to `limit` of those heard of last, and what all others
    /// did together. None if it was never heard of.
    pub async fn explain(&self, key: AccountKey, limit: u32) -> Result<Option<Explanation>, LedgerError> {
        let limit = limit.clamp(1, EXPLAINED_CLIENTS_MAX);
        // Of one moment: otherwise an entry that is applied meanwhile would be in one part, and not in the other.
        let mut page = Page::begin_reading(&self.database).await?;
        let rows: Vec<AccountRow> = page.read(&ACCOUNT, &account_key_cells(&key)).await?;
        let Some((_, account)) = rows.first().map(|row| self.account_of(row)).transpose()? else {
            return Ok(None);
        };
        let [user, torrent] = account_key_cells(&key);
        // One more than asked for tells whether there is more.
        let cells = [user, torrent, Cell::Number(i64::from(limit) + 1)];
        let rows: Vec<ClientRow> = page.read(&CLIENTS_OF, &cells).await?;
        let is_cut = rows.len() > limit as usize;
        let listed = rows.iter().take(limit as usize).map(ClientRow::client);
        let mut clients = listed.collect::<Result<Vec<_>, _>>()?;
        let keys = Rows::new(clients.iter().map(|(key, _)| client_key_cells(key)));
        for row in page.read_many::<RunRow>(&FIND_RUNS, &keys).await? {
            let (key, run) = row.run()?;
            if let Some((_, client)) = clients.iter_mut().find(|(known, _)| *known == key) {
                client.runs.push(run);
            }
        }
        page.commit().await?;
        let clients = clients.into_iter().map(|(key, client)| (key.client, client)).collect();
        Ok(Some(explain(account, clients, is_cut, self.settings.ceiling)))
    }
}
