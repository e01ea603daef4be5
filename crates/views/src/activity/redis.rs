//! Activity in Redis, under the keys of A1, single server or cluster.
//!
//! # How
//!
//! Each user has two public sorted sets (`seed`, `leech`) and two private keys: the clients on each torrent with their
//! state (`clients`), and torrents whose clients have all stopped (`stopped`). A script applies reports. Most entries
//! are heartbeats that change only a time; these are plain commands ([`refresh`]).
//!
//! The user index is a sorted set by the time of a user's next check. A user is added before anything is stored, so
//! that a crash leaves no user outside the index. If nothing was stored of the user before, it is added again as due,
//! in case a concurrent sweep has found nothing and is about to remove it: a sweep removes a user only while its claim
//! is the score.
//!
//! # Deliberately absent
//!
//! `KEYS` and `SCAN`. Expiry of keys: it would cost every entry a command.

mod apply;
mod known_clients;
mod refresh;

use std::collections::HashMap;

use async_trait::async_trait;
use domain::{InfoHash, Passkey, UnixTime};
use keyspace::{KeyNames, Redis, RedisError, Reply, read_reply, scripts};
use parking_lot::Mutex;

use self::known_clients::KnownClients;
use super::fold::UserChanges;
use super::record::{CLIENTS_MAX, ClientState};
use super::settings::Window;
use super::store::{
    ActiveTorrent, ActivityStore, Applied, Counts, Listing, MemoryUsage, Page, REMOVE_MAX, Swept,
};
use crate::error::ViewsError;

/// Validity of a sweep's claim; afterwards another sweep may claim the same users.
const CLAIM_S: u32 = 60;

/// Users checked per pipeline.
const SWEEP_USERS_AT_ONCE: usize = 50;

/// Users of the index read per command.
const LISTED_USERS_AT_ONCE: usize = 1000;

/// For errors.
const INDEX: &str = "tracker:users:active";

#[derive(Debug)]
pub(super) struct RedisActivity {
    redis: Redis,
    names: KeyNames,
    known_clients: Mutex<KnownClients>,
}

/// The keys of a user, in the order of KEYS of the scripts.
struct UserKeys {
    seed: String,
    leech: String,
    stopped: String,
    clients: String,
}

impl UserKeys {
    fn of(names: &KeyNames, passkey: &Passkey) -> Self {
        UserKeys {
            seed: names.user_seed(passkey),
            leech: names.user_leech(passkey),
            stopped: names.user_stopped(passkey),
            clients: names.user_clients(passkey),
        }
    }

    fn all(&self) -> [&str; 4] {
        [&self.seed, &self.leech, &self.stopped, &self.clients]
    }
}

/// Reply of `activity_read.lua`.
struct ReadResult {
    torrents_removed: u64,
    has_more: bool,
    next_expiry: Option<UnixTime>,
    counts: Counts,
    page: Vec<ActiveTorrent>,
}

/// What to read besides the counts.
#[derive(Clone, Copy)]
enum Reading<'a> {
    Nothing,
    Page(ClientState, &'a Page),
}

impl RedisActivity {
    pub(super) fn new(redis: Redis, names: KeyNames) -> Self {
        RedisActivity { redis, names, known_clients: Mutex::default() }
    }

    /// Removes all expired reports of one user, then reads.
    async fn prune_and_read(
        &self,
        passkey: &Passkey,
        reading: Reading<'_>,
        window: &Window,
    ) -> Result<ReadResult, ViewsError> {
        loop {
            let call = self.read_call(passkey, reading, window);
            let found = parse_read(self.redis.query(&call).await.map_err(ViewsError::from)?)?;
            if !found.has_more {
                return Ok(found);
            }
        }
    }

