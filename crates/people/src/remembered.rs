//! What should be known of each person after a crash.

use std::collections::BTreeMap;

use domain::{UnixTime, UserId};
use presence::{Declaration, Declared, LastKnown, Remembered};

use crate::error::PeopleError;
use crate::sql::{Bulk, Cell, Statement};
use crate::store::{People, Undone, as_often_as_it_takes, moment_of, sql_id, sql_number, user_of};

/// Rows in one transaction.
const BATCH_MAX: usize = 5_000;

/// The later version wins; a version never goes back.
const REMEMBER: Bulk = Bulk {
    sqlite: "INSERT INTO people_presence (user_id, here, declared, declared_text, declared_until, last_seen,
                 hidden_since, public_version, own_version)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (user_id) DO UPDATE SET here = excluded.here, declared = excluded.declared,
                 declared_text = excluded.declared_text, declared_until = excluded.declared_until,
                 last_seen = excluded.last_seen, hidden_since = excluded.hidden_since,
                 public_version = max(excluded.public_version, people_presence.public_version),
                 own_version = excluded.own_version
             WHERE excluded.own_version > people_presence.own_version
                OR (excluded.own_version = people_presence.own_version
                    AND excluded.public_version >= people_presence.public_version)",
    postgres: "INSERT INTO people_presence (user_id, here, declared, declared_text, declared_until, last_seen,
                   hidden_since, public_version, own_version)
               SELECT k.user_id, k.here <> 0, k.declared, k.declared_text, k.declared_until, k.last_seen,
                   k.hidden_since, k.public_version, k.own_version
               FROM unnest($1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[],
                   $7::BIGINT[], $8::BIGINT[], $9::BIGINT[])
                   AS k (user_id, here, declared, declared_text, declared_until, last_seen, hidden_since,
                         public_version, own_version)
               ON CONFLICT (user_id) DO UPDATE SET here = excluded.here, declared = excluded.declared,
                   declared_text = excluded.declared_text, declared_until = excluded.declared_until,
                   last_seen = excluded.last_seen, hidden_since = excluded.hidden_since,
                   public_version = greatest(excluded.public_version, people_presence.public_version),
                   own_version = excluded.own_version
               WHERE excluded.own_version > people_presence.own_version
                  OR (excluded.own_version = people_presence.own_version
                      AND excluded.public_version >= people_presence.public_version)",
    mysql: "INSERT INTO people_presence (user_id, here, declared, declared_text, declared_until, last_seen,
                hidden_since, public_version, own_version) ",
    // MariaDB sets one column after the other, so those that decide are set last.
    mysql_end: " ON DUPLICATE KEY UPDATE
        here = IF(VALUES(own_version) > own_version
            OR (VALUES(own_version) = own_version AND VALUES(public_version) >= public_version), VALUES(here), here),
        declared = IF(VALUES(own_version) > own_version
            OR (VALUES(own_version) = own_version AND VALUES(public_version) >= public_version),
            VALUES(declared), declared),
        declared_text = IF(VALUES(own_version) > own_version
            OR (VALUES(own_version) = own_version AND VALUES(public_version) >= public_version),
            VALUES(declared_text), declared_text),
        declared_until = IF(VALUES(own_version) > own_version
            OR (VALUES(own_version) = own_version AND VALUES(public_version) >= public_version),
            VALUES(declared_until), declared_until),
        last_seen = IF(VALUES(own_version) > own_version
            OR (VALUES(own_version) = own_version AND VALUES(public_version) >= public_version),
            VALUES(last_seen), last_seen),
        hidden_since = IF(VALUES(own_version) > own_version
            OR (VALUES(own_version) = own_version AND VALUES(public_version) >= public_version),
            VALUES(hidden_since), hidden_since),
        public_version = GREATEST(public_version, VALUES(public_version)),
        own_version = GREATEST(own_version, VALUES(own_version))",
};

