//! UserHeartbeats that change only a time, which is true of most entries, as plain commands.
//!
//! 1. The record of the torrent is read, unless this process has recently written this client ([`KnownClients`]).
//! 2. If this client is the torrent's only one and its state is unchanged, the time in the list is raised (`ZADD XX
//!    GT`), and the record is read again. If both still hold, the raised time was this client's: done.
//! 3. Everything else is left to the script: what another consumer changed in between, and times that were not raised
//!    because they are old or the member is missing. The script corrects a time that was raised wrongly, because a
//!    list's time counts only for a torrent with a single client. It is never attributed to another client: the record
//!    contains the client of step 2 for as long as its report in Redis has not expired.
//!
//! Nothing here is a transaction, so it also works on a cluster.
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

/// Users per pipeline.
const USERS_AT_ONCE: usize = 500;

/// Bytes of a report that a heartbeat does not change: client, state, extra silence.
const UNCHANGED_BYTES: usize = 13;

/// Encoded records of torrents, in their order.
type Records = Vec<Option<Vec<u8>>>;

/// The heartbeats of one user.
struct UserHeartbeats<'a> {
    user: usize,
    all: &'a UserChanges,
    /// Positions in `all` of heartbeats whose record must be read first.
    unknown: Vec<usize>,
    /// Positions in `all` of heartbeats to write as plain commands.
    tried: Vec<usize>,
    is_done: bool,
}

impl RedisActivity {
    /// Writes heartbeats as plain commands where possible; returns the remaining changes.
    pub(super) async fn refresh(
        &self,
        users: &[UserChanges],
        window: &Window,
    ) -> Result<Vec<Task>, ViewsError> {
        let mut heartbeats = self.heartbeats(users, window);
        for some in heartbeats.chunks_mut(USERS_AT_ONCE) {
            self.read_unknown(some).await?;
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

    fn heartbeats<'a>(&self, users: &'a [UserChanges], window: &Window) -> Vec<UserHeartbeats<'a>> {
        let known_clients = self.known_clients.lock();
        let heartbeat = |(user, all): (usize, &'a UserChanges)| {
            let is_heartbeat = |position: &usize| all.changes[*position].report.is_heartbeat();
            let is_known = |position: &usize| {
                known_clients.contains(&all.passkey, &all.changes[*position], window.cutoff())
            };
            let (tried, unknown) = (0..all.changes.len()).filter(is_heartbeat).partition(is_known);
            UserHeartbeats { user, all, unknown, tried, is_done: false }
        };
        users.iter().enumerate().map(heartbeat).collect()
    }

    /// Step 1.
    async fn read_unknown(&self, heartbeats: &mut [UserHeartbeats<'_>]) -> Result<(), ViewsError> {
        let mut reading: Vec<&mut UserHeartbeats<'_>> =
            heartbeats.iter_mut().filter(|heartbeat| !heartbeat.unknown.is_empty()).collect();
        let mut pipeline = Pipeline::new();
        for heartbeat in &reading {
            pipeline.add_command(heartbeat.read_command(&heartbeat.unknown, &self.names));
        }
        for (heartbeat, reply) in reading.iter_mut().zip(self.redis.pipeline(&pipeline).await) {
            let records: Records = read_unless_wrong_type(reply)?.unwrap_or_default();
            let unchanged = heartbeat.unknown.iter().zip(&records);
            let unchanged = unchanged.filter(|(position, record)| heartbeat.is_unchanged(**position, record));
            let positions: Vec<usize> = unchanged.map(|(position, _)| *position).collect();
            heartbeat.tried.extend(positions);
            heartbeat.tried.sort_unstable();
        }
        Ok(())
    }

    /// Step 2.
    async fn raise(&self, heartbeats: &mut [UserHeartbeats<'_>]) -> Result<(), ViewsError> {
        let mut pipeline = Pipeline::new();
        let mut raising: Vec<(&mut UserHeartbeats<'_>, Vec<usize>)> = Vec::new();
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

impl<'a> UserHeartbeats<'a> {
    fn changes(&self, positions: &[usize]) -> impl Iterator<Item = &'a Change> {
        let all = self.all;
        positions.iter().map(|position| &all.changes[*position])
    }

    /// Reads the records of the torrents of these changes.
    fn read_command(&self, positions: &[usize], names: &KeyNames) -> Cmd {
        let mut command = Cmd::new();
        command.arg("HMGET").arg(names.user_clients(&self.all.passkey));
        for change in self.changes(positions) {
            command.arg(digits_of(change).as_slice());
        }
        command
    }

    /// Whether the client of this change is the torrent's only one, with the same state.
    fn is_unchanged(&self, position: usize, record: &Option<Vec<u8>>) -> bool {
        let report = self.all.changes[position].report.to_bytes();
        record.as_ref().is_some_and(|record| {
            record.len() == REPORT_BYTES && record[..UNCHANGED_BYTES] == report[..UNCHANGED_BYTES]
        })
    }

    /// Adds the commands that raise times; returns the number of times that each should raise.
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

    /// The remaining changes: those not tried, or all if any failed.
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

/// None if a key has the wrong type, which the script will report.
fn read_unless_wrong_type<T: redis::FromRedisValue>(reply: Reply) -> Result<Option<T>, ViewsError> {
    match read_reply(reply) {
        Ok(value) => Ok(Some(value)),
        Err(RedisError::WrongType { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The infohash as in the lists (A1).
pub(super) fn digits_of(change: &Change) -> [u8; 40] {
    let mut digits = [0; 40];
    write!(digits.as_mut_slice(), "{}", change.info_hash).expect("an infohash has forty digits");
    digits
}
