//! State that no client sees, and failures, for tests.

use domain::UserId;
use parking_lot::Mutex;
use presence::Cause;

use super::Hub;
use super::shard::Shard;
use crate::cluster_sync::DirtyReason;

#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubSizes {
    /// Users with a connection or a watcher.
    pub users: usize,
    pub connections: usize,
    /// Users with a change that the cluster store has not answered to.
    pub unpublished: usize,
}

#[doc(hidden)]
impl Hub {
    pub fn sizes(&self) -> HubSizes {
        let unpublished = |shard: &Mutex<Shard>| {
            shard.lock().sync.as_ref().map_or(0, |sync| sync.state.unpublished_count())
        };
        HubSizes {
            users: self.users.shards().map(|shard| shard.lock().users.len()).sum(),
            connections: self.users.context.table.read().len(),
            unpublished: self.users.shards().map(unpublished).sum(),
        }
    }

    /// Ends the batch window.
    pub fn flush_rooms(&self) {
        self.users.rooms.flush();
    }

    /// Ends the tasks as a crash would: nothing is written, and other gateways are not notified.
    pub fn abort(&self) {
        self.tasks.abort();
    }

    /// As if entries of the inbox had been missed.
    pub fn receive_gap(&self) {
        if let Some(sync) = &self.sync {
            sync.receive_gap();
        }
    }

    /// As if a declaration of the user was published, and the reply was still on its way.
    pub fn withhold_publish_reply(&self, user: UserId) {
        let declared = Some(self.users.now());
        if let Some(sync) = &mut self.users.shard(user).sync {
            sync.state.mark_dirty(user, DirtyReason { cause: Cause::Declared, device: None, declared });
            sync.state.take_dirty(1);
        }
    }

    /// The reply arrives.
    pub fn deliver_publish_reply(&self, user: UserId) {
        let now = self.users.now();
        if let Some(sync) = &mut self.users.shard(user).sync {
            sync.state.finish_publish(user);
            sync.confirm_declaration(now, user);
        }
    }
}
