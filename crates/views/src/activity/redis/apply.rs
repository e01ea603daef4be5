//! Applies changes to Redis.
//!
//! 1. Heartbeats that change only a time are plain commands ([`refresh`]).
//! 2. Users with remaining changes are added to the index.
//! 3. The script applies these changes, many users per call; on a cluster one, because keys of a call share a slot.
//! 4. Users without stored activity before are set to due in the index, which overrides a concurrent sweep.
//!
//! After a crash between two steps, the same entries are delivered again and complete the update.
//!
//! [`refresh`]: super::refresh

use keyspace::{Mode, Reply, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::refresh::digits_of;
use super::{RedisActivity, UserKeys, index_error, kind_of, unexpected};
use crate::activity::fold::{Change, UserChanges};
use crate::activity::record::{CLIENTS_MAX, ClientState};
use crate::activity::settings::Window;
use crate::activity::store::{Applied, Refused};
use crate::error::ViewsError;

/// Users per call of the script.
const CALL_USERS_MAX: usize = 64;
/// Changes per call of the script.
const CALL_CHANGES_MAX: usize = 256;
/// Users per `ZADD` to the index.
const INDEX_USERS: usize = 1000;

/// The changes of a user that need the script.
pub(super) struct Task {
    /// Index in the users of the batch.
    pub(super) user: usize,
    pub(super) keys: UserKeys,
    pub(super) changes: Vec<Change>,
}

/// One call of the script.
struct Call<'a> {
    tasks: Vec<(&'a Task, &'a [Change])>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    /// Keeps the score of users in the index.
    IfMissing,
    /// Sets the score to now.
    AsDue,
}

impl RedisActivity {
    pub(super) async fn apply_changes(
        &self,
        users: &[UserChanges],
        window: &Window,
    ) -> Result<Applied, ViewsError> {
        let tasks = self.refresh(users, window).await?;
        if tasks.is_empty() {
            return Ok(Applied::default());
        }
        let concerned: Vec<usize> = tasks.iter().map(|task| task.user).collect();
        self.index(users, &concerned, Indexing::IfMissing, window).await?;
        let users_max = if self.redis.mode() == Mode::Cluster { 1 } else { CALL_USERS_MAX };
        let calls = calls_of(&tasks, users_max);
        let mut pipeline = Pipeline::new();
        for call in &calls {
            pipeline.add_command(call.command(window));
        }
        let mut applied = Applied::default();
        let mut new = Vec::new();
        for (call, reply) in calls.iter().zip(self.redis.pipeline(&pipeline).await) {
            call.read(reply, &mut applied, &mut new)?;
        }
        self.index(users, &new, Indexing::AsDue, window).await?;
        self.remember(users, &tasks, &applied);
        Ok(applied)
    }

    /// Adds applied reports to [`super::known_clients::KnownClients`].
    fn remember(&self, users: &[UserChanges], tasks: &[Task], applied: &Applied) {
        let mut known_clients = self.known_clients.lock();
        let is_refused = |user| applied.refused.binary_search_by_key(&user, |refused| refused.user).is_ok();
        for task in tasks.iter().filter(|task| !is_refused(task.user)) {
            // A stopped client starts with an event, not with a heartbeat.
            let present = task.changes.iter().filter(|change| change.report.state != ClientState::Stopped);
            present.for_each(|change| known_clients.insert(&users[task.user].passkey, change));
        }
    }

    async fn index(
        &self,
        users: &[UserChanges],
        concerned: &[usize],
        indexing: Indexing,
        window: &Window,
    ) -> Result<(), ViewsError> {
        for some in concerned.chunks(INDEX_USERS) {
            let mut command = redis::cmd("ZADD");
            command.arg(self.names.users_active());
            if indexing == Indexing::IfMissing {
                command.arg("NX");
            }
            for user in some {
                command.arg(window.now.0).arg(users[*user].passkey.to_string());
            }
            self.redis.query::<()>(&command).await.map_err(index_error)?;
        }
        Ok(())
    }
}

/// Groups tasks into as few calls as the bounds allow.
fn calls_of<'a>(tasks: &'a [Task], users_max: usize) -> Vec<Call<'a>> {
    let mut calls: Vec<Call<'a>> = Vec::new();
    let mut changes_in_last = 0;
    for task in tasks {
        for changes in task.changes.chunks(CALL_CHANGES_MAX) {
            match calls.last_mut() {
                Some(call)
                    if call.tasks.len() < users_max
                        && changes_in_last + changes.len() <= CALL_CHANGES_MAX =>
                {
                    call.tasks.push((task, changes));
                    changes_in_last += changes.len();
                }
                _ => {
                    calls.push(Call { tasks: vec![(task, changes)] });
                    changes_in_last = changes.len();
                }
            }
        }
    }
    calls
}

impl Call<'_> {
    fn command(&self, window: &Window) -> Cmd {
        let keys: Vec<&str> = self.tasks.iter().flat_map(|(task, _)| task.keys.all()).collect();
        let mut command = scripts::ACTIVITY_APPLY.call(&keys);
        command.arg(window.cutoff().0).arg(CLIENTS_MAX);
        for (_, changes) in &self.tasks {
            command.arg(changes.len());
            for change in *changes {
                command.arg(digits_of(change).as_slice()).arg(change.report.to_bytes().as_slice());
            }
        }
        command
    }

    /// Parses the reply: evicted clients, new users, refused users.
    fn read(&self, reply: Reply, applied: &mut Applied, new: &mut Vec<usize>) -> Result<(), ViewsError> {
        let parts: Vec<String> = read_reply(reply)?;
        let [evicted, users @ ..] = parts.as_slice() else {
            return Err(unexpected("activity_apply"));
        };
        applied.clients_evicted += evicted.parse::<u64>().map_err(|_| unexpected("activity_apply"))?;
        for [number, outcome] in users.as_chunks::<2>().0 {
            let position = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let task = position.and_then(|position| self.tasks.get(position));
            let (task, _) = task.ok_or_else(|| unexpected("activity_apply"))?;
            let is_refused = || applied.refused.last().is_some_and(|refused| refused.user == task.user);
            match outcome.as_str() {
                "new" => new.push(task.user),
                // A user with many changes is part of more than one call.
                _ if is_refused() => {}
                name => {
                    let reason = ViewsError::WrongType { key: kind_of(name) }.to_string();
                    applied.refused.push(Refused { user: task.user, reason });
                }
            }
        }
        Ok(())
    }
}
