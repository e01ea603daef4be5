//! Presence history: arrivals, departures and status changes, with cursors for its readers.
//!
//! # Guarantees
//!
//! - Ids follow the commit order without gaps: a reader that continues after its last id misses nothing.
//! - A batch is recorded as a whole or not at all. A call that failed because the connection was lost may have
//!   committed; repeating it may record the batch twice.
//! - Arrivals and departures are kept until every cursor has passed them, whatever their age.

use database::{Rows, SqlError, Statement, Value};
use domain::UserId;
use presence::{Cause, DeviceId, Status};

use crate::error::FriendsError;
use crate::store::{FriendStore, TransactionError, retry_on_conflict, sql_id, sql_number, user_of};

/// Events in one transaction.
const BATCH_MAX: usize = 5_000;
const CURSOR_NAME_MAX: usize = 64;

/// Holds the row lock until the commit, so ids follow the commit order.
const RESERVE_IDS: &str = "UPDATE people_counters SET newest = newest + ? WHERE name = 'history'";
const NEWEST: &str = "SELECT newest FROM people_counters WHERE name = 'history'";

macro_rules! columns {
    () => {
        "id, user_id, at_ms, kind, from_status, to_status, cause, device"
    };
}

const INSERT_EVENTS: &str = concat!("INSERT INTO people_history (", columns!(), ") {values}");

macro_rules! events {
    ($which:literal) => {
        concat!("SELECT ", columns!(), " FROM people_history WHERE ", $which)
    };
}

const OF_USER: &str = events!("user_id = ? AND id < ? ORDER BY id DESC LIMIT ?");
const ALL_AFTER: &str = events!("id > ? ORDER BY id LIMIT ?");
const ARRIVALS_AFTER: &str = events!("kind IN ('arrived', 'left') AND id > ? ORDER BY id LIMIT ?");

const PRUNE_LISTED: &str = "DELETE FROM people_history WHERE id IN (
         SELECT id FROM (SELECT id, at_ms, kind FROM people_history ORDER BY id LIMIT ?) AS oldest
         WHERE at_ms < ? AND (kind = 'transition' OR id <= ?))";
/// Examines only the oldest rows, even if all of them have to be kept.
const PRUNE: Statement = Statement::each(
    PRUNE_LISTED,
    PRUNE_LISTED,
    "DELETE t FROM (SELECT id, at_ms, kind FROM people_history ORDER BY id LIMIT ?) AS oldest
     STRAIGHT_JOIN people_history t ON t.id = oldest.id
     WHERE oldest.at_ms < ? AND (oldest.kind = 'transition' OR oldest.id <= ?)",
);

const CURSOR: &str = "SELECT position FROM people_cursors WHERE name = ?";
const CURSORS_MIN: &str = "SELECT min(position) FROM people_cursors";
const SET_CURSOR: &str = "INSERT INTO people_cursors (name, position) VALUES (?, ?)
     {upsert name} position = {greatest}(people_cursors.position, {new position})";
const DROP_CURSOR: &str = "DELETE FROM people_cursors WHERE name = ?";

/// Ids grow with time; 0 is before the first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PresenceEventId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceEventKind {
    /// The user's first session started.
    Arrived,
    /// The user's last session ended.
    Left,
    /// The status that the user's own devices see changed.
    Transition { from: Status, to: Status },
}

