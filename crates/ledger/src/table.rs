//! Tables of which many rows are read and written at once, and their statements.

use std::sync::LazyLock;

/// Of columns beyond 64 bits, which are read as text.
const AMOUNTS: [&str; 4] = ["uploaded", "downloaded", "bonus_uploaded_x100", "bonus_downloaded_x100"];

/// The key columns come first.
struct Table {
    name: &'static str,
    keys: &'static [&'static str],
    others: &'static [&'static [&'static str]],
}

const SUMS: &[&str] = &[
    "uploaded",
    "downloaded",
    "bonus_uploaded_x100",
    "bonus_downloaded_x100",
    "seeding_s",
    "leeching_s",
    "completed_count",
    "repeated_count",
    "first_seen",
    "last_seen",
];

const LATEST: &[&str] = &["latest_ts", "latest_ms", "latest_seq"];

const USERS: Table = Table {
    name: "ledger_users",
    keys: &["id"],
    others: &[SUMS, &["bucket_since", "bucket_ts", "bucket_up", "bucket_down"]],
};

const TORRENTS: Table = Table { name: "ledger_torrents", keys: &["id"], others: &[SUMS] };

const ACCOUNTS: Table = Table {
    name: "ledger_accounts",
    keys: &["user_id", "torrent_id"],
    others: &[
        SUMS,
        &["left_bytes", "seeding_clients", "leeching_clients", "completed_at"],
        LATEST,
        &["peer_id", "client", "time_spent", "present_until", "history"],
    ],
};

const CLIENTS: Table = Table {
    name: "ledger_clients",
    keys: &["user_id", "torrent_id", "client"],
    others: &[&["presence"], LATEST, &["settled_until", "sums"]],
};

const RUNS: Table = Table {
    name: "ledger_runs",
    keys: &["user_id", "torrent_id", "client", "run", "node"],
    others: &[&[
        "uploaded_low",
        "uploaded_high",
        "downloaded_low",
        "downloaded_high",
        "first_ts",
        "last_ts",
        "is_settled",
        "told",
    ]],
};

const DEAD_LETTERS: Table =
    Table { name: "ledger_letters", keys: &["origin_ms", "origin_seq"], others: &[&["applied_at"]] };

/// Number of key columns that clients and runs share.
const CLIENT_KEYS: usize = 3;

type Lazy = LazyLock<String>;
/// For SQLite, PostgreSQL and MariaDB.
type LazyEach = LazyLock<[String; 3]>;

pub(crate) static ADD_USERS: Lazy = LazyLock::new(|| USERS.add());
pub(crate) static ADD_TORRENTS: Lazy = LazyLock::new(|| TORRENTS.add());
pub(crate) static LOCK_USERS: Lazy = LazyLock::new(|| USERS.find(1, " ORDER BY t.id {lock}"));
pub(crate) static LOCK_TORRENTS: Lazy = LazyLock::new(|| TORRENTS.find(1, " ORDER BY t.id {lock}"));
pub(crate) static FIND_USERS: Lazy = LazyLock::new(|| USERS.find(1, ""));
pub(crate) static FIND_TORRENTS: Lazy = LazyLock::new(|| TORRENTS.find(1, ""));
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
pub(crate) static DELETE_RUNS: LazyEach = LazyLock::new(|| RUNS.delete(RUNS.keys.len()));
pub(crate) static DELETE_CLIENTS: LazyEach = LazyLock::new(|| CLIENTS.delete(CLIENT_KEYS));
pub(crate) static DELETE_RUNS_OF_CLIENTS: LazyEach = LazyLock::new(|| RUNS.delete(CLIENT_KEYS));

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
pub(crate) const COMPLETIONS: &str = "SELECT id, completed_count FROM ledger_torrents WHERE id > ? AND completed_count > 0 ORDER BY id LIMIT ?";
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
    fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().chain(self.others.iter().copied().flatten()).copied()
    }

    fn select(&self, which: &str) -> String {
        let listed = self.columns().map(|name| match AMOUNTS.contains(&name) {
            true => format!("{{text t.{name}}}"),
            false => format!("t.{name}"),
        });
        let listed = listed.collect::<Vec<_>>().join(", ");
        format!("SELECT {listed} FROM {} t {which}", self.name)
    }

    /// Pairs of the first key columns and those of a list of keys.
    fn on(&self, keys: usize) -> String {
        let pairs = self.keys[..keys].iter().enumerate();
        pairs.map(|(n, column)| format!("t.{column} = k.c{n}")).collect::<Vec<_>>().join(" AND ")
    }

    /// Reads the rows whose keys start with these. The list of keys comes first in every join, in its own order: so
    /// MariaDB takes locks in that order, as PostgreSQL does by sorting.
    fn find(&self, keys: usize, locking: &str) -> String {
        let join = format!(" FROM {{rows {keys}}} {{join}} {} t ON {}{locking}", self.name, self.on(keys));
        self.select("").replace(&format!(" FROM {} t ", self.name), &join)
    }

    /// Inserts missing rows with these keys and default values.
    fn add(&self) -> String {
        format!("{{insert or ignore}} {} ({}) {{values}} {{or ignore}}", self.name, self.keys[0])
    }

    /// Upserts rows.
    fn save(&self) -> String {
        let (name, keys) = (self.name, self.keys.join(","));
        let names = self.columns().collect::<Vec<_>>().join(", ");
        let others = self.others.iter().copied().flatten();
        let set = others.map(|name| format!("{name} = {{new {name}}}")).collect::<Vec<_>>().join(", ");
        format!("INSERT INTO {name} ({names}) {{values}} {{upsert {keys}}} {set}")
    }

    /// Deletes the rows whose keys start with these, as each database does it by the index.
    fn delete(&self, keys: usize) -> [String; 3] {
        let (name, on) = (self.name, self.on(keys));
        let names = self.keys[..keys].join(", ");
        let listed = (0..keys).map(|n| format!("k.c{n}")).collect::<Vec<_>>().join(", ");
        [
            format!("DELETE FROM {name} WHERE ({names}) IN (SELECT {listed} FROM {{rows {keys}}})"),
            format!("DELETE FROM {name} t USING {{rows {keys}}} WHERE {on}"),
            format!("DELETE t FROM {{rows {keys}}} {{join}} {name} t ON {on}"),
        ]
    }
}
