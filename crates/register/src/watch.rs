//! Reading what is known of people, with or without interest in what happens to them from then on.

use std::time::Duration;

use domain::UserId;
use keyspace::{Reply, Trouble, scripts};

use crate::due::Words;
use crate::record::{Record, Watched};
use crate::register::{BATCH_MAX, Register};
use crate::reply::Reader;
use crate::settings::ms;
use crate::shards::shard_of;

impl Register {
    /// What is known of these people. From then on this node is told what changes, for as long as its interest lasts;
    /// watching again prolongs it. With each person the own version that is known here; zero if none is.
    pub async fn watch(&self, users: &[(UserId, u64)]) -> Vec<Result<Watched, Trouble>> {
        self.ask(users, ms(self.settings.interest)).await
    }

    /// What is known of these people; none where there is no record.
    pub async fn read(&self, users: &[UserId]) -> Vec<Result<Option<Record>, Trouble>> {
        let users: Vec<(UserId, u64)> = users.iter().map(|user| (*user, 0)).collect();
        let found = self.ask(&users, 0).await;
        let record = |watched| match watched {
            Watched::Record(record) => Some(*record),
            Watched::Same { .. } | Watched::Unknown => None,
        };
        found.into_iter().map(|result| result.map(record)).collect()
    }

    async fn ask(&self, users: &[(UserId, u64)], interest_ms: u64) -> Vec<Result<Watched, Trouble>> {
        let node = self.node();
        let mut found = Vec::with_capacity(users.len());
        self.counters.asked.add(users.len() as u64);
        for batch in users.chunks(BATCH_MAX) {
            let mut pipeline = redis::pipe();
            for (user, known) in batch {
                let keys = self.keys.person(*user);
                let mut call = scripts::PRESENCE_WATCH.call(&[&keys.record, &keys.watchers]);
                call.arg(node.as_str()).arg(interest_ms).arg(known);
                pipeline.add_command(call);
            }
            let replies = self.send_all(&pipeline).await;
            let mut lost = Words::default();
            for ((user, _), reply) in batch.iter().zip(replies) {
                found.push(self.read_watched(*user, reply, &mut lost));
            }
            let mut pipeline = redis::pipe();
            lost.write(&mut pipeline);
            // What fails here is found by the next one who asks.
            self.send_all(&pipeline).await;
        }
        found
    }

    /// Reads an answer. Who has a part that should have been cleared up long ago is due, and is not noted as that any
    /// more: Redis lost it.
    fn read_watched(&self, user: UserId, reply: Reply, lost: &mut Words) -> Result<Watched, Trouble> {
        let mut reader = Reader::default();
        let watched = reader.watched(user, reply);
        self.counters.malformed.add(reader.malformed);
        if reader.lost > 0 {
            self.counters.found_lost.increment();
            lost.add(self.keys.due_pending(shard_of(user)), user, Duration::ZERO);
        }
        watched
    }
}
