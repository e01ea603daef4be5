//! The table of users.

use domain::{Passkey, UnixTime, UserId};

use super::rows::{sql_integer, user_id};
use super::tables::Transaction;
use super::{BULK_ROWS, Store, random_passkey};
use crate::error::{AccessError, is_constraint};
use crate::slots::LeechSlots;
use crate::user_name::UserName;

/// A user as the database has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Their number.
    pub id: UserId,
    /// The secret in their announce URL.
    pub passkey: Passkey,
    /// Whether they may announce.
    pub enabled: bool,
    /// Whether they are not ours: somebody else vouches for them, and is asked before they may announce.
    pub is_external: bool,
    /// How many torrents they may leech at once.
    pub leech_slots: LeechSlots,
    /// The display name.
    pub name: Option<String>,
    /// Whether `rollcall sandbox` made it.
    pub sandbox: bool,
    /// When they were added.
    pub created_at: UnixTime,
}

/// What is to become of a user; none leaves a thing as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    /// Whether they may announce.
    pub enabled: Option<bool>,
    /// How many torrents they may leech at once.
    pub leech_slots: Option<LeechSlots>,
    /// The display name; `Some(None)` removes it.
    pub name: Option<Option<UserName>>,
}

impl UserChange {
    pub(super) fn name_text(&self) -> Option<&str> {
        self.name.as_ref().and_then(Option::as_ref).map(UserName::as_str)
    }
}

/// A user to be added; enabled from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// None means the next free one.
    pub id: Option<UserId>,
    /// None means a random one.
    pub passkey: Option<Passkey>,
    /// The present moment.
    pub created_at: UnixTime,
}

