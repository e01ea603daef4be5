//! The rows that a batch touches, as the ledger's tables hold them.
//!
//! A second description of those tables, on purpose: what the ledger is held against must not be made by the ledger.

use std::collections::BTreeMap;

use domain::{TorrentId, UserId};
use journal::{Arrival, TrafficEntry};

/// A table whose rows are upserted.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// How many of the columns are its key.
    pub(super) keys: usize,
    /// All its columns, with what they hold.
    pub(super) columns: &'static [(&'static str, Holds)],
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Number,
    /// A number too large for 64 bits, written as text.
    Amount,
    Text,
    /// A few bytes, written as plain characters.
    Bytes,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(i64),
    Null,
    Text(String),
}

/// The rows of one table.
pub(super) type Rows = Vec<Vec<Value>>;

use Holds::{Amount, Bytes, Number, Text};

const FIGURES: [(&str, Holds); 11] = [
    ("id", Number),
    ("uploaded", Amount),
    ("downloaded", Amount),
    ("bonus_uploaded_x100", Amount),
    ("bonus_downloaded_x100", Amount),
    ("seeding_s", Number),
    ("leeching_s", Number),
    ("completed_count", Number),
    ("repeated_count", Number),
    ("first_seen", Number),
    ("last_seen", Number),
];

pub(super) const TABLES: [Table; 5] = [
    Table { name: "ledger_users", keys: 1, columns: &FIGURES },
    Table { name: "ledger_torrents", keys: 1, columns: &FIGURES },
    Table {
        name: "ledger_accounts",
        keys: 2,
        columns: &[
            ("user_id", Number),
            ("torrent_id", Number),
            ("uploaded", Amount),
            ("downloaded", Amount),
            ("bonus_uploaded_x100", Amount),
            ("bonus_downloaded_x100", Amount),
            ("seeding_s", Number),
            ("leeching_s", Number),
            ("completed_count", Number),
            ("repeated_count", Number),
            ("first_seen", Number),
            ("last_seen", Number),
            ("left_bytes", Number),
            ("seeding_clients", Number),
            ("leeching_clients", Number),
            ("completed_at", Number),
            ("latest_ts", Number),
            ("latest_ms", Number),
            ("latest_seq", Number),
            ("peer_id", Text),
            ("client", Text),
            ("time_spent", Bytes),
        ],
    },
    Table {
        name: "ledger_clients",
        keys: 3,
        columns: &[
            ("user_id", Number),
            ("torrent_id", Number),
            ("client", Number),
            ("presence", Number),
            ("latest_ts", Number),
            ("latest_ms", Number),
            ("latest_seq", Number),
            ("settled_until", Number),
        ],
    },
    Table {
        name: "ledger_runs",
        keys: 5,
        columns: &[
            ("user_id", Number),
            ("torrent_id", Number),
            ("client", Number),
            ("run", Number),
            ("node", Number),
            ("uploaded_low", Number),
            ("uploaded_high", Number),
            ("downloaded_low", Number),
            ("downloaded_high", Number),
            ("first_ts", Number),
            ("last_ts", Number),
            ("is_settled", Number),
            ("told", Bytes),
        ],
    },
];

/// The rows of each table that a batch touches, in the order of their keys. Entries of our own tracker name their
/// user, torrent and session; others would touch rows that nobody can tell beforehand, and are left out.
pub(super) fn rows_of(batch: &[Arrival]) -> [Rows; 5] {
    let named =
        batch.iter().filter_map(|arrival| Some((arrival.entry.user?, arrival.entry.torrent?, arrival)));
    let by_pair: BTreeMap<(UserId, TorrentId), &Arrival> =
        named.map(|(user, torrent, arrival)| ((user, torrent), arrival)).collect();
    let by_client: BTreeMap<ClientKey, &Arrival> = batch.iter().filter_map(client_key).collect();
    let users: BTreeMap<UserId, &Arrival> =
        by_pair.iter().map(|((user, _), arrival)| (*user, *arrival)).collect();
    let torrents: BTreeMap<TorrentId, &Arrival> =
        by_pair.iter().map(|((_, torrent), arrival)| (*torrent, *arrival)).collect();
    [
        users.iter().map(|(user, arrival)| figures(user.get(), &arrival.entry)).collect(),
        torrents.iter().map(|(torrent, arrival)| figures(torrent.get(), &arrival.entry)).collect(),
        by_pair.iter().map(|(key, arrival)| account(*key, arrival)).collect(),
        by_client.iter().map(|(key, arrival)| client(*key, arrival)).collect(),
        by_client.iter().map(|(key, arrival)| run(*key, &arrival.entry)).collect(),
    ]
}

