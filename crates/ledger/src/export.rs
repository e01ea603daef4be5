//! Queries of programs that copy figures elsewhere, such as into the tables of a site.

use database::{Rows, Statement, Value};
use domain::{TorrentId, UserId};

use crate::error::LedgerError;
use crate::figures::{AccountKey, Figures};
use crate::ledger::Ledger;
use crate::reads::PAGE_ROWS_MAX;
use crate::rows::{FiguresRow, account_key_values, torrent_of, torrent_value, user_of, user_value};
use crate::table::FIND_TORRENTS;

const USER_IDS: &str = "SELECT id FROM ledger_users WHERE id > ? ORDER BY id LIMIT ?";
const TORRENT_IDS: &str = "SELECT id FROM ledger_torrents WHERE id > ? ORDER BY id LIMIT ?";
const ACCOUNT_KEYS: &str = "SELECT user_id, torrent_id FROM ledger_accounts
     WHERE user_id >= ? AND (user_id > ? OR torrent_id > ?) ORDER BY user_id, torrent_id LIMIT ?";

macro_rules! present {
    ($before:literal, $after:literal) => {
        concat!(
            "SELECT t.torrent_id, ",
            $before,
            "sum(CASE WHEN t.present_until <= ? THEN 0 ELSE t.seeding_clients END)",
            $after,
            ", ",
            $before,
            "sum(CASE WHEN t.present_until <= ? THEN 0 ELSE t.leeching_clients END)",
            $after,
            " FROM {rows 1} {join} ledger_accounts t ON t.torrent_id = k.c0 GROUP BY t.torrent_id"
        )
    };
}

const PRESENT: Statement =
    Statement::each(present!("", ""), present!("", "::BIGINT"), present!("CAST(", " AS SIGNED)"));

/// The clients on a torrent now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Present {
    pub seeders: u64,
    pub leechers: u64,
}

impl Ledger {
    /// Users with a row, by id: up to [`PAGE_ROWS_MAX`] after `after`.
    pub async fn user_ids_after(&self, after: Option<UserId>) -> Result<Vec<UserId>, LedgerError> {
        let values = [after.map_or(Value::Integer(0), user_value), PAGE_ROWS_MAX.into()];
        let ids: Vec<i64> = self.database.query(USER_IDS, &values).await?;
        ids.into_iter().map(user_of).collect()
    }

    /// Torrents with a row, by id: up to [`PAGE_ROWS_MAX`] after `after`.
    pub async fn torrent_ids_after(&self, after: Option<TorrentId>) -> Result<Vec<TorrentId>, LedgerError> {
        let values = [after.map_or(Value::Integer(0), torrent_value), PAGE_ROWS_MAX.into()];
        let ids: Vec<i64> = self.database.query(TORRENT_IDS, &values).await?;
        ids.into_iter().map(torrent_of).collect()
    }

    /// Accounts by user and torrent: up to [`PAGE_ROWS_MAX`] after `after`.
    pub async fn account_keys_after(
        &self,
        after: Option<AccountKey>,
    ) -> Result<Vec<AccountKey>, LedgerError> {
        let [user, torrent] =
            after.map_or([Value::Integer(0), Value::Integer(0)], |key| account_key_values(&key));
        let values = [user.clone(), user, torrent, PAGE_ROWS_MAX.into()];
        let keys: Vec<(i64, i64)> = self.database.query(ACCOUNT_KEYS, &values).await?;
        let key = |(user, torrent)| Ok(AccountKey { user: user_of(user)?, torrent: torrent_of(torrent)? });
        keys.into_iter().map(key).collect()
    }

    /// The figures of these torrents, unordered; torrents without entries are left out. At most [`PAGE_ROWS_MAX`] are
    /// read.
    pub async fn torrents(&self, torrents: &[TorrentId]) -> Result<Vec<(TorrentId, Figures)>, LedgerError> {
        let rows: Vec<FiguresRow> = self.database.find(&FIND_TORRENTS, keys_of(torrents)).await?;
        rows.iter().map(|row| Ok((torrent_of(row.id)?, row.figures()?))).collect()
    }

    /// The clients on these torrents now, unordered; torrents without entries are left out. At most [`PAGE_ROWS_MAX`]
    /// are read.
    pub async fn present_on(&self, torrents: &[TorrentId]) -> Result<Vec<(TorrentId, Present)>, LedgerError> {
        if torrents.is_empty() {
            return Ok(Vec::new());
        }
        let now = Value::from(self.clock.steady().0);
        let values = [now.clone(), now, Value::Rows(keys_of(torrents))];
        let rows: Vec<(i64, i64, i64)> = self.database.query(PRESENT, &values).await?;
        let present = |(torrent, seeders, leechers): (i64, i64, i64)| {
            let present = Present { seeders: seeders.unsigned_abs(), leechers: leechers.unsigned_abs() };
            Ok((torrent_of(torrent)?, present))
        };
        rows.into_iter().map(present).collect()
    }
}

fn keys_of(torrents: &[TorrentId]) -> Rows {
    let some = &torrents[..torrents.len().min(PAGE_ROWS_MAX as usize)];
    Rows::new(some.iter().map(|torrent| [torrent_value(*torrent)]))
}
