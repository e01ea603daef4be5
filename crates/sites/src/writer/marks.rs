//! The marks: what the site was given already, in tables of our own on the site's server.

use std::collections::HashMap;

use database::{Database, Kind, Rows, SqlError, Transaction, Value};
use domain::{TorrentId, UserId};
use journal::EntryId;
use ledger::AccountKey;

use crate::error::SitesError;
use crate::profile::Profile;

/// `{schema}` stands for the schema, `{decimal}` for the type of amounts.
const TABLES: [&str; 5] = [
    "CREATE TABLE IF NOT EXISTS {schema}.site_writer (
        ledger BIGINT NOT NULL PRIMARY KEY, position_ms BIGINT NOT NULL, position_seq BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS {schema}.posted_users (
        ledger BIGINT NOT NULL, user_id BIGINT NOT NULL, uploaded {decimal} NOT NULL, downloaded {decimal} NOT NULL,
        credited_uploaded {decimal} NOT NULL, credited_downloaded {decimal} NOT NULL,
        PRIMARY KEY (ledger, user_id))",
    "CREATE TABLE IF NOT EXISTS {schema}.posted_torrents (
        ledger BIGINT NOT NULL, torrent_id BIGINT NOT NULL, uploaded {decimal} NOT NULL, downloaded {decimal} NOT NULL,
        completed BIGINT NOT NULL, seeders BIGINT NOT NULL, leechers BIGINT NOT NULL,
        PRIMARY KEY (ledger, torrent_id))",
    "CREATE TABLE IF NOT EXISTS {schema}.posted_accounts (
        ledger BIGINT NOT NULL, user_id BIGINT NOT NULL, torrent_id BIGINT NOT NULL,
        uploaded {decimal} NOT NULL, downloaded {decimal} NOT NULL,
        credited_uploaded {decimal} NOT NULL, credited_downloaded {decimal} NOT NULL,
        seeding_s BIGINT NOT NULL, leeching_s BIGINT NOT NULL, completed BIGINT NOT NULL,
        presence BIGINT NOT NULL, last_at BIGINT NOT NULL,
        PRIMARY KEY (ledger, user_id, torrent_id))",
    "CREATE TABLE IF NOT EXISTS {schema}.refused_rows (
        ledger BIGINT NOT NULL, statement VARCHAR(16) NOT NULL, user_id BIGINT NOT NULL, torrent_id BIGINT NOT NULL,
        reason VARCHAR(255) NOT NULL, refused_at BIGINT NOT NULL,
        PRIMARY KEY (ledger, statement, user_id, torrent_id))",
];

