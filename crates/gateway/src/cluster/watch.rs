//! Reads records, with or without watching the user from then on.

use std::time::Duration;

use domain::UserId;
use keyspace::{RedisError, Reply, scripts};

use super::deadlines::DeadlineUpdates;
use super::record::{Record, WatchReply};
use super::reply::ReplyReader;
use super::settings::ms;
use super::shards::shard_of;
use super::store::{BATCH_MAX, ClusterStore};

impl ClusterStore {
    /// Reads records. From then on this node receives changes, until the interest expires; watching again extends it.
    /// With each user the own version that is known here, or zero.
    pub async fn watch(&self, users: &[(UserId, u64)]) -> Vec<Result<WatchReply, RedisError>> {
        self.read_records(users, ms(self.settings.interest)).await
    }

    /// Reads records; none where there is none.
    pub async fn read(&self, users: &[UserId]) -> Vec<Result<Option<Record>, RedisError>> {
        let users: Vec<(UserId, u64)> = users.iter().map(|user| (*user, 0)).collect();
        let found = self.read_records(&users, 0).await;
        let record = |watched| match watched {
            WatchReply::Record(record) => Some(*record),
            WatchReply::Same { .. } | WatchReply::Unknown => None,
        };
        found.into_iter().map(|result| result.map(record)).collect()
    }

    async fn read_records(
        &self,
        users: &[(UserId, u64)],
        interest_ms: u64,
    ) -> Vec<Result<WatchReply, RedisError>> {
        let node = self.node();
        let mut found = Vec::with_capacity(users.len());
        self.counters.users_read.add(users.len() as u64);
        for batch in users.chunks(BATCH_MAX) {
            let mut pipeline = redis::pipe();
            for (user, known) in batch {
                let keys = self.keys.user(*user);
                let mut call = scripts::PRESENCE_WATCH.call(&[&keys.record, &keys.watchers]);
                call.arg(node.as_str()).arg(interest_ms).arg(known);
                pipeline.add_command(call);
            }
            let replies = self.send_all(&pipeline).await;
            let mut lost = DeadlineUpdates::default();
            for ((user, _), reply) in batch.iter().zip(replies) {
                found.push(self.parse_watch_reply(*user, reply, &mut lost));
            }
            let mut pipeline = redis::pipe();
            lost.write(&mut pipeline);
            // If this fails, the next reader finds it.
            self.send_all(&pipeline).await;
        }
        found
    }

    /// A user with an orphaned entry is added to the pending set: Redis lost the deadline.
    fn parse_watch_reply(
        &self,
        user: UserId,
        reply: Reply,
        lost: &mut DeadlineUpdates,
    ) -> Result<WatchReply, RedisError> {
        let mut reader = ReplyReader::default();
        let watched = reader.watch_reply(user, reply);
        self.counters.malformed.add(reader.malformed);
        if reader.lost > 0 {
            self.counters.found_lost.increment();
            lost.add(self.keys.due_pending(shard_of(user)), user, Duration::ZERO);
        }
        watched
    }
}
