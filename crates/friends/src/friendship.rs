//! Friendships. A friendship has no direction: each pair is one row, the lower id first.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use database::{Statement, Transaction, Value};
use domain::{UnixTime, UserId};

use crate::error::FriendsError;

use crate::store::{
    FriendStore, LIST_MAX, TransactionError, id_rows, pair_rows, retry_on_conflict, sql_id, sql_number,
    time_of, user_of,
};

/// Serializes our writers until they commit, so that friend counts stay true, and on MariaDB so that all take locks in
/// the same order. On SQLite a write transaction is exclusive.
pub(crate) const LOCK_FRIENDSHIPS: Statement = Statement::each(
    "SELECT 1",
    "SELECT pg_advisory_xact_lock(hashtextextended('rollcall.people_friendships', 0))",
    "SELECT newest FROM people_counters WHERE name = 'changes' FOR UPDATE",
);

/// The WHERE is for SQLite, which would parse ON as a join constraint.
const INSERT: &str = "{insert or ignore} people_friendships (since, user_a, user_b)
     SELECT ?, k.c0, k.c1 FROM {rows 2} WHERE true {or ignore}";

const DELETE_LISTED: &str =
    "DELETE FROM people_friendships WHERE (user_a, user_b) IN (SELECT k.c0, k.c1 FROM {rows 2})";
/// MariaDB would read the whole table for a subquery.
const DELETE: Statement = Statement::each(
    DELETE_LISTED,
    DELETE_LISTED,
    "DELETE t FROM {rows 2} {join} people_friendships t ON t.user_a = k.c0 AND t.user_b = k.c1",
);

/// The first user of two equal lists with too many friends.
const OVER_FRIEND_LIMIT: &str = "SELECT id FROM (
         SELECT t.user_a AS id FROM {rows 1} {join} people_friendships t ON t.user_a = k.c0
         UNION ALL
         SELECT t.user_b AS id FROM {rows 1} {join} people_friendships t ON t.user_b = k.c0
     ) AS f GROUP BY id HAVING count(*) > ? ORDER BY id LIMIT 1";

const FRIENDS_OF: &str = "SELECT id, since FROM (
         SELECT user_b AS id, since FROM people_friendships WHERE user_a = ? AND user_b > ?
         UNION ALL
         SELECT user_a AS id, since FROM people_friendships WHERE user_b = ? AND user_a > ?
     ) AS f ORDER BY id LIMIT ?";

const COUNT: &str = "SELECT (SELECT count(*) FROM people_friendships WHERE user_a = ?)
          + (SELECT count(*) FROM people_friendships WHERE user_b = ?)";

