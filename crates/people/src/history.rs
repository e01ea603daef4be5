//! Who came, who went, whose status changed; and how far that was told on.
//!
//! # Guarantees
//!
//! - Ids grow in the order of commits, without gaps: whoever reads behind the last id they know misses nothing.
//! - A batch is recorded as a whole or not at all. A call that failed because the connection was lost may have been
//!   done: whoever repeats it may record it twice.
//! - Who came and who went is kept until every cursor has passed it, however old it is.

use domain::UserId;
use presence::{Cause, DeviceId, Status};

use crate::error::PeopleError;
use crate::sql::{Bulk, Cell, Statement};
use crate::store::{People, Undone, as_often_as_it_takes, sql_id, sql_number, user_of};

/// Occurrences in one transaction.
const BATCH_MAX: usize = 5_000;
/// The longest name of a cursor.
const CURSOR_NAME_MAX: usize = 64;

/// Takes numbers. Whoever does keeps others from it until the commit.
const TAKE_NUMBERS: Statement = Statement::portable(
    "UPDATE people_counters SET newest = newest + $1 WHERE name = 'history'",
    "UPDATE people_counters SET newest = newest + ? WHERE name = 'history'",
);
const NEWEST: Statement = Statement::portable(
    "SELECT newest FROM people_counters WHERE name = 'history'",
    "SELECT newest FROM people_counters WHERE name = 'history'",
);

const RECORD: Bulk = Bulk {
    sqlite: "INSERT INTO people_history (id, user_id, at_ms, kind, from_status, to_status, cause, device)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    postgres: "INSERT INTO people_history (id, user_id, at_ms, kind, from_status, to_status, cause, device)
               SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::TEXT[],
                   $7::TEXT[], $8::TEXT[])",
    mysql: "INSERT INTO people_history (id, user_id, at_ms, kind, from_status, to_status, cause, device) ",
    mysql_end: "",
};

const OF_USER: Statement = Statement::portable(
    "SELECT id, user_id, at_ms, kind, from_status, to_status, cause, device FROM people_history
     WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
    "SELECT id, user_id, at_ms, kind, from_status, to_status, cause, device FROM people_history
     WHERE user_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
);
const ALL_AFTER: Statement = Statement::portable(
    "SELECT id, user_id, at_ms, kind, from_status, to_status, cause, device FROM people_history
     WHERE id > $1 ORDER BY id LIMIT $2",
    "SELECT id, user_id, at_ms, kind, from_status, to_status, cause, device FROM people_history
     WHERE id > ? ORDER BY id LIMIT ?",
);
const COMINGS_AFTER: Statement = Statement::portable(
    "SELECT id, user_id, at_ms, kind, from_status, to_status, cause, device FROM people_history
     WHERE kind IN ('arrived', 'left') AND id > $1 ORDER BY id LIMIT $2",
    "SELECT id, user_id, at_ms, kind, from_status, to_status, cause, device FROM people_history
     WHERE kind IN ('arrived', 'left') AND id > ? ORDER BY id LIMIT ?",
);

/// Looks at the oldest ones only, however many of them have to stay.
const PRUNE: Statement = Statement {
    sqlite: "DELETE FROM people_history WHERE id IN (
                 SELECT id FROM (SELECT id, at_ms, kind FROM people_history ORDER BY id LIMIT $1)
                 WHERE at_ms < $2 AND (kind = 'transition' OR id <= $3))",
    postgres: "DELETE FROM people_history WHERE id IN (
                   SELECT id FROM (SELECT id, at_ms, kind FROM people_history ORDER BY id LIMIT $1) AS oldest
                   WHERE at_ms < $2 AND (kind = 'transition' OR id <= $3))",
    mysql: "DELETE t FROM (SELECT id, at_ms, kind FROM people_history ORDER BY id LIMIT ?) AS oldest
            STRAIGHT_JOIN people_history t ON t.id = oldest.id
            WHERE oldest.at_ms < ? AND (oldest.kind = 'transition' OR oldest.id <= ?)",
};

