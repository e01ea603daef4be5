//! The ledger's tables, read by the database's own client.

use std::collections::BTreeMap;
use std::fmt::Debug;

use testkit::{Moved, Truth};

use super::Site;
use super::cheats::FIRST_CHEAT;

impl Site {
    /// What the ledger has on every user, torrent and account.
    #[track_caller]
    pub fn books(&self) -> Truth {
        let moved = |row: &[String]| Moved { uploaded: number(&row[0]), downloaded: number(&row[1]) };
        let by_id = |table: &str| {
            let rows = self.rows(&format!("SELECT id, uploaded, downloaded FROM {table}"));
            rows.iter().map(|row| (number(&row[0]) as u64, moved(&row[1..]))).collect()
        };
        let accounts = self
            .rows("SELECT user_id, torrent_id, uploaded, downloaded, completed_count + repeated_count FROM ledger_accounts");
        let key = |row: &[String]| (number(&row[0]) as u64, number(&row[1]) as u64);
        Truth {
            users: by_id("ledger_users"),
            torrents: by_id("ledger_torrents"),
            accounts: accounts.iter().map(|row| (key(row), moved(&row[2..]))).collect(),
            completions: accounts
                .iter()
                .map(|row| (key(row), number(&row[4]) as u64))
                .filter(|(_, count)| *count > 0)
                .collect(),
        }
    }

    /// Likewise, without cheats.
    #[track_caller]
    pub fn honest_books(&self) -> Truth {
        let mut books = self.books();
        books.users.retain(|id, _| *id < FIRST_CHEAT);
        books.torrents.retain(|id, _| *id < FIRST_CHEAT);
        books.accounts.retain(|(user, _), _| *user < FIRST_CHEAT);
        books.completions.retain(|(user, _), _| *user < FIRST_CHEAT);
        books
    }

    /// Asserts that the ledger has credited exactly what was moved.
    #[track_caller]
    pub fn assert_books_equal(&self, truth: &Truth) {
        let books = self.honest_books();
        assert_same("user", &truth.users, &books.users);
        assert_same("torrent", &truth.torrents, &books.torrents);
        assert_same("(user, torrent)", &truth.accounts, &books.accounts);
    }

    #[track_caller]
    fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let text = self.sql(sql);
        text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
    }
}

#[track_caller]
fn number(text: &str) -> u128 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is not a whole number"))
}

/// Says which ones differ, a few of them: all of them would fill pages.
#[track_caller]
pub fn assert_same<K: Ord + Debug + Clone, V: PartialEq + Debug>(
    what: &str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
) {
    let keys: std::collections::BTreeSet<&K> = expected.keys().chain(found.keys()).collect();
    let differing: Vec<String> = keys
        .into_iter()
        .filter(|key| expected.get(key) != found.get(key))
        .map(|key| format!("{what} {key:?}: moved {:?}, credited {:?}", expected.get(key), found.get(key)))
        .collect();
    let shown = &differing[..differing.len().min(10)];
    assert!(differing.is_empty(), "{} of {} differ:\n{}", differing.len(), expected.len(), shown.join("\n"));
}
