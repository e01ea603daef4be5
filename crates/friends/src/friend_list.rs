//! What a connection reads of other users: friend lists of many users at once, and what one viewer may see of any user.
//!
//! Results may be older than a concurrent change: a caller that caches them starts its [`crate::change_feed`] before it
//! reads.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use domain::UserId;
use presence::{LastKnown, Privacy, Visibility};

use crate::error::FriendsError;
use crate::privacy::audience;
use crate::store::{FriendStore, LIST_MAX, id_rows, pair_rows, sql_id, sql_ids, user_of};
use crate::stored_presence::LastKnownRow;

/// Users in one statement.
const FRIEND_LISTS_MAX: usize = 500;

/// What a row of the statements below contains of a user, whose id is the second column.
macro_rules! viewed {
    ($viewer:literal, $subject:literal, $from:literal) => {
        concat!(
            "SELECT ", $viewer, ", ", $subject, ", p.status, p.last_seen, n.viewer,
                 r.last_seen, r.public_version, r.own_version, r.declared, r.declared_text, r.declared_until
             FROM ", $from, "
             LEFT JOIN people_privacy p ON p.user_id = ", $subject, "
             LEFT JOIN people_never n ON n.user_id = ", $subject, " AND n.viewer = ", $viewer, "
             LEFT JOIN people_presence r ON r.user_id = ", $subject
        )
    };
}

/// The friends of the users in two equal lists, with their privacy settings, whether their `never` list names the
/// viewer, and their last known presence.
const FRIENDS: &str = viewed!(
    "f.viewer",
    "f.subject",
    "(SELECT t.user_a AS viewer, t.user_b AS subject
      FROM {rows 1} {join} people_friendships t ON t.user_a = k.c0
      UNION ALL
      SELECT t.user_b AS viewer, t.user_a AS subject
      FROM {rows 1} {join} people_friendships t ON t.user_b = k.c0) f"
);

/// The same columns for pairs of a viewer and any user.
const ANY_USER: &str = viewed!("k.c0", "k.c1", "{rows 2}");

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FriendList {
    pub user: UserId,
    /// The user's own settings.
    pub privacy: Privacy,
    /// Sorted by user id.
    pub friends: Vec<ViewedUser>,
}

/// A user as one viewer may see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewedUser {
    pub user: UserId,
    /// Whether the user and the viewer are friends.
    pub is_friend: bool,
    pub visibility: Visibility,
    /// Last known presence, visible to the viewer or not.
    pub last: LastKnown,
}

database::rows! {
    /// A row of [`FRIENDS`] or [`ANY_USER`].
    #[derive(Debug)]
    struct ViewedUserRow {
        viewer: i64,
        subject: i64,
        status: Option<String>,
        last_seen_shown: Option<String>,
        never: Option<i64>,
        last: LastKnownRow,
    }
}

impl FriendStore {
    /// The friends of these users, with what each user may see of them. One list per requested user, in the same order;
    /// also for unknown users.
    pub async fn friend_lists(&self, users: &[UserId]) -> Result<Vec<FriendList>, FriendsError> {
        let mut friend_lists = Vec::with_capacity(users.len());
        for chunk in users.chunks(FRIEND_LISTS_MAX) {
            let privacies = self.privacies(chunk).await?;
            let friends = self.friends(chunk).await?;
            friend_lists.extend(chunk.iter().map(|user| FriendList {
                user: *user,
                privacy: privacies.get(user).cloned().unwrap_or_else(|| self.default_privacy()),
                friends: friends.get(user).map_or_else(Vec::new, |viewed| viewed.values().cloned().collect()),
            }));
        }
        Ok(friend_lists)
    }

    async fn friends(
        &self,
        users: &[UserId],
    ) -> Result<HashMap<UserId, BTreeMap<UserId, ViewedUser>>, FriendsError> {
        let mut asked = sql_ids(users);
        asked.sort_unstable();
        asked.dedup();
        let listed = id_rows(asked);
        let rows: Vec<ViewedUserRow> = self.read(FRIENDS, &[listed.clone(), listed]).await?;
        let mut friends: HashMap<UserId, BTreeMap<UserId, ViewedUser>> = HashMap::new();
        for row in rows {
            let Some((viewer, viewed)) = self.viewed_user(row, |_| true) else { continue };
            friends.entry(viewer).or_default().insert(viewed.user, viewed);
        }
        for list in friends.values_mut() {
            self.truncate(list);
        }
        Ok(friends)
    }

    /// A site may have written more friends than the limit: the ones with the highest ids are left out.
    fn truncate(&self, list: &mut BTreeMap<UserId, ViewedUser>) {
        let max = self.settings.friends_max as usize;
        if let Some(first_too_many) = list.keys().nth(max).copied() {
            list.split_off(&first_too_many);
            self.counters.lists_truncated.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(max, "a friend list is longer than the limit; the rest is ignored");
        }
    }

    /// What `viewer` may see of these users, friends or not, with their last known presence: one entry per requested
    /// user, in the same order. Users see all of themselves.
    pub async fn view_users(
        &self,
        viewer: UserId,
        users: &[UserId],
    ) -> Result<Vec<ViewedUser>, FriendsError> {
        let friends: BTreeSet<UserId> = self.friends_among(viewer, users).await?.into_iter().collect();
        let mut known: HashMap<UserId, ViewedUser> = HashMap::with_capacity(users.len());
        for chunk in users.chunks(LIST_MAX) {
            let pairs: Vec<(i64, i64)> = chunk.iter().map(|user| (sql_id(viewer), sql_id(*user))).collect();
            let rows: Vec<ViewedUserRow> = self.read(ANY_USER, &[pair_rows(&pairs)]).await?;
            let found =
                rows.into_iter().filter_map(|row| self.viewed_user(row, |user| friends.contains(&user)));
            known.extend(found.map(|(_, viewed_user)| (viewed_user.user, viewed_user)));
        }
        Ok(users.iter().filter_map(|user| known.get(user).cloned()).collect())
    }

    /// None for rows with invalid ids.
    fn viewed_user(
        &self,
        row: ViewedUserRow,
        is_friend: impl Fn(UserId) -> bool,
    ) -> Option<(UserId, ViewedUser)> {
        let (viewer, user) = (user_of(row.viewer)?, user_of(row.subject)?);
        let chosen = |choice: Option<String>| {
            choice.map_or(self.settings.default_audience, |choice| audience(&choice))
        };
        let privacy = Privacy {
            status: chosen(row.status),
            last_seen: chosen(row.last_seen_shown),
            never: row.never.iter().map(|_| viewer).collect(),
        };
        let is_friend = is_friend(user);
        let visibility = match viewer == user {
            true => Visibility { status: true, last_seen: true },
            false => privacy.visibility_for(viewer, is_friend),
        };
        Some((viewer, ViewedUser { user, is_friend, visibility, last: row.last.known() }))
    }
}
