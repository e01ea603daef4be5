//! Reads users that are not watched here: one read of the store, nothing is kept.

use crate::cluster::Record;
use domain::UserId;
use hashbrown::HashMap;
use presence::{PresenceTable, View};

use super::ClusterSync;
use super::receive::{remote_sessions, remotes, remove_expired};
use crate::hub::Hub;

const BATCH_MAX: usize = 1_000;

impl Hub {
    /// Public views of the users that have a record. Empty if the store does not answer in time: the caller falls
    /// back to the database.
    pub(crate) async fn lookup_remote(
        &self,
        users: &[UserId],
    ) -> HashMap<UserId, View, foldhash::fast::RandomState> {
        let mut views = HashMap::default();
        let Some(sync) = &self.context.sync else { return views };
        for batch in users.chunks(BATCH_MAX) {
            let asked = sync.store.read(batch);
            let Ok(records) = tokio::time::timeout(sync.settings.read_timeout, asked).await else {
                self.context.counters.sync.timeouts.increment();
                break;
            };
            if records.iter().any(Result::is_err) {
                self.context.counters.sync.timeouts.increment();
            }
            for record in records.into_iter().flatten().flatten() {
                views.insert(record.user, self.view_of(sync, &record));
            }
        }
        views
    }

    /// The same rules as for watched users.
    fn view_of(&self, sync: &ClusterSync, record: &Record) -> View {
        let now = self.now();
        let mut roster = PresenceTable::new(self.policy(), now, 0);
        let mut remotes = remotes(now, record, &[], sync);
        let has_expired = remove_expired(now, &mut remotes);
        roster.watch(now, record.user, presence::LastKnown::default());
        let mut elsewhere = remote_sessions(now, record, &remotes);
        if has_expired {
            elsewhere.wait_for_lost(roster.pending_until(now));
        }
        roster.set_remote(now, elsewhere, &mut Vec::new());
        roster.public_view(record.user)
    }
}
