//! The users, torrents, client rules and friendships of a demo, inserted into its database.

use access::{NewTorrent, NewUser, Store};
use domain::{Seconds, UnixTime};
use friends::FriendStore;
use simulate::clients::RULES;
use simulate::{Plan, catalogue};

/// Torrents are this far apart in time.
const BETWEEN_TORRENTS_S: u32 = 5_400;
/// Torrents in one transaction: few enough that other writers do not wait long and progress is visible.
const TORRENTS_AT_ONCE: u32 = 10_000;
/// Age of the first user.
const FIRST_USER_DAYS: u32 = 700;

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
) -> anyhow::Result<()> {
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
    friends.add_friends(&catalogue::friendships(plan), now).await?;
    Ok(())
}

/// Adds users in one transaction, numbered from 1, with increasing creation times.
async fn add_users(store: &Store, seed: u64, count: u32, now: UnixTime) -> anyhow::Result<()> {
    let apart_s = FIRST_USER_DAYS * 86_400 / count.max(1);
    let users = (1..=count).map(|user| NewUser {
        id: Some(catalogue::user_id(user)),
        passkey: Some(catalogue::passkey_of(seed, user)),
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
) -> anyhow::Result<()> {
    let new_torrent = |torrent| new_torrent(plan, torrent, now);
    let pending = catalogue::pending_torrent(plan);
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
async fn is_any_from(store: &Store, first: u32) -> anyhow::Result<bool> {
    let before = (first > 1).then(|| catalogue::torrent_id(first - 1));
    Ok(!store.list_torrents(before, 1).await?.is_empty())
}

fn new_torrent(plan: &Plan, torrent: u32, now: UnixTime) -> NewTorrent {
    let generated = catalogue::torrent_of(plan.seed, torrent);
    NewTorrent {
        id: Some(catalogue::torrent_id(torrent)),
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
