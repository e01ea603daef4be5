//! Removes expired reports of the users that are due (A4).
//!
//! Users are read again, so that members of other programs are found too, and what another program removed is noticed.

use domain::{Passkey, UnixTime};
use keyspace::{FenceError, read_reply};
use redis::{Cmd, Pipeline};

use super::writer::{Loaded, Writer};
use super::writes::Writes;
use super::{RedisActivity, UserKeys};
use crate::activity::settings::Window;
use crate::activity::store::{REMOVE_MAX, Swept};

/// Users read and written at once.
const USERS_AT_ONCE: usize = 50;

/// The index after a sweep of some users.
#[derive(Default)]
struct NextChecks {
    later: Vec<(UnixTime, String)>,
    /// Nothing is stored of these, or they are not passkeys.
    removed: Vec<String>,
}

impl RedisActivity {
    pub(super) async fn try_sweep(
        &self,
        writer: &mut Writer,
        users_max: usize,
        window: &Window,
    ) -> Result<Swept, FenceError> {
        let mut range = Pipeline::new();
        range.cmd("ZRANGEBYSCORE").arg(self.names.users_active()).arg("-inf").arg(window.now.0);
        range.arg("LIMIT").arg(0).arg(users_max);
        let replies = self.session(writer).await?.read(&range).await?;
        let due: Vec<String> = match replies.into_iter().next() {
            Some(reply) => read_reply(reply)?,
            None => Vec::new(),
        };
        let mut swept = Swept { is_behind: due.len() >= users_max, ..Swept::default() };
        for users in due.chunks(USERS_AT_ONCE) {
            self.sweep_some(writer, users, window, &mut swept).await?;
        }
        Ok(swept)
    }

    async fn sweep_some(
        &self,
        writer: &mut Writer,
        users: &[String],
        window: &Window,
        swept: &mut Swept,
    ) -> Result<(), FenceError> {
        let passkeys: Vec<Passkey> = users.iter().filter_map(|user| user.parse().ok()).collect();
        let mut next = NextChecks::default();
        next.removed.extend(users.iter().filter(|user| user.parse::<Passkey>().is_err()).cloned());
        let (mut commands, mut kept) = (Vec::new(), Vec::new());
        let loaded = self.load(writer, &passkeys).await?;
        for (passkey, loaded) in passkeys.into_iter().zip(loaded) {
            writer.forget(&passkey);
            swept.users += 1;
            let mut loaded = match loaded {
                Ok(loaded) => loaded,
                Err(key) => {
                    tracing::warn!(
                        key,
                        "cannot sweep the activity of a user: the key holds another type of value; rename or remove it"
                    );
                    swept.damaged += 1;
                    next.later.push((window.now + window.silence.usual(), passkey.to_string()));
                    continue;
                }
            };
            let (writes, removed) = expire(&mut loaded, window.cutoff());
            swept.torrents += removed as u64;
            swept.is_behind |= removed >= REMOVE_MAX;
            writes.push_commands(&UserKeys::of(&self.names, &passkey), &mut commands);
            match due_of(&loaded) {
                Some(due) => next.later.push((due + window.silence.usual(), passkey.to_string())),
                None => next.removed.push(passkey.to_string()),
            }
            kept.push((passkey, loaded.torrents));
        }
        for reply in self.session(writer).await?.write(commands).await? {
            // A key that another program has replaced since it was read: the next sweep reports it.
            let _ = read_reply::<i64>(reply);
        }
        self.write_index(writer, next.commands(self.names.users_active())).await?;
        // A user without torrents is read again, and added to the index, by its next announce.
        let kept = kept.into_iter().filter(|(_, torrents)| !torrents.is_empty());
        kept.for_each(|(passkey, torrents)| writer.put(passkey, torrents));
        Ok(())
    }
}

impl NextChecks {
    fn commands(&self, index: &str) -> Vec<Cmd> {
        let mut commands = Vec::new();
        if !self.later.is_empty() {
            let mut command = redis::cmd("ZADD");
            command.arg(index);
            for (at, user) in &self.later {
                command.arg(at.0).arg(user);
            }
            commands.push(command);
        }
        if !self.removed.is_empty() {
            let mut command = redis::cmd("ZREM");
            command.arg(index).arg(&self.removed);
            commands.push(command);
        }
        commands
    }
}

/// Removes expired reports and members. Returns their number of torrents.
fn expire(loaded: &mut Loaded, cutoff: UnixTime) -> (Writes, usize) {
    let mut writes = Writes::default();
    let mut removed = loaded.torrents.expire(cutoff, REMOVE_MAX, |info_hash, before, record| {
        writes.put(info_hash, before, record);
    });
    loaded.strays.retain(|(state, member, at)| {
        let is_expired = *at <= cutoff && removed < REMOVE_MAX;
        if is_expired {
            writes.remove_member(*state, member.clone());
            removed += 1;
        }
        !is_expired
    });
    (writes, removed)
}

/// The lowest cutoff at which something expires.
fn due_of(loaded: &Loaded) -> Option<UnixTime> {
    loaded.strays.iter().map(|(_, _, at)| *at).chain(loaded.torrents.due()).min()
}
