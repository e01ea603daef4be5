//! Heartbeats that change nothing but a time, which is what most entries are, as plain commands.
//!
//! 1. What is known of a torrent is read, unless this process has told Redis of this client lately ([`KnownClients`]).
//! 2. Where this client is the only one, and does what it did, or was so when last told, the time in the list is raised
//!    (`ZADD XX GT`), and then what is known is read. If this client is the only one now, and does this, then the time
//!    that was raised was this client's: done.
//! 3. Everything else goes on to the script: what another consumer changed in between, what was not raised because it
//!    is old or no longer there. The script puts right whatever was raised without reason: a list's time counts only
//!    for a torrent's single client. It is never taken for another client's, because the client of step 2 is remembered
//!    by the torrent, single or not, for as long as what Redis was told of it counts.
//!
//! Nothing here is a transaction, so it works on a cluster, too, where each user lies elsewhere.
//!
//! [`KnownClients`]: super::known_clients::KnownClients

use std::io::Write as _;

use keyspace::{KeyNames, RedisError, Reply, read_reply};
use redis::{Cmd, Pipeline};

use super::apply::Task;
use super::{RedisActivity, UserKeys};
use crate::activity::fold::{Change, UserChanges};
use crate::activity::record::{ClientState, REPORT_BYTES};
use crate::activity::settings::Window;
use crate::error::ViewsError;

/// Users asked about at once.
const USERS_AT_ONCE: usize = 500;

/// The client, the letter and the extra silence of a report: what a heartbeat leaves as it is.
const WHO_AND_WHAT: usize = 13;

/// What is known of torrents, in their order: none where nothing is.
type Records = Vec<Option<Vec<u8>>>;

/// A user with heartbeats, and what came of them.
struct Heartbeats<'a> {
    user: usize,
    all: &'a UserChanges,
    /// The heartbeats that have to be asked about first, by their positions in all.
    asked: Vec<usize>,
    /// The heartbeats that are tried, likewise.
    tried: Vec<usize>,
    is_done: bool,
}

impl RedisActivity {
    /// Tries heartbeats as plain commands; returns what is left to do.
    pub(super) async fn refresh(
        &self,
        users: &[UserChanges],
        window: &Window,
    ) -> Result<Vec<Task>, ViewsError> {
        let mut heartbeats = self.heartbeats(users, window);
        for some in heartbeats.chunks_mut(USERS_AT_ONCE) {
            self.ask(some).await?;
            self.raise(some).await?;
        }
        let mut known_clients = self.known_clients.lock();
        for heartbeat in heartbeats.iter().filter(|heartbeat| heartbeat.is_done) {
            heartbeat
                .changes(&heartbeat.tried)
                .for_each(|change| known_clients.insert(&heartbeat.all.passkey, change));
        }
        drop(known_clients);
        Ok(heartbeats.into_iter().filter_map(|heartbeat| heartbeat.into_task(&self.names)).collect())
    }

