//! A ledger on each of the three databases.

pub mod simulator;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use database::Database;
use domain::clock::ManualClock;
use domain::{InfoHash, Passkey, RateCeiling, TorrentId, UnixTime, UserId};
use journal::{Batch, DeliveredEntry, Lane, Rejected, View};
use ledger::{Account, AccountKey, Directory, Figures, Ledger, LedgerSettings, RiskSink};
use testkit::servers::{MariaDbServer, PostgresServer};

use simulator::{BEGIN, SPAN_MAX, torrent, user};

/// An empty database.
pub struct Place {
    pub url: String,
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    pub fn sqlite() -> Place {
        let folder = tempfile::tempdir().unwrap();
        Place { url: format!("sqlite:{}", folder.path().join("ledger.db").display()), _folder: Some(folder) }
    }

    pub fn postgres() -> Place {
        Place::at(PostgresServer::shared().fresh_database())
    }

    pub fn mariadb() -> Place {
        Place::at(MariaDbServer::shared().fresh_database())
    }

    pub fn at(url: String) -> Place {
        Place { url, _folder: None }
    }
}

/// Runs each test on each database.
macro_rules! on_every_database {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(crate::support::Place::sqlite()).await; })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(crate::support::Place::postgres()).await; })*
        }
        mod mariadb {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(crate::support::Place::mariadb()).await; })*
        }
    };
}

/// Users and torrents that are known.
#[derive(Default)]
pub struct Known {
    pub users: HashMap<Passkey, UserId>,
    pub torrents: HashMap<InfoHash, TorrentId>,
}

impl Directory for Known {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.users.get(passkey).copied()
    }
    fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.torrents.get(info_hash).copied()
    }
}

/// Records the reports.
#[derive(Clone, Default)]
pub struct Risks(pub Arc<Mutex<Vec<domain::RiskEvent>>>);

impl RiskSink for Risks {
    fn report(&self, risk: &domain::RiskEvent) {
        self.0.lock().unwrap().push(*risk);
    }
}

/// The end of every history.
pub fn clock() -> ManualClock {
    ManualClock::at(UnixTime(BEGIN + SPAN_MAX))
}

pub async fn open(place: &Place) -> Ledger {
    open_with(place, LedgerSettings::default(), Known::default(), clock(), Risks::default()).await
}

pub async fn open_with(
    place: &Place,
    settings: LedgerSettings,
    directory: Known,
    clock: ManualClock,
    risks: Risks,
) -> Ledger {
    let database = Database::open(&place.url).await.unwrap();
    Ledger::open(database, settings, Arc::new(directory), Arc::new(clock), Arc::new(risks)).await.unwrap()
}

/// Without ceilings.
pub fn boundless() -> LedgerSettings {
    let all = RateCeiling { bytes_per_s: u64::MAX };
    LedgerSettings { ceiling: all, user_ceiling: all, ..LedgerSettings::default() }
}

/// A first delivery from the traffic lane.
pub fn batch<'a>(consumer: &'a str, arrivals: &'a [DeliveredEntry]) -> Batch<'a> {
    Batch { lane: Lane::Traffic, consumer, taken_from: None, is_retry: false, arrivals }
}

pub async fn apply(ledger: &Ledger, consumer: &str, arrivals: &[DeliveredEntry]) -> Vec<Rejected> {
    ledger.apply(&batch(consumer, arrivals)).await.unwrap()
}

pub fn key(owner: u64, on: u64) -> AccountKey {
    AccountKey { user: user(owner), torrent: torrent(on) }
}

pub async fn account(ledger: &Ledger, owner: u64, on: u64) -> Account {
    ledger.account(key(owner, on)).await.unwrap().unwrap()
}

pub async fn figures(ledger: &Ledger, owner: u64) -> Figures {
    ledger.user(user(owner)).await.unwrap().unwrap()
}

/// All rows of users, torrents and accounts.
#[derive(Debug, Default, PartialEq)]
pub struct Everything {
    users: Vec<Option<Figures>>,
    torrents: Vec<Option<Figures>>,
    accounts: Vec<Account>,
}

/// All rows, in order.
pub async fn everything(ledger: &Ledger, users: u64, torrents: u64) -> Everything {
    let mut all = Everything::default();
    // A row may have been created for a batch that was not applied: it equals a missing one.
    let says_something = |figures: &Figures| *figures != Figures::default();
    for owner in 1..=users {
        all.users.push(ledger.user(user(owner)).await.unwrap().filter(says_something));
        let page = ledger.accounts_of(user(owner), None, 1000).await.unwrap();
        all.accounts.extend(page.accounts.into_iter().map(|(_, account)| account));
    }
    for on in 1..=torrents {
        all.torrents.push(ledger.torrent(torrent(on)).await.unwrap().filter(says_something));
    }
    all
}
