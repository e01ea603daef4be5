//! The tables of the whitelist and of its change feed.
//!
//! Locks are always taken in this order, which prevents deadlocks: the row of `whitelist_state`, the row of a generation,
//! passkeys. Times are those of the database, because the clocks of the processes may differ.

use std::collections::HashSet;

use database::{Database, Kind, Rows, SqlError, Statement, Transaction, Value};
use domain::Passkey;

/// Databases limit the number of parameters.
const PASSKEYS_PER_STATEMENT: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generations {
    pub(super) current: i64,
    /// The current one before the last refresh.
    pub(super) previous: Option<i64>,
}

/// The state of a generation after its refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GenerationState {
    /// Current or previous.
    Kept,
    /// To be deleted.
    Dropped,
}

impl GenerationState {
    const fn text(self) -> &'static str {
        match self {
            GenerationState::Kept => "kept",
            GenerationState::Dropped => "dropped",
        }
    }
}

/// In the order of `passkeys`, of any number.
pub(super) async fn contains(database: &Database, passkeys: &[Passkey]) -> Result<Vec<bool>, SqlError> {
    let select = "SELECT passkey FROM whitelist_passkeys
         WHERE generation = (SELECT current_generation FROM whitelist_state) AND passkey {in}";
    let mut answers = Vec::with_capacity(passkeys.len());
    for batch in passkeys.chunks(PASSKEYS_PER_STATEMENT) {
        let present: Vec<String> = database.query(select, &[texts(batch)]).await?;
        let present: HashSet<Passkey> = present.iter().filter_map(|text| text.parse().ok()).collect();
        answers.extend(batch.iter().map(|passkey| present.contains(passkey)));
    }
    Ok(answers)
}

fn texts(passkeys: &[Passkey]) -> Value {
    Value::texts(passkeys.iter().map(Passkey::to_string))
}

/// Passkeys of the current generation.
pub(super) async fn count(database: &Database) -> Result<i64, SqlError> {
    let count = "SELECT count(*) FROM whitelist_passkeys
         WHERE generation = (SELECT current_generation FROM whitelist_state)";
    database.query_one(count, &[]).await?.ok_or(SqlError::RowMissing)
}

/// The tables inside a transaction.
pub(super) struct WhitelistTransaction(Transaction);

impl WhitelistTransaction {
    pub(super) async fn begin(database: &Database) -> Result<WhitelistTransaction, SqlError> {
        database.begin().await.map(WhitelistTransaction)
    }

    pub(super) async fn commit(self) -> Result<(), SqlError> {
        self.0.commit().await
    }

    /// Locks the state until the commit, against other switches, additions and removals.
    pub(super) async fn lock_generations(&mut self) -> Result<Generations, SqlError> {
        let select = "SELECT current_generation, previous_generation FROM whitelist_state {lock}";
        let (current, previous) = self.0.query_one(select, &[]).await?.ok_or(SqlError::RowMissing)?;
        Ok(Generations { current, previous })
    }

    pub(super) async fn set_generations(&mut self, generations: Generations) -> Result<(), SqlError> {
        let set = "UPDATE whitelist_state SET current_generation = ?, previous_generation = ?";
        let Generations { current, previous } = generations;
        self.0.execute(set, &[current.into(), previous.into()]).await.map(drop)
    }

    /// Updates the timestamp of a refresh. False if its generation was dropped or kept.
    pub(super) async fn touch(&mut self, generation: i64) -> Result<bool, SqlError> {
        let touch = "UPDATE whitelist_generations SET touched_at = {now} WHERE id = ? AND state = 'building'";
        Ok(self.0.execute(touch, &[generation.into()]).await? > 0)
    }

    pub(super) async fn set_state(
        &mut self,
        generation: i64,
        state: GenerationState,
    ) -> Result<(), SqlError> {
        let set = "UPDATE whitelist_generations SET state = ? WHERE id = ?";
        self.0.execute(set, &[state.text().into(), generation.into()]).await.map(drop)
    }

    /// Drops the generations of refreshes without a batch for this long. Returns how many.
    pub(super) async fn drop_idle(&mut self, idle_s: i64) -> Result<u64, SqlError> {
        let drop = "UPDATE whitelist_generations SET state = 'dropped'
             WHERE state = 'building' AND touched_at <= {now} - ?";
        self.0.execute(drop, &[idle_s.into()]).await
    }

    pub(super) async fn count_in(&mut self, generation: i64) -> Result<i64, SqlError> {
        let count = "SELECT count(*) FROM whitelist_passkeys WHERE generation = ?";
        self.0.query_one(count, &[generation.into()]).await?.ok_or(SqlError::RowMissing)
    }

