//! Keys of the API: who may ask what of the site.
//!
//! # Layout
//!
//! - [`scope`]: what a key may do
//! - [`text`](self::KeyId): how a key is spelled and hashed
//! - [`ApiKeys`]: the keys in the database; commands make and revoke them
//! - [`ring`]: a copy in memory, which every request asks without taking a lock
//!
//! # Guarantees
//!
//! - **A key's text is shown once.** Only its SHA-256 is stored. The text has 160 random bits, so nobody can try them
//!   all, and a slow hash, made for passwords that people choose, would only slow down each request.
//! - **A revocation works within a second** in every process, also one by SQL.
//! - **The first key is made once**, however many processes start at the same time.
//!
//! # Deliberately absent
//!
//! Deleting a key: the audit trail names it. Keys that run out by themselves.

use domain::UnixTime;

use crate::error::AccessError;
use crate::store::Store;
use crate::store::rows::readable;

pub mod ring;
pub mod scope;
mod table;
mod text;

pub use ring::{Authenticated, KeyRing, RingFigures};
pub use scope::{Scope, Scopes};
pub use text::{KeyId, NewKey};

use table::{KeyRow, KeyTransaction};
use text::KeyHash;

/// Keys that work at the same time, at the most: each request may have to be compared with any of them, and every
/// process reads them a few times a second.
pub const KEYS_MAX: u32 = 1000;
/// The longest name.
pub const NAME_CHARS_MAX: usize = 100;
/// What the key is called that the first start makes.
pub const FIRST_KEY_NAME: &str = "first start";
/// Two keys of one id are so rare that a third try is never needed; an endless loop would hide what is wrong.
const ID_TRIES_MAX: u32 = 5;

/// A key as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id: the first part of its text, which is no secret.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: UnixTime,
    /// When it was used last, to the minute.
    pub last_used_at: Option<UnixTime>,
    /// When it was revoked; none if it works.
    pub revoked_at: Option<UnixTime>,
}

/// The keys in the database.
#[derive(Clone, Debug)]
pub struct ApiKeys {
    store: Store,
}

impl ApiKeys {
    /// Those in this database.
    pub fn on(store: &Store) -> Self {
        ApiKeys { store: store.clone() }
    }

    /// Makes a key. Its text is in the answer, and nowhere else from then on.
    pub async fn create(&self, name: &str, scopes: Scopes, now: UnixTime) -> Result<NewKey, AccessError> {
        check_name(name)?;
        if scopes.is_empty() {
            return Err(AccessError::KeyWithoutScope);
        }
        let mut transaction = self.begin().await?;
        transaction.mark_begun().await.map_err(|error| self.explain(error))?;
        if transaction.count_working().await.map_err(|error| self.explain(error))? >= i64::from(KEYS_MAX) {
            return Err(AccessError::TooManyKeys(KEYS_MAX));
        }
        self.insert(transaction, name, scopes, now).await
    }

    /// Makes a key that may do everything, if there has never been any. Revoking all keys does not bring it back: then
    /// a command must.
    pub async fn first_key(&self, now: UnixTime) -> Result<Option<NewKey>, AccessError> {
        let mut transaction = self.begin().await?;
        // Whoever comes second waits here for the first to commit.
        if !transaction.mark_begun().await.map_err(|error| self.explain(error))? {
            return Ok(None);
        }
        self.insert(transaction, FIRST_KEY_NAME, Scope::Admin.into(), now).await.map(Some)
    }

    /// All keys, also revoked ones, oldest first. Those that cannot be read are left out, with a warning.
    pub async fn list(&self) -> Result<Vec<ApiKey>, AccessError> {
        let rows = table::all(self.store.database()).await.map_err(|error| self.explain(error))?;
        Ok(rows.into_iter().filter_map(readable).map(|row| row.key).collect())
    }

    /// Revokes a key: it is refused everywhere within a second. Tells whether it worked until now.
    pub async fn revoke(&self, id: KeyId, now: UnixTime) -> Result<bool, AccessError> {
        let revoked = table::revoke(self.store.database(), id, now).await;
        if revoked.map_err(|error| self.explain(error))? {
            return Ok(true);
        }
        let exists = table::exists(self.store.database(), id).await;
        match exists.map_err(|error| self.explain(error))? {
            true => Ok(false),
            false => Err(AccessError::UnknownKey(id)),
        }
    }

    /// The keys that work, with their hashes, each unless it cannot be read.
    async fn working(&self) -> Result<Vec<Result<KeyRow, AccessError>>, AccessError> {
        table::working(self.store.database()).await.map_err(|error| self.explain(error))
    }

    async fn note_use(&self, id: KeyId, at: UnixTime) -> Result<(), AccessError> {
        table::note_use(self.store.database(), id, at).await.map_err(|error| self.explain(error))
    }

    async fn begin(&self) -> Result<KeyTransaction, AccessError> {
        KeyTransaction::begin(self.store.database()).await.map_err(|error| self.explain(error))
    }

    async fn insert(
        &self,
        mut transaction: KeyTransaction,
        name: &str,
        scopes: Scopes,
        now: UnixTime,
    ) -> Result<NewKey, AccessError> {
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
            if transaction.insert(&row).await.map_err(|error| self.explain(error))? {
                transaction.commit().await.map_err(|error| self.explain(error))?;
                return Ok(new);
            }
        }
        Err(AccessError::Unreadable {
            subject: "the table api_keys".to_owned(),
            reason: "it takes no new key".to_owned(),
        })
    }

    fn explain(&self, error: sqlx::Error) -> AccessError {
        self.store.explain(error)
    }
}

fn check_name(name: &str) -> Result<(), AccessError> {
    let length = name.chars().count();
    if name.trim().is_empty() || length > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(AccessError::KeyName);
    }
    Ok(())
}