/// The pairs of this list that are friends.
const FRIENDS_AMONG: &str = "SELECT t.user_a, t.user_b
     FROM {rows 2} {join} people_friendships t ON t.user_a = k.c0 AND t.user_b = k.c1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Friend {
    pub id: UserId,
    pub since: UnixTime,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FriendsAdded {
    pub added: u64,
    /// Pairs that were friends before, or were listed twice.
    pub already: u64,
}

impl FriendStore {
    /// Makes each pair friends; all pairs or none. An existing friendship keeps its `since`.
    pub async fn add_friends(
        &self,
        pairs: &[(UserId, UserId)],
        now: UnixTime,
    ) -> Result<FriendsAdded, FriendsError> {
        let wanted = ordered(pairs)?;
        if wanted.is_empty() {
            return Ok(FriendsAdded::default());
        }
        let added = retry_on_conflict!(self, self.insert_friends(&wanted, now));
        let added = added.inspect_err(|error| {
            if matches!(error, FriendsError::TooManyFriends { .. }) {
                self.counters.friends_refused.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        Ok(FriendsAdded { added, already: pairs.len() as u64 - added })
    }

    async fn insert_friends(&self, pairs: &[(i64, i64)], now: UnixTime) -> Result<u64, TransactionError> {
        let mut transaction = self.begin().await?;
        transaction.execute(LOCK_FRIENDSHIPS, &[]).await?;
        let mut added = 0;
        for chunk in pairs.chunks(LIST_MAX) {
            added += transaction.execute(INSERT, &[now.0.into(), pair_rows(chunk)]).await?;
        }
        if added == 0 {
            return Ok(0);
        }
        let users: BTreeSet<i64> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let users: Vec<i64> = users.into_iter().collect();
        for chunk in users.chunks(LIST_MAX) {
            self.check_friend_limit(&mut transaction, chunk).await?;
        }
        transaction.commit().await?;
        Ok(added)
    }

    /// Fails if one of these users has too many friends.
    async fn check_friend_limit(
        &self,
        transaction: &mut Transaction,
        users: &[i64],
    ) -> Result<(), TransactionError> {
        let max = self.settings.friends_max;
        let listed = id_rows(users.iter().copied());
        let found: Option<i64> =
            transaction.query_one(OVER_FRIEND_LIMIT, &[listed.clone(), listed, max.into()]).await?;
        match found.and_then(user_of) {
            Some(user) => Err(FriendsError::TooManyFriends { user, max }.into()),
            None => Ok(()),
        }
    }

    /// Ends friendships; all or none. Returns how many there were.
    pub async fn remove_friends(&self, pairs: &[(UserId, UserId)]) -> Result<u64, FriendsError> {
        let wanted = ordered(pairs)?;
        if wanted.is_empty() {
            return Ok(0);
        }
        retry_on_conflict!(self, self.delete_friends(&wanted))
    }

    async fn delete_friends(&self, pairs: &[(i64, i64)]) -> Result<u64, TransactionError> {
        let mut transaction = self.begin().await?;
        transaction.execute(LOCK_FRIENDSHIPS, &[]).await?;
        let mut removed = 0;
        for chunk in pairs.chunks(LIST_MAX) {
            removed += transaction.execute(DELETE, &[pair_rows(chunk)]).await?;
        }
        transaction.commit().await?;
        Ok(removed)
    }

    /// A page of a user's friends with ids above `after`, sorted by id.
    pub async fn friends_of(
        &self,
        user: UserId,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<Friend>, FriendsError> {
        let (user, after) = (Value::from(sql_id(user)), Value::from(after.map_or(0, sql_id)));
        let rows: Vec<(i64, i64)> =
            self.read(FRIENDS_OF, &[user.clone(), after.clone(), user, after, limit.into()]).await?;
        let friend = |(id, since): &(i64, i64)| Some(Friend { id: user_of(*id)?, since: time_of(*since) });
        Ok(rows.iter().filter_map(friend).collect())
    }

    pub async fn count_friends(&self, user: UserId) -> Result<u64, FriendsError> {
        let user = Value::from(sql_id(user));
        let rows: Vec<i64> = self.read(COUNT, &[user.clone(), user]).await?;
        Ok(rows.first().map_or(0, |count| count.unsigned_abs()))
    }

    /// Which of `others` are friends of the user; each once, sorted.
    pub async fn friends_among(&self, user: UserId, others: &[UserId]) -> Result<Vec<UserId>, FriendsError> {
        let me = sql_id(user);
        let pairs: BTreeSet<(i64, i64)> =
            others.iter().map(|other| in_order(me, sql_id(*other))).filter(|(a, b)| a != b).collect();
        let pairs: Vec<(i64, i64)> = pairs.into_iter().collect();
        let mut friends = Vec::new();
        for chunk in pairs.chunks(LIST_MAX) {
            let rows: Vec<(i64, i64)> = self.read(FRIENDS_AMONG, &[pair_rows(chunk)]).await?;
            friends.extend(rows.iter().filter_map(|(a, b)| user_of(if *a == me { *b } else { *a })));
        }
        friends.sort_unstable();
        Ok(friends)
    }
}

fn in_order(one: i64, other: i64) -> (i64, i64) {
    (one.min(other), one.max(other))
}

/// The pairs as they are stored: deduplicated, in an order common to all writers.
fn ordered(pairs: &[(UserId, UserId)]) -> Result<Vec<(i64, i64)>, FriendsError> {
    if let Some((user, _)) = pairs.iter().find(|(one, other)| one == other) {
        return Err(FriendsError::OwnFriend(*user));
    }
    let pairs = pairs.iter().map(|(one, other)| in_order(sql_number(one.get()), sql_number(other.get())));
    Ok(pairs.collect::<BTreeSet<_>>().into_iter().collect())
}