const HERE: Statement = Statement::portable(
    "SELECT user_id, hidden_since, last_seen, public_version, own_version, declared, declared_text, declared_until
     FROM people_presence WHERE here AND user_id > $1 ORDER BY user_id LIMIT $2",
    "SELECT user_id, hidden_since, last_seen, public_version, own_version, declared, declared_text, declared_until
     FROM people_presence WHERE here = 1 AND user_id > ? ORDER BY user_id LIMIT ?",
);

/// What was last known, as it stands in a row that may be missing.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct LastRow {
    last_seen: Option<i64>,
    public_version: Option<i64>,
    own_version: Option<i64>,
    declared: Option<String>,
    declared_text: Option<String>,
    declared_until: Option<i64>,
}

#[derive(Debug, sqlx::FromRow)]
struct HereRow {
    user_id: i64,
    hidden_since: Option<i64>,
    #[sqlx(flatten)]
    last: LastRow,
}

impl LastRow {
    pub(crate) fn known(self) -> LastKnown {
        let row = self;
        let version = |number: Option<i64>| number.map_or(0, |number| u64::try_from(number).unwrap_or(0));
        let status = row.declared.as_deref().and_then(Declared::from_name);
        LastKnown {
            last_seen: row.last_seen.map(moment_of),
            public_version: version(row.public_version),
            own_version: version(row.own_version),
            declaration: status.map(|status| Declaration {
                status,
                text: row.declared_text.map(String::into_boxed_str),
                until: row.declared_until.map(moment_of),
            }),
        }
    }
}

impl People {
    /// Keeps what should be known after a crash. What is older than what is kept changes nothing.
    pub async fn remember(&self, batch: &[Remembered]) -> Result<(), PeopleError> {
        // Each person once, in an order that all writers have in common.
        let mut latest: BTreeMap<UserId, &Remembered> = BTreeMap::new();
        for remembered in batch {
            let kept = latest.entry(remembered.user).or_insert(remembered);
            if versions(remembered) >= versions(kept) {
                *kept = remembered;
            }
        }
        let rows: Vec<[Cell; 9]> = latest.values().map(|remembered| cells(remembered)).collect();
        for chunk in rows.chunks(BATCH_MAX) {
            as_often_as_it_takes!(self, self.write_remembered(chunk))?;
        }
        Ok(())
    }

    async fn write_remembered(&self, rows: &[[Cell; 9]]) -> Result<(), Undone> {
        let mut page = self.begin().await?;
        page.on().write_rows(&REMEMBER, rows).await?;
        Ok(page.commit().await?)
    }

    /// Some of those who were here when it was last written, by their ids, behind `after`. A page that is shorter than
    /// `limit` is the last.
    pub async fn here(&self, after: Option<UserId>, limit: u32) -> Result<Vec<Remembered>, PeopleError> {
        let rows: Vec<HereRow> = self.read(&HERE, &[after.map_or(0, sql_id).into(), limit.into()]).await?;
        Ok(rows.into_iter().filter_map(remembered).collect())
    }
}

fn versions(remembered: &Remembered) -> (u64, u64) {
    (remembered.own_version, remembered.public_version)
}

fn remembered(row: HereRow) -> Option<Remembered> {
    let last = row.last.known();
    Some(Remembered {
        user: user_of(row.user_id)?,
        here: true,
        declaration: last.declaration,
        last_seen: last.last_seen,
        hidden_since: row.hidden_since.map(moment_of),
        public_version: last.public_version,
        own_version: last.own_version,
    })
}

fn cells(remembered: &Remembered) -> [Cell; 9] {
    let declaration = remembered.declaration.as_ref();
    let moment = |at: Option<UnixTime>| Cell::Number(at.map(|at| at.0.into()));
    [
        sql_id(remembered.user).into(),
        i64::from(remembered.here).into(),
        Cell::Text(declaration.map(|said| said.status.name().to_owned())),
        Cell::Text(declaration.and_then(|said| said.text.as_deref()).map(without_nul)),
        moment(declaration.and_then(|said| said.until)),
        moment(remembered.last_seen),
        moment(remembered.hidden_since),
        sql_number(remembered.public_version).into(),
        sql_number(remembered.own_version).into(),
    ]
}

/// PostgreSQL takes no NUL in a text, and one person's text must not keep a whole batch out.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}
