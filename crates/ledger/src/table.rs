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
        &["peer_id", "client", "time_spent", "present_until", "history", "clients"],
    ],
};

const DEAD_LETTERS: Table =
    Table { name: "ledger_letters", keys: &["origin_ms", "origin_seq"], others: &[&["applied_at"]] };

type Lazy = LazyLock<String>;
/// For SQLite, PostgreSQL and MariaDB.
type LazyEach = LazyLock<[String; 3]>;

pub(crate) static ADD_USERS: Lazy = LazyLock::new(|| USERS.add());
pub(crate) static ADD_TORRENTS: Lazy = LazyLock::new(|| TORRENTS.add());
pub(crate) static LOCK_USERS: LazyEach = LazyLock::new(|| USERS.find(" ORDER BY t.id {lock}"));
pub(crate) static LOCK_TORRENTS: LazyEach = LazyLock::new(|| TORRENTS.find(" ORDER BY t.id {lock}"));
pub(crate) static FIND_USERS: LazyEach = LazyLock::new(|| USERS.find(""));
pub(crate) static FIND_TORRENTS: LazyEach = LazyLock::new(|| TORRENTS.find(""));
pub(crate) static FIND_ACCOUNTS: LazyEach = LazyLock::new(|| ACCOUNTS.find(""));
pub(crate) static FIND_DEAD_LETTERS: LazyEach = LazyLock::new(|| DEAD_LETTERS.find(""));
pub(crate) static SAVE_DEAD_LETTERS: LazyEach = LazyLock::new(|| DEAD_LETTERS.save());
pub(crate) static SAVE_USERS: LazyEach = LazyLock::new(|| USERS.save());
pub(crate) static SAVE_TORRENTS: LazyEach = LazyLock::new(|| TORRENTS.save());
pub(crate) static SAVE_ACCOUNTS: LazyEach = LazyLock::new(|| ACCOUNTS.save());

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
/// Written out, since not every database uses an index for tuple comparisons.
pub(crate) const CLIENTS_AFTER: &str = "SELECT user_id, torrent_id, clients FROM ledger_accounts \
     WHERE user_id >= ? AND (user_id > ? OR torrent_id > ?) ORDER BY user_id, torrent_id LIMIT ?";

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

    /// Reads the rows with these keys: on SQLite key by key, elsewhere by a join with the list of keys. That comes first
    /// in every join, in its own order: so MariaDB takes locks in that order, as PostgreSQL does by sorting.
    fn find(&self, locking: &str) -> [String; 3] {
        let pairs = |other: fn(usize) -> String| {
            let pairs = self.keys.iter().enumerate().map(|(n, column)| format!("t.{column} = {}", other(n)));
            pairs.collect::<Vec<_>>().join(" AND ")
        };
        let one = self.select(&format!("WHERE {}", pairs(|_| "?".to_owned())));
        let on = pairs(|n| format!("k.c{n}"));
        let join = format!(" FROM {{rows {}}} {{join}} {} t ON {on}{locking}", self.keys.len(), self.name);
        let listed = self.select("").replace(&format!(" FROM {} t ", self.name), &join);
        [one, listed.clone(), listed]
    }

    /// Inserts missing rows with these keys and default values.
    fn add(&self) -> String {
        format!("{{insert or ignore}} {} ({}) {{values}} {{or ignore}}", self.name, self.keys[0])
    }

    /// Upserts rows. SQLite updates faster than it upserts.
    fn save(&self) -> [String; 3] {
        let (name, keys) = (self.name, self.keys.join(","));
        let names = self.columns().collect::<Vec<_>>().join(", ");
        let others = || self.others.iter().copied().flatten();
        let set = others().map(|name| format!("{name} = {{new {name}}}")).collect::<Vec<_>>().join(", ");
        let upsert = format!("INSERT INTO {name} ({names}) {{values}} {{upsert {keys}}} {set}");
        let first = self.keys.len() + 1;
        let set = others().enumerate().map(|(n, name)| format!("{name} = ?{}", n + first));
        let set = set.collect::<Vec<_>>().join(", ");
        let key = self.keys.iter().enumerate().map(|(n, name)| format!("{name} = ?{}", n + 1));
        let key = key.collect::<Vec<_>>().join(" AND ");
        let update =
            format!("UPDATE {name} SET {set} WHERE {key} {{or}} INSERT INTO {name} ({names}) {{values}}");
        [update, upsert.clone(), upsert]
    }
}
