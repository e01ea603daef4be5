//! The one process that writes the lists: what it has read or written stays in memory.
//!
//! 1. Users that are not in memory are read.
//! 2. Entries are applied in memory.
//! 3. Users with changed clients are added to the index, then the keys of all users are written, in a
//!    [`FencedSession`]. A heartbeat that changes only a time is one member of one `ZADD`.
//!
//! After any error everything in memory is dropped, because it is unknown what was written, and the entries are applied
//! again to what Redis has. That changes nothing twice: the later report of each client counts.

use std::collections::HashMap;
use std::time::Duration;

use domain::{Backoff, InfoHash, Passkey, Seconds, UnixTime};
use keyspace::{FenceError, FencedSession, RedisError, Reply, read_reply};
use redis::{Cmd, Pipeline};

use super::writes::Writes;
use super::{RedisActivity, UserKeys, index_error, kind_of, unanswered};
use crate::activity::fold::UserChanges;
use crate::activity::record::{ClientState, Record};
use crate::activity::settings::Window;
use crate::activity::store::{Applied, MemoryUsage, Refused};
use crate::activity::user_torrents::{ChangeKind, UserTorrents};
use crate::error::ViewsError;
use crate::generations::Generations;

/// Torrents in memory, over all users: about 100 MB. Users who have not announced for longest are dropped.
const MEMORY_TORRENTS_MAX: usize = 2_000_000;
/// Users read or written at once.
const USERS_AT_ONCE: usize = 500;
/// Users per `ZADD` to the index.
const INDEX_USERS: usize = 1000;
/// Attempts if another process claims meanwhile.
const ATTEMPTS_MAX: u32 = 20;
/// A record this close to its expiry is written with its time: a reader with a fast clock may have removed it.
const CLOCK_SLACK: Seconds = Seconds(120);

#[derive(Debug)]
pub(super) struct Writer {
    session: Option<FencedSession>,
    users: Generations<Passkey, UserTorrents>,
}

impl Default for Writer {
    fn default() -> Self {
        Writer { session: None, users: Generations::new(MEMORY_TORRENTS_MAX) }
    }
}

/// Attempts of a step.
pub(super) struct Attempts {
    count: u32,
    backoff: Backoff,
}

impl Default for Attempts {
    fn default() -> Self {
        Attempts { count: 1, backoff: Backoff::new(Duration::from_millis(2), Duration::from_millis(200)) }
    }
}

/// What Redis has of a user.
pub(super) struct Loaded {
    pub(super) torrents: UserTorrents,
    /// Members of the lists without a record: of other programs, or of a lost hash.
    pub(super) strays: Vec<(ClientState, Vec<u8>, UnixTime)>,
}

/// Redis commands per user in a load.
const LOAD_COMMANDS: usize = 4;

impl Writer {
    pub(super) fn usage(&self) -> MemoryUsage {
        let torrents = self.users.values().map(|torrents| torrents.len() as u64).sum();
        let bytes = self.users.values().map(|torrents| torrents.bytes() as u64).sum();
        MemoryUsage { torrents, bytes }
    }

    /// Forgets everything that may differ from Redis.
    fn reset(&mut self) {
        *self = Writer::default();
    }

    pub(super) fn forget(&mut self, passkey: &Passkey) {
        self.users.remove(passkey);
    }

    /// Replaces what is known of a user.
    pub(super) fn put(&mut self, passkey: Passkey, torrents: UserTorrents) {
        let weight = torrents.len();
        self.users.insert(passkey, torrents, weight);
    }
}