    fn read_call(&self, passkey: &Passkey, reading: Reading<'_>, window: &Window) -> ::redis::Cmd {
        let keys = UserKeys::of(&self.names, passkey);
        let mut call = scripts::ACTIVITY_READ.call(&keys.all());
        call.arg(window.cutoff().0).arg(REMOVE_MAX).arg(CLIENTS_MAX);
        match reading {
            Reading::Nothing => call.arg("-").arg(0).arg(-1).arg(""),
            Reading::Page(state, page) => {
                let list = if state == ClientState::Seeding { "seed" } else { "leech" };
                // One more than the page, to know whether there is a next one.
                call.arg(list).arg(page.torrents_max() + 1);
                match page.after {
                    Some(after) => call.arg(after.at.0).arg(after.info_hash.to_string()),
                    None => call.arg(-1).arg(""),
                }
            }
        };
        call
    }

    /// Lengths of the lists of these users, including expired reports; users with empty lists are omitted.
    async fn lengths(&self, passkeys: &[Passkey]) -> Result<Vec<(Passkey, Counts)>, ViewsError> {
        let mut pipeline = ::redis::Pipeline::new();
        for passkey in passkeys {
            pipeline.cmd("ZCARD").arg(self.names.user_seed(passkey));
            pipeline.cmd("ZCARD").arg(self.names.user_leech(passkey));
        }
        let replies = self.redis.pipeline(&pipeline).await;
        let mut lengths = Vec::with_capacity(passkeys.len());
        for (passkey, [seeding, leeching]) in passkeys.iter().zip(as_pairs(replies)) {
            let counts = Counts { seeding: length_of(seeding)?, leeching: length_of(leeching)? };
            if counts != Counts::default() {
                lengths.push((*passkey, counts));
            }
        }
        Ok(lengths)
    }

    /// Checks claimed users and sets their next check.
    async fn sweep_some(&self, users: &[String], claim: &str, window: &Window) -> Result<Swept, ViewsError> {
        let mut pipeline = ::redis::Pipeline::new();
        // Members that are not passkeys are removed from the index.
        let passkeys: Vec<Option<Passkey>> = users.iter().map(|user| user.parse().ok()).collect();
        for passkey in passkeys.iter().flatten() {
            pipeline.add_command(self.read_call(passkey, Reading::Nothing, window));
        }
        let mut replies = self.redis.pipeline(&pipeline).await.into_iter();
        let mut reschedule = scripts::ACTIVITY_RESCHEDULE.call(&[self.names.users_active()]);
        reschedule.arg(claim);
        let mut swept = Swept::default();
        for (user, passkey) in users.iter().zip(&passkeys) {
            let reply = passkey.as_ref().and_then(|_| replies.next());
            reschedule.arg(user).arg(next_check(reply, window, &mut swept)?);
        }
        self.redis.query::<()>(&reschedule).await.map_err(index_error)?;
        Ok(swept)
    }
}

/// Time of a user's next check; -1 for none.
fn next_check(reply: Option<Reply>, window: &Window, swept: &mut Swept) -> Result<i64, ViewsError> {
    let Some(reply) = reply else {
        return Ok(-1);
    };
    swept.users += 1;
    match parse_read(read_reply(reply)?) {
        Ok(found) => {
            swept.torrents += found.torrents_removed;
            swept.is_behind |= found.has_more;
            Ok(found.next_expiry.map_or(-1, |at| i64::from((at + window.silence.usual()).0)))
        }
        Err(ViewsError::WrongType { key }) => {
            tracing::warn!(
                key,
                "cannot sweep the activity of a user: the key holds another type of value; rename or remove it"
            );
            swept.damaged += 1;
            Ok(i64::from((window.now + window.silence.usual()).0))
        }
        Err(error) => Err(error),
    }
}

#[async_trait]
impl ActivityStore for RedisActivity {
    async fn apply(&self, users: &[UserChanges], window: &Window) -> Result<Applied, ViewsError> {
        self.apply_changes(users, window).await
    }

    async fn list(
        &self,
        passkey: &Passkey,
        state: ClientState,
        page: &Page,
        window: &Window,
    ) -> Result<Listing, ViewsError> {
        let found = self.prune_and_read(passkey, Reading::Page(state, page), window).await?;
        Ok(Listing::of(found.page, page))
    }

    async fn counts(&self, passkey: &Passkey, window: &Window) -> Result<Counts, ViewsError> {
        Ok(self.prune_and_read(passkey, Reading::Nothing, window).await?.counts)
    }

