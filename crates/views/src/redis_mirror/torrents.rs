//! The first phase: applies entries to torrents in memory, and writes their keys, each torrent's in one slot.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::clock::Stopwatch;
use domain::{InfoHash, PeerId, TorrentId, UnixTime, UserId};
use journal::EntryId;
use keyspace::{FencedSession, RedisError, RedisMirrorKey, Reply, read_reply, scripts};
use redis::Pipeline;

use super::RedisMirror;
use super::commands::TorrentCommands;
use super::derived_keys::counts_error;
use super::fold::{MirrorEntry, Target, TorrentEntries};
use super::reconcile::state::counts_of;
use super::stored_peer::{SHARED_MAX, StoredPeer};
use super::torrent::{Counts, Indexed, Memberships, Torrent};
use super::user_figures::UserFigures;
use crate::error::ViewsError;
use crate::generations::Generations;

/// Peers and users in memory, over all torrents: about 250 MB. Torrents without announces for longest are dropped.
const MEMORY_MAX: usize = 1_000_000;
/// Torrents read and written at once; a transaction blocks Redis for a few milliseconds.
const TORRENTS_AT_ONCE_MAX: usize = 500;
/// Attempts if another process claims meanwhile.
const ATTEMPTS_MAX: u32 = 20;

/// The one process that writes: what it has read or written stays in memory. Dropped after any error.
#[derive(Debug)]
pub(super) struct Writer {
    session: Option<FencedSession>,
    torrents: Generations<TorrentId, Torrent>,
    /// Time of Redis when the session began.
    began: Option<(UnixTime, Stopwatch)>,
    /// The statistics announces, leechers, seeders, each none if missing; none if they are to be read.
    pub(super) stats: Option<[Option<i64>; 3]>,
}

impl Default for Writer {
    fn default() -> Self {
        Writer { session: None, torrents: Generations::new(MEMORY_MAX), began: None, stats: None }
    }
}

/// Present state after the first phase, of everything that the second must write.
#[derive(Debug, Default)]
pub(super) struct ChangedState {
    pub(super) torrents: BTreeMap<TorrentId, Counts>,
    /// Which of a user's sets to write: all of them for repeated entries.
    pub(super) users: BTreeMap<(UserId, TorrentId), [Option<bool>; 4]>,
    pub(super) peers: BTreeMap<(PeerId, TorrentId), bool>,
    /// Of `peers`, those ended by a timeout.
    pub(super) expired: BTreeSet<(PeerId, TorrentId)>,
    /// Entries that had been applied before.
    pub(super) repeated: u64,
    /// Entries of torrents with a key of the wrong type.
    pub(super) damaged: u64,
}

/// What to read of a torrent.
struct Missing {
    torrent: TorrentId,
    info_hash: InfoHash,
    is_new: bool,
    peers: Vec<PeerId>,
    users: Vec<UserId>,
}

/// Why a torrent's entries are not applied.
enum Unreadable {
    /// A key has the wrong type.
    Damaged(RedisError),
    Failed(ViewsError),
}

fn weight_of(torrent: &Torrent) -> usize {
    1 + torrent.peers.len() + torrent.users.len()
}

impl Writer {
    pub(super) fn forget(&mut self, torrent: TorrentId) {
        self.torrents.remove(&torrent);
    }

    pub(super) fn torrent_mut(&mut self, torrent: TorrentId) -> Option<&mut Torrent> {
        self.torrents.get_mut(&torrent, weight_of)
    }

    pub(super) fn weight(&self) -> usize {
        self.torrents.weight()
    }

    /// Time of Redis, by which keys expire.
    fn redis_now(&self) -> UnixTime {
        let (then, since) = self.began.as_ref().map_or((UnixTime(0), 0), |(then, watch)| {
            (*then, u32::try_from(watch.elapsed().as_secs()).unwrap_or(u32::MAX))
        });
        UnixTime(then.0.saturating_add(since))
    }
}