impl RedisActivity {
    pub(super) async fn session<'w>(
        &self,
        writer: &'w mut Writer,
    ) -> Result<&'w mut FencedSession, FenceError> {
        if writer.session.is_none() {
            writer.session = Some(FencedSession::begin(&self.redis, self.names.users_fence()).await?);
        }
        Ok(writer.session.as_mut().expect("a session was begun above"))
    }

    /// After a failed step: drops what is in memory, and waits if another process claimed meanwhile, so that the step
    /// can be repeated. So can one whose reply was lost, once: idle connections are closed. Any other error is returned.
    pub(super) async fn recover(
        &self,
        writer: &mut Writer,
        attempts: &mut Attempts,
        error: FenceError,
    ) -> Result<(), ViewsError> {
        writer.reset();
        match error {
            FenceError::Superseded if attempts.count < ATTEMPTS_MAX => {
                self.superseded.increment();
                attempts.count += 1;
                tokio::time::sleep(attempts.backoff.next_delay()).await;
                Ok(())
            }
            FenceError::Superseded => Err(ViewsError::Superseded),
            FenceError::Redis(RedisError::Unanswered { .. }) if attempts.count == 1 => {
                attempts.count += 1;
                Ok(())
            }
            // That of a user does not end a step.
            FenceError::Redis(error) => Err(index_error(error)),
        }
    }

    pub(super) async fn apply_changes(
        &self,
        users: &[UserChanges],
        window: &Window,
    ) -> Result<Applied, ViewsError> {
        let mut all = Applied::default();
        for (part, users) in users.chunks(USERS_AT_ONCE).enumerate() {
            let (mut writer, mut attempts) = (self.writer.lock().await, Attempts::default());
            let applied = loop {
                match self.try_apply(&mut writer, users, window).await {
                    Ok(applied) => break applied,
                    Err(error) => self.recover(&mut writer, &mut attempts, error).await?,
                }
            };
            let first = part * USERS_AT_ONCE;
            let refused = applied.refused.into_iter();
            all.refused.extend(refused.map(|refused| Refused { user: first + refused.user, ..refused }));
            all.clients_evicted += applied.clients_evicted;
        }
        Ok(all)
    }

    async fn try_apply(
        &self,
        writer: &mut Writer,
        users: &[UserChanges],
        window: &Window,
    ) -> Result<Applied, FenceError> {
        let mut applied = Applied::default();
        self.read_missing(writer, users, &mut applied).await?;
        let (mut commands, mut owners, mut index) = (Vec::new(), Vec::new(), Vec::new());
        // The sweep reports users with damaged keys.
        index.extend(applied.refused.iter().map(|refused| (window.now, users[refused.user].passkey)));
        for (number, user) in users.iter().enumerate() {
            let known = writer.users.get_mut(&user.passkey, UserTorrents::len);
            let Some(torrents) = known else { continue };
            let before = torrents.len();
            let (writes, due, evicted) = apply_to(torrents, user, window.cutoff());
            let added = torrents.len().saturating_sub(before);
            writer.users.grow(added);
            applied.clients_evicted += evicted;
            index.extend(due.map(|due| (due + window.silence.usual(), user.passkey)));
            writes.push_commands(&UserKeys::of(&self.names, &user.passkey), &mut commands);
            owners.resize(commands.len(), number);
        }
        if commands.is_empty()
            && let Some(user) = users.first()
        {
            // Nothing changes what is in memory. That is still what Redis has if the fence is intact.
            let keys = UserKeys::of(&self.names, &user.passkey);
            commands.push(redis::cmd("EXISTS").arg(&keys.clients).to_owned());
            owners.push(0);
        }
        // First, so that no user is missing in it after a crash.
        self.lower_index(writer, &index).await?;
        let replies = self.session(writer).await?.write(commands).await?;
        for (user, reply) in owners.into_iter().zip(replies) {
            refuse_if_wrong_type(reply, user, &mut applied)?;
        }
        for refused in &applied.refused {
            writer.forget(&users[refused.user].passkey);
        }
        Ok(applied)
    }

    /// Adds users to the index, or moves them to an earlier check.
    async fn lower_index(
        &self,
        writer: &mut Writer,
        users: &[(UnixTime, Passkey)],
    ) -> Result<(), FenceError> {
        let commands = users.chunks(INDEX_USERS).map(|users| {
            let mut command = redis::cmd("ZADD");
            command.arg(self.names.users_active()).arg("LT");
            for (due, passkey) in users {
                command.arg(due.0).arg(passkey.to_string());
            }
            command
        });
        self.write_index(writer, commands.collect()).await
    }

    pub(super) async fn write_index(
        &self,
        writer: &mut Writer,
        commands: Vec<Cmd>,
    ) -> Result<(), FenceError> {
        for reply in self.session(writer).await?.write(commands).await? {
            read_reply::<i64>(reply)?;
        }
        Ok(())
    }

    async fn read_missing(
        &self,
        writer: &mut Writer,
        users: &[UserChanges],
        applied: &mut Applied,
    ) -> Result<(), FenceError> {
        let is_missing = |user: &&UserChanges| writer.users.get(&user.passkey).is_none();
        let missing: Vec<Passkey> = users.iter().filter(is_missing).map(|user| user.passkey).collect();
        let loaded = self.load(writer, &missing).await?;
        let mut loaded: HashMap<Passkey, _> = missing.into_iter().zip(loaded).collect();
        for (number, user) in users.iter().enumerate() {
            match loaded.remove(&user.passkey) {
                None => {}
                Some(Ok(loaded)) => writer.put(user.passkey, loaded.torrents),
                Some(Err(key)) => {
                    let reason = ViewsError::WrongType { key }.to_string();
                    applied.refused.push(Refused { user: number, reason });
                }
            }
        }
        Ok(())
    }

    /// Reads users; the error of a user is the kind of key that has the wrong type.
    pub(super) async fn load(
        &self,
        writer: &mut Writer,
        passkeys: &[Passkey],
    ) -> Result<Vec<Result<Loaded, &'static str>>, FenceError> {
        if passkeys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(passkeys.len() * LOAD_COMMANDS);
        for passkey in passkeys {
            let keys = UserKeys::of(&self.names, passkey);
            pipeline.cmd("HGETALL").arg(&keys.clients);
            for list in [&keys.seed, &keys.leech, &keys.stopped] {
                pipeline.cmd("ZRANGE").arg(list).arg(0).arg(-1).arg("WITHSCORES");
            }
        }
        let replies = self.session(writer).await?.read(&pipeline).await?;
        let mut loaded = Vec::with_capacity(passkeys.len());
        let mut replies = replies.into_iter();
        for _ in passkeys {
            let mut next = || replies.next().unwrap_or_else(|| Err(unanswered()));
            loaded.push(match parse_loaded([next(), next(), next(), next()]) {
                Ok(loaded) => Ok(loaded),
                Err((key, RedisError::WrongType { .. })) => Err(key),
                Err((_, error)) => return Err(error.into()),
            });
        }
        Ok(loaded)
    }
}

