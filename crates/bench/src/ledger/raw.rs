//! Upserts of one row per (user, torrent), in the fastest way known for each database: PostgreSQL takes columns as
//! arrays through `UNNEST`, MariaDB many rows in one `VALUES` as text, SQLite one prepared statement row by row.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use database::{Database, SqlError, SqliteSession, Value};
use domain::{TorrentId, UserId};
use journal::DeliveredEntry;

/// Two keys and as many figures as an account has.
const FIGURES: usize = 10;
/// What an account's row has for its clients.
const STATE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

type Row = ([i64; 2], [i64; FIGURES]);

/// The table.
pub(super) struct RawTable {
    database: Database,
    upsert: String,
}

impl RawTable {
    pub(super) async fn create(database: Database) -> anyhow::Result<Self> {
        let figures: Vec<String> = (0..FIGURES).map(|number| format!("f{number}")).collect();
        let columns = format!("user_id, torrent_id, {}, state", figures.join(", "));
        let create = format!(
            "CREATE TABLE raw_accounts (user_id BIGINT NOT NULL, torrent_id BIGINT NOT NULL, {} BIGINT NOT NULL, \
             state VARCHAR(64) NOT NULL, PRIMARY KEY (user_id, torrent_id))",
            figures.join(" BIGINT NOT NULL, ")
        );
        database.execute(&create, &[]).await?;
        let set = |value: fn(&str) -> String| {
            figures.iter().map(|name| format!("{name} = {}", value(name))).collect::<Vec<_>>().join(", ")
        };
        let insert = format!("INSERT INTO raw_accounts ({columns})");
        let on_conflict = || {
            let set = set(|name| format!("excluded.{name}"));
            format!("ON CONFLICT (user_id, torrent_id) DO UPDATE SET {set}, state = excluded.state")
        };
        let upsert = match &database {
            Database::Sqlite(_) => {
                format!("{insert} VALUES ({}?) {}", "?, ".repeat(FIGURES + 2), on_conflict())
            }
            Database::Postgres(_) => {
                let arrays: Vec<String> =
                    (1..=FIGURES + 2).map(|number| format!("${number}::bigint[]")).collect();
                format!("{insert} SELECT *, '{STATE}' FROM UNNEST({}) {}", arrays.join(", "), on_conflict())
            }
            Database::MySql(_) => {
                let set = set(|name| format!("VALUES({name})"));
                format!("{insert} VALUES %ROWS% ON DUPLICATE KEY UPDATE {set}, state = VALUES(state)")
            }
        };
        Ok(RawTable { database, upsert })
    }

    /// What the batches write. Not timed.
    pub(super) fn prepare(arrivals: &[DeliveredEntry], batch: usize) -> Vec<Vec<Row>> {
        arrivals.chunks(batch).map(rows_of).collect()
    }

    /// Writes a batch in one transaction.
    pub(super) async fn write(&self, rows: Vec<Row>) -> Result<(), SqlError> {
        match &self.database {
            Database::Sqlite(file) => {
                let upsert = self.upsert.clone();
                let write = move |session: &SqliteSession| {
                    for (keys, figures) in rows {
                        let mut values: Vec<Value> = Vec::with_capacity(FIGURES + 3);
                        values.extend(keys.into_iter().chain(figures).map(Value::from));
                        values.push(STATE.into());
                        session.execute(&upsert, &values)?;
                    }
                    Ok(())
                };
                file.write(write).await
            }
            Database::Postgres(pool) => {
                let mut query = sqlx::query(sqlx::AssertSqlSafe(self.upsert.as_str()));
                for key in 0..2 {
                    query = query.bind(rows.iter().map(|(keys, _)| keys[key]).collect::<Vec<i64>>());
                }
                for figure in 0..FIGURES {
                    query = query.bind(rows.iter().map(|(_, figures)| figures[figure]).collect::<Vec<i64>>());
                }
                query.execute(pool).await?;
                Ok(())
            }
            Database::MySql(pool) => {
                let mut values = String::new();
                for ([user, torrent], figures) in &rows {
                    let comma = if values.is_empty() { "" } else { "," };
                    // Writing to memory cannot fail.
                    let _ = write!(values, "{comma}({user},{torrent}");
                    for figure in figures {
                        let _ = write!(values, ",{figure}");
                    }
                    let _ = write!(values, ",'{STATE}')");
                }
                let upsert = self.upsert.replace("%ROWS%", &values);
                sqlx::raw_sql(sqlx::AssertSqlSafe(upsert)).execute(pool).await?;
                Ok(())
            }
        }
    }
}

/// One row per (user, torrent), sorted by key. Entries of our own tracker contain both.
fn rows_of(batch: &[DeliveredEntry]) -> Vec<Row> {
    let named =
        batch.iter().filter_map(|arrival| Some(((arrival.entry.user?, arrival.entry.torrent?), arrival)));
    let by_pair: BTreeMap<(UserId, TorrentId), &DeliveredEntry> = named.collect();
    let row_of = |((user, torrent), arrival): ((UserId, TorrentId), &DeliveredEntry)| {
        let uploaded = arrival.entry.totals.map_or(0, |totals| totals.uploaded).cast_signed();
        let mut figures = [i64::from(arrival.entry.at.0); FIGURES];
        figures[0] = uploaded;
        ([user.get().cast_signed(), torrent.get().cast_signed()], figures)
    };
    by_pair.into_iter().map(row_of).collect()
}