/// Users.
impl Store {
    /// Adds a user. Who was taken in with this passkey before, because somebody vouched for them, becomes one of ours
    /// and keeps their number, and with it their account.
    pub async fn add_user(&self, user: NewUser) -> Result<User, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_user(&mut *transaction, with_passkey(user)?).await?;
        self.commit(transaction).await?;
        Ok(added)
    }

    /// Adds a user with a display name.
    pub async fn add_named_user(&self, user: NewUser, name: UserName) -> Result<User, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_user(&mut *transaction, with_passkey(user)?).await?;
        let text = name.as_str().to_owned();
        let change = UserChange { name: Some(Some(name)), ..UserChange::default() };
        let changing = transaction.change_user(sql_integer(added.id.get()), &change).await;
        changing.map_err(|error| self.explain(error))?;
        self.commit(transaction).await?;
        Ok(User { name: Some(text), ..added })
    }

    /// Adds a user that is marked as one of the sandbox.
    pub async fn add_sandbox_user(&self, user: NewUser) -> Result<User, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_user(&mut *transaction, with_passkey(user)?).await?;
        let marking = transaction.mark_sandbox(sql_integer(added.id.get())).await;
        marking.map_err(|error| self.explain(error))?;
        self.commit(transaction).await?;
        Ok(User { sandbox: true, ..added })
    }

    /// Adds many users: all of them or, if one cannot be added, none. Tells how many.
    pub async fn add_users<I>(&self, users: I) -> Result<u64, AccessError>
    where
        I: IntoIterator<Item = NewUser>,
        I::IntoIter: Send,
    {
        let mut users = users.into_iter();
        let mut transaction = self.begin().await?;
        let mut added = 0;
        loop {
            let batch: Vec<Keyed> =
                users.by_ref().take(BULK_ROWS).map(with_passkey).collect::<Result<_, _>>()?;
            if batch.is_empty() {
                break;
            }
            self.insert_users(&mut *transaction, &batch).await?;
            added += batch.len() as u64;
        }
        self.commit(transaction).await?;
        Ok(added)
    }

    /// The user with this id.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, AccessError> {
        let found = self.tables().await?.user(sql_integer(id.get())).await;
        found.map_err(|error| self.explain(error))?.transpose()
    }

    /// The user with this passkey.
    pub async fn user_by_passkey(&self, passkey: &Passkey) -> Result<Option<User>, AccessError> {
        let found = self.tables().await?.user_by_passkey(passkey).await;
        found.map_err(|error| self.explain(error))?.transpose()
    }

    /// The first `limit` users behind `after`, by id. Fewer than `limit` means that these were the last.
    pub async fn list_users(&self, after: Option<UserId>, limit: u32) -> Result<Vec<User>, AccessError> {
        let mut tables = self.tables().await?;
        let mut users = Vec::new();
        let mut last = after.map_or(0, |id| sql_integer(id.get()));
        loop {
            let wanted = limit - users.len() as u32;
            let page = tables.user_page(last, wanted).await.map_err(|error| self.explain(error))?;
            users.extend(page.rows);
            match page.last {
                // Rows that could not be read left room for more.
                Some(id) if (users.len() as u32) < limit => last = id,
                _ => return Ok(users),
            }
        }
    }

    /// How many users there are.
    pub async fn count_users(&self) -> Result<u64, AccessError> {
        let count = self.tables().await?.count_users().await.map_err(|error| self.explain(error))?;
        Ok(count.unsigned_abs())
    }

    /// Removes a user.
    pub async fn remove_user(&self, id: UserId) -> Result<(), AccessError> {
        let removed = self.tables().await?.delete_user(sql_integer(id.get())).await;
        match removed.map_err(|error| self.explain(error))? {
            0 => Err(AccessError::UnknownUser(id)),
            _ => Ok(()),
        }
    }

    /// Lets a user announce, or no longer.
    pub async fn set_user_enabled(&self, id: UserId, enabled: bool) -> Result<(), AccessError> {
        self.change_user(id, UserChange { enabled: Some(enabled), ..UserChange::default() }).await
    }

    /// Changes what the site says about a user, all at once.
    pub async fn change_user(&self, id: UserId, change: UserChange) -> Result<(), AccessError> {
        let found = self.tables().await?.change_user(sql_integer(id.get()), &change).await;
        match found.map_err(|error| self.explain(error))? {
            0 => Err(AccessError::UnknownUser(id)),
            _ => Ok(()),
        }
    }

    /// Gives a user of ours a new passkey (none means a random one); the old one stops working. Tells the new one.
    pub async fn rotate_passkey(&self, id: UserId, passkey: Option<Passkey>) -> Result<Passkey, AccessError> {
        let passkey = passkey.map_or_else(random_passkey, Ok)?;
        let mut transaction = self.begin().await?;
        let present = transaction.user(sql_integer(id.get())).await.map_err(|error| self.explain(error))?;
        if present.transpose()?.is_some_and(|user| user.is_external) {
            return Err(AccessError::NotRotatable(id));
        }
        match transaction.set_passkey(sql_integer(id.get()), &passkey).await {
            Ok(0) => return Err(AccessError::UnknownUser(id)),
            Ok(_) => {}
            Err(error) => return Err(self.explain_user(&mut *transaction, error, None, &passkey).await),
        }
        self.commit(transaction).await?;
        Ok(passkey)
    }

    async fn insert_user(&self, transaction: &mut dyn Transaction, user: Keyed) -> Result<User, AccessError> {
        let error = match transaction.insert_user(&user, false).await {
            Ok(read) => return read,
            Err(error) => error,
        };
        if is_constraint(&error)
            && let Some(own) = self.take_over(transaction, &user).await?
        {
            return Ok(own);
        }
        Err(self.explain_user(transaction, error, user.0.id, &user.1).await)
    }

    /// Makes somebody ours who was taken in with this passkey, under the number wanted or any.
    async fn take_over(
        &self,
        transaction: &mut dyn Transaction,
        (user, passkey): &Keyed,
    ) -> Result<Option<User>, AccessError> {
        let holder = transaction.user_by_passkey(passkey).await.map_err(|error| self.explain(error))?;
        let Some(holder) = holder.transpose()?.filter(|holder| holder.is_external) else { return Ok(None) };
        if let Some(wanted) = user.id.filter(|id| *id != holder.id) {
            return Err(AccessError::PasskeyExternal { passkey: *passkey, holder: holder.id, wanted });
        }
        let id = sql_integer(holder.id.get());
        transaction.make_own(id).await.map_err(|error| self.explain(error))?;
        Ok(Some(User { is_external: false, ..holder }))
    }

    async fn insert_users(
        &self,
        transaction: &mut dyn Transaction,
        batch: &[Keyed],
    ) -> Result<(), AccessError> {
        match transaction.insert_users(batch).await {
            Ok(read) => read,
            Err(error) if is_constraint(&error) => {
                // One of them is at fault, or was taken in before: one at a time, it shows itself.
                for user in batch {
                    self.insert_user(transaction, *user).await?;
                }
                Ok(())
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Finds out which rule a user broke.
    async fn explain_user(
        &self,
        transaction: &mut dyn Transaction,
        error: sqlx::Error,
        id: Option<UserId>,
        passkey: &Passkey,
    ) -> AccessError {
        if !is_constraint(&error) {
            return self.explain(error);
        }
        let holders = transaction.user_holders(id.map(|id| sql_integer(id.get())), passkey).await;
        let holders: Vec<UserId> = holders.unwrap_or_default().into_iter().filter_map(user_id).collect();
        match (id, holders.first()) {
            (Some(id), Some(_)) if holders.contains(&id) => self.explain_id(transaction, id).await,
            (_, Some(holder)) => AccessError::PasskeyTaken { passkey: *passkey, holder: *holder },
            _ => self.explain(error),
        }
    }

    async fn explain_id(&self, transaction: &mut dyn Transaction, id: UserId) -> AccessError {
        match transaction.user(sql_integer(id.get())).await {
            Ok(Some(Ok(user))) if user.is_external => AccessError::UserIdExternal(id),
            _ => AccessError::UserIdTaken(id),
        }
    }
}

/// A new user whose passkey is settled.
pub(crate) type Keyed = (NewUser, Passkey);

fn with_passkey(user: NewUser) -> Result<Keyed, AccessError> {
    Ok((user, user.passkey.map_or_else(random_passkey, Ok)?))
}