/// Applies a user's changes in memory. Returns what to write, the first expiry if clients changed, and the number of
/// evicted clients.
fn apply_to(
    torrents: &mut UserTorrents,
    user: &UserChanges,
    cutoff: UnixTime,
) -> (Writes, Option<UnixTime>, u64) {
    let (mut writes, mut due, mut evicted) = (Writes::default(), None, 0);
    for changes in user.changes.chunk_by(|a, b| a.info_hash == b.info_hash) {
        let info_hash = changes[0].info_hash;
        let before = torrents.summary(&info_hash);
        let mut kind = ChangeKind::Nothing;
        for change in changes {
            let changed = torrents.apply(change, cutoff);
            kind = kind.max(changed.kind);
            evicted += changed.evicted;
        }
        let after = torrents.summary(&info_hash);
        let is_near_expiry = before.is_none_or(|before| before.until <= cutoff + CLOCK_SLACK);
        match (kind, after) {
            (ChangeKind::Nothing, _) => {}
            (ChangeKind::Time, Some(shown)) if !is_near_expiry => writes.put_time(info_hash, shown),
            _ => {
                writes.put(info_hash, before, torrents.record(&info_hash).as_ref());
                due = due.into_iter().chain(after.map(|after| after.until)).min();
            }
        }
    }
    (writes, due, evicted)
}

/// The error names the kind of key.
fn parse_loaded(replies: [Reply; LOAD_COMMANDS]) -> Result<Loaded, (&'static str, RedisError)> {
    let [clients, seed, leech, stopped] = replies;
    let records: HashMap<Vec<u8>, Vec<u8>> =
        read_reply(clients).map_err(|error| (kind_of("clients"), error))?;
    let parse = |member: &[u8]| std::str::from_utf8(member).ok()?.parse::<InfoHash>().ok();
    let records = records.iter();
    let mut records: HashMap<InfoHash, Record> =
        records.filter_map(|(member, bytes)| Some((parse(member)?, Record::from_bytes(bytes)))).collect();
    let mut strays = Vec::new();
    let lists = [
        (ClientState::Seeding, "seed", seed),
        (ClientState::Leeching, "leech", leech),
        (ClientState::Stopped, "stopped", stopped),
    ];
    for (state, name, list) in lists {
        let members: Vec<(Vec<u8>, f64)> = read_reply(list).map_err(|error| (kind_of(name), error))?;
        for (member, score) in members {
            let record = parse(&member).and_then(|info_hash| records.get_mut(&info_hash));
            match record.filter(|record| record.summary().is_some_and(|shown| shown.state == state)) {
                Some(record) => record.raise_only_heartbeat(UnixTime(score as u32)),
                None => strays.push((state, member, UnixTime(score as u32))),
            }
        }
    }
    Ok(Loaded { torrents: UserTorrents::of(records.into_iter().collect()), strays })
}

fn refuse_if_wrong_type(reply: Reply, user: usize, applied: &mut Applied) -> Result<(), FenceError> {
    match read_reply::<i64>(reply) {
        Ok(_) => {}
        Err(RedisError::WrongType { .. }) => {
            if applied.refused.iter().all(|refused| refused.user != user) {
                let key = "tracker:user:…:<passkey>";
                applied.refused.push(Refused { user, reason: ViewsError::WrongType { key }.to_string() });
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
