//! Users, torrents, client rules and friendships of a simulation, and their insertion into the database.
//!
//! All of it follows from the seed and a number, secrets included: only for servers on loopback.

use access::{NewTorrent, NewUser, Store};
use domain::{InfoHash, Passkey, Seconds, TorrentId, UnixTime, UserId};
use fastrand::Rng;
use friends::FriendStore;

use crate::clients::RULES;
use crate::error::SimulationError;
use crate::names::{Title, title};
use crate::plan::Plan;

/// Friendships that each member starts; on average a member has twice as many.
const FRIENDS_MADE: u32 = 4;
/// Torrents are this far apart in time.
const BETWEEN_TORRENTS_S: u32 = 5_400;
/// Torrents in one transaction: few enough that other writers do not wait long and progress is visible.
const TORRENTS_AT_ONCE: u32 = 10_000;
/// Age of the first user.
const FIRST_USER_DAYS: u32 = 700;

/// Separates the random sequences of different purposes.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Passkey = 1,
    Torrent,
    Peer,
    User,
    Friends,
}

/// The random generator of one purpose and number.
pub(crate) fn rng_for(seed: u64, purpose: Purpose, number: u32) -> Rng {
    let mixed = seed ^ (u64::from(number) << 8 | purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Neighbouring seeds give similar first values: seed twice.
    Rng::with_seed(Rng::with_seed(mixed).u64(..))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedTorrent {
    pub info_hash: InfoHash,
    pub title: Title,
}

pub fn passkey_of(seed: u64, user: u32) -> Passkey {
    let mut bytes = [0; 16];
    rng_for(seed, Purpose::Passkey, user).fill(&mut bytes);
    Passkey::from_random_bytes(bytes)
}

/// Numbered from 1.
pub fn torrent_of(seed: u64, torrent: u32) -> SimulatedTorrent {
    let mut random = rng_for(seed, Purpose::Torrent, torrent);
    let mut bytes = [0; 20];
    random.fill(&mut bytes);
    SimulatedTorrent { info_hash: InfoHash(bytes), title: title(torrent.saturating_sub(1), &mut random) }
}

pub fn user_id(user: u32) -> UserId {
    UserId::new(u64::from(user).max(1)).expect("it is positive")
}

pub fn torrent_id(torrent: u32) -> TorrentId {
    TorrentId::new(u64::from(torrent).max(1)).expect("it is positive")
}

/// The torrent that awaits approval: the newest one, if there are at least five.
pub fn pending_torrent(plan: &Plan) -> Option<u32> {
    (plan.torrents >= 5).then_some(plan.torrents)
}

/// Each pair once.
pub fn friendships(plan: &Plan) -> Vec<(UserId, UserId)> {
    let mut pairs = std::collections::BTreeSet::new();
    for user in 1..=plan.members {
        let mut random = rng_for(plan.seed, Purpose::Friends, user);
        for _ in 0..FRIENDS_MADE {
            let other = random.u32(1..=plan.members);
            if other != user {
                pairs.insert((user.min(other), user.max(other)));
            }
        }
    }
    pairs.into_iter().map(|(one, other)| (user_id(one), user_id(other))).collect()
}

/// Progress of the insertion, after each transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Torrents inserted so far.
    pub torrents: u32,
    /// All torrents.
    pub of: u32,
}

/// Inserts everything of a plan. Existing rows are kept, so that a simulation can be continued and an interrupted
/// insertion completed.
pub async fn insert(
    plan: &Plan,
    store: &Store,
    friends: &FriendStore,
    now: UnixTime,
    mut report: impl FnMut(Progress),
) -> Result<(), SimulationError> {
    if store.count_users().await? == 0 {
        add_users(store, plan.seed, plan.users(), now).await?;
    }
    add_torrents(plan, store, now, &mut report).await?;
    for (prefix, name, is_allowed) in RULES {
        let Ok(prefix) = prefix.parse() else { continue };
        match is_allowed {
            true => store.allow_client(prefix, name).await?,
            false => store.forbid_client(prefix, name).await?,
        }
    }
    friends.add_friends(&friendships(plan), now).await?;
    Ok(())
}

/// Adds users in one transaction, numbered from 1, with increasing creation times.
async fn add_users(store: &Store, seed: u64, count: u32, now: UnixTime) -> Result<(), SimulationError> {
    let apart_s = FIRST_USER_DAYS * 86_400 / count.max(1);
    let users = (1..=count).map(|user| NewUser {
        id: Some(user_id(user)),
        passkey: Some(passkey_of(seed, user)),
        created_at: before(now, (count - user).saturating_mul(apart_s)),
    });
    store.add_users(users).await?;
    Ok(())
}

/// Adds torrents in batches, numbered from 1; the last one awaits approval, if any does.
async fn add_torrents(
    plan: &Plan,
    store: &Store,
    now: UnixTime,
    report: &mut impl FnMut(Progress),
) -> Result<(), SimulationError> {
    let new_torrent = |torrent| new_torrent(plan, torrent, now);
    let pending = pending_torrent(plan);
    let open = pending.map_or(plan.torrents, |pending| pending - 1);
    for first in (1..=open).step_by(TORRENTS_AT_ONCE as usize) {
        let last = open.min(first.saturating_add(TORRENTS_AT_ONCE - 1));
        if !is_any_from(store, first).await? {
            store.add_torrents((first..=last).map(new_torrent)).await?;
            report(Progress { torrents: last, of: plan.torrents });
        }
    }
    if let Some(pending) = pending
        && !is_any_from(store, pending).await?
    {
        store.add_pending_torrent(new_torrent(pending)).await?;
    }
    Ok(())
}

/// Whether there is a torrent with this number or a higher one. Torrents are added in order, so this shows the
/// progress, even if some were removed since.
async fn is_any_from(store: &Store, first: u32) -> Result<bool, SimulationError> {
    let before = (first > 1).then(|| torrent_id(first - 1));
    Ok(!store.list_torrents(before, 1).await?.is_empty())
}

fn new_torrent(plan: &Plan, torrent: u32, now: UnixTime) -> NewTorrent {
    let generated = torrent_of(plan.seed, torrent);
    NewTorrent {
        id: Some(torrent_id(torrent)),
        info_hash: generated.info_hash,
        info_hash_v2: None,
        name: generated.title.name,
        total_bytes: generated.title.total_bytes,
        created_at: before(now, (plan.torrents - torrent).saturating_mul(BETWEEN_TORRENTS_S)),
    }
}

fn before(now: UnixTime, seconds: u32) -> UnixTime {
    UnixTime(now.0.saturating_sub(Seconds(seconds).0).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_have_secrets_and_hashes_of_their_own() {
        let passkeys: HashSet<_> = (1..=5_000).map(|user| passkey_of(1, user)).collect();
        let hashes: HashSet<_> = (1..=5_000).map(|torrent| torrent_of(1, torrent).info_hash).collect();
        assert_eq!((passkeys.len(), hashes.len()), (5_000, 5_000));
        assert_ne!(passkey_of(1, 1), passkey_of(2, 1));
        assert_eq!(torrent_of(1, 9), torrent_of(1, 9));
    }

    #[test]
    fn most_members_have_a_few_friends_each_pair_once() {
        let plan = Plan { torrents: 1, peers: 1, members: 60, pace: 1.0, seed: 4, misbehaviour: false };
        let pairs = friendships(&plan);
        let distinct: HashSet<_> = pairs.iter().collect();
        assert_eq!(distinct.len(), pairs.len());
        assert!((150..=240).contains(&pairs.len()), "{}", pairs.len());
        assert!(pairs.iter().all(|(one, other)| one < other));
    }
}
