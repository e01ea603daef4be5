//! Presence that survives a crash, one row per user.

use std::collections::BTreeMap;

use database::{Rows, Statement, Value};
use domain::{UnixTime, UserId};
use presence::{Declaration, Declared, LastKnown, StoredPresence};

use crate::error::FriendsError;
use crate::store::{FriendStore, TransactionError, retry_on_conflict, sql_id, sql_number, time_of, user_of};

const BATCH_MAX: usize = 5_000;

macro_rules! columns {
    () => {
        "user_id, here, declared, declared_text, declared_until, last_seen, hidden_since, public_version, own_version"
    };
}

const UPSERT_ONE: &str = concat!(
    "INSERT INTO people_presence (",
    columns!(),
    ") {values} {upsert user_id} here = excluded.here, declared = excluded.declared,
         declared_text = excluded.declared_text, declared_until = excluded.declared_until,
         last_seen = excluded.last_seen, hidden_since = excluded.hidden_since,
         public_version = {greatest}(excluded.public_version, people_presence.public_version),
         own_version = excluded.own_version
     WHERE excluded.own_version > people_presence.own_version
        OR (excluded.own_version = people_presence.own_version
            AND excluded.public_version >= people_presence.public_version)"
);

/// MariaDB: the new value if its version is not older.
macro_rules! if_newer {
    ($column:literal) => {
        concat!(
            $column,
            " = IF(VALUES(own_version) > own_version OR (VALUES(own_version) = own_version
                AND VALUES(public_version) >= public_version), VALUES(",
            $column,
            "), ",
            $column,
            "), "
        )
    };
}

/// The later version wins; a version never decreases.
const UPSERT_PRESENCE: Statement = Statement::each(
    UPSERT_ONE,
    UPSERT_ONE,
    // MariaDB assigns columns in order, so the columns of the condition come last.
    concat!(
        "INSERT INTO people_presence (",
        columns!(),
        ") {values} {upsert user_id} ",
        if_newer!("here"),
        if_newer!("declared"),
        if_newer!("declared_text"),
        if_newer!("declared_until"),
        if_newer!("last_seen"),
        if_newer!("hidden_since"),
        "public_version = GREATEST(public_version, VALUES(public_version)),
         own_version = GREATEST(own_version, VALUES(own_version))"
    ),
);

macro_rules! stored_online {
    ($here:literal) => {
        concat!(
            "SELECT user_id, hidden_since, last_seen, public_version, own_version, declared, declared_text,
                 declared_until
             FROM people_presence WHERE ",
            $here,
            " AND user_id > ? ORDER BY user_id LIMIT ?"
        )
    };
}

/// As the index of each database is written.
const STORED_ONLINE: Statement =
    Statement::each(stored_online!("here"), stored_online!("here"), stored_online!("here = 1"));

database::rows! {
    /// The columns of an outer join: all null where the user has no row.
    #[derive(Debug)]
    pub(crate) struct LastKnownRow {
        last_seen: Option<i64>,
        public_version: Option<i64>,
        own_version: Option<i64>,
        declared: Option<String>,
        declared_text: Option<String>,
        declared_until: Option<i64>,
    }
}

database::rows! {
    #[derive(Debug)]
    struct StoredPresenceRow {
        user_id: i64,
        hidden_since: Option<i64>,
        last: LastKnownRow,
    }
}

impl LastKnownRow {
    pub(crate) fn known(self) -> LastKnown {
        let row = self;
        let version = |number: Option<i64>| number.map_or(0, |number| u64::try_from(number).unwrap_or(0));
        let status = row.declared.as_deref().and_then(Declared::from_name);
        LastKnown {
            last_seen: row.last_seen.map(time_of),
            public_version: version(row.public_version),
            own_version: version(row.own_version),
            declaration: status.map(|status| Declaration {
                status,
                text: row.declared_text.map(String::into_boxed_str),
                until: row.declared_until.map(time_of),
            }),
        }
    }
}

impl FriendStore {
    /// Saves presence. Older versions than the stored ones are ignored.
    pub async fn save_presence(&self, batch: &[StoredPresence]) -> Result<(), FriendsError> {
        // Each user once, in an order common to all writers.
        let mut latest: BTreeMap<UserId, &StoredPresence> = BTreeMap::new();
        for presence in batch {
            let kept = latest.entry(presence.user).or_insert(presence);
            if versions(presence) >= versions(kept) {
                *kept = presence;
            }
        }
        let rows: Vec<[Value; 9]> = latest.values().map(|presence| values(presence)).collect();
        for chunk in rows.chunks(BATCH_MAX) {
            retry_on_conflict!(self, self.upsert_presence(chunk))?;
        }
        Ok(())
    }

    async fn upsert_presence(&self, rows: &[[Value; 9]]) -> Result<(), TransactionError> {
        let mut transaction = self.begin().await?;
        transaction.write_rows(UPSERT_PRESENCE, &Rows::new(rows.iter().cloned())).await?;
        Ok(transaction.commit().await?)
    }

    /// A page of the users that were online when their row was last written, with ids above `after`, sorted by id. A
    /// page shorter than `limit` is the last.
    pub async fn stored_online(
        &self,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<StoredPresence>, FriendsError> {
        let rows: Vec<StoredPresenceRow> =
            self.read(STORED_ONLINE, &[after.map_or(0, sql_id).into(), limit.into()]).await?;
        Ok(rows.into_iter().filter_map(stored_presence).collect())
    }
}

fn versions(presence: &StoredPresence) -> (u64, u64) {
    (presence.own_version, presence.public_version)
}

fn stored_presence(row: StoredPresenceRow) -> Option<StoredPresence> {
    let last = row.last.known();
    Some(StoredPresence {
        user: user_of(row.user_id)?,
        online: true,
        declaration: last.declaration,
        last_seen: last.last_seen,
        hidden_since: row.hidden_since.map(time_of),
        public_version: last.public_version,
        own_version: last.own_version,
    })
}

fn values(presence: &StoredPresence) -> [Value; 9] {
    let declaration = presence.declaration.as_ref();
    let moment = |at: Option<UnixTime>| Value::from(at.map(|at| at.0));
    [
        sql_id(presence.user).into(),
        presence.online.into(),
        declaration.map(|declared| declared.status.name()).into(),
        declaration.and_then(|declared| declared.text.as_deref()).map(without_nul).into(),
        moment(declaration.and_then(|declared| declared.until)),
        moment(presence.last_seen),
        moment(presence.hidden_since),
        sql_number(presence.public_version).into(),
        sql_number(presence.own_version).into(),
    ]
}

/// PostgreSQL rejects NUL in text, and one user's text must not fail a whole batch.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}