impl RedisMirror {
    pub(super) async fn session<'w>(
        &self,
        writer: &'w mut Writer,
    ) -> Result<&'w mut FencedSession, ViewsError> {
        if writer.session.is_none() {
            let mut session = FencedSession::begin(self.redis(), self.names().fence()).await?;
            let mut time = Pipeline::new();
            time.cmd("TIME");
            let reply = session.read(&time).await?.into_iter().next();
            let reply = reply.unwrap_or_else(|| Err(RedisError::Unanswered { reason: "TIME".to_owned() }));
            let (seconds, _): (u64, u64) = read_reply(reply)?;
            writer.began = Some((UnixTime(u32::try_from(seconds).unwrap_or(u32::MAX)), Stopwatch::start()));
            writer.session = Some(session);
        }
        Ok(writer.session.as_mut().expect("a session was begun above"))
    }

    /// After a failed step: drops what is in memory, so that a step that another writer interrupted can be repeated. So
    /// can one whose reply was lost, once: idle connections are closed. Any other error is returned.
    pub(super) fn recover(
        &self,
        writer: &mut Writer,
        attempts: &mut u32,
        error: ViewsError,
    ) -> Result<(), ViewsError> {
        *writer = Writer::default();
        match error {
            ViewsError::Superseded if *attempts < ATTEMPTS_MAX => {
                self.counters.superseded();
                *attempts += 1;
                Ok(())
            }
            ViewsError::Redis(RedisError::Unanswered { .. }) if *attempts == 1 => {
                *attempts += 1;
                Ok(())
            }
            // That of a torrent, user or peer does not end a step.
            ViewsError::Redis(error) => Err(counts_error(error)),
            error => Err(error),
        }
    }

    pub(super) async fn apply_to_torrents(
        &self,
        writer: &mut Writer,
        torrents: &[TorrentEntries],
    ) -> Result<ChangedState, ViewsError> {
        let mut state = ChangedState::default();
        for torrents in torrents.chunks(TORRENTS_AT_ONCE_MAX) {
            let parts = self.read_missing(writer, torrents, &mut state).await?;
            let (mut all, mut owners) = (Vec::new(), Vec::new());
            for (position, (target, entries)) in parts.iter().enumerate() {
                let commands = self.apply_to(writer, target, entries, &mut state).await?;
                all.extend(commands);
                owners.resize(all.len(), position);
            }
            let replies = self.session(writer).await?.write(all).await?;
            let mut damaged = BTreeMap::new();
            for (position, reply) in owners.into_iter().zip(replies) {
                match read_reply::<redis::Value>(reply) {
                    Err(error) if is_damage(&error) => drop(damaged.insert(position, error)),
                    other => drop(other?),
                }
            }
            for (position, error) in damaged {
                let (target, entries) = &parts[position];
                writer.forget(target.torrent);
                state.record_damage(target.torrent, entries, &error);
            }
        }
        Ok(state)
    }

    /// Applies entries to a torrent in memory; returns what to write.
    async fn apply_to(
        &self,
        writer: &mut Writer,
        target: &Target,
        entries: &[MirrorEntry],
        state: &mut ChangedState,
    ) -> Result<Vec<redis::Cmd>, ViewsError> {
        let (id, now) = (target.torrent, writer.redis_now());
        let Some(torrent) = writer.torrent_mut(id) else { return Ok(Vec::new()) };
        let changes = torrent.apply(entries);
        // A torrent whose infohash the site confirms takes over the keys named by it.
        let takes_over = torrent.owner != Some(id)
            && (torrent.owner.is_none() || target.is_confirmed && changes.has_announce);
        let former = torrent.owner.filter(|_| takes_over);
        if takes_over {
            torrent.owner = Some(id);
        }
        let was_stored = std::mem::replace(&mut torrent.is_stored, true);
        let (names, settings, is_new) = (self.names(), &self.settings, !was_stored);
        let commands = TorrentCommands { names, settings, id, is_new, now };
        let mut all = Vec::new();
        if takes_over {
            commands.take_over(torrent, &mut all);
        }
        commands.write(torrent, &changes, &mut all);
        state.note(id, torrent, &changes, self.hit_and_run_active_s());
        if let Some(former) = former.and_then(|former| writer.torrent_mut(former)) {
            former.owner = Some(id);
        }
        if takes_over && was_stored {
            // Its peers before these entries, which are not all in memory.
            let stored = self.read_state(id).await?;
            if let Some(torrent) = writer.torrent_mut(id) {
                let before = stored.peers.keys().filter(|peer| !torrent.peers.contains_key(peer));
                let active = torrent.peers.keys().filter(|peer| torrent.is_active(peer));
                commands.add_members(torrent, before.chain(active), &mut all);
            }
        }
        Ok(all)
    }

    /// Reads what is not in memory. Returns the torrents to which entries can be applied.
    async fn read_missing<'t>(
        &self,
        writer: &mut Writer,
        torrents: &'t [TorrentEntries],
        state: &mut ChangedState,
    ) -> Result<Vec<(Target, &'t [MirrorEntry])>, ViewsError> {
        let mut parts: Vec<(Target, &[MirrorEntry])> =
            torrents.iter().map(|torrent| (torrent.target, torrent.entries.as_slice())).collect();
        let missing: Vec<Missing> =
            parts.iter().filter_map(|(target, entries)| missing_of(writer, target, entries)).collect();
        let mut unreadable = self.read_torrents(writer, &missing).await?;
        for (target, entries) in &mut parts {
            let known = writer.torrent_mut(target.torrent).map(|torrent| torrent.info_hash);
            if let Some(known) = known.filter(|known| *known != target.info_hash)
                && !unreadable.contains_key(&target.torrent)
            {
                // Stored with another infohash: with the new one from now on if the site confirms it.
                match target.is_confirmed {
                    true => self.rename(target, &known).await?,
                    false => target.info_hash = known,
                }
                writer.forget(target.torrent);
                let again: Vec<Missing> = missing_of(writer, target, entries).into_iter().collect();
                unreadable.extend(self.read_torrents(writer, &again).await?);
            }
            self.read_users_who_may_be_evicted(writer, target, entries).await?;
        }
        let is_readable = |part: &(Target, &[MirrorEntry])| match unreadable.get(&part.0.torrent) {
            Some(error) => {
                state.record_damage(part.0.torrent, part.1, error);
                false
            }
            None => true,
        };
        parts.retain(is_readable);
        Ok(parts)
    }

    /// A further user under a peer id that many share evicts one, whose figures change.
    async fn read_users_who_may_be_evicted(
        &self,
        writer: &mut Writer,
        target: &Target,
        entries: &[MirrorEntry],
    ) -> Result<(), ViewsError> {
        let Some(torrent) = writer.torrent_mut(target.torrent) else { return Ok(()) };
        let shared = entries.iter().filter_map(|entry| torrent.peers.get(&entry.peer));
        let shared = shared.filter(|all| all.len() >= SHARED_MAX / 2).flatten().map(|stored| stored.user);
        let users: Vec<UserId> = shared.filter(|user| !torrent.users.contains_key(user)).collect();
        if users.is_empty() {
            return Ok(());
        }
        let missing = Missing {
            torrent: target.torrent,
            info_hash: torrent.info_hash,
            is_new: false,
            peers: Vec::new(),
            users,
        };
        self.read_torrents(writer, &[missing]).await.map(drop)
    }

    /// Adds what is missing to memory. Returns the torrents that cannot be read because a key has the wrong type.
    async fn read_torrents(
        &self,
        writer: &mut Writer,
        missing: &[Missing],
    ) -> Result<HashMap<TorrentId, RedisError>, ViewsError> {
        let mut unreadable = HashMap::new();
        if missing.is_empty() {
            return Ok(unreadable);
        }
        let indexed = self.read_indexes(writer, missing).await?;
        let mut pipeline = Pipeline::new();
        missing.iter().for_each(|missing| self.push_reads(missing, &mut pipeline));
        let mut replies = self.session(writer).await?.read(&pipeline).await?.into_iter();
        for missing in missing {
            let count = if missing.is_new { 4 } else { 1 } + missing.peers.len();
            let of_torrent: Vec<Reply> = replies.by_ref().take(count).collect();
            let indexed = indexed.get(&missing.torrent).copied().unwrap_or_default();
            match self.add_to_memory(writer, missing, of_torrent, indexed).await {
                Ok(()) => {}
                Err(Unreadable::Damaged(error)) => {
                    writer.forget(missing.torrent);
                    unreadable.insert(missing.torrent, error);
                }
                Err(Unreadable::Failed(error)) => return Err(error),
            }
        }
        Ok(unreadable)
    }

    fn push_reads(&self, missing: &Missing, pipeline: &mut Pipeline) {
        let names = self.names();
        let (torrent, info_hash) = (missing.torrent, &missing.info_hash);
        pipeline.cmd("HMGET").arg(names.state(torrent)).arg("w").arg("h").arg("c");
        for peer in &missing.peers {
            pipeline.arg(format!("p{peer}"));
        }
        for user in &missing.users {
            pipeline.arg(format!("u{user}"));
        }
        if missing.is_new {
            pipeline.cmd("GET").arg(names.info_hash_owner(torrent, info_hash));
            pipeline.cmd("HGET").arg(names.torrent(torrent, info_hash)).arg("announces");
            // For its type.
            pipeline.cmd("SCARD").arg(names.torrent_peers(torrent, info_hash));
        }
        for peer in &missing.peers {
            pipeline.cmd("HMGET").arg(names.peer(torrent, peer)).arg("user_id").arg("completed");
            pipeline.arg("first_announce").arg("last_announce").arg("total_time");
        }
    }

    async fn add_to_memory(
        &self,
        writer: &mut Writer,
        missing: &Missing,
        replies: Vec<Reply>,
        indexed: Indexed,
    ) -> Result<(), Unreadable> {
        let mut replies = replies.into_iter();
        let mut next = || {
            replies
                .next()
                .unwrap_or_else(|| Err(RedisError::Unanswered { reason: "too few replies".to_owned() }))
        };
        let fields: Vec<Option<String>> = read(next())?;
        let mut fields = fields.into_iter();
        let mut field = || fields.next().flatten();
        let (watermark, known_as, counts) = (field(), field(), field());
        let id = missing.torrent;
        if missing.is_new {
            let owner: Option<String> = read(next())?;
            let announces: Option<String> = read(next())?;
            let _members: u64 = read(next())?;
            let owner = owner.and_then(|owner| owner.parse().ok());
            let known_as = known_as.and_then(|known_as| known_as.parse().ok());
            let counts = match counts.as_deref().and_then(counts_of) {
                Some(counts) => counts,
                None => {
                    let announces = announces.filter(|_| owner == Some(id));
                    let announces = announces.and_then(|text| number_of(&text)).unwrap_or(0);
                    match known_as {
                        Some(_) => self.read_state(id).await.map_err(unreadable)?.recounted(announces),
                        None => Counts { announces, ..Counts::default() },
                    }
                }
            };
            let torrent = Torrent {
                info_hash: known_as.unwrap_or(missing.info_hash),
                owner,
                is_stored: known_as.is_some(),
                watermark: watermark.and_then(|text| text.parse().ok()).unwrap_or(EntryId::ZERO),
                counts,
                indexed,
                peers: HashMap::new(),
                users: HashMap::new(),
            };
            writer.torrents.insert(id, torrent, 1);
        }
        let Some(torrent) = writer.torrent_mut(id) else { return Ok(()) };
        let texts: Vec<Option<String>> = missing.peers.iter().map(|_| field()).collect();
        for user in &missing.users {
            let text = field();
            torrent.users.insert(*user, text.as_deref().and_then(UserFigures::parse));
        }
        for (peer, text) in missing.peers.iter().zip(texts) {
            let public: Vec<Option<String>> = read(next())?;
            let mut all = text.as_deref().map(StoredPeer::parse_all).unwrap_or_default();
            if all.is_empty() {
                all.extend(inactive_peer(&public));
            }
            torrent.peers.insert(*peer, all);
        }
        writer.torrents.grow(missing.peers.len() + missing.users.len());
        Ok(())
    }

    /// What the indexes have of torrents that are not in memory.
    async fn read_indexes(
        &self,
        writer: &mut Writer,
        missing: &[Missing],
    ) -> Result<HashMap<TorrentId, Indexed>, ViewsError> {
        let torrents: Vec<TorrentId> =
            missing.iter().filter(|missing| missing.is_new).map(|missing| missing.torrent).collect();
        self.read_scores(writer, &torrents).await
    }

    /// The scores of torrents in the indexes.
    pub(super) async fn read_scores(
        &self,
        writer: &mut Writer,
        torrents: &[TorrentId],
    ) -> Result<HashMap<TorrentId, Indexed>, ViewsError> {
        if torrents.is_empty() {
            return Ok(HashMap::new());
        }
        let mut pipeline = Pipeline::new();
        for index in self.indexes() {
            pipeline.cmd("ZMSCORE").arg(index);
            torrents.iter().for_each(|torrent| {
                pipeline.arg(torrent.get());
            });
        }
        let whole = Indexed { is_whole: true, ..Indexed::default() };
        let mut scores: HashMap<TorrentId, Indexed> =
            torrents.iter().map(|torrent| (*torrent, whole)).collect();
        let replies = self.session(writer).await?.read(&pipeline).await?;
        for (number, reply) in replies.into_iter().enumerate() {
            let found: Vec<Option<f64>> = read_reply(reply)?;
            for (torrent, score) in torrents.iter().zip(found) {
                let indexed = scores.entry(*torrent).or_default();
                indexed.is_whole &= score.is_some();
                *indexed.counts.by_index(number) = score.unwrap_or(0.0) as u64;
            }
        }
        Ok(scores)
    }

    /// Sorted sets of torrents, in the order of [`Counts::by_index`].
    pub(super) fn indexes(&self) -> [String; 4] {
        let names = self.names();
        [
            names.index_announces().to_owned(),
            names.global(RedisMirrorKey::IndexLeechers),
            names.global(RedisMirrorKey::IndexSeeders),
            names.global(RedisMirrorKey::IndexSnatches),
        ]
    }

    pub(super) fn hit_and_run_active_s(&self) -> u64 {
        self.settings.hit_and_run_active.0.into()
    }

    async fn rename(&self, target: &Target, known: &InfoHash) -> Result<(), ViewsError> {
        let (names, torrent) = (self.names(), target.torrent);
        let keys = [
            names.state(torrent),
            names.torrent(torrent, known),
            names.torrent_peers(torrent, known),
            names.info_hash_owner(torrent, known),
        ];
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut call = scripts::REDIS_MIRROR_RENAME.call(&keys);
        call.arg(torrent.get()).arg(known.to_string()).arg(target.info_hash.to_string());
        if self.redis().query::<u64>(&call).await? == 1 {
            tracing::info!(%torrent, before = %known, after = %target.info_hash, "infohash of a torrent changed");
        }
        Ok(())
    }
}