impl PresenceEventKind {
    /// The name in the database.
    pub const fn name(self) -> &'static str {
        match self {
            PresenceEventKind::Arrived => "arrived",
            PresenceEventKind::Left => "left",
            PresenceEventKind::Transition { .. } => "transition",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceEvent {
    pub user: UserId,
    /// In milliseconds since 1970.
    pub at_ms: u64,
    pub kind: PresenceEventKind,
    pub cause: Option<Cause>,
    pub device: Option<DeviceId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    pub id: PresenceEventId,
    pub event: PresenceEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFilter {
    All,
    ArrivalsAndDepartures,
}

database::rows! {
    #[derive(Debug)]
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
}

impl HistoryRow {
    /// None for rows with invalid values.
    fn recorded(self) -> Option<RecordedEvent> {
        let status = |name: Option<String>| name.as_deref().and_then(Status::from_name);
        let kind = match self.kind.as_str() {
            "arrived" => PresenceEventKind::Arrived,
            "left" => PresenceEventKind::Left,
            _ => {
                PresenceEventKind::Transition { from: status(self.from_status)?, to: status(self.to_status)? }
            }
        };
        let event = PresenceEvent {
            user: user_of(self.user_id)?,
            at_ms: u64::try_from(self.at_ms).unwrap_or(0),
            kind,
            cause: self.cause.as_deref().and_then(Cause::from_name),
            device: self.device.as_deref().and_then(DeviceId::new),
        };
        Some(RecordedEvent { id: PresenceEventId(u64::try_from(self.id).ok()?), event })
    }
}

impl FriendStore {
    /// Records events in this order.
    pub async fn record(&self, batch: &[PresenceEvent]) -> Result<(), FriendsError> {
        for chunk in batch.chunks(BATCH_MAX) {
            retry_on_conflict!(self, self.insert_events(chunk))?;
        }
        Ok(())
    }

    async fn insert_events(&self, batch: &[PresenceEvent]) -> Result<(), TransactionError> {
        let count = sql_number(batch.len() as u64);
        let mut transaction = self.begin().await?;
        transaction.execute(RESERVE_IDS, &[count.into()]).await?;
        let newest: Option<i64> = transaction.query_one(NEWEST, &[]).await?;
        let newest = newest.ok_or(SqlError::RowMissing)?;
        let rows = Rows::new((newest - count + 1..).zip(batch).map(|(id, event)| values(id, event)));
        transaction.write_rows(INSERT_EVENTS, &rows).await?;
        Ok(transaction.commit().await?)
    }

    /// A user's events with ids below `before`, newest first.
    pub async fn history(
        &self,
        user: UserId,
        before: Option<PresenceEventId>,
        limit: u32,
    ) -> Result<Vec<RecordedEvent>, FriendsError> {
        let before = before.map_or(i64::MAX, |id| sql_number(id.0));
        let rows: Vec<HistoryRow> =
            self.read(OF_USER, &[sql_id(user).into(), before.into(), limit.into()]).await?;
        Ok(rows.into_iter().filter_map(HistoryRow::recorded).collect())
    }

    /// Events with ids above `after`, oldest first.
    pub async fn events_after(
        &self,
        after: PresenceEventId,
        kinds: EventFilter,
        limit: u32,
    ) -> Result<Vec<RecordedEvent>, FriendsError> {
        let statement = match kinds {
            EventFilter::All => ALL_AFTER,
            EventFilter::ArrivalsAndDepartures => ARRIVALS_AFTER,
        };
        let rows: Vec<HistoryRow> = self.read(statement, &[sql_number(after.0).into(), limit.into()]).await?;
        Ok(rows.into_iter().filter_map(HistoryRow::recorded).collect())
    }

    /// The id of the last event ever recorded, even if it was pruned; 0 if there was none.
    pub async fn newest_event(&self) -> Result<PresenceEventId, FriendsError> {
        let newest: Vec<i64> = self.read(NEWEST, &[]).await?;
        Ok(PresenceEventId(newest.first().map_or(0, |newest| newest.unsigned_abs())))
    }

    /// Deletes events older than `before_ms` among the `rows_max` oldest rows. Returns how many were deleted;
    /// `rows_max` means that there may be more. Arrivals and departures stay until every cursor has passed them.
    pub async fn prune_history(&self, before_ms: u64, rows_max: u32) -> Result<u64, FriendsError> {
        retry_on_conflict!(self, self.delete_events(before_ms, rows_max))
    }

    async fn delete_events(&self, before_ms: u64, rows_max: u32) -> Result<u64, TransactionError> {
        let mut transaction = self.begin().await?;
        let slowest: Option<Option<i64>> = transaction.query_one(CURSORS_MIN, &[]).await?;
        let event = slowest.flatten().unwrap_or(i64::MAX);
        let values = [rows_max.into(), sql_number(before_ms).into(), event.into()];
        let gone = transaction.execute(PRUNE, &values).await?;
        transaction.commit().await?;
        Ok(gone)
    }

    /// The position of a reader of the history; none if it never set one.
    pub async fn cursor(&self, name: &str) -> Result<Option<PresenceEventId>, FriendsError> {
        let rows: Vec<i64> = self.read(CURSOR, &[cursor_name(name)?]).await?;
        Ok(rows.first().map(|position| PresenceEventId(position.unsigned_abs())))
    }

    /// Advances a cursor. A cursor never moves back.
    pub async fn set_cursor(&self, name: &str, position: PresenceEventId) -> Result<(), FriendsError> {
        let values = [cursor_name(name)?, sql_number(position.0).into()];
        retry_on_conflict!(self, self.write_cursor(SET_CURSOR, &values))
    }

    /// Removes a cursor, so that no events are kept for it any more.
    pub async fn drop_cursor(&self, name: &str) -> Result<(), FriendsError> {
        let values = [cursor_name(name)?];
        retry_on_conflict!(self, self.write_cursor(DROP_CURSOR, &values))
    }

    async fn write_cursor(&self, statement: &str, values: &[Value]) -> Result<(), TransactionError> {
        let mut transaction = self.begin().await?;
        transaction.execute(statement, values).await?;
        Ok(transaction.commit().await?)
    }
}

fn cursor_name(name: &str) -> Result<Value, FriendsError> {
    let fits = (1..=CURSOR_NAME_MAX).contains(&name.len());
    match fits && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(name.into()),
        false => Err(FriendsError::CursorName),
    }
}

fn values(id: i64, event: &PresenceEvent) -> [Value; 8] {
    let (from, to) = match event.kind {
        PresenceEventKind::Transition { from, to } => (Some(from), Some(to)),
        PresenceEventKind::Arrived | PresenceEventKind::Left => (None, None),
    };
    let status = |status: Option<Status>| Value::from(status.map(|status| status.name()));
    [
        id.into(),
        sql_id(event.user).into(),
        sql_number(event.at_ms).into(),
        event.kind.name().into(),
        status(from),
        status(to),
        event.cause.map(|cause| cause.name()).into(),
        event.device.as_ref().map(DeviceId::as_str).into(),
    ]
}