    /// A dropped generation, locked, and the last passkey deleted from it.
    pub(super) async fn first_dropped(&mut self) -> Result<Option<(i64, String)>, SqlError> {
        let select = "SELECT id, cleared_to FROM whitelist_generations WHERE state = 'dropped'
             ORDER BY id LIMIT 1 {lock}";
        self.0.query_one(select, &[]).await
    }

    /// The passkey with `between` others between itself and `after`.
    pub(super) async fn nth_after(
        &mut self,
        generation: i64,
        after: &str,
        between: i64,
    ) -> Result<Option<String>, SqlError> {
        let select = "SELECT passkey FROM whitelist_passkeys WHERE generation = ? AND passkey > ?
             ORDER BY passkey LIMIT 1 OFFSET ?";
        self.0.query_one(select, &[generation.into(), after.into(), between.into()]).await
    }

    /// Deletes passkeys after `after`, up to and including `up_to`.
    pub(super) async fn delete_between(
        &mut self,
        generation: i64,
        after: &str,
        up_to: &str,
    ) -> Result<(), SqlError> {
        let delete = "DELETE FROM whitelist_passkeys WHERE generation = ? AND passkey > ? AND passkey <= ?";
        self.0.execute(delete, &[generation.into(), after.into(), up_to.into()]).await?;
        let set = "UPDATE whitelist_generations SET cleared_to = ? WHERE id = ?";
        self.0.execute(set, &[up_to.into(), generation.into()]).await.map(drop)
    }

    /// Deletes the passkeys after `after`, and the generation.
    pub(super) async fn delete_rest(&mut self, generation: i64, after: &str) -> Result<(), SqlError> {
        let delete = "DELETE FROM whitelist_passkeys WHERE generation = ? AND passkey > ?";
        self.0.execute(delete, &[generation.into(), after.into()]).await?;
        let delete = "DELETE FROM whitelist_generations WHERE id = ?";
        self.0.execute(delete, &[generation.into()]).await.map(drop)
    }

    /// Returns its id.
    pub(super) async fn new_generation(&mut self) -> Result<i64, SqlError> {
        let returning = "INSERT INTO whitelist_generations DEFAULT VALUES RETURNING id";
        let mysql = "SELECT CAST(last_insert_id() AS SIGNED)";
        if self.0.kind() == Kind::MySql {
            self.0.execute("INSERT INTO whitelist_generations () VALUES ()", &[]).await?;
        }
        let id = self.0.query_one(Statement::each(returning, returning, mysql), &[]).await?;
        id.ok_or(SqlError::RowMissing)
    }

    /// Returns how many were not in it.
    pub(super) async fn insert(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, SqlError> {
        let insert = "{insert or ignore} whitelist_passkeys (generation, passkey) {values} {or ignore}";
        let rows = passkeys.iter().map(|passkey| [generation.into(), passkey.to_string().into()]);
        self.0.write_rows(insert, &Rows::new(rows)).await
    }

    /// Returns how many were in it.
    pub(super) async fn delete(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, SqlError> {
        let delete = "DELETE FROM whitelist_passkeys WHERE generation = ? AND passkey {in}";
        let mut deleted = 0;
        for batch in passkeys.chunks(PASSKEYS_PER_STATEMENT) {
            deleted += self.0.execute(delete, &[generation.into(), texts(batch)]).await?;
        }
        Ok(deleted)
    }

    /// Reserves numbers for changes. Returns the last of them.
    pub(super) async fn take_numbers(&mut self, count: i64) -> Result<i64, SqlError> {
        let take = "UPDATE whitelist_state SET newest_change = newest_change + ?";
        self.0.execute(take, &[count.into()]).await?;
        self.0.query_one(NEWEST_CHANGE, &[]).await?.ok_or(SqlError::RowMissing)
    }

    /// Appends to the change feed, with numbers from `first`. No passkeys stand for all.
    pub(super) async fn insert_changes(
        &mut self,
        first: i64,
        kind: &'static str,
        passkeys: &[Passkey],
    ) -> Result<(), SqlError> {
        let named: Vec<Value> = match passkeys {
            [] => vec![None::<String>.into()],
            _ => passkeys.iter().map(|passkey| passkey.to_string().into()).collect(),
        };
        let rows = Rows::new((first..).zip(named).map(|(seq, passkey)| [seq.into(), kind.into(), passkey]));
        self.0.write_rows("INSERT INTO passkey_changes (seq, kind, passkey) {values}", &rows).await.map(drop)
    }

    pub(super) async fn trim_changes(&mut self, up_to: i64) -> Result<(), SqlError> {
        self.0.execute("DELETE FROM passkey_changes WHERE seq <= ?", &[up_to.into()]).await.map(drop)
    }
}

/// The number of the last change.
pub(super) const NEWEST_CHANGE: &str = "SELECT newest_change FROM whitelist_state";