fn number(number: u64) -> Value {
    Value::Number(number.cast_signed())
}

fn sums(entry: &TrafficEntry) -> [Value; 10] {
    let uploaded = entry.totals.map_or(0, |totals| totals.uploaded);
    let amount = |amount: u64| Value::Text(amount.to_string());
    let at = u64::from(entry.at.0);
    [
        amount(uploaded),
        amount(0),
        amount(0),
        amount(0),
        number(at),
        number(0),
        number(0),
        number(0),
        number(at),
        number(at),
    ]
}

fn figures(id: u64, entry: &TrafficEntry) -> Vec<Value> {
    std::iter::once(number(id)).chain(sums(entry)).collect()
}

fn stamp(arrival: &Arrival) -> [Value; 3] {
    [number(u64::from(arrival.entry.at.0)), number(arrival.origin.ms), number(arrival.origin.seq)]
}

fn account((user, torrent): (UserId, TorrentId), arrival: &Arrival) -> Vec<Value> {
    let entry = &arrival.entry;
    let is_seeding = u64::from(entry.is_complete());
    let mut row = vec![number(user.get()), number(torrent.get())];
    row.extend(sums(entry));
    row.extend([
        entry.left.map_or(Value::Null, number),
        number(is_seeding),
        number(1 - is_seeding),
        Value::Null,
    ]);
    row.extend(stamp(arrival));
    row.extend([Value::Text(entry.peer_id.to_string()), Value::Text("Transmission 4.0.5".to_owned())]);
    // One span of seeding.
    row.push(Value::Text("time spent".to_owned()));
    row
}

type ClientKey = (UserId, TorrentId, u64);

fn client_key(arrival: &Arrival) -> Option<(ClientKey, &Arrival)> {
    let entry = &arrival.entry;
    Some(((entry.user?, entry.torrent?, entry.totals?.session.client.0), arrival))
}

fn client((user, torrent, client): ClientKey, arrival: &Arrival) -> Vec<Value> {
    let presence = if arrival.entry.is_complete() { 1 } else { 2 };
    let mut row = [user.get(), torrent.get(), client, presence].map(number).to_vec();
    row.extend(stamp(arrival));
    row.push(number(0));
    row
}

fn run((user, torrent, client): ClientKey, entry: &TrafficEntry) -> Vec<Value> {
    let uploaded = entry.totals.map_or(0, |totals| totals.uploaded);
    let at = u64::from(entry.at.0);
    let node = entry.node.map_or(0, |node| node.0);
    let key = [user.get(), torrent.get(), client, 1, node];
    let figures = [1_000_000_000, uploaded, 0, 0, 1_800_000_000, at, 0];
    // As many as the ledger writes of a seeding client.
    let told = Value::Text("told".to_owned());
    key.into_iter().chain(figures).map(number).chain([told]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Mood, Traffic};

    #[test]
    fn every_row_has_a_value_for_every_column() {
        let batch = Traffic::new(100, Mood::Steady).arrivals(0..100).unwrap();
        let rows = rows_of(&batch);
        for (table, rows) in TABLES.iter().zip(&rows) {
            assert!(rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
        }
        let [users, torrents, accounts, clients, runs] = rows.map(|rows| rows.len());
        assert_eq!((users, torrents, clients, runs), (10, 10, 100, 100));
        assert!((users..=clients).contains(&accounts), "{accounts}");
    }
}
