//! Who knows whom. A friendship has no direction: each pair is kept once, the lower id first.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use domain::{UnixTime, UserId};

use crate::error::PeopleError;
use crate::sql::{Cell, Page, Statement};
use crate::store::{LIST_MAX, People, Undone, as_often_as_it_takes, moment_of, sql_id, sql_number, user_of};

/// Our writers take turns from here on, so that what they count stays true until they commit, and on MariaDB so that they
/// take locks in one order. On SQLite whoever begins to write is alone.
pub(crate) const TAKE_TURN: Statement = Statement {
    sqlite: "SELECT 1",
    postgres: "SELECT pg_advisory_xact_lock(hashtextextended('rollcall.people_friendships', 0))",
    mysql: "SELECT newest FROM people_counters WHERE name = 'changes' FOR UPDATE",
};

const INSERT: Statement = Statement {
    // Without a WHERE, SQLite would take ON for that of a join.
    sqlite: "INSERT INTO people_friendships (since, user_a, user_b)
             SELECT $1, k.value ->> 0, k.value ->> 1 FROM json_each($2) k WHERE true ON CONFLICT DO NOTHING",
    postgres: "INSERT INTO people_friendships (since, user_a, user_b)
               SELECT $1::BIGINT, k.a, k.b FROM unnest($2::BIGINT[], $3::BIGINT[]) AS k (a, b)
               ON CONFLICT DO NOTHING",
    mysql: "INSERT IGNORE INTO people_friendships (since, user_a, user_b)
            SELECT ?, k.a, k.b FROM
                JSON_TABLE(?, '$[*]' COLUMNS (a BIGINT PATH '$[0]', b BIGINT PATH '$[1]')) k",
};

const DELETE: Statement = Statement {
    sqlite: "DELETE FROM people_friendships WHERE (user_a, user_b) IN
                 (SELECT k.value ->> 0, k.value ->> 1 FROM json_each($1) k)",
    postgres: "DELETE FROM people_friendships t USING unnest($1::BIGINT[], $2::BIGINT[]) AS k (a, b)
               WHERE t.user_a = k.a AND t.user_b = k.b",
    mysql: "DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (a BIGINT PATH '$[0]', b BIGINT PATH '$[1]')) k
            STRAIGHT_JOIN people_friendships t ON t.user_a = k.a AND t.user_b = k.b",
};

/// Those of two equal lists of people who have too many friends.
const TOO_POPULAR: Statement = Statement {
    sqlite: "SELECT id FROM (
                 SELECT t.user_a AS id FROM json_each($1) k CROSS JOIN people_friendships t ON t.user_a = k.value
                 UNION ALL
                 SELECT t.user_b AS id FROM json_each($2) k CROSS JOIN people_friendships t ON t.user_b = k.value)
             GROUP BY id HAVING count(*) > $3 ORDER BY id LIMIT 1",
    postgres: "SELECT id FROM (
                   SELECT t.user_a AS id FROM unnest($1::BIGINT[]) AS k (id) JOIN people_friendships t ON t.user_a = k.id
                   UNION ALL
                   SELECT t.user_b AS id FROM unnest($2::BIGINT[]) AS k (id) JOIN people_friendships t ON t.user_b = k.id
               ) AS f GROUP BY id HAVING count(*) > $3 ORDER BY id LIMIT 1",
    mysql: "SELECT id FROM (
                SELECT t.user_a AS id FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k
                    STRAIGHT_JOIN people_friendships t ON t.user_a = k.id
                UNION ALL
                SELECT t.user_b AS id FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k
                    STRAIGHT_JOIN people_friendships t ON t.user_b = k.id
            ) AS f GROUP BY id HAVING count(*) > ? ORDER BY id LIMIT 1",
};

const FRIENDS_OF: Statement = Statement::portable(
    "SELECT id, since FROM (
         SELECT user_b AS id, since FROM people_friendships WHERE user_a = $1 AND user_b > $2
         UNION ALL
         SELECT user_a AS id, since FROM people_friendships WHERE user_b = $3 AND user_a > $4
     ) AS f ORDER BY id LIMIT $5",
    "SELECT id, since FROM (
         SELECT user_b AS id, since FROM people_friendships WHERE user_a = ? AND user_b > ?
         UNION ALL
         SELECT user_a AS id, since FROM people_friendships WHERE user_b = ? AND user_a > ?
     ) AS f ORDER BY id LIMIT ?",
);

const COUNT: Statement = Statement::portable(
    "SELECT (SELECT count(*) FROM people_friendships WHERE user_a = $1)
          + (SELECT count(*) FROM people_friendships WHERE user_b = $2)",
    "SELECT (SELECT count(*) FROM people_friendships WHERE user_a = ?)
          + (SELECT count(*) FROM people_friendships WHERE user_b = ?)",
);

/// Those of these pairs who are friends.
const AMONG: Statement = Statement {
    sqlite: "SELECT t.user_a, t.user_b FROM json_each($1) k
             CROSS JOIN people_friendships t ON t.user_a = k.value ->> 0 AND t.user_b = k.value ->> 1",
    postgres: "SELECT t.user_a, t.user_b FROM unnest($1::BIGINT[], $2::BIGINT[]) AS k (a, b)
               JOIN people_friendships t ON t.user_a = k.a AND t.user_b = k.b",
    mysql: "SELECT t.user_a, t.user_b
            FROM JSON_TABLE(?, '$[*]' COLUMNS (a BIGINT PATH '$[0]', b BIGINT PATH '$[1]')) k
            STRAIGHT_JOIN people_friendships t ON t.user_a = k.a AND t.user_b = k.b",
};

