//! The sets of what is due: who is at which node, shard by shard, and when their part must have been renewed.
//!
//! A person is put into a set before the record says so, and taken out after everybody was told that it does not any
//! more: whoever dies in between leaves what the owner of the shard finds. A score tells whether somebody was put in
//! again meanwhile, so nobody takes out what another has just put in.

use std::collections::HashMap;
use std::time::Duration;

use domain::UserId;
use keyspace::{Reply, Trouble, read_reply, scripts};
use redis::{Cmd, Pipeline};

use crate::settings::ms;

/// A set outlives the longest deadline in it, if nobody is left to clear it up.
const KEEP: Duration = Duration::from_secs(2 * 24 * 3600);

/// Words about who is due, set by set.
#[derive(Default)]
pub(crate) struct Words {
    sets: Vec<(String, Vec<Word>)>,
    places: HashMap<String, usize>,
}

struct Word {
    is_add: bool,
    user: UserId,
    value: String,
}

/// Where a word stands: its set, and its place there.
pub(crate) type At = (usize, usize);

impl Words {
    /// Somebody is due in so long.
    pub(crate) fn add(&mut self, set: String, user: UserId, remaining: Duration) -> At {
        self.push(set, Word { is_add: true, user, value: ms(remaining).to_string() })
    }

    /// Somebody is not due any more, unless they were put in again.
    pub(crate) fn remove(&mut self, set: String, user: UserId, score: &str) -> At {
        self.push(set, Word { is_add: false, user, value: score.to_owned() })
    }

    fn push(&mut self, set: String, word: Word) -> At {
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

fn command(set: &str, words: &[Word]) -> Cmd {
    let mut call = scripts::PRESENCE_DUE.call(&[set]);
    call.arg(ms(KEEP));
    for Word { is_add, user, value } in words {
        call.arg(if *is_add { "add" } else { "remove" }).arg(user.get()).arg(value);
    }
    call
}

/// The scores that were set, by the place of the word.
pub(crate) struct Scores(Vec<Result<Vec<String>, Trouble>>);

impl Scores {
    pub(crate) fn read(replies: impl Iterator<Item = Reply>) -> Scores {
        Scores(replies.map(read_reply).collect())
    }

    pub(crate) fn get(&self, (set, place): At) -> Result<&str, Trouble> {
        match self.0.get(set) {
            Some(Ok(scores)) => scores.get(place).map(String::as_str).ok_or_else(crate::reply::unexpected),
            Some(Err(trouble)) => Err(trouble.clone()),
            None => Err(crate::reply::unexpected()),
        }
    }
}
