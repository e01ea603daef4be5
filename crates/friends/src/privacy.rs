//! Privacy settings. A user without a row has the defaults of [`crate::FriendsSettings`].

use std::collections::HashMap;

use domain::UserId;
use presence::{Audience, Privacy};

use crate::error::FriendsError;
use crate::friendship::LOCK_FRIENDSHIPS;
use crate::sql::{Statement, Value};
use crate::store::{FriendStore, LIST_MAX, TransactionError, retry_on_conflict, sql_id, sql_ids, user_of};

const CHOICES: Statement = Statement {
    sqlite: "SELECT p.user_id, p.status, p.last_seen FROM json_each($1) k
             CROSS JOIN people_privacy p ON p.user_id = k.value",
    postgres: "SELECT user_id, status, last_seen FROM people_privacy WHERE user_id = ANY ($1::BIGINT[])",
    mysql: "SELECT p.user_id, p.status, p.last_seen FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k
            STRAIGHT_JOIN people_privacy p ON p.user_id = k.id",
};

const NEVER: Statement = Statement {
    sqlite: "SELECT n.user_id, n.viewer FROM json_each($1) k CROSS JOIN people_never n ON n.user_id = k.value",
    postgres: "SELECT user_id, viewer FROM people_never WHERE user_id = ANY ($1::BIGINT[])",
    mysql: "SELECT n.user_id, n.viewer FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k
            STRAIGHT_JOIN people_never n ON n.user_id = k.id",
};

const SET: Statement = Statement::portable(
    "INSERT INTO people_privacy (user_id, status, last_seen) VALUES ($1, $2, $3)
     ON CONFLICT (user_id) DO UPDATE SET status = excluded.status, last_seen = excluded.last_seen",
    "INSERT INTO people_privacy (user_id, status, last_seen) VALUES (?, ?, ?)
     ON DUPLICATE KEY UPDATE status = VALUES(status), last_seen = VALUES(last_seen)",
);

const DELETE_OTHER_NEVER: Statement = Statement {
    sqlite: "DELETE FROM people_never WHERE user_id = $1 AND viewer NOT IN (SELECT value FROM json_each($2))",
    postgres: "DELETE FROM people_never WHERE user_id = $1 AND viewer <> ALL ($2::BIGINT[])",
    mysql: "DELETE FROM people_never WHERE user_id = ? AND viewer NOT IN
                (SELECT k.id FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k)",
};

const INSERT_NEVER: Statement = Statement {
    sqlite: "INSERT INTO people_never (user_id, viewer)
             SELECT $1, value FROM json_each($2) WHERE true ON CONFLICT DO NOTHING",
    postgres: "INSERT INTO people_never (user_id, viewer)
               SELECT $1::BIGINT, viewer FROM unnest($2::BIGINT[]) AS viewer ON CONFLICT DO NOTHING",
    mysql: "INSERT IGNORE INTO people_never (user_id, viewer)
            SELECT ?, k.id FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k",
};

impl FriendStore {
    /// Most entries of a `never` list.
    pub const NEVER_MAX: usize = 1000;

    /// The user's settings, or the defaults.
    pub async fn privacy(&self, user: UserId) -> Result<Privacy, FriendsError> {
        let mut known = self.privacies(&[user]).await?;
        Ok(known.remove(&user).unwrap_or_else(|| self.default_privacy()))
    }

    /// Replaces all settings of a user in one transaction.
    pub async fn set_privacy(&self, user: UserId, privacy: &Privacy) -> Result<(), FriendsError> {
        let mut never = sql_ids(&privacy.never);
        never.sort_unstable();
        never.dedup();
        never.retain(|viewer| *viewer != sql_id(user));
        if never.len() > Self::NEVER_MAX {
            return Err(FriendsError::TooManyNever { count: never.len(), max: Self::NEVER_MAX });
        }
        retry_on_conflict!(self, self.write_privacy(user, privacy, &never))
    }

    async fn write_privacy(
        &self,
        user: UserId,
        privacy: &Privacy,
        never: &[i64],
    ) -> Result<(), TransactionError> {
        let user = Value::from(sql_id(user));
        let never = [user.clone(), Value::Numbers(never.to_vec())];
        let mut transaction = self.begin().await?;
        transaction.connection().write(&LOCK_FRIENDSHIPS, &[]).await?;
        transaction
            .connection()
            .write(&SET, &[user, privacy.status.name().into(), privacy.last_seen.name().into()])
            .await?;
        transaction.connection().write(&DELETE_OTHER_NEVER, &never).await?;
        transaction.connection().write(&INSERT_NEVER, &never).await?;
        Ok(transaction.commit().await?)
    }

    pub(crate) fn default_privacy(&self) -> Privacy {
        let everything = self.settings.default_audience;
        Privacy { status: everything, last_seen: everything, never: Vec::new() }
    }

    /// The stored settings of these users; users with defaults are absent.
    pub(crate) async fn privacies(&self, users: &[UserId]) -> Result<HashMap<UserId, Privacy>, FriendsError> {
        let mut known: HashMap<UserId, Privacy> = HashMap::new();
        for chunk in users.chunks(LIST_MAX) {
            let listed = [Value::Numbers(sql_ids(chunk))];
            let choices: Vec<(i64, String, String)> = self.read(&CHOICES, &listed).await?;
            for (user, status, last_seen) in choices {
                let Some(user) = user_of(user) else { continue };
                let choice =
                    Privacy { status: audience(&status), last_seen: audience(&last_seen), never: Vec::new() };
                known.insert(user, choice);
            }
            let never: Vec<(i64, i64)> = self.read(&NEVER, &listed).await?;
            for (user, viewer) in never {
                let (Some(user), Some(viewer)) = (user_of(user), user_of(viewer)) else { continue };
                known.entry(user).or_insert_with(|| self.default_privacy()).never.push(viewer);
            }
        }
        for privacy in known.values_mut() {
            privacy.never.sort_unstable();
            privacy.never.dedup();
        }
        Ok(known)
    }
}

/// An unknown name is treated as the strictest setting.
pub(crate) fn audience(name: &str) -> Audience {
    Audience::from_name(name).unwrap_or(Audience::Nobody)
}