/// A friend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Friend {
    /// Who.
    pub id: UserId,
    /// Since when.
    pub since: UnixTime,
}

/// What became of pairs that were to be friends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// How many are friends only now.
    pub added: u64,
    /// How many were friends already, or were named twice.
    pub already: u64,
}

impl People {
    /// Makes pairs friends: all of them, or none. Whoever is a friend already stays one, since when they were.
    pub async fn add_friends(&self, pairs: &[(UserId, UserId)], now: UnixTime) -> Result<Added, PeopleError> {
        let wanted = ordered(pairs)?;
        if wanted.is_empty() {
            return Ok(Added::default());
        }
        let added = as_often_as_it_takes!(self, self.insert_friends(&wanted, now));
        let added = added.inspect_err(|error| {
            if matches!(error, PeopleError::TooManyFriends { .. }) {
                self.counters.friends_refused.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        Ok(Added { added, already: pairs.len() as u64 - added })
    }

    async fn insert_friends(&self, pairs: &[(i64, i64)], now: UnixTime) -> Result<u64, Undone> {
        let mut page = self.begin().await?;
        page.on().write(&TAKE_TURN, &[]).await?;
        let mut added = 0;
        for chunk in pairs.chunks(LIST_MAX) {
            added += page.on().write(&INSERT, &[now.0.into(), Cell::Pairs(chunk.to_vec())]).await?;
        }
        if added == 0 {
            return Ok(0);
        }
        let people: BTreeSet<i64> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let people: Vec<i64> = people.into_iter().collect();
        for chunk in people.chunks(LIST_MAX) {
            self.check_popularity(&mut page, chunk).await?;
        }
        page.commit().await?;
        Ok(added)
    }

    /// Fails where somebody has too many friends.
    async fn check_popularity(&self, page: &mut Page, people: &[i64]) -> Result<(), Undone> {
        let max = self.settings.friends_max;
        let listed = Cell::Numbers(people.to_vec());
        let found: Vec<(i64,)> = page.on().read(&TOO_POPULAR, &[listed.clone(), listed, max.into()]).await?;
        match found.first().and_then(|(id,)| user_of(*id)) {
            Some(user) => Err(PeopleError::TooManyFriends { user, max }.into()),
            None => Ok(()),
        }
    }

    /// Ends friendships: all of them, or none. Tells how many there were.
    pub async fn remove_friends(&self, pairs: &[(UserId, UserId)]) -> Result<u64, PeopleError> {
        let wanted = ordered(pairs)?;
        if wanted.is_empty() {
            return Ok(0);
        }
        as_often_as_it_takes!(self, self.delete_friends(&wanted))
    }

    async fn delete_friends(&self, pairs: &[(i64, i64)]) -> Result<u64, Undone> {
        let mut page = self.begin().await?;
        page.on().write(&TAKE_TURN, &[]).await?;
        let mut removed = 0;
        for chunk in pairs.chunks(LIST_MAX) {
            removed += page.on().write(&DELETE, &[Cell::Pairs(chunk.to_vec())]).await?;
        }
        page.commit().await?;
        Ok(removed)
    }

    /// Some friends of somebody, by their ids, behind `after`.
    pub async fn friends_of(
        &self,
        user: UserId,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<Friend>, PeopleError> {
        let (user, after) = (Cell::from(sql_id(user)), Cell::from(after.map_or(0, sql_id)));
        let rows: Vec<(i64, i64)> =
            self.read(&FRIENDS_OF, &[user.clone(), after.clone(), user, after, limit.into()]).await?;
        let friend = |(id, since): &(i64, i64)| Some(Friend { id: user_of(*id)?, since: moment_of(*since) });
        Ok(rows.iter().filter_map(friend).collect())
    }

    /// How many friends somebody has.
    pub async fn count_friends(&self, user: UserId) -> Result<u64, PeopleError> {
        let user = Cell::from(sql_id(user));
        let rows: Vec<(i64,)> = self.read(&COUNT, &[user.clone(), user]).await?;
        Ok(rows.first().map_or(0, |(count,)| count.unsigned_abs()))
    }

    /// Who of these is a friend of somebody; each once, sorted.
    pub async fn friends_among(&self, user: UserId, others: &[UserId]) -> Result<Vec<UserId>, PeopleError> {
        let me = sql_id(user);
        let pairs: BTreeSet<(i64, i64)> =
            others.iter().map(|other| in_order(me, sql_id(*other))).filter(|(a, b)| a != b).collect();
        let pairs: Vec<(i64, i64)> = pairs.into_iter().collect();
        let mut friends = Vec::new();
        for chunk in pairs.chunks(LIST_MAX) {
            let rows: Vec<(i64, i64)> = self.read(&AMONG, &[Cell::Pairs(chunk.to_vec())]).await?;
            friends.extend(rows.iter().filter_map(|(a, b)| user_of(if *a == me { *b } else { *a })));
        }
        friends.sort_unstable();
        Ok(friends)
    }
}

fn in_order(one: i64, other: i64) -> (i64, i64) {
    (one.min(other), one.max(other))
}

/// The pairs as they are kept, each once, in an order that all writers have in common.
fn ordered(pairs: &[(UserId, UserId)]) -> Result<Vec<(i64, i64)>, PeopleError> {
    if let Some((user, _)) = pairs.iter().find(|(one, other)| one == other) {
        return Err(PeopleError::OwnFriend(*user));
    }
    let pairs = pairs.iter().map(|(one, other)| in_order(sql_number(one.get()), sql_number(other.get())));
    Ok(pairs.collect::<BTreeSet<_>>().into_iter().collect())
}
