//! From changes to commands.
//!
//! 1. On a single Redis, heartbeats are tried as plain commands: `ZADD XX GT CH` on `seen` raises the client's time
//!    only where this very client is known to do this very thing, the same on the list raises the torrent's. Where not
//!    all times of a user were raised, all its changes go on to the script, which puts right whatever was raised
//!    without reason; scripts never take a list's time for a client's. So the two need not be one transaction: what
//!    comes between them finds a client that has spoken, in a list that is about to say so.
//! 2. Whoever has changes left is put into the index.
//! 3. The script takes them, many users in one call; on a cluster one user a call, heartbeats included, since the keys
//!    of one call must share a slot.
//! 4. Users of whom nothing was stored are marked as due in the index, which undoes what a sweep may just have decided.
//!
//! A crash between any two steps leaves what the same entries, delivered again, put right.

use std::io::Write as _;
use std::ops::Range;

use keyspace::{Mode, Reply, Trouble, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::{RedisActivity, UserKeys, kind_of, of_index, unexpected};
use crate::activity::fold::{Change, UserChanges};
use crate::activity::record::{CLIENTS_MAX, Standing};
use crate::activity::settings::Window;
use crate::activity::store::{Applied, Refused};
use crate::error::ViewsError;

/// Users whose heartbeats are sent at once: enough to be cheap, few enough that Redis has something to do while the
/// next are put into words.
const REFRESH_USERS: usize = 200;
/// The most users of one call of the script.
const CALL_USERS_MAX: usize = 64;
/// The most changes of one call of the script.
const CALL_CHANGES_MAX: usize = 256;
/// Users added to the index by one command.
const INDEX_USERS: usize = 1000;

/// What is left to do for a user.
struct Task<'a> {
    user: usize,
    keys: &'a UserKeys,
    changes: Vec<Change>,
}

/// Heartbeats of some users as plain commands.
struct Refresh {
    users: Range<usize>,
    pipeline: Pipeline,
    /// For each user, how many times each of its commands should raise.
    expected: Vec<Vec<usize>>,
}

impl Refresh {
    fn new(range: Range<usize>, users: &[UserChanges], keys: &[UserKeys]) -> Self {
        let mut pipeline = Pipeline::new();
        let some = range.clone().map(|user| add_refresh(&mut pipeline, &keys[user], &users[user]));
        let expected = some.collect();
        Refresh { users: range, pipeline, expected }
    }

    /// Adds to `tasks` what is left to do.
    fn read<'a>(
        self,
        replies: Vec<Reply>,
        users: &[UserChanges],
        keys: &'a [UserKeys],
        tasks: &mut Vec<Task<'a>>,
    ) -> Result<(), ViewsError> {
        let mut replies = replies.into_iter();
        for (user, counts) in self.users.zip(self.expected) {
            let mut is_done = true;
            for count in counts {
                is_done &= was_raised(replies.next(), count)?;
            }
            let changes = users[user].changes.iter();
            let left = changes.filter(|change| !is_done || !change.report.is_heartbeat());
            let left: Vec<Change> = left.copied().collect();
            if !left.is_empty() {
                tasks.push(Task { user, keys: &keys[user], changes: left });
            }
        }
        Ok(())
    }
}

/// A call of the script, with the users it is about.
struct Call<'a> {
    tasks: Vec<(&'a Task<'a>, &'a [Change])>,
}

/// How users are added to the index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    /// If they are not in it.
    IfMissing,
    /// In any case, as due now.
    AsDue,
}

impl RedisActivity {
    pub(super) async fn apply_changes(
        &self,
        users: &[UserChanges],
        window: &Window,
    ) -> Result<Applied, ViewsError> {
        let keys: Vec<UserKeys> = users.iter().map(|user| UserKeys::of(&self.names, &user.passkey)).collect();
        let is_cluster = self.redis.mode() == Mode::Cluster;
        let tasks = match is_cluster {
            true => all_tasks(users, &keys),
            false => self.refresh(users, &keys).await?,
        };
        if tasks.is_empty() {
            return Ok(Applied::default());
        }
        let concerned: Vec<usize> = tasks.iter().map(|task| task.user).collect();
        self.index(users, &concerned, Indexing::IfMissing, window).await?;
        let calls = calls_of(&tasks, if is_cluster { 1 } else { CALL_USERS_MAX });
        let mut pipeline = Pipeline::new();
        for call in &calls {
            pipeline.add_command(call.command(window, is_cluster));
        }
        let mut applied = Applied::default();
        let mut new = Vec::new();
        for (call, reply) in calls.iter().zip(self.redis.pipeline(&pipeline).await) {
            call.read(reply, &mut applied, &mut new)?;
        }
        self.index(users, &new, Indexing::AsDue, window).await?;
        Ok(applied)
    }

