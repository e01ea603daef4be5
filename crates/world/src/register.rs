//! The users, torrents, clients and friendships of a world, and how they come into the database.
//!
//! All of it follows from the seed and a number. Secrets do, too, which is right for a world that lives on loopback for an
//! hour, and wrong for anything else.

use access::{NewTorrent, NewUser, Store};
use domain::{InfoHash, Passkey, Seconds, TorrentId, UnixTime, UserId};
use fastrand::Rng;
use people::People;

use crate::clients::RULES;
use crate::error::WorldError;
use crate::names::{Title, title};
use crate::plan::Plan;

/// How many friends a person makes; twice as many have they in the end, on average.
const FRIENDS_MADE: u32 = 4;
/// Torrents were added one after the other, this far apart.
const BETWEEN_TORRENTS_S: u32 = 5_400;
/// Torrents in one transaction: few enough that nobody waits for it long, and that a person sees how far it is.
const TORRENTS_AT_ONCE: u32 = 10_000;
/// The first user came at most so long ago.
const FIRST_USER_DAYS: u32 = 700;

/// Keeps what is derived for one purpose apart from what is derived for another.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Passkey = 1,
    Torrent,
    Peer,
    Person,
    Friends,
}

/// The dice for one purpose and number.
pub(crate) fn dice(seed: u64, purpose: Purpose, number: u32) -> Rng {
    let mixed = seed ^ (u64::from(number) << 8 | purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // What follows from neighbouring seeds is alike until it has been stirred.
    Rng::with_seed(Rng::with_seed(mixed).u64(..))
}

/// A torrent of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its name on the wire.
    pub info_hash: InfoHash,
    /// What it is called, and how large it is.
    pub title: Title,
}

/// The secret of a user.
pub fn passkey_of(seed: u64, user: u32) -> Passkey {
    let mut bytes = [0; 16];
    dice(seed, Purpose::Passkey, user).fill(&mut bytes);
    Passkey::from_random_bytes(bytes)
}

/// The torrent with this number, from 1.
pub fn work_of(seed: u64, torrent: u32) -> Work {
    let mut random = dice(seed, Purpose::Torrent, torrent);
    let mut bytes = [0; 20];
    random.fill(&mut bytes);
    Work { info_hash: InfoHash(bytes), title: title(torrent.saturating_sub(1), &mut random) }
}

/// A user's number.
pub fn user_id(user: u32) -> UserId {
    UserId::new(u64::from(user).max(1)).expect("it is positive")
}

/// A torrent's number.
pub fn torrent_id(torrent: u32) -> TorrentId {
    TorrentId::new(u64::from(torrent).max(1)).expect("it is positive")
}

/// The torrent that awaits approval: the newest one, where there are a few.
pub fn pending_torrent(plan: &Plan) -> Option<u32> {
    (plan.torrents >= 5).then_some(plan.torrents)
}

/// Who knows whom, each pair once.
pub fn friendships(plan: &Plan) -> Vec<(UserId, UserId)> {
    let mut pairs = std::collections::BTreeSet::new();
    for person in 1..=plan.people {
        let mut random = dice(plan.seed, Purpose::Friends, person);
        for _ in 0..FRIENDS_MADE {
            let other = random.u32(1..=plan.people);
            if other != person {
                pairs.insert((person.min(other), person.max(other)));
            }
        }
    }
    pairs.into_iter().map(|(one, other)| (user_id(one), user_id(other))).collect()
}

/// How far it has come, told between two transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many torrents are there.
    pub torrents: u32,
    /// How many there will be.
    pub of: u32,
}

/// Makes everything of a plan known. What is there already stays as it is, so that a world can be gone on with; one that
/// was broken off is completed.
pub async fn enrol(
    plan: &Plan,
    store: &Store,
    people: &People,
    now: UnixTime,
    mut tell: impl FnMut(Progress),
) -> Result<(), WorldError> {
    if store.count_users().await? == 0 {
        add_users(store, plan.seed, plan.users(), now).await?;
    }
    add_torrents(plan, store, now, &mut tell).await?;
    for (prefix, name, is_allowed) in RULES {
        let Ok(prefix) = prefix.parse() else { continue };
        match is_allowed {
            true => store.allow_client(prefix, name).await?,
            false => store.forbid_client(prefix, name).await?,
        }
    }
    people.add_friends(&friendships(plan), now).await?;
    Ok(())
}

/// Adds users, numbered from 1, in one transaction. They came one after the other, the first long ago.
async fn add_users(store: &Store, seed: u64, count: u32, now: UnixTime) -> Result<(), WorldError> {
    let apart_s = FIRST_USER_DAYS * 86_400 / count.max(1);
    let users = (1..=count).map(|user| NewUser {
        id: Some(user_id(user)),
        passkey: Some(passkey_of(seed, user)),
        created_at: before(now, (count - user).saturating_mul(apart_s)),
    });
    store.add_users(users).await?;
    Ok(())
}

/// Adds torrents, numbered from 1, some thousand at a time; the last one awaits approval, if any does.
async fn add_torrents(
    plan: &Plan,
    store: &Store,
    now: UnixTime,
    tell: &mut impl FnMut(Progress),
) -> Result<(), WorldError> {
    let new_torrent = |torrent| new_torrent(plan, torrent, now);
    let pending = pending_torrent(plan);
    let open = pending.map_or(plan.torrents, |pending| pending - 1);
    for first in (1..=open).step_by(TORRENTS_AT_ONCE as usize) {
        let last = open.min(first.saturating_add(TORRENTS_AT_ONCE - 1));
        if !is_any_from(store, first).await? {
            store.add_torrents((first..=last).map(new_torrent)).await?;
            tell(Progress { torrents: last, of: plan.torrents });
        }
    }
    if let Some(pending) = pending
        && !is_any_from(store, pending).await?
    {
        store.add_pending_torrent(new_torrent(pending)).await?;
    }
    Ok(())
}

/// Whether there is a torrent with this number or a higher one. They are added in order, so that it tells how far that
/// came, also where some were removed since.
async fn is_any_from(store: &Store, first: u32) -> Result<bool, WorldError> {
    let before = (first > 1).then(|| torrent_id(first - 1));
    Ok(!store.list_torrents(before, 1).await?.is_empty())
}

fn new_torrent(plan: &Plan, torrent: u32, now: UnixTime) -> NewTorrent {
    let work = work_of(plan.seed, torrent);
    NewTorrent {
        id: Some(torrent_id(torrent)),
        info_hash: work.info_hash,
        info_hash_v2: None,
        name: work.title.name,
        total_bytes: work.title.total_bytes,
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
        let hashes: HashSet<_> = (1..=5_000).map(|torrent| work_of(1, torrent).info_hash).collect();
        assert_eq!((passkeys.len(), hashes.len()), (5_000, 5_000));
        assert_ne!(passkey_of(1, 1), passkey_of(2, 1));
        assert_eq!(work_of(1, 9), work_of(1, 9));
    }

    #[test]
    fn most_people_have_a_few_friends_each_pair_once() {
        let plan = Plan { torrents: 1, peers: 1, people: 60, pace: 1.0, seed: 4, mischief: false };
        let pairs = friendships(&plan);
        let distinct: HashSet<_> = pairs.iter().collect();
        assert_eq!(distinct.len(), pairs.len());
        assert!((150..=240).contains(&pairs.len()), "{}", pairs.len());
        assert!(pairs.iter().all(|(one, other)| one < other));
    }
}