    async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError> {
        let mut active = HashMap::new();
        for first in (0..).step_by(LISTED_USERS_AT_ONCE) {
            let mut call = ::redis::cmd("ZRANGE");
            call.arg(self.names.users_active()).arg(first).arg(first + LISTED_USERS_AT_ONCE - 1);
            let users: Vec<String> = self.redis.query(&call).await.map_err(index_error)?;
            if users.is_empty() {
                break;
            }
            let passkeys: Vec<Passkey> = users.iter().filter_map(|user| user.parse().ok()).collect();
            active.extend(self.lengths(&passkeys).await?);
        }
        Ok(active)
    }

    async fn sweep(&self, users_max: usize, window: &Window) -> Result<Swept, ViewsError> {
        // Not an integer, so that it differs from every other score.
        let claim = format!("{}.5", window.now.0.saturating_add(CLAIM_S));
        let mut call = scripts::ACTIVITY_CLAIM.call(&[self.names.users_active()]);
        call.arg(window.now.0).arg(users_max).arg(&claim);
        let due: Vec<String> = self.redis.query(&call).await.map_err(index_error)?;
        let mut swept = Swept { is_behind: due.len() >= users_max, ..Swept::default() };
        for users in due.chunks(SWEEP_USERS_AT_ONCE) {
            let some = self.sweep_some(users, &claim, window).await?;
            swept.users += some.users;
            swept.torrents += some.torrents;
            swept.damaged += some.damaged;
            swept.is_behind |= some.is_behind;
        }
        Ok(swept)
    }

    fn memory_usage(&self) -> MemoryUsage {
        MemoryUsage::default()
    }
}

fn as_pairs(replies: Vec<Reply>) -> impl Iterator<Item = [Reply; 2]> {
    let mut replies = replies.into_iter();
    std::iter::from_fn(move || Some([replies.next()?, replies.next()?]))
}

/// A key of another type counts as empty.
fn length_of(reply: Reply) -> Result<u64, ViewsError> {
    match read_reply(reply) {
        Ok(length) => Ok(length),
        Err(RedisError::WrongType { .. }) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Parses the reply of `activity_read.lua`.
fn parse_read(parts: Vec<String>) -> Result<ReadResult, ViewsError> {
    let [wrong_type, removed, has_more, next_expiry, seeding, leeching, page @ ..] = parts.as_slice() else {
        return Err(unexpected("activity_read"));
    };
    if !wrong_type.is_empty() {
        return Err(ViewsError::WrongType { key: kind_of(wrong_type) });
    }
    let number = |text: &String| text.parse::<i64>().map_err(|_| unexpected("activity_read"));
    // Skips members that another program added.
    let torrents = page.as_chunks::<2>().0.iter().filter_map(|[info_hash, at]| {
        let at = at.parse::<u32>().ok().map(UnixTime)?;
        Some(ActiveTorrent { info_hash: info_hash.parse::<InfoHash>().ok()?, at })
    });
    Ok(ReadResult {
        torrents_removed: number(removed)?.unsigned_abs(),
        has_more: number(has_more)? != 0,
        next_expiry: u32::try_from(number(next_expiry)?).ok().map(UnixTime),
        counts: Counts {
            seeding: number(seeding)?.unsigned_abs(),
            leeching: number(leeching)?.unsigned_abs(),
        },
        page: torrents.collect(),
    })
}

/// The kind of key with this name in the scripts.
fn kind_of(name: &str) -> &'static str {
    match name {
        "seed" => "tracker:user:seed:<passkey>",
        "leech" => "tracker:user:leech:<passkey>",
        "stopped" => "tracker:user:stopped:<passkey>",
        _ => "tracker:user:clients:<passkey>",
    }
}

/// An error of the user index.
fn index_error(error: RedisError) -> ViewsError {
    match error {
        RedisError::WrongType { .. } => ViewsError::WrongType { key: INDEX },
        error => ViewsError::Redis(error),
    }
}

fn unexpected(script: &str) -> ViewsError {
    let reason = format!("reply of {script}.lua");
    ViewsError::Redis(RedisError::Other { code: "a malformed reply".to_owned(), reason })
}
