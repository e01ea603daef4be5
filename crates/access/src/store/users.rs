//! The table `users`.

use database::SqlError;
use domain::{Passkey, UnixTime, UserId};

use super::rows::{sql_integer, user_id};
use super::tables::Tables;
use super::{BULK_ROWS, Store, random_passkey};
use crate::error::AccessError;
use crate::leech_slots::LeechSlots;
use crate::user_name::UserName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub passkey: Passkey,
    pub enabled: bool,
    /// Known by whitelist, verification or the Redis source only; the passkey must be verified before an announce.
    pub is_external: bool,
    /// How many torrents the user may leech at once.
    pub leech_slots: LeechSlots,
    /// Display name.
    pub name: Option<String>,
    /// Created by `rollcall sandbox`.
    pub sandbox: bool,
    pub created_at: UnixTime,
}

/// None leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    pub enabled: Option<bool>,
    pub leech_slots: Option<LeechSlots>,
    /// `Some(None)` removes the display name.
    pub name: Option<Option<UserName>>,
}

impl UserChange {
    pub(super) fn name_text(&self) -> Option<&str> {
        self.name.as_ref().and_then(Option::as_ref).map(UserName::as_str)
    }
}

/// New users are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// None for the next free one.
    pub id: Option<UserId>,
    /// None for a random one.
    pub passkey: Option<Passkey>,
    pub created_at: UnixTime,
}

