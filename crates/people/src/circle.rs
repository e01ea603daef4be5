//! What a connection needs to know of others: the friends of many people at once, and what may be seen of anybody.
//!
//! What is read here may be older than a change that was just made: whoever keeps it follows the changes from before
//! the reading ([`crate::follow`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use domain::UserId;
use presence::{LastKnown, Privacy, Sight};

use crate::error::PeopleError;
use crate::privacy::visibility;
use crate::remembered::LastRow;
use crate::sql::{Cell, Statement};
use crate::store::{LIST_MAX, People, sql_id, sql_ids, user_of};

/// People whose friends are read in one statement.
const CIRCLES_MAX: usize = 500;

/// The friends of two equal lists of people, what they have chosen, whether they keep this very viewer out, and what was
/// last known of them.
const FRIENDS: Statement = Statement {
    sqlite: "SELECT f.viewer, f.subject, p.status, p.last_seen AS last_seen_shown, n.viewer AS never,
                    r.last_seen, r.public_version, r.own_version, r.declared, r.declared_text, r.declared_until
             FROM (SELECT t.user_a AS viewer, t.user_b AS subject
                   FROM json_each($1) k CROSS JOIN people_friendships t ON t.user_a = k.value
                   UNION ALL
                   SELECT t.user_b AS viewer, t.user_a AS subject
                   FROM json_each($2) k CROSS JOIN people_friendships t ON t.user_b = k.value) f
             LEFT JOIN people_privacy p ON p.user_id = f.subject
             LEFT JOIN people_never n ON n.user_id = f.subject AND n.viewer = f.viewer
             LEFT JOIN people_presence r ON r.user_id = f.subject",
    postgres: "SELECT f.viewer, f.subject, p.status, p.last_seen AS last_seen_shown, n.viewer AS never,
                      r.last_seen, r.public_version, r.own_version, r.declared, r.declared_text, r.declared_until
               FROM (SELECT t.user_a AS viewer, t.user_b AS subject
                     FROM unnest($1::BIGINT[]) AS k (id) JOIN people_friendships t ON t.user_a = k.id
                     UNION ALL
                     SELECT t.user_b AS viewer, t.user_a AS subject
                     FROM unnest($2::BIGINT[]) AS k (id) JOIN people_friendships t ON t.user_b = k.id) f
               LEFT JOIN people_privacy p ON p.user_id = f.subject
               LEFT JOIN people_never n ON n.user_id = f.subject AND n.viewer = f.viewer
               LEFT JOIN people_presence r ON r.user_id = f.subject",
    mysql: "SELECT f.viewer, f.subject, p.status, p.last_seen AS last_seen_shown, n.viewer AS never,
                   r.last_seen, r.public_version, r.own_version, r.declared, r.declared_text, r.declared_until
            FROM (SELECT t.user_a AS viewer, t.user_b AS subject
                  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k
                      STRAIGHT_JOIN people_friendships t ON t.user_a = k.id
                  UNION ALL
                  SELECT t.user_b AS viewer, t.user_a AS subject
                  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k
                      STRAIGHT_JOIN people_friendships t ON t.user_b = k.id) f
            LEFT JOIN people_privacy p ON p.user_id = f.subject
            LEFT JOIN people_never n ON n.user_id = f.subject AND n.viewer = f.viewer
            LEFT JOIN people_presence r ON r.user_id = f.subject",
};

/// The same of anybody, for one viewer.
const ANYBODY: Statement = Statement {
    sqlite: "SELECT CAST($1 AS INTEGER) AS viewer, k.value AS subject, p.status, p.last_seen AS last_seen_shown,
                    n.viewer AS never,
                    r.last_seen, r.public_version, r.own_version, r.declared, r.declared_text, r.declared_until
             FROM json_each($2) k
             LEFT JOIN people_privacy p ON p.user_id = k.value
             LEFT JOIN people_never n ON n.user_id = k.value AND n.viewer = $3
             LEFT JOIN people_presence r ON r.user_id = k.value",
    postgres: "SELECT $1::BIGINT AS viewer, k.id AS subject, p.status, p.last_seen AS last_seen_shown,
                      n.viewer AS never,
                      r.last_seen, r.public_version, r.own_version, r.declared, r.declared_text, r.declared_until
               FROM unnest($2::BIGINT[]) AS k (id)
               LEFT JOIN people_privacy p ON p.user_id = k.id
               LEFT JOIN people_never n ON n.user_id = k.id AND n.viewer = $3
               LEFT JOIN people_presence r ON r.user_id = k.id",
    mysql: "SELECT CAST(? AS SIGNED) AS viewer, k.id AS subject, p.status, p.last_seen AS last_seen_shown,
                   n.viewer AS never,
                   r.last_seen, r.public_version, r.own_version, r.declared, r.declared_text, r.declared_until
            FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) k
            LEFT JOIN people_privacy p ON p.user_id = k.id
            LEFT JOIN people_never n ON n.user_id = k.id AND n.viewer = ?
            LEFT JOIN people_presence r ON r.user_id = k.id",
};

