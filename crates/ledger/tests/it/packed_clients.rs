//! The clients in the rows of their accounts: rows of older versions, and their bound.

use database::{Database, Migrations, Value};
use domain::clock::ManualClock;
use domain::{AnnounceEvent, ClientId, NodeId, PeerId, RunId, Seconds, SessionId, UnixTime};
use journal::{EntryId, Totals, TrafficEntry};
use ledger::{ClientState, LedgerSettings, applied};

use crate::support::simulator::{BEGIN, arrivals_of, entry, torrent, user};
use crate::support::{Known, Place, Risks, account, apply, figures, key, open, open_with};

const PEER: PeerId = PeerId(*b"-TR3000-abcdefghijkl");
/// Of the packed clients of an account: what its row may grow to.
const ROW_BYTES_MAX: i64 = 64 << 10;

fn of_client(client: u64, at: u32, uploaded: u64) -> TrafficEntry {
    let session = SessionId { client: ClientId(client), run: RunId(1) };
    TrafficEntry {
        since_last: Some(Seconds(60)),
        node: Some(NodeId(5)),
        totals: Some(Totals { session, uploaded, downloaded: 0 }),
        ..entry(1, 1, PEER, UnixTime(BEGIN + at), AnnounceEvent::None, 0)
    }
}

async fn clients_of_older_tables_keep_their_counters_and_applied_entries(place: Place) {
    let old = Migrations { list: &ledger::MIGRATIONS.list[..6], ..ledger::MIGRATIONS };
    let database = Database::open(&place.url).await.unwrap();
    database::migrate(&database, old).await.unwrap();
    let repeated = arrivals_of(vec![of_client(7, 0, 1000)])[0];
    let ids = applied::encode(&[repeated.id].into());
    let at = i64::from(BEGIN);
    let statements: [(String, Vec<Value>); 5] = [
        ("INSERT INTO ledger_users (id, uploaded) VALUES (1, '500')".to_owned(), vec![]),
        ("INSERT INTO ledger_accounts (user_id, torrent_id, uploaded, seeding_clients, peer_id, client, time_spent) \
          VALUES (1, 1, '500', 2, '', '', ?)".to_owned(), vec![Value::Bytes(vec![])]),
        (format!("INSERT INTO ledger_clients VALUES (1, 1, 7, 1, {at}, {}, 0, 0, ?), (1, 1, -2, 1, {at}, 5, 0, 0, ?)", at * 1000),
         vec![Value::Bytes(vec![]), Value::Bytes(vec![])]),
        (format!("INSERT INTO ledger_runs VALUES (1, 1, 7, 1, 5, 500, 1000, 0, 0, {at}, {at}, 0, ?), (1, 1, -2, 1, 5, 0, 0, 0, 0, {at}, {at}, 0, ?)"),
         vec![Value::Bytes(vec![]), Value::Bytes(vec![])]),
        ("INSERT INTO ledger_consumers (name, lane, applied, applied_max_ms) VALUES ('a', 'traffic', ?, ?)".to_owned(),
         vec![Value::Bytes(ids), Value::Integer(repeated.id.ms as i64)]),
    ];
    for (statement, values) in &statements {
        database.execute(statement.as_str(), values).await.unwrap();
    }
    let ledger = open(&place).await;
    let mut known: Vec<u64> =
        ledger.sessions_of(user(1), torrent(1)).await.unwrap().iter().map(|(client, _)| client.0).collect();
    known.sort_unstable();
    assert_eq!(known, [7, u64::MAX - 1]);
    // What was applied before the upgrade is left out; counters continue where they were.
    assert_eq!(apply(&ledger, "a", &[repeated]).await, []);
    assert_eq!((ledger.counts().repeated, figures(&ledger, 1).await.uploaded), (1, 500));
    apply(&ledger, "a", &arrivals_of(vec![of_client(7, 60, 1600), of_client(u64::MAX - 1, 60, 70)])).await;
    assert_eq!(figures(&ledger, 1).await.uploaded, 500 + 600 + 70);
    let explained = ledger.explain(key(1, 1), 10).await.unwrap().unwrap();
    assert_eq!((explained.clients.len(), explained.rest.uploaded), (2, 0));
    // Opening it again changes nothing.
    drop(ledger);
    let ledger = open(&place).await;
    assert_eq!(account(&ledger, 1, 1).await.figures.uploaded, 1170);
}

async fn the_clients_of_an_account_are_bounded_and_amounts_stay(place: Place) {
    let clock = ManualClock::at(UnixTime(BEGIN + 3050));
    let ledger =
        open_with(&place, LedgerSettings::default(), Known::default(), clock, Risks::default()).await;
    let clients = 1500_u32;
    let each =
        |client: u32| [of_client(client.into(), client * 2, 0), of_client(client.into(), client * 2 + 1, 10)];
    let arrivals = arrivals_of((1..=clients).flat_map(each).collect());
    for chunk in arrivals.chunks(700) {
        assert_eq!(apply(&ledger, "a", chunk).await, []);
    }
    let uploaded = u128::from(clients) * 10;
    assert_eq!(figures(&ledger, 1).await.uploaded, uploaded);
    let sessions = ledger.sessions_of(user(1), torrent(1)).await.unwrap();
    assert!(sessions.len() < 600, "{}", sessions.len());
    assert_eq!(sessions[0].0, ClientId(clients.into()), "the newest stay");
    assert_eq!(ledger.counts().removed_clients, u64::from(clients) - sessions.len() as u64);
    assert_eq!(account(&ledger, 1, 1).await.seeding_clients, sessions.len() as u64);
    let explained = ledger.explain(key(1, 1), 100).await.unwrap().unwrap();
    assert_eq!(explained.account.figures.uploaded, uploaded);
    let database = Database::open(&place.url).await.unwrap();
    let bytes: Option<i64> =
        database.query_one("SELECT length(clients) FROM ledger_accounts", &[]).await.unwrap();
    assert!(bytes.is_some_and(|bytes| bytes < ROW_BYTES_MAX), "{bytes:?}");

    // An entry of a removed client may have been applied under another id: its bytes do not count again.
    let late = arrivals_of(vec![TrafficEntry { at: UnixTime(BEGIN + 3), ..of_client(1, 3, 10) }])[0];
    let late = journal::DeliveredEntry { id: EntryId { seq: 9, ..late.id }, ..late };
    apply(&ledger, "b", &[late]).await;
    assert_eq!((ledger.counts().late, figures(&ledger, 1).await.uploaded), (1, uploaded));
    // A client that was removed and continues counts from where it is met again.
    apply(&ledger, "b", &arrivals_of(vec![of_client(1, 3010, 25), of_client(1, 3050, 32)])).await;
    assert_eq!(figures(&ledger, 1).await.uploaded, uploaded + 7);
    let now = ledger.sessions_of(user(1), torrent(1)).await.unwrap();
    assert_eq!((now[0].0, now[0].1.state), (ClientId(1), ClientState::Seeding));
}

on_every_database!(
    clients_of_older_tables_keep_their_counters_and_applied_entries,
    the_clients_of_an_account_are_bounded_and_amounts_stay,
);
