//! The change log: the current rows of what has changed.

use database::{ChangeLog, ChangeLogReader, FromRow, Position, Row, SqlError};

use crate::clients::ClientRule;
use crate::ports::BannedPorts;
use crate::store::tables::Tables;
use crate::store::{Torrent, User};

pub(super) const LOG: ChangeLog = ChangeLog {
    table: "access_changes",
    columns: "kind, subject",
    newest: "SELECT newest FROM access_counter",
    trimmed_postgres: Some("access_trimmed"),
    channel_postgres: "access_changes",
    batch: Some(2_000),
};

#[derive(Debug)]
pub(super) enum LogRead {
    /// No changes; the new position.
    UpToDate(Position),
    Batch(Batch),
    /// Everything must be read again.
    Truncated,
}

/// The current rows of everything that a range of the log names.
#[derive(Debug)]
pub(super) struct Batch {
    /// The end of that range.
    pub(super) up_to: Position,
    /// None for a row that is removed or cannot be read.
    pub(super) users: Vec<(i64, Option<User>)>,
    /// None for a row that is removed or cannot be read.
    pub(super) torrents: Vec<(i64, Option<Torrent>)>,
    /// Set if one of the lists changed.
    pub(super) lists: Option<Lists>,
}

/// Tables that are short enough to be read completely.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) clients: Vec<ClientRule>,
    pub(super) banned_ports: Vec<BannedPorts>,
}

/// Log and tables are read in one snapshot.
pub(super) async fn read_after(log: &mut ChangeLogReader, known: &Position) -> Result<LogRead, SqlError> {
    let read = match log.read_after(known).await? {
        database::LogRead::UpToDate(position) => return Ok(LogRead::UpToDate(position)),
        database::LogRead::Changes(rows, up_to) => {
            LogRead::Batch(read_rows(&mut Tables::Session(log.session()), rows, up_to).await?)
        }
        database::LogRead::Truncated(_) => LogRead::Truncated,
    };
    log.end_snapshot().await?;
    Ok(read)
}

async fn read_rows(tables: &mut Tables<'_>, rows: Vec<Row>, up_to: Position) -> Result<Batch, SqlError> {
    let (mut users, mut torrents, mut has_lists) = (Vec::new(), Vec::new(), false);
    for mut row in rows {
        let (kind, subject): (String, i64) = FromRow::from_row(&mut row)?;
        match kind.as_str() {
            "user" => users.push(subject),
            "torrent" => torrents.push(subject),
            _ => has_lists = true,
        }
    }
    let lists = match has_lists {
        true => Some(Lists {
            clients: tables.all_clients().await?,
            banned_ports: tables.all_banned_ports().await?,
        }),
        false => None,
    };
    let (users, torrents) = (tables.rows_now(users).await?, tables.rows_now(torrents).await?);
    Ok(Batch { up_to, users, torrents, lists })
}