impl Store {
    /// Adds a user. An external user with this passkey becomes a user of the database, and keeps id and account.
    pub async fn add_user(&self, user: NewUser) -> Result<User, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_user(&mut transaction, with_passkey(user)?).await?;
        self.commit(transaction).await?;
        Ok(added)
    }

    pub async fn add_named_user(&self, user: NewUser, name: UserName) -> Result<User, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_user(&mut transaction, with_passkey(user)?).await?;
        let text = name.as_str().to_owned();
        let change = UserChange { name: Some(Some(name)), ..UserChange::default() };
        let changing = transaction.change_user(sql_integer(added.id.get()), &change).await;
        changing.map_err(|error| self.explain(error))?;
        self.commit(transaction).await?;
        Ok(User { name: Some(text), ..added })
    }

    pub async fn add_sandbox_user(&self, user: NewUser) -> Result<User, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_user(&mut transaction, with_passkey(user)?).await?;
        let marking = transaction.mark_sandbox(sql_integer(added.id.get())).await;
        marking.map_err(|error| self.explain(error))?;
        self.commit(transaction).await?;
        Ok(User { sandbox: true, ..added })
    }

    /// Adds all users or none. Returns how many.
    pub async fn add_users<I>(&self, users: I) -> Result<u64, AccessError>
    where
        I: IntoIterator<Item = NewUser>,
        I::IntoIter: Send,
    {
        let mut users = users.into_iter();
        let mut transaction = self.begin().await?;
        let mut added = 0;
        loop {
            let batch: Vec<UserWithPasskey> =
                users.by_ref().take(BULK_ROWS).map(with_passkey).collect::<Result<_, _>>()?;
            if batch.is_empty() {
                break;
            }
            self.insert_users(&mut transaction, &batch).await?;
            added += batch.len() as u64;
        }
        self.commit(transaction).await?;
        Ok(added)
    }

    pub async fn user(&self, id: UserId) -> Result<Option<User>, AccessError> {
        let found = self.tables().row(sql_integer(id.get())).await;
        found.map_err(|error| self.explain(error))?.transpose()
    }

    pub async fn user_by_passkey(&self, passkey: &Passkey) -> Result<Option<User>, AccessError> {
        let found = self.tables().user_by_passkey(passkey).await;
        found.map_err(|error| self.explain(error))?.transpose()
    }

    /// The first `limit` users after `after`, by id. Fewer than `limit` are the last ones.
    pub async fn list_users(&self, after: Option<UserId>, limit: u32) -> Result<Vec<User>, AccessError> {
        self.list(after.map_or(0, |id| sql_integer(id.get())), limit).await
    }

    pub async fn count_users(&self) -> Result<u64, AccessError> {
        let count = self.tables().count::<User>().await.map_err(|error| self.explain(error))?;
        Ok(count.unsigned_abs())
    }

    pub async fn remove_user(&self, id: UserId) -> Result<(), AccessError> {
        let removed = self.tables().delete::<User>(sql_integer(id.get())).await;
        match removed.map_err(|error| self.explain(error))? {
            0 => Err(AccessError::UnknownUser(id)),
            _ => Ok(()),
        }
    }

    pub async fn set_user_enabled(&self, id: UserId, enabled: bool) -> Result<(), AccessError> {
        self.change_user(id, UserChange { enabled: Some(enabled), ..UserChange::default() }).await
    }

    pub async fn change_user(&self, id: UserId, change: UserChange) -> Result<(), AccessError> {
        let found = self.tables().change_user(sql_integer(id.get()), &change).await;
        match found.map_err(|error| self.explain(error))? {
            0 => Err(AccessError::UnknownUser(id)),
            _ => Ok(()),
        }
    }

    /// Replaces the passkey of a user that is not external; none for a random one. Returns the new passkey.
    pub async fn rotate_passkey(&self, id: UserId, passkey: Option<Passkey>) -> Result<Passkey, AccessError> {
        let passkey = passkey.map_or_else(random_passkey, Ok)?;
        let mut transaction = self.begin().await?;
        let present =
            transaction.row::<User>(sql_integer(id.get())).await.map_err(|error| self.explain(error))?;
        if present.transpose()?.is_some_and(|user| user.is_external) {
            return Err(AccessError::NotRotatable(id));
        }
        match transaction.set_passkey(sql_integer(id.get()), &passkey).await {
            Ok(0) => return Err(AccessError::UnknownUser(id)),
            Ok(_) => {}
            Err(error) => return Err(self.explain_user(&mut transaction, error, None, &passkey).await),
        }
        self.commit(transaction).await?;
        Ok(passkey)
    }

    async fn insert_user(
        &self,
        transaction: &mut Tables<'_>,
        user: UserWithPasskey,
    ) -> Result<User, AccessError> {
        let error = match transaction.insert_user(&user, false).await {
            Ok(read) => return read,
            Err(error) => error,
        };
        if error.is_constraint()
            && let Some(converted) = self.convert_external(transaction, &user).await?
        {
            return Ok(converted);
        }
        Err(self.explain_user(transaction, error, user.0.id, &user.1).await)
    }

    /// Makes the external user with this passkey, if there is one, a user of the database.
    async fn convert_external(
        &self,
        transaction: &mut Tables<'_>,
        (user, passkey): &UserWithPasskey,
    ) -> Result<Option<User>, AccessError> {
        let holder = transaction.user_by_passkey(passkey).await.map_err(|error| self.explain(error))?;
        let Some(holder) = holder.transpose()?.filter(|holder| holder.is_external) else { return Ok(None) };
        if let Some(wanted) = user.id.filter(|id| *id != holder.id) {
            return Err(AccessError::PasskeyExternal { passkey: *passkey, holder: holder.id, wanted });
        }
        let id = sql_integer(holder.id.get());
        transaction.clear_external(id).await.map_err(|error| self.explain(error))?;
        Ok(Some(User { is_external: false, ..holder }))
    }

    async fn insert_users(
        &self,
        transaction: &mut Tables<'_>,
        batch: &[UserWithPasskey],
    ) -> Result<(), AccessError> {
        match transaction.insert_users(batch).await {
            Ok(read) => read,
            Err(error) if error.is_constraint() => {
                // Inserted one by one, to convert external users and to name the row at fault.
                for user in batch {
                    self.insert_user(transaction, *user).await?;
                }
                Ok(())
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Turns a constraint violation into the error that names its cause.
    async fn explain_user(
        &self,
        transaction: &mut Tables<'_>,
        error: SqlError,
        id: Option<UserId>,
        passkey: &Passkey,
    ) -> AccessError {
        if !error.is_constraint() {
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

    async fn explain_id(&self, transaction: &mut Tables<'_>, id: UserId) -> AccessError {
        match transaction.row::<User>(sql_integer(id.get())).await {
            Ok(Some(Ok(user))) if user.is_external => AccessError::UserIdExternal(id),
            _ => AccessError::UserIdTaken(id),
        }
    }
}

/// A new user with its passkey, given or random.
pub(crate) type UserWithPasskey = (NewUser, Passkey);

fn with_passkey(user: NewUser) -> Result<UserWithPasskey, AccessError> {
    Ok((user, user.passkey.map_or_else(random_passkey, Ok)?))
}
