//! Tables of which many rows are read and written at once, and their statements.

use std::sync::LazyLock;

use super::{ROWS_AS_JSON, ROWS_AS_TEXT, Statement};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    /// Beyond 64 bits; transferred as text.
    Amount,
    Text,
    Bytes,
}

/// The key columns come first.
struct Table {
    name: &'static str,
    keys: &'static [&'static str],
    others: &'static [&'static [(&'static str, Kind)]],
}

const SUMS: &[(&str, Kind)] = &[
    ("uploaded", Kind::Amount),
    ("downloaded", Kind::Amount),
    ("bonus_uploaded_x100", Kind::Amount),
    ("bonus_downloaded_x100", Kind::Amount),
    ("seeding_s", Kind::Number),
    ("leeching_s", Kind::Number),
    ("completed_count", Kind::Number),
    ("repeated_count", Kind::Number),
    ("first_seen", Kind::Number),
    ("last_seen", Kind::Number),
];

const LATEST: &[(&str, Kind)] =
    &[("latest_ts", Kind::Number), ("latest_ms", Kind::Number), ("latest_seq", Kind::Number)];

const USERS: Table = Table {
    name: "ledger_users",
    keys: &["id"],
    others: &[
        SUMS,
        &[
            ("bucket_since", Kind::Number),
            ("bucket_ts", Kind::Number),
            ("bucket_up", Kind::Number),
            ("bucket_down", Kind::Number),
        ],
    ],
};

const TORRENTS: Table = Table { name: "ledger_torrents", keys: &["id"], others: &[SUMS] };

const ACCOUNTS: Table = Table {
    name: "ledger_accounts",
    keys: &["user_id", "torrent_id"],
    others: &[
        SUMS,
        &[
            ("left_bytes", Kind::Number),
            ("seeding_clients", Kind::Number),
            ("leeching_clients", Kind::Number),
            ("completed_at", Kind::Number),
        ],
        LATEST,
        &[
            ("peer_id", Kind::Text),
            ("client", Kind::Text),
            ("time_spent", Kind::Bytes),
            ("present_until", Kind::Number),
            ("history", Kind::Number),
        ],
    ],
};

const CLIENTS: Table = Table {
    name: "ledger_clients",
    keys: &["user_id", "torrent_id", "client"],
    others: &[
        &[("presence", Kind::Number)],
        LATEST,
        &[("settled_until", Kind::Number), ("sums", Kind::Bytes)],
    ],
};

const RUNS: Table = Table {
    name: "ledger_runs",
    keys: &["user_id", "torrent_id", "client", "run", "node"],
    others: &[&[
        ("uploaded_low", Kind::Number),
        ("uploaded_high", Kind::Number),
        ("downloaded_low", Kind::Number),
        ("downloaded_high", Kind::Number),
        ("first_ts", Kind::Number),
        ("last_ts", Kind::Number),
        ("is_settled", Kind::Number),
        ("told", Kind::Bytes),
    ]],
};

const DEAD_LETTERS: Table = Table {
    name: "ledger_letters",
    keys: &["origin_ms", "origin_seq"],
    others: &[&[("applied_at", Kind::Number)]],
};

/// Number of key columns that clients and runs share.
const CLIENT_KEYS: usize = 3;

type Lazy = LazyLock<Statement>;

pub(crate) static ADD_USERS: Lazy = LazyLock::new(|| USERS.add());
pub(crate) static ADD_TORRENTS: Lazy = LazyLock::new(|| TORRENTS.add());
pub(crate) static LOCK_USERS: Lazy = LazyLock::new(|| USERS.find(1, " ORDER BY t.id FOR UPDATE OF t"));
pub(crate) static LOCK_TORRENTS: Lazy = LazyLock::new(|| TORRENTS.find(1, " ORDER BY t.id FOR UPDATE OF t"));
pub(crate) static FIND_USERS: Lazy = LazyLock::new(|| USERS.find(1, ""));
pub(crate) static FIND_ACCOUNTS: Lazy = LazyLock::new(|| ACCOUNTS.find(2, ""));
pub(crate) static FIND_CLIENTS: Lazy = LazyLock::new(|| CLIENTS.find(CLIENT_KEYS, ""));
pub(crate) static FIND_RUNS: Lazy = LazyLock::new(|| RUNS.find(CLIENT_KEYS, ""));
pub(crate) static FIND_DEAD_LETTERS: Lazy = LazyLock::new(|| DEAD_LETTERS.find(2, ""));
pub(crate) static SAVE_DEAD_LETTERS: Lazy = LazyLock::new(|| DEAD_LETTERS.save());
pub(crate) static SAVE_USERS: Lazy = LazyLock::new(|| USERS.save());
pub(crate) static SAVE_TORRENTS: Lazy = LazyLock::new(|| TORRENTS.save());
pub(crate) static SAVE_ACCOUNTS: Lazy = LazyLock::new(|| ACCOUNTS.save());
pub(crate) static SAVE_CLIENTS: Lazy = LazyLock::new(|| CLIENTS.save());
pub(crate) static SAVE_RUNS: Lazy = LazyLock::new(|| RUNS.save());
pub(crate) static DELETE_RUNS: Lazy = LazyLock::new(|| RUNS.delete(RUNS.keys.len()));
pub(crate) static DELETE_CLIENTS: Lazy = LazyLock::new(|| CLIENTS.delete(CLIENT_KEYS));
pub(crate) static DELETE_RUNS_OF_CLIENTS: Lazy = LazyLock::new(|| RUNS.delete(CLIENT_KEYS));

pub(crate) static USER: Lazy = LazyLock::new(|| USERS.select("WHERE t.id = ?"));
pub(crate) static USERS_AFTER: Lazy = LazyLock::new(|| USERS.select("WHERE t.id > ? ORDER BY t.id LIMIT ?"));
pub(crate) static TORRENT: Lazy = LazyLock::new(|| TORRENTS.select("WHERE t.id = ?"));
pub(crate) static ACCOUNT: Lazy =
    LazyLock::new(|| ACCOUNTS.select("WHERE t.user_id = ? AND t.torrent_id = ?"));
pub(crate) static ACCOUNTS_OF: Lazy = LazyLock::new(|| {
    ACCOUNTS.select("WHERE t.user_id = ? AND t.torrent_id > ? ORDER BY t.torrent_id LIMIT ?")
});
/// Newest first, then by user id.
pub(crate) static ACCOUNTS_ON: Lazy = LazyLock::new(|| {
    ACCOUNTS.select(
        "WHERE t.torrent_id = ? AND (t.latest_ts < ? OR (t.latest_ts = ? AND t.user_id < ?)) \
         ORDER BY t.latest_ts DESC, t.user_id DESC LIMIT ?",
    )
});
/// Candidates for hit-and-runs: too little active time.
pub(crate) static GONE_ACCOUNTS_AFTER: Lazy = LazyLock::new(|| {
    ACCOUNTS.select(
        "WHERE t.user_id >= ? AND (t.user_id > ? OR t.torrent_id > ?) AND t.seeding_s + t.leeching_s < ? \
         ORDER BY t.user_id, t.torrent_id LIMIT ?",
    )
});
pub(crate) static COMPLETIONS: Lazy = LazyLock::new(|| {
    Statement::portable(
        "SELECT id, completed_count FROM ledger_torrents WHERE id > ? AND completed_count > 0 ORDER BY id LIMIT ?",
    )
});
pub(crate) static CLIENTS_OF: Lazy = LazyLock::new(|| {
    CLIENTS.select("WHERE t.user_id = ? AND t.torrent_id = ? ORDER BY t.latest_ts DESC, t.client LIMIT ?")
});
pub(crate) static RUNS_OF: Lazy =
    LazyLock::new(|| RUNS.select("WHERE t.user_id = ? AND t.torrent_id = ? ORDER BY t.first_ts LIMIT ?"));
/// Written out, since not every database uses an index for tuple comparisons.
pub(crate) static CLIENTS_AFTER: Lazy = LazyLock::new(|| {
    CLIENTS.select(
        "WHERE t.user_id >= ? AND (t.user_id > ? OR t.torrent_id > ? OR (t.torrent_id = ? AND t.client > ?)) \
         ORDER BY t.user_id, t.torrent_id, t.client LIMIT ?",
    )
});

impl Table {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        let keys = self.keys.iter().map(|name| (*name, Kind::Number));
        keys.chain(self.others.iter().copied().flatten().copied()).collect()
    }

    fn other_names(&self) -> impl Iterator<Item = &'static str> {
        self.others.iter().copied().flatten().map(|(name, _)| *name)
    }

    /// All columns, amounts as text.
    fn listed(&self, as_text: impl Fn(&str) -> String) -> String {
        let shown = self.columns().into_iter().map(|(name, kind)| match kind {
            Kind::Number | Kind::Bytes => format!("t.{name}"),
            Kind::Amount | Kind::Text => format!("{} AS {name}", as_text(&format!("t.{name}"))),
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    fn listed_for_all(&self) -> Statement {
        Statement {
            sqlite: self.listed(str::to_owned),
            postgres: self.listed(|name| format!("{name}::text")),
            mysql: self.listed(|name| format!("CAST({name} AS CHAR)")),
        }
    }

    fn select(&self, which: &str) -> Statement {
        let (listed, choice) = (self.listed_for_all(), Statement::portable(which));
        let name = self.name;
        Statement {
            sqlite: format!("SELECT {} FROM {name} t {}", listed.sqlite, choice.sqlite),
            postgres: format!("SELECT {} FROM {name} t {}", listed.postgres, choice.postgres),
            mysql: format!("SELECT {} FROM {name} t {}", listed.mysql, choice.mysql),
        }
    }

    /// Reads the rows whose keys start with these. The list of keys comes first in every join, in its own order: so
    /// MariaDB takes locks in that order, as PostgreSQL does by sorting.
    fn find(&self, keys: usize, locking: &str) -> Statement {
        let listed = self.listed_for_all();
        let name = self.name;
        let on = |key: fn(usize) -> String| {
            let pairs = self.keys[..keys].iter().enumerate();
            pairs.map(|(n, column)| format!("t.{column} = {}", key(n))).collect::<Vec<_>>().join(" AND ")
        };
        let numbers = vec![Kind::Number; keys];
        let mysql_locking = if locking.is_empty() { "" } else { " FOR UPDATE" };
        Statement {
            sqlite: format!(
                "SELECT {} FROM json_each(?) k CROSS JOIN {name} t ON {}",
                listed.sqlite,
                on(|n| format!("k.value ->> {n}"))
            ),
            postgres: format!(
                "SELECT {} FROM {} JOIN {name} t ON {}{locking}",
                listed.postgres,
                unnest(&numbers),
                on(|n| format!("k.c{n}"))
            ),
            mysql: format!(
                "SELECT {} FROM {} STRAIGHT_JOIN {name} t ON {}{mysql_locking}",
                listed.mysql,
                json_table(&numbers),
                on(|n| format!("k.c{n}"))
            ),
        }
    }

    /// Inserts missing rows with these keys and default values.
    fn add(&self) -> Statement {
        let (name, key) = (self.name, self.keys[0]);
        let numbers = [Kind::Number];
        Statement {
            sqlite: format!("INSERT INTO {name} ({key}) VALUES (?) ON CONFLICT DO NOTHING"),
            postgres: format!(
                "INSERT INTO {name} ({key}) SELECT k.c0 FROM {} ON CONFLICT DO NOTHING",
                unnest(&numbers)
            ),
            mysql: format!("INSERT IGNORE INTO {name} ({key}) SELECT k.c0 FROM {}", json_table(&numbers)),
        }
    }

    /// Upserts rows.
    fn save(&self) -> Statement {
        let columns = self.columns();
        let kinds: Vec<Kind> = columns.iter().map(|(_, kind)| *kind).collect();
        let names = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let value = |(n, kind): (usize, &Kind)| match kind {
            Kind::Bytes => format!("unhex(value ->> {n})"),
            Kind::Number | Kind::Amount | Kind::Text => format!("value ->> {n}"),
        };
        let values = kinds.iter().enumerate().map(value).collect::<Vec<_>>().join(", ");
        let (name, keys) = (self.name, self.keys.join(", "));
        let over = |new: fn(&str) -> String| {
            self.other_names().map(|name| format!("{name} = {}", new(name))).collect::<Vec<_>>().join(", ")
        };
        let on_conflict =
            format!("ON CONFLICT ({keys}) DO UPDATE SET {}", over(|name| format!("excluded.{name}")));
        Statement {
            // Without a WHERE, SQLite would parse ON as part of a join.
            sqlite: format!(
                "INSERT INTO {name} ({names}) SELECT {values} FROM {ROWS_AS_JSON} WHERE true {on_conflict}"
            ),
            postgres: format!(
                "INSERT INTO {name} ({names}) SELECT {} FROM {} {on_conflict}",
                cast(&kinds),
                unnest(&kinds)
            ),
            mysql: format!(
                "INSERT INTO {name} ({names}) VALUES {ROWS_AS_TEXT} ON DUPLICATE KEY UPDATE {}",
                over(|name| format!("VALUES({name})"))
            ),
        }
    }

    /// Deletes the rows whose keys start with these.
    fn delete(&self, keys: usize) -> Statement {
        let name = self.name;
        let numbers = vec![Kind::Number; keys];
        let pairs = || self.keys[..keys].iter().enumerate();
        let places = pairs().map(|(_, column)| format!("{column} = ?")).collect::<Vec<_>>().join(" AND ");
        let on = pairs().map(|(n, column)| format!("t.{column} = k.c{n}")).collect::<Vec<_>>().join(" AND ");
        Statement {
            sqlite: format!("DELETE FROM {name} WHERE {places}"),
            postgres: format!("DELETE FROM {name} t USING {} WHERE {on}", unnest(&numbers)),
            mysql: format!("DELETE t FROM {} STRAIGHT_JOIN {name} t ON {on}", json_table(&numbers)),
        }
    }
}

/// PostgreSQL: rows as one array per column.
fn unnest(kinds: &[Kind]) -> String {
    let array = |(n, kind): (usize, &Kind)| match kind {
        Kind::Number => format!("${}::bigint[]", n + 1),
        Kind::Amount | Kind::Text => format!("${}::text[]", n + 1),
        Kind::Bytes => format!("${}::bytea[]", n + 1),
    };
    let arrays = kinds.iter().enumerate().map(array).collect::<Vec<_>>().join(", ");
    let names = (0..kinds.len()).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
    format!("UNNEST({arrays}) AS k({names})")
}

fn cast(kinds: &[Kind]) -> String {
    let column = |(n, kind): (usize, &Kind)| match kind {
        Kind::Amount => format!("k.c{n}::numeric"),
        Kind::Number | Kind::Text | Kind::Bytes => format!("k.c{n}"),
    };
    kinds.iter().enumerate().map(column).collect::<Vec<_>>().join(", ")
}

/// MariaDB and MySQL: rows as one JSON text.
fn json_table(kinds: &[Kind]) -> String {
    let column = |(n, kind): (usize, &Kind)| {
        let what = match kind {
            Kind::Number => "BIGINT",
            Kind::Amount => "DECIMAL(40, 0)",
            Kind::Text => "VARCHAR(255)",
            Kind::Bytes => "VARBINARY(255)",
        };
        format!("c{n} {what} PATH '$[{n}]'")
    };
    let columns = kinds.iter().enumerate().map(column).collect::<Vec<_>>().join(", ");
    format!("JSON_TABLE(?, '$[*]' COLUMNS ({columns})) k")
}
