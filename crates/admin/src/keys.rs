//! API keys.
//!
//! # Layout
//!
//! - [`scope`]: what a key permits
//! - [`text`](self::KeyId): format and hash of a key
//! - [`ApiKeys`]: the keys in the database, which commands and the API create and revoke
//! - [`ring`]: a lock-free copy in memory, which authenticates requests
//!
//! # Guarantees
//!
//! - **A key is shown once.** Only its SHA-256 is stored. A key has 160 random bits, so a slow password hash would add nothing
//!   but latency.
//! - **A revocation takes effect within a second** in every process, also one by SQL.
//! - **The first key is created once**, however many processes start at the same time.
//!
//! Keys are not deleted, because the audit trail names them, and they do not expire.

use database::{Database, SqlError, Transaction};
use domain::UnixTime;

use crate::error::AdminError;

pub mod ring;
pub mod scope;
mod table;
mod text;

pub use ring::{Authenticated, KeyRing, RingFigures};
pub use scope::{Scope, Scopes};
pub use text::{KeyId, NewKey};

use table::KeyRow;
use text::KeyHash;

/// Active keys. Every process reads them several times a second.
pub const KEYS_MAX: u32 = 1000;
pub const NAME_CHARS_MAX: usize = 100;
/// Name of the key that the first start creates.
pub const FIRST_KEY_NAME: &str = "first start";
/// Collisions of random ids are rare; an unbounded loop would hide another cause.
const ID_TRIES_MAX: u32 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// The public part of the key.
    pub id: KeyId,
    pub name: String,
    pub scopes: Scopes,
    pub created_at: UnixTime,
    /// To the minute.
    pub last_used_at: Option<UnixTime>,
    /// None while the key is active.
    pub revoked_at: Option<UnixTime>,
}

#[derive(Clone, Debug)]
pub struct ApiKeys {
    database: Database,
}

impl ApiKeys {
    pub fn on(database: &Database) -> Self {
        ApiKeys { database: database.clone() }
    }

    /// The result is the only place that has the text of the key.
    pub async fn create(&self, name: &str, scopes: Scopes, now: UnixTime) -> Result<NewKey, AdminError> {
        check_name(name)?;
        if scopes.is_empty() {
            return Err(AdminError::KeyWithoutScope);
        }
        let mut transaction = self.begin().await?;
        table::mark_first_key(&mut transaction).await.map_err(|error| self.explain(error))?;
        if table::count_active(&mut transaction).await.map_err(|error| self.explain(error))?
            >= i64::from(KEYS_MAX)
        {
            return Err(AdminError::TooManyKeys(KEYS_MAX));
        }
        self.insert(transaction, name, scopes, now).await
    }

    /// Creates an admin key if there has never been a key. After all keys are revoked, only a command creates another.
    pub async fn first_key(&self, now: UnixTime) -> Result<Option<NewKey>, AdminError> {
        let mut transaction = self.begin().await?;
        // A concurrent caller waits here for the commit.
        if !table::mark_first_key(&mut transaction).await.map_err(|error| self.explain(error))? {
            return Ok(None);
        }
        self.insert(transaction, FIRST_KEY_NAME, Scope::Admin.into(), now).await.map(Some)
    }

    /// All keys, including revoked ones, oldest first, without rows that cannot be parsed.
    pub async fn list(&self) -> Result<Vec<ApiKey>, AdminError> {
        let rows = table::all(&self.database).await.map_err(|error| self.explain(error))?;
        Ok(rows
            .into_iter()
            .filter_map(|row| row.inspect_err(|error| tracing::warn!(%error, "skipped an API key")).ok())
            .map(|row| row.key)
            .collect())
    }

    /// Returns whether the key was active.
    pub async fn revoke(&self, id: KeyId, now: UnixTime) -> Result<bool, AdminError> {
        let revoked = table::revoke(&self.database, id, now).await;
        if revoked.map_err(|error| self.explain(error))? {
            return Ok(true);
        }
        let exists = table::exists(&self.database, id).await;
        match exists.map_err(|error| self.explain(error))? {
            true => Ok(false),
            false => Err(AdminError::UnknownKey(id)),
        }
    }

    async fn active(&self) -> Result<Vec<Result<KeyRow, AdminError>>, AdminError> {
        table::active(&self.database).await.map_err(|error| self.explain(error))
    }

    async fn set_last_used(&self, id: KeyId, at: UnixTime) -> Result<(), AdminError> {
        table::set_last_used(&self.database, id, at).await.map_err(|error| self.explain(error))
    }

    async fn begin(&self) -> Result<Transaction, AdminError> {
        self.database.begin().await.map_err(|error| self.explain(error))
    }

    async fn insert(
        &self,
        mut transaction: Transaction,
        name: &str,
        scopes: Scopes,
        now: UnixTime,
    ) -> Result<NewKey, AdminError> {
        for _ in 0..ID_TRIES_MAX {
            let new = NewKey::random()?;
            let key = ApiKey {
                id: new.id,
                name: name.to_owned(),
                scopes,
                created_at: now,
                last_used_at: None,
                revoked_at: None,
            };
            let row = KeyRow { key, hash: KeyHash::of(&new.text) };
            if table::insert(&mut transaction, &row).await.map_err(|error| self.explain(error))? {
                transaction.commit().await.map_err(|error| self.explain(error))?;
                return Ok(new);
            }
        }
        Err(AdminError::Unreadable {
            subject: "the table api_keys".to_owned(),
            reason: "every new id is taken".to_owned(),
        })
    }

    fn explain(&self, error: SqlError) -> AdminError {
        self.database.explain(error).into()
    }
}

fn check_name(name: &str) -> Result<(), AdminError> {
    let length = name.chars().count();
    if name.trim().is_empty() || length > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(AdminError::KeyName);
    }
    Ok(())
}