/// Names of the tables, for checks.
pub(crate) const TABLE_NAMES: [&str; 5] =
    ["site_writer", "posted_users", "posted_torrents", "posted_accounts", "refused_rows"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostedUser {
    pub(crate) uploaded: u128,
    pub(crate) downloaded: u128,
    pub(crate) credited_uploaded: u128,
    pub(crate) credited_downloaded: u128,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostedTorrent {
    pub(crate) uploaded: u128,
    pub(crate) downloaded: u128,
    pub(crate) completed: u64,
    pub(crate) seeders: u64,
    pub(crate) leechers: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostedAccount {
    pub(crate) amounts: PostedUser,
    pub(crate) seeding_s: u64,
    pub(crate) leeching_s: u64,
    pub(crate) completed: u64,
    /// 0 gone, 1 leeching, 2 seeding.
    pub(crate) presence: u8,
    /// Time of the last announce, in seconds since 1970.
    pub(crate) last_at: u32,
}

/// A row that the site's database refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) statement: &'static str,
    /// Zero if the statement has none.
    pub(crate) user: u64,
    pub(crate) torrent: u64,
    pub(crate) reason: String,
}

database::rows! {
    struct UserRow {
        user_id: i64,
        amounts: AmountsRow,
    }

    struct AmountsRow {
        uploaded: String,
        downloaded: String,
        credited_uploaded: String,
        credited_downloaded: String,
    }

    struct TorrentRow {
        torrent_id: i64,
        uploaded: String,
        downloaded: String,
        completed: i64,
        seeders: i64,
        leechers: i64,
    }

    struct AccountRow {
        user_id: i64,
        torrent_id: i64,
        amounts: AmountsRow,
        seeding_s: i64,
        leeching_s: i64,
        completed: i64,
        presence: i64,
        last_at: i64,
    }
}

/// The marks of one ledger. Methods that change them need the lock of [`Marks::lock`] in the same transaction.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    schema: String,
    ledger: i64,
}

impl Marks {
    pub(crate) fn new(profile: &Profile, ledger: i64) -> Marks {
        Marks { schema: profile.marks_schema.clone(), ledger }
    }

    /// Creates missing tables and the row of this ledger.
    pub(crate) async fn create(&self, database: &Database) -> Result<(), SitesError> {
        let mut session = database.session().await.map_err(SitesError::statement("connecting"))?;
        let kind = session.kind();
        let create = async {
            for table in TABLES {
                let decimal = if kind == Kind::Postgres { "NUMERIC(40)" } else { "DECIMAL(40)" };
                let engine = if kind == Kind::MySql { " ENGINE=InnoDB" } else { "" };
                let text = table.replace("{schema}", &self.schema).replace("{decimal}", decimal);
                session.batch(&format!("{text}{engine}")).await?;
            }
            let add = "{insert or ignore} S.site_writer (ledger, position_ms, position_seq) VALUES (?, 0, 0) {or ignore}";
            session.execute(&self.text(add), &[self.ledger.into()]).await
        };
        let created = create.await;
        session.close().await;
        created.map(drop).map_err(SitesError::statement("creating the tables of rollcall"))
    }

    /// A statement in which `S.` stands for the schema.
    fn text(&self, text: &str) -> String {
        text.replace("S.", &format!("{}.", self.schema))
    }

    /// Locks the row of this ledger, so that the marks are of one writer at a time; returns up to which entry the journal was
    /// written. None if the row is missing.
    pub(crate) async fn lock(&self, transaction: &mut Transaction) -> Result<Option<EntryId>, SqlError> {
        let text = self.text("SELECT position_ms, position_seq FROM S.site_writer WHERE ledger = ? {lock}");
        let row: Option<(i64, i64)> = transaction.query_one(&text, &[self.ledger.into()]).await?;
        Ok(row.map(|(ms, seq)| EntryId { ms: ms.unsigned_abs(), seq: seq.unsigned_abs() }))
    }

    pub(crate) async fn set_position(
        &self,
        transaction: &mut Transaction,
        position: EntryId,
    ) -> Result<(), SqlError> {
        let text = self.text("UPDATE S.site_writer SET position_ms = ?, position_seq = ? WHERE ledger = ?");
        let values = [integer(position.ms), integer(position.seq), self.ledger.into()];
        transaction.execute(&text, &values).await.map(drop)
    }

    pub(crate) async fn users(
        &self,
        transaction: &mut Transaction,
        users: &[UserId],
    ) -> Result<HashMap<UserId, PostedUser>, SqlError> {
        let text = self.text(
            "SELECT t.user_id, {text t.uploaded}, {text t.downloaded}, {text t.credited_uploaded},
                 {text t.credited_downloaded}
             FROM {rows 1} {join} S.posted_users t ON t.user_id = k.c0 AND t.ledger = ?",
        );
        let keys = Rows::new(users.iter().map(|user| [integer(user.get())]));
        let rows: Vec<UserRow> = self.find(transaction, &text, keys).await?;
        rows.iter().map(|row| Ok((user_of(row.user_id)?, row.amounts.read()?))).collect()
    }

    pub(crate) async fn torrents(
        &self,
        transaction: &mut Transaction,
        torrents: &[TorrentId],
    ) -> Result<HashMap<TorrentId, PostedTorrent>, SqlError> {
        let text = self.text(
            "SELECT t.torrent_id, {text t.uploaded}, {text t.downloaded}, t.completed, t.seeders, t.leechers
             FROM {rows 1} {join} S.posted_torrents t ON t.torrent_id = k.c0 AND t.ledger = ?",
        );
        let keys = Rows::new(torrents.iter().map(|torrent| [integer(torrent.get())]));
        let rows: Vec<TorrentRow> = self.find(transaction, &text, keys).await?;
        let read = |row: &TorrentRow| {
            let posted = PostedTorrent {
                uploaded: amount(&row.uploaded)?,
                downloaded: amount(&row.downloaded)?,
                completed: row.completed.unsigned_abs(),
                seeders: row.seeders.unsigned_abs(),
                leechers: row.leechers.unsigned_abs(),
            };
            Ok((torrent_of(row.torrent_id)?, posted))
        };
        rows.iter().map(read).collect()
    }

    pub(crate) async fn accounts(
        &self,
        transaction: &mut Transaction,
        keys: &[AccountKey],
    ) -> Result<HashMap<AccountKey, PostedAccount>, SqlError> {
        let text = self.text(
            "SELECT t.user_id, t.torrent_id, {text t.uploaded}, {text t.downloaded}, {text t.credited_uploaded},
                 {text t.credited_downloaded}, t.seeding_s, t.leeching_s, t.completed, t.presence, t.last_at
             FROM {rows 2} {join} S.posted_accounts t
                 ON t.user_id = k.c0 AND t.torrent_id = k.c1 AND t.ledger = ?",
        );
        let keys = Rows::new(keys.iter().map(|key| [integer(key.user.get()), integer(key.torrent.get())]));
        let rows: Vec<AccountRow> = self.find(transaction, &text, keys).await?;
        let read = |row: &AccountRow| {
            let key = AccountKey { user: user_of(row.user_id)?, torrent: torrent_of(row.torrent_id)? };
            let posted = PostedAccount {
                amounts: row.amounts.read()?,
                seeding_s: row.seeding_s.unsigned_abs(),
                leeching_s: row.leeching_s.unsigned_abs(),
                completed: row.completed.unsigned_abs(),
                presence: u8::try_from(row.presence).unwrap_or_default(),
                last_at: u32::try_from(row.last_at).unwrap_or_default(),
            };
            Ok((key, posted))
        };
        rows.iter().map(read).collect()
    }

    async fn find<T: database::FromRow>(
        &self,
        transaction: &mut Transaction,
        text: &String,
        keys: Rows,
    ) -> Result<Vec<T>, SqlError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        transaction.query(text, &[Value::Rows(keys), self.ledger.into()]).await
    }

    pub(crate) async fn save_users(
        &self,
        transaction: &mut Transaction,
        users: &[(UserId, PostedUser)],
    ) -> Result<(), SqlError> {
        let text = self.text(
            "INSERT INTO S.posted_users (ledger, user_id, uploaded, downloaded, credited_uploaded, credited_downloaded)
             {values} {upsert ledger,user_id} uploaded = {new uploaded}, downloaded = {new downloaded},
                 credited_uploaded = {new credited_uploaded}, credited_downloaded = {new credited_downloaded}",
        );
        let rows = users.iter().map(|(user, posted)| {
            let [up, down, credited_up, credited_down] = posted.values();
            [self.ledger.into(), integer(user.get()), up, down, credited_up, credited_down]
        });
        transaction.write_rows(&text, &Rows::new(rows)).await.map(drop)
    }

    pub(crate) async fn save_torrents(
        &self,
        transaction: &mut Transaction,
        torrents: &[(TorrentId, PostedTorrent)],
    ) -> Result<(), SqlError> {
        let text = self.text(
            "INSERT INTO S.posted_torrents (ledger, torrent_id, uploaded, downloaded, completed, seeders, leechers)
             {values} {upsert ledger,torrent_id} uploaded = {new uploaded}, downloaded = {new downloaded},
                 completed = {new completed}, seeders = {new seeders}, leechers = {new leechers}",
        );
        let rows = torrents.iter().map(|(torrent, posted)| {
            [
                self.ledger.into(),
                integer(torrent.get()),
                decimal(posted.uploaded),
                decimal(posted.downloaded),
                integer(posted.completed),
                integer(posted.seeders),
                integer(posted.leechers),
            ]
        });
        transaction.write_rows(&text, &Rows::new(rows)).await.map(drop)
    }

    pub(crate) async fn save_accounts(
        &self,
        transaction: &mut Transaction,
        accounts: &[(AccountKey, PostedAccount)],
    ) -> Result<(), SqlError> {
        let text = self.text(
            "INSERT INTO S.posted_accounts (ledger, user_id, torrent_id, uploaded, downloaded, credited_uploaded,
                 credited_downloaded, seeding_s, leeching_s, completed, presence, last_at)
             {values} {upsert ledger,user_id,torrent_id} uploaded = {new uploaded}, downloaded = {new downloaded},
                 credited_uploaded = {new credited_uploaded}, credited_downloaded = {new credited_downloaded},
                 seeding_s = {new seeding_s}, leeching_s = {new leeching_s}, completed = {new completed},
                 presence = {new presence}, last_at = {new last_at}",
        );
        let rows = accounts.iter().map(|(key, posted)| {
            let [up, down, credited_up, credited_down] = posted.amounts.values();
            [
                self.ledger.into(),
                integer(key.user.get()),
                integer(key.torrent.get()),
                up,
                down,
                credited_up,
                credited_down,
                integer(posted.seeding_s),
                integer(posted.leeching_s),
                integer(posted.completed),
                integer(posted.presence.into()),
                posted.last_at.into(),
            ]
        });
        transaction.write_rows(&text, &Rows::new(rows)).await.map(drop)
    }

    pub(crate) async fn save_refused(
        &self,
        transaction: &mut Transaction,
        refused: &[Refused],
        now: u32,
    ) -> Result<(), SqlError> {
        let text = self.text(
            "INSERT INTO S.refused_rows (ledger, statement, user_id, torrent_id, reason, refused_at) {values}
             {upsert ledger,statement,user_id,torrent_id} reason = {new reason}, refused_at = {new refused_at}",
        );
        // A statement may refuse several clients of one account.
        let distinct: HashMap<_, _> =
            refused.iter().map(|row| ((row.statement, row.user, row.torrent), &row.reason)).collect();
        let rows = distinct.into_iter().map(|((statement, user, torrent), reason)| {
            let reason: String = reason.chars().take(250).collect();
            [self.ledger.into(), statement.into(), integer(user), integer(torrent), reason.into(), now.into()]
        });
        transaction.write_rows(&text, &Rows::new(rows)).await.map(drop)
    }

    /// Before a comparison of everything, which refuses them again if it must.
    pub(crate) async fn clear_refused(&self, database: &Database) -> Result<(), SqlError> {
        let text = self.text("DELETE FROM S.refused_rows WHERE ledger = ?");
        database.execute(&text, &[self.ledger.into()]).await.map(drop)
    }
}

impl PostedUser {
    fn values(&self) -> [Value; 4] {
        [self.uploaded, self.downloaded, self.credited_uploaded, self.credited_downloaded].map(decimal)
    }
}

impl AmountsRow {
    fn read(&self) -> Result<PostedUser, SqlError> {
        Ok(PostedUser {
            uploaded: amount(&self.uploaded)?,
            downloaded: amount(&self.downloaded)?,
            credited_uploaded: amount(&self.credited_uploaded)?,
            credited_downloaded: amount(&self.credited_downloaded)?,
        })
    }
}

fn amount(text: &str) -> Result<u128, SqlError> {
    text.parse().map_err(|_| SqlError::ColumnType)
}

fn user_of(number: i64) -> Result<UserId, SqlError> {
    UserId::new(number.unsigned_abs()).ok_or(SqlError::ColumnType)
}

fn torrent_of(number: i64) -> Result<TorrentId, SqlError> {
    TorrentId::new(number.unsigned_abs()).ok_or(SqlError::ColumnType)
}

pub(crate) fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(crate) fn decimal(number: u128) -> Value {
    Value::Decimal(number.to_string())
}
