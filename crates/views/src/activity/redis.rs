//! Activity in Redis, under the keys of A1, single server or cluster.
//!
//! # How
//!
//! Each user has two public sorted sets (`seed`, `leech`) and two private keys: the clients on each torrent with their
//! state (`clients`), and torrents whose clients have all stopped (`stopped`). One process writes them ([`writer`]), the
//! holder of a lease; a process that wrongly considers itself the holder is fenced. Any process reads: a script removes
//! what has expired, which the writer finds expired too, so that it contradicts nothing in the writer's memory.
//!
//! The user index is a sorted set by the time of a user's next check. A user is added before anything is stored, so
//! that a crash leaves no user outside the index.
//!
//! # Deliberately absent
//!
//! `KEYS` and `SCAN`. Expiry of keys: it would cost every entry a command.

mod sweep;
mod writer;
mod writes;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use domain::{Counter, InfoHash, Passkey, UnixTime};
use journal::LeaderLease;
use keyspace::{KeyNames, Redis, RedisError, Reply, read_reply, scripts};
use parking_lot::Mutex;

use self::writer::{Attempts, Writer};
use super::fold::UserChanges;
use super::record::ClientState;
use super::settings::Window;
use super::store::{
    ActiveTorrent, ActivityStore, Applied, Counts, Listing, MemoryUsage, Page, REMOVE_MAX, Swept,
};
use crate::error::ViewsError;

/// Users of the index read per command.
const LISTED_USERS_AT_ONCE: usize = 1000;

/// For errors.
const INDEX: &str = "tracker:users:active";

pub(super) struct RedisActivity {
    redis: Redis,
    names: KeyNames,
    /// None: this process may write.
    lease: Option<Arc<dyn LeaderLease>>,
    writer: tokio::sync::Mutex<Writer>,
    usage: Mutex<MemoryUsage>,
    /// Times that another process had claimed.
    superseded: Counter,
}

/// The keys of a user, in the order of KEYS of the script.
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
    has_more: bool,
    counts: Counts,
    page: Vec<ActiveTorrent>,
}

/// A page to read besides the counts.
type Reading<'a> = Option<(ClientState, &'a Page)>;

impl RedisActivity {
    pub(super) fn new(redis: Redis, names: KeyNames, lease: Option<Arc<dyn LeaderLease>>) -> Self {
        let (writer, usage, superseded) = Default::default();
        RedisActivity { redis, names, lease, writer, usage, superseded }
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
        call.arg(window.cutoff().0).arg(REMOVE_MAX);
        match reading {
            None => call.arg("-").arg(0).arg(-1).arg(""),
            Some((state, page)) => {
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
        let found = self.prune_and_read(passkey, Some((state, page)), window).await?;
        Ok(Listing::of(found.page, page))
    }

    async fn counts(&self, passkey: &Passkey, window: &Window) -> Result<Counts, ViewsError> {
        Ok(self.prune_and_read(passkey, None, window).await?.counts)
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
        if !self.may_write() {
            return Ok(Swept::default());
        }
        let (mut writer, mut attempts) = (self.writer.lock().await, Attempts::default());
        loop {
            match self.try_sweep(&mut writer, users_max, window).await {
                Ok(swept) => {
                    *self.usage.lock() = writer.usage();
                    return Ok(swept);
                }
                Err(error) => self.recover(&mut writer, &mut attempts, error).await?,
            }
        }
    }

    fn may_write(&self) -> bool {
        self.lease.as_ref().is_none_or(|lease| lease.is_held())
    }

    /// At the last sweep.
    fn memory_usage(&self) -> MemoryUsage {
        *self.usage.lock()
    }

    fn times_superseded(&self) -> u64 {
        self.superseded.get()
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
    let [wrong_type, has_more, seeding, leeching, page @ ..] = parts.as_slice() else {
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
        has_more: number(has_more)? != 0,
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

fn unanswered() -> RedisError {
    RedisError::Unanswered { reason: "too few replies".to_owned() }
}

fn unexpected(script: &str) -> ViewsError {
    let reason = format!("reply of {script}.lua");
    ViewsError::Redis(RedisError::Other { code: "a malformed reply".to_owned(), reason })
}