fn read<T: redis::FromRedisValue>(reply: Reply) -> Result<T, Unreadable> {
    read_reply(reply).map_err(|error| match is_damage(&error) {
        true => Unreadable::Damaged(error),
        false => Unreadable::Failed(error.into()),
    })
}

fn unreadable(error: ViewsError) -> Unreadable {
    match error {
        ViewsError::Redis(error) if is_damage(&error) => Unreadable::Damaged(error),
        error => Unreadable::Failed(error),
    }
}

/// What memory lacks for these entries; none if nothing.
fn missing_of(writer: &mut Writer, target: &Target, entries: &[MirrorEntry]) -> Option<Missing> {
    let known = writer.torrent_mut(target.torrent);
    let has_peer = |peer: &PeerId| known.as_ref().is_some_and(|known| known.peers.contains_key(peer));
    let has_user = |user: &UserId| known.as_ref().is_some_and(|known| known.users.contains_key(user));
    let mut peers: Vec<PeerId> =
        entries.iter().map(|entry| entry.peer).filter(|peer| !has_peer(peer)).collect();
    let mut users: Vec<UserId> =
        entries.iter().map(|entry| entry.user).filter(|user| !has_user(user)).collect();
    let is_new = known.is_none();
    peers.sort_unstable();
    peers.dedup();
    users.sort_unstable();
    users.dedup();
    let Target { torrent, info_hash, .. } = *target;
    let is_complete = !is_new && peers.is_empty() && users.is_empty();
    (!is_complete).then_some(Missing { torrent, info_hash, is_new, peers, users })
}

