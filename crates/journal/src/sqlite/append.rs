//! Appending to a lane, and the tokens of its producers.

use std::sync::Arc;

use database::{SqlError, SqliteSession};

use super::absorb::absorb;
use super::{Failure, SqliteJournal, blocks, place};
use crate::block::{Block, blocks_of_events, blocks_of_fields};
use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::packed::PackedEvents;
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
        let entries = Encoded::new(lane, &batch.iter().collect::<Vec<_>>());
        self.append_encoded(lane, entries, token).await
    }

    pub(super) async fn append_packed(
        &self,
        events: &[PackedEvents],
        token: &AppendToken,
    ) -> Result<(), JournalError> {
        if events.iter().all(PackedEvents::is_empty) {
            return Ok(());
        }
        self.append_encoded(Lane::Traffic, Encoded::Blocks(blocks_of_events(events)), token).await
    }

    async fn append_encoded(
        &self,
        lane: Lane,
        entries: Encoded,
        token: &AppendToken,
    ) -> Result<(), JournalError> {
        let (token, clock) = (token.clone(), Arc::clone(&self.clock));
        let append = move |session: &SqliteSession| {
            if is_known(session, lane, &token)? {
                return Ok(false);
            }
            let last = store(session, lane, &entries, clock.now_ms())?;
            save_token(session, lane, &token, last)?;
            Ok(true)
        };
        if self.write(append).await? {
            self.notify_append(lane);
        }
        Ok(())
    }
}

/// Whether this batch, or a later one of the same producer, has been stored.
fn is_known(session: &SqliteSession, lane: Lane, token: &AppendToken) -> Result<bool, SqlError> {
    let last: Option<i64> = session.query_one(
        "SELECT number FROM producers WHERE lane = ?1 AND producer = ?2",
        &[place::lane_number(lane).into(), token.producer.as_str().into()],
    )?;
    Ok(last.is_some_and(|last| last >= number_of(token)))
}

fn number_of(token: &AppendToken) -> i64 {
    i64::try_from(token.number).unwrap_or(i64::MAX)
}

fn save_token(session: &SqliteSession, lane: Lane, token: &AppendToken, last: i64) -> Result<(), SqlError> {
    let lane = place::lane_number(lane);
    let row = [lane.into(), token.producer.as_str().into(), number_of(token).into(), last.into()];
    let update = "UPDATE producers SET number = ?3, place = ?4 WHERE lane = ?1 AND producer = ?2";
    if session.execute(update, &row)? > 0 {
        return Ok(());
    }
    session.execute("INSERT INTO producers (lane, producer, number, place) VALUES (?1, ?2, ?3, ?4)", &row)?;
    session.execute(
        "DELETE FROM producers WHERE lane = ?1 AND place <
            (SELECT place FROM producers WHERE lane = ?1 ORDER BY place DESC LIMIT 1 OFFSET ?2)",
        &[lane.into(), (PRODUCERS_MAX - 1).into()],
    )?;
    Ok(())
}

/// Returns the place of the last entry.
pub(super) fn store(
    session: &SqliteSession,
    lane: Lane,
    entries: &Encoded,
    now_ms: u64,
) -> Result<i64, Failure> {
    let rows = match entries {
        Encoded::Blocks(blocks) => {
            // Rows have earlier places.
            absorb(session)?;
            return blocks::append(session, blocks, now_ms);
        }
        Encoded::Rows(rows) => rows,
    };
    let last: Option<i64> =
        session.query_one("SELECT last FROM lanes WHERE lane = ?1", &[place::lane_number(lane).into()])?;
    let last = last.ok_or(SqlError::RowMissing)?;
    let first = place::at_most(lane, EntryId::at_ms(now_ms)).max(last + 1);
    let last = first.saturating_add(rows.count - 1);
    if last >= place::end_of(lane) {
        return Err(Failure::IdsExhausted);
    }
    let mut next = first;
    for piece in &rows.pieces {
        session.execute(
            "INSERT INTO entries (place, fields)
             SELECT ?1 + key, substr(?2, (value >> 32) + 1, value & 0xffffffff) FROM json_each(?3)",
            &[next.into(), piece.joined.as_slice().into(), piece.cuts.as_str().into()],
        )?;
        next += piece.count;
    }
    count_appended(session, lane, (last, rows.count))?;
    Ok(last)
}

/// Entries as they are inserted.
pub(super) enum Encoded {
    /// In the traffic lane.
    Blocks(Vec<Block>),
    /// In other lanes.
    Rows(Rows),
}

pub(super) struct Rows {
    pieces: Vec<Piece>,
    count: i64,
}

/// Several entries in one statement: one value, with a list of offsets and lengths. Several times faster than one
/// statement each.
struct Piece {
    joined: Vec<u8>,
    /// JSON.
    cuts: String,
    count: i64,
}

impl Encoded {
    pub(super) fn new(lane: Lane, entries: &[&Fields]) -> Encoded {
        if lane == Lane::Traffic {
            return Encoded::Blocks(blocks_of_fields(entries));
        }
        let pieces: Vec<Piece> = pieces(entries).map(Piece::new).collect();
        let count = pieces.iter().map(|piece| piece.count).sum();
        Encoded::Rows(Rows { pieces, count })
    }
}

impl Piece {
    fn new(entries: &[&Fields]) -> Piece {
        let bytes: usize = entries.iter().map(|entry| entry.as_bytes().len()).sum();
        let mut joined = Vec::with_capacity(bytes + 1);
        let mut cuts = Vec::with_capacity(entries.len());
        for entry in entries {
            let cut = (joined.len() << 32) | entry.as_bytes().len();
            cuts.push(i64::try_from(cut).expect("an entry in memory is shorter than 2 GiB"));
            joined.extend_from_slice(entry.as_bytes());
        }
        // For an empty value, `substr` would return NULL instead of an entry without fields.
        joined.push(0);
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        Piece { joined, cuts: place::numbers(cuts), count }
    }
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

fn count_appended(session: &SqliteSession, lane: Lane, (last, count): (i64, i64)) -> Result<(), SqlError> {
    let values = [place::lane_number(lane).into(), last.into(), count.into()];
    session.execute(
        "UPDATE lanes SET last = ?2, appended = appended + ?3, length = length + ?3 WHERE lane = ?1",
        &values,
    )?;
    // A group may start after entries that do not exist yet.
    session.execute(
        "UPDATE groups SET unread = unread + min(?3, ?2 - last_delivered) WHERE lane = ?1 AND last_delivered < ?2",
        &values,
    )?;
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