    fn heartbeats<'a>(&self, users: &'a [UserChanges], window: &Window) -> Vec<Heartbeats<'a>> {
        let known_clients = self.known_clients.lock();
        let heartbeat = |(user, all): (usize, &'a UserChanges)| {
            let is_heartbeat = |position: &usize| all.changes[*position].report.is_heartbeat();
            let is_known = |position: &usize| {
                known_clients.contains(&all.passkey, &all.changes[*position], window.cutoff())
            };
            let (tried, asked) = (0..all.changes.len()).filter(is_heartbeat).partition(is_known);
            Heartbeats { user, all, asked, tried, is_done: false }
        };
        users.iter().enumerate().map(heartbeat).collect()
    }

    /// Step 1.
    async fn ask(&self, heartbeats: &mut [Heartbeats<'_>]) -> Result<(), ViewsError> {
        let mut asking: Vec<&mut Heartbeats<'_>> =
            heartbeats.iter_mut().filter(|heartbeat| !heartbeat.asked.is_empty()).collect();
        let mut pipeline = Pipeline::new();
        for heartbeat in &asking {
            pipeline.add_command(heartbeat.read_command(&heartbeat.asked, &self.names));
        }
        for (heartbeat, reply) in asking.iter_mut().zip(self.redis.pipeline(&pipeline).await) {
            let records: Records = read_unless_wrong_type(reply)?.unwrap_or_default();
            let unchanged = heartbeat.asked.iter().zip(&records);
            let unchanged = unchanged.filter(|(position, record)| heartbeat.is_unchanged(**position, record));
            let positions: Vec<usize> = unchanged.map(|(position, _)| *position).collect();
            heartbeat.tried.extend(positions);
            heartbeat.tried.sort_unstable();
        }
        Ok(())
    }

    /// Step 2.
    async fn raise(&self, heartbeats: &mut [Heartbeats<'_>]) -> Result<(), ViewsError> {
        let mut pipeline = Pipeline::new();
        let mut raising: Vec<(&mut Heartbeats<'_>, Vec<usize>)> = Vec::new();
        for heartbeat in heartbeats.iter_mut().filter(|heartbeat| !heartbeat.tried.is_empty()) {
            let counts = heartbeat.add_raises(&mut pipeline, &self.names);
            pipeline.add_command(heartbeat.read_command(&heartbeat.tried, &self.names));
            raising.push((heartbeat, counts));
        }
        let mut replies = self.redis.pipeline(&pipeline).await.into_iter();
        let mut next =
            || replies.next().unwrap_or_else(|| Err(RedisError::Unanswered { reason: String::new() }));
        for (heartbeat, counts) in raising {
            let mut is_done = true;
            for count in counts {
                is_done &= read_unless_wrong_type(next())? == Some(count);
            }
            let records: Records = read_unless_wrong_type(next())?.unwrap_or_default();
            is_done &= records.len() == heartbeat.tried.len();
            let mut known = heartbeat.tried.iter().zip(&records);
            heartbeat.is_done =
                is_done && known.all(|(position, record)| heartbeat.is_unchanged(*position, record));
        }
        Ok(())
    }
}

impl<'a> Heartbeats<'a> {
    fn changes(&self, positions: &[usize]) -> impl Iterator<Item = &'a Change> {
        let all = self.all;
        positions.iter().map(|position| &all.changes[*position])
    }

    /// Asks what is known of the torrents of these changes.
    fn read_command(&self, positions: &[usize], names: &KeyNames) -> Cmd {
        let mut command = Cmd::new();
        command.arg("HMGET").arg(names.user_clients(&self.all.passkey));
        for change in self.changes(positions) {
            command.arg(digits_of(change).as_slice());
        }
        command
    }

    /// Whether the torrent's only client is the one of this change, doing what the change says.
    fn is_unchanged(&self, position: usize, record: &Option<Vec<u8>>) -> bool {
        let report = self.all.changes[position].report.to_bytes();
        record.as_ref().is_some_and(|record| {
            record.len() == REPORT_BYTES && record[..WHO_AND_WHAT] == report[..WHO_AND_WHAT]
        })
    }

    /// Adds the commands that raise times; returns how many times each should raise.
    fn add_raises(&self, pipeline: &mut Pipeline, names: &KeyNames) -> Vec<usize> {
        let mut counts = Vec::with_capacity(2);
        for state in [ClientState::Seeding, ClientState::Leeching] {
            let raised = || self.changes(&self.tried).filter(move |change| change.report.state == state);
            let count = raised().count();
            if count == 0 {
                continue;
            }
            let passkey = &self.all.passkey;
            let list = match state {
                ClientState::Seeding => names.user_seed(passkey),
                _ => names.user_leech(passkey),
            };
            let mut command = Cmd::new();
            command.arg("ZADD").arg(list).arg("XX").arg("GT").arg("CH");
            for change in raised() {
                command.arg(change.report.stamp.at.0).arg(digits_of(change).as_slice());
            }
            pipeline.add_command(command);
            counts.push(count);
        }
        counts
    }

    /// What is left to do for this user: all that was not tried, and all if any of it was not done.
    fn into_task(self, names: &KeyNames) -> Option<Task> {
        let done = if self.is_done { self.tried.as_slice() } else { &[] };
        let left = self.all.changes.iter().enumerate();
        let left = left.filter(|(position, _)| done.binary_search(position).is_err());
        let changes: Vec<Change> = left.map(|(_, change)| *change).collect();
        (!changes.is_empty()).then(|| Task {
            user: self.user,
            keys: UserKeys::of(names, &self.all.passkey),
            changes,
        })
    }
}

/// Reads a reply; none if a key is of another type, which the script finds out and names.
fn read_unless_wrong_type<T: redis::FromRedisValue>(reply: Reply) -> Result<Option<T>, ViewsError> {
    match read_reply(reply) {
        Ok(value) => Ok(Some(value)),
        Err(RedisError::WrongType { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The infohash as it stands in the lists (A1).
pub(super) fn digits_of(change: &Change) -> [u8; 40] {
    let mut digits = [0; 40];
    write!(digits.as_mut_slice(), "{}", change.info_hash).expect("an infohash has forty digits");
    digits
}
