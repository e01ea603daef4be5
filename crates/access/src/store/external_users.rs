//! Rows of external users: a verified passkey needs an account, and an account belongs to a row in `users`.
//!
//! # Guarantees
//!
//! - A passkey gets one row, however many processes ask for it at the same time.
//! - An id is not used twice, also not after a removal, unless the site itself assigns it again.
//! - Existing rows are not changed, with one exception: an external user that the site identifies by id, and that has
//!   another passkey now, keeps the row, and with it account and ban; the row gets the new passkey. Ids from
//!   [`ExternalUserOptions::id_min`] on were assigned here, and do not identify a user of the site.

use database::SqlError;
use domain::{Passkey, UnixTime, UserId};

use super::rows::sql_integer;
use super::tables::Tables;
use super::{NewUser, Store, User};
use crate::error::AccessError;

/// Attempts of a transaction that conflicts with another process.
const ATTEMPTS_MAX: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewExternalUser {
    pub passkey: Passkey,
    /// The site's id of the user; used unless a user of the database has it.
    pub site_id: Option<UserId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalUserOptions {
    /// First id for users without an id of the site.
    pub id_min: UserId,
    pub now: UnixTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalUser {
    pub user: User,
    /// Whether the row was created by this call.
    pub is_new: bool,
    /// The previous passkey, if this call replaced it.
    pub old_passkey: Option<Passkey>,
}

enum Outcome {
    Done(Result<ExternalUser, AccessError>),
    /// Another process changed the rows: the transaction must start over.
    Conflict,
}

impl Store {
    /// Creates the missing rows, all or none, and returns the rows in the order of `users`. A row that cannot be read is
    /// an error of its own.
    pub async fn ensure_external_users(
        &self,
        users: &[NewExternalUser],
        options: ExternalUserOptions,
    ) -> Result<Vec<Result<ExternalUser, AccessError>>, AccessError> {
        for _ in 0..ATTEMPTS_MAX {
            match self.try_ensure_external_users(users, options).await {
                Ok(Some(users)) => return Ok(users),
                Ok(None) => {}
                // A deadlock with another process.
                Err(AccessError::Database(error)) if error.is_retryable() => {
                    tracing::debug!(%error, "creation of external users is retried");
                    tokio::task::yield_now().await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(AccessError::ExternalUsersContended)
    }

    /// None after a conflict.
    async fn try_ensure_external_users(
        &self,
        users: &[NewExternalUser],
        options: ExternalUserOptions,
    ) -> Result<Option<Vec<Result<ExternalUser, AccessError>>>, AccessError> {
        let mut transaction = self.begin().await?;
        let mut rows = Vec::with_capacity(users.len());
        for user in users {
            let outcome = ensure(&mut transaction, user, options).await;
            match outcome.map_err(|error| self.explain(error))? {
                Outcome::Done(row) => rows.push(row),
                Outcome::Conflict => return Ok(None),
            }
        }
        self.commit(transaction).await?;
        Ok(Some(rows))
    }
}

async fn ensure(
    transaction: &mut Tables<'_>,
    new: &NewExternalUser,
    options: ExternalUserOptions,
) -> Result<Outcome, SqlError> {
    if let Some(present) = transaction.user_by_passkey(&new.passkey).await? {
        let found = present.map(|user| ExternalUser { user, is_new: false, old_passkey: None });
        return Ok(Outcome::Done(found));
    }
    if let Some(site_id) = new.site_id {
        match transaction.row::<User>(sql_integer(site_id.get())).await? {
            None => return insert(transaction, new, Some(site_id), options).await,
            Some(Ok(present)) if present.is_external && site_id < options.id_min => {
                return replace_passkey(transaction, present, new.passkey).await;
            }
            Some(_) => {}
        }
    }
    let outcome = insert(transaction, new, None, options).await?;
    let Outcome::Done(Ok(ExternalUser { user, .. })) = &outcome else { return Ok(outcome) };
    if user.id >= options.id_min {
        return Ok(outcome);
    }
    // The first one without an id of the site: automatic ids continue from `id_min`.
    transaction.delete::<User>(sql_integer(user.id.get())).await?;
    insert(transaction, new, Some(options.id_min), options).await
}

async fn replace_passkey(
    transaction: &mut Tables<'_>,
    present: User,
    passkey: Passkey,
) -> Result<Outcome, SqlError> {
    match transaction.set_external_passkey(sql_integer(present.id.get()), &passkey).await {
        // Removed, or no longer external.
        Ok(0) => Ok(Outcome::Conflict),
        Ok(_) => {
            let old_passkey = Some(present.passkey);
            let user = User { passkey, ..present };
            Ok(Outcome::Done(Ok(ExternalUser { user, is_new: false, old_passkey })))
        }
        Err(error) if error.is_constraint() => Ok(Outcome::Conflict),
        Err(error) => Err(error),
    }
}

async fn insert(
    transaction: &mut Tables<'_>,
    new: &NewExternalUser,
    id: Option<UserId>,
    options: ExternalUserOptions,
) -> Result<Outcome, SqlError> {
    let user = NewUser { id, passkey: Some(new.passkey), created_at: options.now };
    match transaction.insert_user(&(user, new.passkey), true).await {
        Ok(read) => {
            Ok(Outcome::Done(read.map(|user| ExternalUser { user, is_new: true, old_passkey: None })))
        }
        Err(error) if error.is_constraint() => Ok(Outcome::Conflict),
        Err(error) => Err(error),
    }
}
