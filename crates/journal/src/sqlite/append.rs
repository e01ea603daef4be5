//! Appending to a lane, and the tokens of its producers.

use sqlx::SqliteConnection;

use super::{SqliteJournal, place};
use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::port::{AppendToken, Lane};

/// Entries are inserted in pieces of about this size, far below SQLite's limit.
const PIECE_BYTES: usize = 8 << 20;
/// Producers stored per lane. Each process start adds one; a dropped one has been inactive for this many starts.
const PRODUCERS_MAX: i64 = 1_000;

impl SqliteJournal {
    pub(super) async fn append_batch(
        &self,
        lane: Lane,
        batch: &[Fields],
        token: &AppendToken,
    ) -> Result<(), JournalError> {
        if batch.is_empty() {
            return Ok(());
        }
        let fields: Vec<&Fields> = batch.iter().collect();
        let mut writing = self.begin().await?;
        let is_new = async {
            if is_known(&mut writing.transaction, lane, token).await? {
                return Ok(false);
            }
            let last = store(&mut writing.transaction, lane, &fields, self.clock.now_ms()).await?;
            save_token(&mut writing.transaction, lane, token, last).await?;
            Ok(true)
        };
        if is_new.await.map_err(|error| self.explain(error))? {
            self.commit(writing).await?;
            self.notify_append(lane);
        }
        Ok(())
    }
}

/// Whether this batch, or a later one of the same producer, has been stored.
async fn is_known(
    connection: &mut SqliteConnection,
    lane: Lane,
    token: &AppendToken,
) -> Result<bool, sqlx::Error> {
    let last: Option<i64> =
        sqlx::query_scalar("SELECT number FROM producers WHERE lane = ?1 AND producer = ?2")
            .bind(place::lane_number(lane))
            .bind(&token.producer)
            .fetch_optional(connection)
            .await?;
    Ok(last.is_some_and(|last| last >= number_of(token)))
}

fn number_of(token: &AppendToken) -> i64 {
    i64::try_from(token.number).unwrap_or(i64::MAX)
}

async fn save_token(
    connection: &mut SqliteConnection,
    lane: Lane,
    token: &AppendToken,
    last: i64,
) -> Result<(), sqlx::Error> {
    let known = sqlx::query("UPDATE producers SET number = ?3, place = ?4 WHERE lane = ?1 AND producer = ?2")
        .bind(place::lane_number(lane))
        .bind(&token.producer)
        .bind(number_of(token))
        .bind(last)
        .execute(&mut *connection)
        .await?;
    if known.rows_affected() > 0 {
        return Ok(());
    }
    sqlx::query("INSERT INTO producers (lane, producer, number, place) VALUES (?1, ?2, ?3, ?4)")
        .bind(place::lane_number(lane))
        .bind(&token.producer)
        .bind(number_of(token))
        .bind(last)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "DELETE FROM producers WHERE lane = ?1 AND place <
            (SELECT place FROM producers WHERE lane = ?1 ORDER BY place DESC LIMIT 1 OFFSET ?2)",
    )
    .bind(place::lane_number(lane))
    .bind(PRODUCERS_MAX - 1)
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns the place of the last entry.
pub(super) async fn store(
    connection: &mut SqliteConnection,
    lane: Lane,
    entries: &[&Fields],
    now_ms: u64,
) -> Result<i64, sqlx::Error> {
    let last: i64 = sqlx::query_scalar("SELECT last FROM lanes WHERE lane = ?1")
        .bind(place::lane_number(lane))
        .fetch_one(&mut *connection)
        .await?;
    let first = place::at_most(lane, EntryId::at_ms(now_ms)).max(last + 1);
    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let last = first.saturating_add(count - 1);
    if last >= place::end_of(lane) {
        return Err(sqlx::Error::Protocol("the clock is beyond the year 2248: no ids are left".to_owned()));
    }
    let mut next = first;
    for piece in pieces(entries) {
        insert(connection, next, piece).await?;
        next += i64::try_from(piece.len()).unwrap_or(i64::MAX);
    }
    count_appended(connection, lane, (last, count)).await?;
    Ok(last)
}

/// Splits entries into pieces of at most `PIECE_BYTES`, except for larger single entries.
fn pieces<'a, 'b>(entries: &'b [&'a Fields]) -> impl Iterator<Item = &'b [&'a Fields]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|entry| {
            bytes += entry.as_bytes().len();
            bytes <= PIECE_BYTES
        });
        let length = fitting.count().max(1).min(rest.len());
        let (piece, others) = rest.split_at(length);
        rest = others;
        (!piece.is_empty()).then_some(piece)
    })
}

/// All entries in one statement: one value, with a list of offsets and lengths. Several times faster than one statement
/// each.
async fn insert(
    connection: &mut SqliteConnection,
    first: i64,
    entries: &[&Fields],
) -> Result<(), sqlx::Error> {
    let mut joined =
        Vec::with_capacity(entries.iter().map(|entry| entry.as_bytes().len()).sum::<usize>() + 1);
    let mut cuts = Vec::with_capacity(entries.len());
    for entry in entries {
        let bytes = entry.as_bytes();
        let cut = (joined.len() << 32) | bytes.len();
        cuts.push(i64::try_from(cut).map_err(|_| sqlx::Error::Protocol("an entry is too large".to_owned()))?);
        joined.extend_from_slice(bytes);
    }
    // For an empty value, `substr` would return NULL instead of an entry without fields.
    joined.push(0);
    sqlx::query(
        "INSERT INTO entries (place, fields)
         SELECT ?1 + key, substr(?2, (value >> 32) + 1, value & 0xffffffff) FROM json_each(?3)",
    )
    .bind(first)
    .bind(joined)
    .bind(place::numbers(cuts))
    .execute(connection)
    .await?;
    Ok(())
}

async fn count_appended(
    connection: &mut SqliteConnection,
    lane: Lane,
    (last, count): (i64, i64),
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE lanes SET last = ?2, appended = appended + ?3, length = length + ?3 WHERE lane = ?1")
        .bind(place::lane_number(lane))
        .bind(last)
        .bind(count)
        .execute(&mut *connection)
        .await?;
    // A group may start after entries that do not exist yet.
    sqlx::query(
        "UPDATE groups SET unread = unread + min(?3, ?2 - last_delivered) WHERE lane = ?1 AND last_delivered < ?2",
    )
    .bind(place::lane_number(lane))
    .bind(last)
    .bind(count)
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_entries_are_inserted_in_several_pieces() {
        let entry = |bytes: usize| -> Fields { [("large", "x".repeat(bytes))].into_iter().collect() };
        let (small, large, huge) = (entry(10), entry(PIECE_BYTES / 2), entry(PIECE_BYTES * 2));
        let lengths = |entries: &[&Fields]| pieces(entries).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[&small; 5_000]), [5_000]);
        assert_eq!(lengths(&[&large, &large, &small, &huge, &huge, &small]), [1, 2, 1, 1, 1]);
    }
}