const CURSOR: Statement = Statement::portable(
    "SELECT position FROM people_cursors WHERE name = $1",
    "SELECT position FROM people_cursors WHERE name = ?",
);
const CURSORS_MIN: Statement = Statement::portable(
    "SELECT min(position) FROM people_cursors",
    "SELECT min(position) FROM people_cursors",
);
const SET_CURSOR: Statement = Statement {
    sqlite: "INSERT INTO people_cursors (name, position) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET position = max(position, excluded.position)",
    postgres: "INSERT INTO people_cursors (name, position) VALUES ($1, $2)
               ON CONFLICT (name) DO UPDATE SET position = greatest(people_cursors.position, excluded.position)",
    mysql: "INSERT INTO people_cursors (name, position) VALUES (?, ?)
            ON DUPLICATE KEY UPDATE position = GREATEST(position, VALUES(position))",
};
const DROP_CURSOR: Statement = Statement::portable(
    "DELETE FROM people_cursors WHERE name = $1",
    "DELETE FROM people_cursors WHERE name = ?",
);

/// The number of an occurrence. Later ones have higher numbers; 0 lies before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OccurrenceId(pub u64);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccurrenceKind {
    /// The first session came.
    Arrived,
    /// The last session went.
    Left,
    /// Their own devices saw another status.
    Transition {
        /// What it was.
        from: Status,
        /// What it is.
        to: Status,
    },
}

impl OccurrenceKind {
    /// Its name, as the database has it.
    pub const fn name(self) -> &'static str {
        match self {
            OccurrenceKind::Arrived => "arrived",
            OccurrenceKind::Left => "left",
            OccurrenceKind::Transition { .. } => "transition",
        }
    }
}

/// Something that happened to somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Who.
    pub user: UserId,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub kind: OccurrenceKind,
    /// Why, if it is known.
    pub cause: Option<Cause>,
    /// By which device, if it was one.
    pub device: Option<DeviceId>,
}

/// An occurrence that has a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The number.
    pub id: OccurrenceId,
    /// What happened.
    pub occurrence: Occurrence,
}

/// Which occurrences are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// All.
    All,
    /// Who came and who went.
    ComingsAndGoings,
}

#[derive(Debug, sqlx::FromRow)]
struct HistoryRow {
    id: i64,
    user_id: i64,
    at_ms: i64,
    kind: String,
    from_status: Option<String>,
    to_status: Option<String>,
    cause: Option<String>,
    device: Option<String>,
}

impl HistoryRow {
    /// None for what nobody of us wrote.
    fn recorded(self) -> Option<Recorded> {
        let status = |name: Option<String>| name.as_deref().and_then(Status::from_name);
        let kind = match self.kind.as_str() {
            "arrived" => OccurrenceKind::Arrived,
            "left" => OccurrenceKind::Left,
            _ => OccurrenceKind::Transition { from: status(self.from_status)?, to: status(self.to_status)? },
        };
        let occurrence = Occurrence {
            user: user_of(self.user_id)?,
            at_ms: u64::try_from(self.at_ms).unwrap_or(0),
            kind,
            cause: self.cause.as_deref().and_then(Cause::from_name),
            device: self.device.as_deref().and_then(DeviceId::new),
        };
        Some(Recorded { id: OccurrenceId(u64::try_from(self.id).ok()?), occurrence })
    }
}

impl People {
    /// Records what happened, in this order.
    pub async fn record(&self, batch: &[Occurrence]) -> Result<(), PeopleError> {
        for chunk in batch.chunks(BATCH_MAX) {
            as_often_as_it_takes!(self, self.write_occurrences(chunk))?;
        }
        Ok(())
    }

    async fn write_occurrences(&self, batch: &[Occurrence]) -> Result<(), Undone> {
        let count = sql_number(batch.len() as u64);
        let mut page = self.begin().await?;
        page.on().write(&TAKE_NUMBERS, &[count.into()]).await?;
        let newest: Vec<(i64,)> = page.on().read(&NEWEST, &[]).await?;
        let (newest,) = newest.first().ok_or(sqlx::Error::RowNotFound)?;
        let rows: Vec<[Cell; 8]> =
            (newest - count + 1..).zip(batch).map(|(id, occurrence)| cells(id, occurrence)).collect();
        page.on().write_rows(&RECORD, &rows).await?;
        Ok(page.commit().await?)
    }

    /// What happened to somebody, newest first, before `before`.
    pub async fn history(
        &self,
        user: UserId,
        before: Option<OccurrenceId>,
        limit: u32,
    ) -> Result<Vec<Recorded>, PeopleError> {
        let before = before.map_or(i64::MAX, |id| sql_number(id.0));
        let rows: Vec<HistoryRow> =
            self.read(&OF_USER, &[sql_id(user).into(), before.into(), limit.into()]).await?;
        Ok(rows.into_iter().filter_map(HistoryRow::recorded).collect())
    }