/// A person and their friends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Who.
    pub user: UserId,
    /// What they have chosen.
    pub privacy: Privacy,
    /// Their friends, by their ids.
    pub friends: Vec<Acquaintance>,
}

/// Somebody, as one viewer may see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquaintance {
    /// Who.
    pub user: UserId,
    /// Whether they and the viewer are friends.
    pub is_friend: bool,
    /// What the viewer may see of them.
    pub sight: Sight,
    /// What was last known of them, seen or not.
    pub last: LastKnown,
}

/// A row of [`FRIENDS`] or [`ANYBODY`].
#[derive(Debug, sqlx::FromRow)]
struct AcquaintanceRow {
    viewer: i64,
    subject: i64,
    status: Option<String>,
    last_seen_shown: Option<String>,
    never: Option<i64>,
    #[sqlx(flatten)]
    last: LastRow,
}

impl People {
    /// The friends of these people, with what each may see of them. One circle for each who is asked, in their order;
    /// also for those of whom nothing is known.
    pub async fn circles(&self, users: &[UserId]) -> Result<Vec<Circle>, PeopleError> {
        let mut circles = Vec::with_capacity(users.len());
        for chunk in users.chunks(CIRCLES_MAX) {
            let privacies = self.privacies(chunk).await?;
            let friends = self.friends(chunk).await?;
            circles.extend(chunk.iter().map(|user| Circle {
                user: *user,
                privacy: privacies.get(user).cloned().unwrap_or_else(|| self.default_privacy()),
                friends: friends.get(user).map_or_else(Vec::new, |known| known.values().cloned().collect()),
            }));
        }
        Ok(circles)
    }

    async fn friends(
        &self,
        users: &[UserId],
    ) -> Result<HashMap<UserId, BTreeMap<UserId, Acquaintance>>, PeopleError> {
        let mut asked = sql_ids(users);
        asked.sort_unstable();
        asked.dedup();
        let listed = Cell::Numbers(asked);
        let rows: Vec<AcquaintanceRow> = self.read(&FRIENDS, &[listed.clone(), listed]).await?;
        let mut friends: HashMap<UserId, BTreeMap<UserId, Acquaintance>> = HashMap::new();
        for row in rows {
            let Some((viewer, known)) = self.acquaintance(row, |_| true) else { continue };
            friends.entry(viewer).or_default().insert(known.user, known);
        }
        for circle in friends.values_mut() {
            self.cut(circle);
        }
        Ok(friends)
    }

    /// A site may have written more friends than one may have: the rest are strangers.
    fn cut(&self, circle: &mut BTreeMap<UserId, Acquaintance>) {
        let max = self.settings.friends_max as usize;
        if let Some(first_too_many) = circle.keys().nth(max).copied() {
            circle.split_off(&first_too_many);
            self.counters.circles_cut.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(max, "somebody has more friends than one may have; some are left out");
        }
    }

    /// What `viewer` may see of these, friends or not, with what was last known of each: one for each who is asked, in
    /// their order. Everybody may see all of themselves.
    pub async fn sights(&self, viewer: UserId, users: &[UserId]) -> Result<Vec<Acquaintance>, PeopleError> {
        let friends: BTreeSet<UserId> = self.friends_among(viewer, users).await?.into_iter().collect();
        let mut known: HashMap<UserId, Acquaintance> = HashMap::with_capacity(users.len());
        for chunk in users.chunks(LIST_MAX) {
            let me = Cell::from(sql_id(viewer));
            let rows: Vec<AcquaintanceRow> =
                self.read(&ANYBODY, &[me.clone(), Cell::Numbers(sql_ids(chunk)), me]).await?;
            let found =
                rows.into_iter().filter_map(|row| self.acquaintance(row, |user| friends.contains(&user)));
            known.extend(found.map(|(_, acquaintance)| (acquaintance.user, acquaintance)));
        }
        Ok(users.iter().filter_map(|user| known.get(user).cloned()).collect())
    }

    /// None for what a site should not have written.
    fn acquaintance(
        &self,
        row: AcquaintanceRow,
        is_friend: impl Fn(UserId) -> bool,
    ) -> Option<(UserId, Acquaintance)> {
        let (viewer, user) = (user_of(row.viewer)?, user_of(row.subject)?);
        let chosen = |choice: Option<String>| {
            choice.map_or(self.settings.default_visibility, |choice| visibility(&choice))
        };
        let privacy = Privacy {
            status: chosen(row.status),
            last_seen: chosen(row.last_seen_shown),
            never: row.never.iter().map(|_| viewer).collect(),
        };
        let is_friend = is_friend(user);
        let sight = match viewer == user {
            true => Sight { status: true, last_seen: true },
            false => privacy.sight(viewer, is_friend),
        };
        Some((viewer, Acquaintance { user, is_friend, sight, last: row.last.known() }))
    }
}