/// An inactive peer: only the public hash is left of it. Its fields: user, completed, first and last announce, seconds.
fn inactive_peer(public: &[Option<String>]) -> Option<StoredPeer> {
    let [user, completed, first, last, active_s] = public else { return None };
    let number = |text: &Option<String>| text.as_deref().and_then(number_of);
    let time = |text| number(text).and_then(|number| u32::try_from(number).ok()).map(UnixTime);
    let (user, last) = (UserId::new(number(user)?)?, time(last)?);
    Some(StoredPeer {
        is_complete: completed.as_deref() == Some("1"),
        first: time(first).unwrap_or(last),
        active_s: number(active_s).unwrap_or(0),
        ..StoredPeer::new(user, last)
    })
}

/// An integer of at most 12 digits, also if another program wrote it.
fn number_of(text: &str) -> Option<u64> {
    let is_number = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Whether a key has the wrong type or a value on which a command fails. A retry does not help, and only this torrent,
/// user or peer is affected.
pub(super) fn is_damage(error: &RedisError) -> bool {
    match error {
        RedisError::WrongType { .. } => true,
        RedisError::Other { code, reason } => {
            ["WRONGTYPE", "user_script"].iter().any(|sign| reason.contains(sign) || code.contains(sign))
        }
        _ => false,
    }
}

impl Counts {
    /// In the order of the indexes.
    pub(super) fn by_index(&mut self, number: usize) -> &mut u64 {
        match number {
            0 => &mut self.announces,
            1 => &mut self.leechers,
            2 => &mut self.seeders,
            _ => &mut self.snatches,
        }
    }

    pub(super) fn in_order(&self) -> [u64; 4] {
        [self.announces, self.leechers, self.seeders, self.snatches]
    }
}

impl ChangedState {
    fn record_damage(&mut self, torrent: TorrentId, entries: &[MirrorEntry], reason: &dyn std::fmt::Display) {
        self.damaged += entries.len() as u64;
        tracing::warn!(
            %torrent, %reason,
            "cannot apply entries: a key of this torrent is damaged; rename or remove it"
        );
    }

    fn note(
        &mut self,
        id: TorrentId,
        torrent: &Torrent,
        changes: &super::torrent::Changes,
        threshold_s: u64,
    ) {
        self.torrents.insert(id, torrent.counts);
        self.repeated += changes.repeated;
        for (peer, change) in &changes.peers {
            let is_active = torrent.is_active(peer);
            if change.is_repeated || is_active != change.was_active {
                self.peers.insert((*peer, id), is_active);
                match change.is_expired && !is_active {
                    true => self.expired.insert((*peer, id)),
                    false => self.expired.remove(&(*peer, id)),
                };
            }
        }
        for (user, change) in &changes.users {
            let Some(figures) = torrent.figures(*user) else { continue };
            let sets = figures.memberships(threshold_s);
            let before: Memberships =
                change.before.map(|before| before.memberships(threshold_s)).unwrap_or_default();
            let wanted =
                [0, 1, 2, 3].map(|set| (change.is_repeated || sets[set] != before[set]).then_some(sets[set]));
            if wanted != [None; 4] {
                self.users.insert((*user, id), wanted);
            }
        }
    }
}
