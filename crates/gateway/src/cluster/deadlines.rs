//! Sorted sets of deadlines: which users have an entry of which node, by shard, and when the entry expires.
//!
//! A user is added to a set before the record is written, and removed after all watchers were notified of the
//! removal. A node that dies in between leaves a member that the owner of the shard finds. The score shows whether
//! the user was added again meanwhile, so a removal never removes a newer member.

use std::collections::HashMap;
use std::time::Duration;

use domain::UserId;
use keyspace::{RedisError, Reply, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::settings::ms;

/// A set outlives its longest deadline, if no node is left to clean it up.
const KEEP: Duration = Duration::from_secs(2 * 24 * 3600);

/// Additions and removals, grouped by set.
#[derive(Default)]
pub(crate) struct DeadlineUpdates {
    sets: Vec<(String, Vec<DeadlineUpdate>)>,
    places: HashMap<String, usize>,
}

struct DeadlineUpdate {
    change: &'static str,
    user: UserId,
    value: String,
}

/// Position of an update: the index of its set, and the index within the set.
pub(crate) type UpdateIndex = (usize, usize);

impl DeadlineUpdates {
    /// The user is due after `remaining`.
    pub(crate) fn add(&mut self, set: String, user: UserId, remaining: Duration) -> UpdateIndex {
        self.push(set, DeadlineUpdate { change: "add", user, value: ms(remaining).to_string() })
    }

    /// The user is due after `remaining`, unless the set has lost them.
    pub(crate) fn put_off(&mut self, set: String, user: UserId, remaining: Duration) {
        self.push(set, DeadlineUpdate { change: "move", user, value: ms(remaining).to_string() });
    }

    /// Removes the user, unless they were added again since.
    pub(crate) fn remove(&mut self, set: String, user: UserId, score: &str) -> UpdateIndex {
        self.push(set, DeadlineUpdate { change: "remove", user, value: score.to_owned() })
    }

    fn push(&mut self, set: String, word: DeadlineUpdate) -> UpdateIndex {
        let place = *self.places.entry(set.clone()).or_insert_with(|| {
            self.sets.push((set, Vec::new()));
            self.sets.len() - 1
        });
        let words = &mut self.sets[place].1;
        words.push(word);
        (place, words.len() - 1)
    }

    /// Adds a command for each set. Returns how many.
    pub(crate) fn write(&self, pipeline: &mut Pipeline) -> usize {
        for (set, words) in &self.sets {
            pipeline.add_command(command(set, words));
        }
        self.sets.len()
    }
}

fn command(set: &str, words: &[DeadlineUpdate]) -> Cmd {
    let mut call = scripts::PRESENCE_DUE_UPDATE.call(&[set]);
    call.arg(ms(KEEP));
    for DeadlineUpdate { change, user, value } in words {
        call.arg(*change).arg(user.get()).arg(value);
    }
    call
}

/// The scores that were set, by [`UpdateIndex`].
pub(crate) struct DeadlineScores(Vec<Result<Vec<String>, RedisError>>);

impl DeadlineScores {
    pub(crate) fn read(replies: impl Iterator<Item = Reply>) -> DeadlineScores {
        DeadlineScores(replies.map(read_reply).collect())
    }

    pub(crate) fn get(&self, (set, place): UpdateIndex) -> Result<&str, RedisError> {
        match self.0.get(set) {
            Some(Ok(scores)) => scores.get(place).map(String::as_str).ok_or_else(super::reply::unexpected),
            Some(Err(error)) => Err(error.clone()),
            None => Err(super::reply::unexpected()),
        }
    }
}
