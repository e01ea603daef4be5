//! Privacy settings. A user without a row has the defaults of [`crate::FriendsSettings`].

use std::collections::HashMap;

use database::Value;
use domain::UserId;
use presence::{Audience, Privacy};

use crate::error::FriendsError;
use crate::friendship::LOCK_FRIENDSHIPS;
use crate::store::{
    FriendStore, LIST_MAX, TransactionError, id_rows, retry_on_conflict, sql_id, sql_ids, user_of,
};

const CHOICES: &str =
    "SELECT p.user_id, p.status, p.last_seen FROM {rows 1} {join} people_privacy p ON p.user_id = k.c0";

const NEVER: &str = "SELECT n.user_id, n.viewer FROM {rows 1} {join} people_never n ON n.user_id = k.c0";

const SET: &str = "INSERT INTO people_privacy (user_id, status, last_seen) VALUES (?, ?, ?)
     {upsert user_id} status = {new status}, last_seen = {new last_seen}";

const DELETE_OTHER_NEVER: &str = "DELETE FROM people_never WHERE user_id = ? AND viewer {not in}";

const INSERT_NEVER: &str = "{insert or ignore} people_never (user_id, viewer)
     SELECT ?, k.c0 FROM {rows 1} WHERE true {or ignore}";

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
        let listed = Value::integers(never.iter().copied());
        let rows = id_rows(never.iter().copied());
        let mut transaction = self.begin().await?;
        transaction.execute(LOCK_FRIENDSHIPS, &[]).await?;
        let chosen = [user.clone(), privacy.status.name().into(), privacy.last_seen.name().into()];
        transaction.execute(SET, &chosen).await?;
        transaction.execute(DELETE_OTHER_NEVER, &[user.clone(), listed]).await?;
        transaction.execute(INSERT_NEVER, &[user, rows]).await?;
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
            let listed = [id_rows(sql_ids(chunk))];
            let choices: Vec<(i64, String, String)> = self.read(CHOICES, &listed).await?;
            for (user, status, last_seen) in choices {
                let Some(user) = user_of(user) else { continue };
                let choice =
                    Privacy { status: audience(&status), last_seen: audience(&last_seen), never: Vec::new() };
                known.insert(user, choice);
            }
            let never: Vec<(i64, i64)> = self.read(NEVER, &listed).await?;
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