    /// What happened behind `after`, oldest first.
    pub async fn occurrences_after(
        &self,
        after: OccurrenceId,
        kinds: Kinds,
        limit: u32,
    ) -> Result<Vec<Recorded>, PeopleError> {
        let statement = match kinds {
            Kinds::All => &ALL_AFTER,
            Kinds::ComingsAndGoings => &COMINGS_AFTER,
        };
        let rows: Vec<HistoryRow> = self.read(statement, &[sql_number(after.0).into(), limit.into()]).await?;
        Ok(rows.into_iter().filter_map(HistoryRow::recorded).collect())
    }

    /// The number of the last occurrence ever recorded, also if it is gone; 0 if there was none.
    pub async fn newest_occurrence(&self) -> Result<OccurrenceId, PeopleError> {
        let newest: Vec<(i64,)> = self.read(&NEWEST, &[]).await?;
        Ok(OccurrenceId(newest.first().map_or(0, |(newest,)| newest.unsigned_abs())))
    }

    /// Forgets what happened before `before_ms`, of the `rows_max` oldest occurrences. Tells how many are gone: as many
    /// as were looked at means that there may be more. Who came and who went stays until every cursor has passed it.
    pub async fn prune_history(&self, before_ms: u64, rows_max: u32) -> Result<u64, PeopleError> {
        as_often_as_it_takes!(self, self.delete_occurrences(before_ms, rows_max))
    }

    async fn delete_occurrences(&self, before_ms: u64, rows_max: u32) -> Result<u64, Undone> {
        let mut page = self.begin().await?;
        let slowest: Vec<(Option<i64>,)> = page.on().read(&CURSORS_MIN, &[]).await?;
        let told = slowest.first().and_then(|(position,)| *position).unwrap_or(i64::MAX);
        let cells = [rows_max.into(), sql_number(before_ms).into(), told.into()];
        let gone = page.on().write(&PRUNE, &cells).await?;
        page.commit().await?;
        Ok(gone)
    }

    /// How far somebody has told the history on; none if they never have.
    pub async fn cursor(&self, name: &str) -> Result<Option<OccurrenceId>, PeopleError> {
        let rows: Vec<(i64,)> = self.read(&CURSOR, &[cursor_name(name)?]).await?;
        Ok(rows.first().map(|(position,)| OccurrenceId(position.unsigned_abs())))
    }

    /// Notes how far somebody has told the history on. A cursor never goes back.
    pub async fn set_cursor(&self, name: &str, position: OccurrenceId) -> Result<(), PeopleError> {
        let cells = [cursor_name(name)?, sql_number(position.0).into()];
        as_often_as_it_takes!(self, self.write_cursor(&SET_CURSOR, &cells))
    }

    /// Forgets a cursor: nobody tells the history on under this name any more, so nothing is kept for it.
    pub async fn drop_cursor(&self, name: &str) -> Result<(), PeopleError> {
        let cells = [cursor_name(name)?];
        as_often_as_it_takes!(self, self.write_cursor(&DROP_CURSOR, &cells))
    }

    async fn write_cursor(&self, statement: &Statement, cells: &[Cell]) -> Result<(), Undone> {
        let mut page = self.begin().await?;
        page.on().write(statement, cells).await?;
        Ok(page.commit().await?)
    }
}

fn cursor_name(name: &str) -> Result<Cell, PeopleError> {
    let fits = (1..=CURSOR_NAME_MAX).contains(&name.len());
    match fits && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(name.into()),
        false => Err(PeopleError::CursorName),
    }
}

fn cells(id: i64, told: &Occurrence) -> [Cell; 8] {
    let (from, to) = match told.kind {
        OccurrenceKind::Transition { from, to } => (Some(from), Some(to)),
        OccurrenceKind::Arrived | OccurrenceKind::Left => (None, None),
    };
    let status = |status: Option<Status>| Cell::Text(status.map(|status| status.name().to_owned()));
    [
        id.into(),
        sql_id(told.user).into(),
        sql_number(told.at_ms).into(),
        told.kind.name().into(),
        status(from),
        status(to),
        Cell::Text(told.cause.map(|cause| cause.name().to_owned())),
        Cell::Text(told.device.as_ref().map(|device| device.as_str().to_owned())),
    ]
}
