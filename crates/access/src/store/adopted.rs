//! Strangers who are taken in: whoever is vouched for needs an account, and an account belongs to a row in `users`.
//!
//! # Guarantees
//!
//! - Taken in twice is taken in once: a passkey has one row, however many trackers take it in at the same time.
//! - A number is never given twice, even after a removal, unless the site itself names it again.
//! - Nobody who has a row already is changed: not a user of ours, not one who is disabled. But one whom the site numbers
//!   and who comes with another passkey is the same one: the row gets that passkey, and with it the account and a ban go
//!   on. Numbers that we may have given ourselves name nobody of the site's.

use domain::{Passkey, UnixTime, UserId};

use super::rows::sql_integer;
use super::tables::Transaction;
use super::{NewUser, Store, User};
use crate::error::{AccessError, is_constraint};

/// How often to begin again because another process was quicker.
const ATTEMPTS_MAX: usize = 8;

/// Somebody to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// Their passkey.
    pub passkey: Passkey,
    /// The number that the site knows them by; used if it is free or theirs.
    pub wanted: Option<UserId>,
}

/// What holds for all who are taken in at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptionTerms {
    /// Where numbers begin for those whom the site does not number.
    pub id_min: UserId,
    /// The present moment.
    pub now: UnixTime,
}

/// Somebody who has an account now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The row.
    pub user: User,
    /// Whether it was made just now.
    pub is_new: bool,
    /// The passkey that it had until now, if the site gave its owner another.
    pub old_passkey: Option<Passkey>,
}

/// How taking somebody in ended.
enum Outcome {
    Done(Result<Adopted, AccessError>),
    /// Another process was quicker: all that was read before may be old.
    Overtaken,
}

impl Store {
    /// Gives a row to everybody who has none, all of them or nobody; tells the rows in the order asked. A row that
    /// cannot be read is an error of its own.
    pub async fn adopt(
        &self,
        adoptions: &[Adoption],
        terms: AdoptionTerms,
    ) -> Result<Vec<Result<Adopted, AccessError>>, AccessError> {
        for _ in 0..ATTEMPTS_MAX {
            match self.adopt_once(adoptions, terms).await {
                Ok(Some(users)) => return Ok(users),
                Ok(None) => {}
                // Two who wait for each other's rows: one of them is sent back.
                Err(AccessError::Database(error)) if error.is_retryable() => {
                    tracing::debug!(%error, "taking strangers in has to begin again");
                    tokio::task::yield_now().await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(AccessError::AdoptionContended)
    }

    async fn adopt_once(
        &self,
        adoptions: &[Adoption],
        terms: AdoptionTerms,
    ) -> Result<Option<Vec<Result<Adopted, AccessError>>>, AccessError> {
        let mut transaction = self.begin().await?;
        let mut users = Vec::with_capacity(adoptions.len());
        for adoption in adoptions {
            let outcome = adopt_one(&mut *transaction, adoption, terms).await;
            match outcome.map_err(|error| self.explain(error))? {
                Outcome::Done(user) => users.push(user),
                Outcome::Overtaken => return Ok(None),
            }
        }
        self.commit(transaction).await?;
        Ok(Some(users))
    }
}

async fn adopt_one(
    transaction: &mut dyn Transaction,
    adoption: &Adoption,
    terms: AdoptionTerms,
) -> Result<Outcome, sqlx::Error> {
    if let Some(present) = transaction.user_by_passkey(&adoption.passkey).await? {
        return Ok(Outcome::Done(present.map(|user| Adopted { user, is_new: false, old_passkey: None })));
    }
    if let Some(wanted) = adoption.wanted {
        match transaction.user(sql_integer(wanted.get())).await? {
            None => return insert(transaction, adoption, Some(wanted), terms).await,
            Some(Ok(present)) if present.vouched && wanted < terms.id_min => {
                return give_passkey(transaction, present, adoption.passkey).await;
            }
            Some(_) => {}
        }
    }
    let outcome = insert(transaction, adoption, None, terms).await?;
    let Outcome::Done(Ok(Adopted { user, .. })) = &outcome else { return Ok(outcome) };
    if user.id >= terms.id_min {
        return Ok(outcome);
    }
    // The first of all: numbers have not come this far yet. From here on they go on behind it.
    transaction.delete_user(sql_integer(user.id.get())).await?;
    insert(transaction, adoption, Some(terms.id_min), terms).await
}

/// Somebody whom we know by their number comes with another passkey.
async fn give_passkey(
    transaction: &mut dyn Transaction,
    present: User,
    passkey: Passkey,
) -> Result<Outcome, sqlx::Error> {
    match transaction.set_vouched_passkey(sql_integer(present.id.get()), &passkey).await {
        // Gone, or one of ours by now.
        Ok(0) => Ok(Outcome::Overtaken),
        Ok(_) => {
            let old_passkey = Some(present.passkey);
            let user = User { passkey, ..present };
            Ok(Outcome::Done(Ok(Adopted { user, is_new: false, old_passkey })))
        }
        Err(error) if is_constraint(&error) => Ok(Outcome::Overtaken),
        Err(error) => Err(error),
    }
}

async fn insert(
    transaction: &mut dyn Transaction,
    adoption: &Adoption,
    id: Option<UserId>,
    terms: AdoptionTerms,
) -> Result<Outcome, sqlx::Error> {
    let user = NewUser { id, passkey: Some(adoption.passkey), created_at: terms.now };
    match transaction.insert_user(&(user, adoption.passkey), true).await {
        Ok(read) => Ok(Outcome::Done(read.map(|user| Adopted { user, is_new: true, old_passkey: None }))),
        Err(error) if is_constraint(&error) => Ok(Outcome::Overtaken),
        Err(error) => Err(error),
    }
}