    /// Tries heartbeats as plain commands; returns what is left to do. While some are on their way, the next are put
    /// into words, so that Redis does not wait for us.
    async fn refresh<'a>(
        &self,
        users: &[UserChanges],
        keys: &'a [UserKeys],
    ) -> Result<Vec<Task<'a>>, ViewsError> {
        let mut tasks = Vec::new();
        let firsts = (0..users.len()).step_by(REFRESH_USERS);
        let mut pages =
            firsts.map(|first| Refresh::new(first..users.len().min(first + REFRESH_USERS), users, keys));
        let mut ready = pages.next();
        while let Some(refresh) = ready {
            let following = async {
                // First the page before has to be on its way.
                tokio::task::yield_now().await;
                pages.next()
            };
            let (replies, next) = tokio::join!(self.send(&refresh.pipeline), following);
            refresh.read(replies, users, keys, &mut tasks)?;
            ready = next;
        }
        Ok(tasks)
    }

    async fn send(&self, pipeline: &Pipeline) -> Vec<Reply> {
        match pipeline.is_empty() {
            true => Vec::new(),
            false => self.redis.pipeline(pipeline).await,
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
            self.redis.query::<()>(&command).await.map_err(of_index)?;
        }
        Ok(())
    }
}

fn all_tasks<'a>(users: &[UserChanges], keys: &'a [UserKeys]) -> Vec<Task<'a>> {
    let tasks = users.iter().enumerate();
    tasks.map(|(user, changes)| Task { user, keys: &keys[user], changes: changes.changes.clone() }).collect()
}

/// Adds the commands for a user's heartbeats; returns how many times each of them should raise.
fn add_refresh(pipeline: &mut Pipeline, keys: &UserKeys, user: &UserChanges) -> Vec<usize> {
    let heartbeats = || user.changes.iter().filter(|change| change.report.is_heartbeat());
    let mut expected = Vec::with_capacity(2);
    let mut seen = raise(&keys.seen);
    let mut count = 0;
    for change in heartbeats() {
        seen.arg(change.report.stamp.at.0).arg(member_of(change).as_slice());
        count += 1;
    }
    if count == 0 {
        return expected;
    }
    pipeline.add_command(seen);
    expected.push(count);
    for (standing, key) in [(Standing::Seeding, &keys.seed), (Standing::Leeching, &keys.leech)] {
        let mut list = raise(key);
        let mut count = 0;
        for change in heartbeats().filter(|change| change.report.standing == standing) {
            list.arg(change.report.stamp.at.0).arg(digits_of(change).as_slice());
            count += 1;
        }
        if count > 0 {
            pipeline.add_command(list);
            expected.push(count);
        }
    }
    expected
}

fn raise(key: &str) -> Cmd {
    let mut command = Cmd::with_capacity(8, 160);
    command.arg("ZADD").arg(key).arg("XX").arg("GT").arg("CH");
    command
}

/// Whether a command raised as many times as it should. A key of another type is for the script to name.
fn was_raised(reply: Option<Reply>, count: usize) -> Result<bool, ViewsError> {
    match reply.map(read_reply::<usize>) {
        Some(Ok(raised)) => Ok(raised == count),
        Some(Err(Trouble::WrongType { .. })) | None => Ok(false),
        Some(Err(trouble)) => Err(trouble.into()),
    }
}

/// The infohash as it stands in the lists (A1).
fn digits_of(change: &Change) -> [u8; 40] {
    let mut digits = [0; 40];
    write!(digits.as_mut_slice(), "{}", change.info_hash).expect("an infohash has forty digits");
    digits
}

/// The member of `seen` that stands for a client doing this: infohash in digits, client, letter.
fn member_of(change: &Change) -> [u8; 49] {
    let mut member = [0; 49];
    member[..40].copy_from_slice(&digits_of(change));
    member[40..48].copy_from_slice(&change.report.client.0.to_be_bytes());
    member[48] = change.report.standing.letter();
    member
}

/// Packs tasks into as few calls as the bounds allow.
fn calls_of<'a>(tasks: &'a [Task<'a>], users_max: usize) -> Vec<Call<'a>> {
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
    fn command(&self, window: &Window, is_trying_heartbeats: bool) -> Cmd {
        let keys: Vec<&str> = self.tasks.iter().flat_map(|(task, _)| task.keys.all()).collect();
        let mut command = scripts::ACTIVITY_APPLY.call(&keys);
        command.arg(window.cutoff().0).arg(CLIENTS_MAX).arg(u8::from(is_trying_heartbeats));
        for (_, changes) in &self.tasks {
            command.arg(changes.len());
            for change in *changes {
                command.arg(digits_of(change).as_slice());
                command.arg(change.report.stamp.at.0).arg(change.report.to_bytes().as_slice());
            }
        }
        command
    }

    /// Reads what the script returned: who is refused, and of whom nothing was stored before.
    fn read(&self, reply: Reply, applied: &mut Applied, new: &mut Vec<usize>) -> Result<(), ViewsError> {
        let parts: Vec<String> = read_reply(reply)?;
        let [forgotten, said @ ..] = parts.as_slice() else {
            return Err(unexpected("activity_apply"));
        };
        applied.clients_forgotten += forgotten.parse::<u64>().map_err(|_| unexpected("activity_apply"))?;
        for [number, word] in said.as_chunks::<2>().0 {
            let position = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let task = position.and_then(|position| self.tasks.get(position));
            let (task, _) = task.ok_or_else(|| unexpected("activity_apply"))?;
            let is_refused = || applied.refused.last().is_some_and(|refused| refused.user == task.user);
            match word.as_str() {
                "new" => new.push(task.user),
                // A user with very many changes is told of in more than one call.
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
