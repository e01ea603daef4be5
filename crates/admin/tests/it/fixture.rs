//! A separate database for each test, with the tables of an opened store.

use access::Store;
use database::Database;
use domain::UnixTime;

pub const NOW: UnixTime = UnixTime(1_750_000_000);

pub use testkit::TestDatabase as Fixture;

pub trait OpenDatabase {
    /// Another connection to the same database, as in another process.
    async fn database(&self) -> Database;
}

impl OpenDatabase for Fixture {
    async fn database(&self) -> Database {
        Store::open(&self.url()).await.unwrap().database().clone()
    }
}
