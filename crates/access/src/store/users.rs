//! The table of users.

use domain::{Passkey, UnixTime, UserId};
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Sqlite};

use super::rows::{read_user, readable, sql_integer, user_id};
use super::{BULK_ROWS, Store, random_passkey};
use crate::error::{AccessError, is_constraint};

/// A user as the database has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Their number.
    pub id: UserId,
    /// The secret in their announce URL.
    pub passkey: Passkey,
    /// Whether they may announce.
    pub enabled: bool,
    /// When they were added.
    pub created_at: UnixTime,
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
    /// Adds a user.
    pub async fn add_user(&self, user: NewUser) -> Result<User, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_user(&mut transaction, with_passkey(user)?).await?;
        self.commit(transaction).await?;
        Ok(added)
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
            self.insert_users(&mut transaction, &batch).await?;
            added += batch.len() as u64;
        }
        self.commit(transaction).await?;
        Ok(added)
    }

    /// The user with this id.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, AccessError> {
        let row = sqlx::query("SELECT id, passkey, enabled, created_at FROM users WHERE id = ?")
            .bind(sql_integer(id.get()))
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        row.as_ref().map(read_user).transpose()
    }

    /// The user with this passkey.
    pub async fn user_by_passkey(&self, passkey: &Passkey) -> Result<Option<User>, AccessError> {
        let row = sqlx::query("SELECT id, passkey, enabled, created_at FROM users WHERE passkey = ?")
            .bind(passkey.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        row.as_ref().map(read_user).transpose()
    }

    /// The first `limit` users behind `after`, by id. Fewer than `limit` means that these were the last.
    pub async fn list_users(&self, after: Option<UserId>, limit: u32) -> Result<Vec<User>, AccessError> {
        let mut connection = self.pool.acquire().await.map_err(|error| self.explain(error))?;
        let mut users = Vec::new();
        let mut last = after.map_or(0, |id| sql_integer(id.get()));
        loop {
            let wanted = limit - users.len() as u32;
            let page = user_page(&mut connection, last, wanted).await.map_err(|error| self.explain(error))?;
            users.extend(page.users);
            match page.last {
                // Rows that could not be read left room for more.
                Some(id) if (users.len() as u32) < limit => last = id,
                _ => return Ok(users),
            }
        }
    }

    /// How many users there are.
    pub async fn count_users(&self) -> Result<u64, AccessError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM users")
            .fetch_one(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        Ok(count.unsigned_abs())
    }

    /// Removes a user.
    pub async fn remove_user(&self, id: UserId) -> Result<(), AccessError> {
        let done = sqlx::query("DELETE FROM users WHERE id = ?")
            .bind(sql_integer(id.get()))
            .execute(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        if done.rows_affected() == 0 { Err(AccessError::UnknownUser(id)) } else { Ok(()) }
    }

    /// Lets a user announce, or no longer.
    pub async fn set_user_enabled(&self, id: UserId, enabled: bool) -> Result<(), AccessError> {
        let done = sqlx::query("UPDATE users SET enabled = ? WHERE id = ?")
            .bind(enabled)
            .bind(sql_integer(id.get()))
            .execute(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        if done.rows_affected() == 0 { Err(AccessError::UnknownUser(id)) } else { Ok(()) }
    }

    /// Gives a user a new passkey (none means a random one); the old one stops working. Tells the new one.
    pub async fn rotate_passkey(&self, id: UserId, passkey: Option<Passkey>) -> Result<Passkey, AccessError> {
        let passkey = passkey.map_or_else(random_passkey, Ok)?;
        let mut transaction = self.begin().await?;
        let done = sqlx::query("UPDATE users SET passkey = ? WHERE id = ?")
            .bind(passkey.to_string())
            .bind(sql_integer(id.get()))
            .execute(&mut *transaction)
            .await;
        match done {
            Ok(done) if done.rows_affected() == 0 => return Err(AccessError::UnknownUser(id)),
            Ok(_) => {}
            Err(error) => return Err(self.explain_user(&mut transaction, error, None, &passkey).await),
        }
        self.commit(transaction).await?;
        Ok(passkey)
    }

    async fn insert_user(
        &self,
        connection: &mut SqliteConnection,
        (user, passkey): Keyed,
    ) -> Result<User, AccessError> {
        let row = sqlx::query(
            "INSERT INTO users (id, passkey, created_at) VALUES (?, ?, ?)
             RETURNING id, passkey, enabled, created_at",
        )
        .bind(user.id.map(|id| sql_integer(id.get())))
        .bind(passkey.to_string())
        .bind(user.created_at.0)
        .fetch_one(&mut *connection)
        .await;
        match row {
            Ok(row) => read_user(&row),
            Err(error) => Err(self.explain_user(connection, error, user.id, &passkey).await),
        }
    }

    async fn insert_users(
        &self,
        connection: &mut SqliteConnection,
        batch: &[Keyed],
    ) -> Result<(), AccessError> {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO users (id, passkey, created_at) ");
        insert.push_values(batch, |mut row, (user, passkey)| {
            row.push_bind(user.id.map(|id| sql_integer(id.get())))
                .push_bind(passkey.to_string())
                .push_bind(user.created_at.0);
        });
        match insert.build().execute(&mut *connection).await {
            Ok(_) => Ok(()),
            Err(error) if is_constraint(&error) => {
                // One of them is at fault: one at a time, it shows itself.
                for user in batch {
                    self.insert_user(connection, *user).await?;
                }
                Err(self.explain(error))
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Finds out which rule a user broke.
    async fn explain_user(
        &self,
        connection: &mut SqliteConnection,
        error: sqlx::Error,
        id: Option<UserId>,
        passkey: &Passkey,
    ) -> AccessError {
        if !is_constraint(&error) {
            return self.explain(error);
        }
        let holders: Result<Vec<i64>, _> =
            sqlx::query_scalar("SELECT id FROM users WHERE id = ?1 OR passkey = ?2")
                .bind(id.map(|id| sql_integer(id.get())))
                .bind(passkey.to_string())
                .fetch_all(connection)
                .await;
        let holders: Vec<UserId> = holders.unwrap_or_default().into_iter().filter_map(user_id).collect();
        match (id, holders.first()) {
            (Some(id), Some(_)) if holders.contains(&id) => AccessError::UserIdTaken(id),
            (_, Some(holder)) => AccessError::PasskeyTaken { passkey: *passkey, holder: *holder },
            _ => self.explain(error),
        }
    }
}

/// A new user whose passkey is settled.
type Keyed = (NewUser, Passkey);

fn with_passkey(user: NewUser) -> Result<Keyed, AccessError> {
    Ok((user, user.passkey.map_or_else(random_passkey, Ok)?))
}

/// Some users in the order of their ids.
pub(crate) struct UserPage {
    pub users: Vec<User>,
    /// The id of the last row, readable or not; none if there was no row.
    pub last: Option<i64>,
}

/// The rows behind `after`.
pub(crate) async fn user_page(
    connection: &mut SqliteConnection,
    after: i64,
    limit: u32,
) -> Result<UserPage, sqlx::Error> {
    let rows =
        sqlx::query("SELECT id, passkey, enabled, created_at FROM users WHERE id > ? ORDER BY id LIMIT ?")
            .bind(after)
            .bind(limit)
            .fetch_all(connection)
            .await?;
    let last = rows.last().map(|row| sqlx::Row::try_get(row, "id")).transpose()?;
    Ok(UserPage { users: rows.iter().filter_map(|row| readable(read_user(row))).collect(), last })
}
