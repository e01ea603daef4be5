//! How far the mirror has applied the journal: a peer is overdue only if no unread entry may be its announce.

use std::sync::atomic::Ordering;

use domain::UnixTime;
use journal::Lane;

use crate::error::ViewsError;
use crate::redis_mirror::RedisMirror;

impl RedisMirror {
    pub(in crate::redis_mirror) fn record_applied(&self, ms: u64) {
        self.reaping.applied_ms.fetch_max(ms, Ordering::Relaxed);
    }

    /// Whether all entries up to this time have been applied. Reads the journal at most once, and only if the last
    /// applied entry is earlier.
    pub(super) async fn has_applied_until(
        &self,
        then: UnixTime,
        first_unapplied: &mut Option<u64>,
    ) -> Result<bool, ViewsError> {
        // Entry ids use the wall clock.
        let then_ms = u64::from(self.date_of(then).0) * 1000;
        if self.reaping.applied_ms.load(Ordering::Relaxed) > then_ms {
            return Ok(true);
        }
        let reached = match *first_unapplied {
            Some(reached) => reached,
            None => {
                let reached = self.first_unapplied_ms().await?;
                *first_unapplied = Some(reached);
                reached
            }
        };
        Ok(reached > then_ms)
    }

    /// Millisecond of the first entry that has not been applied; `u64::MAX` if there is none.
    async fn first_unapplied_ms(&self) -> Result<u64, ViewsError> {
        let journal = &self.parts.journal;
        let status = journal.status(Lane::Traffic).await?;
        let Some(group) = status.groups.iter().find(|group| group.name == self.settings.group) else {
            // Nothing has been read yet.
            return Ok(0);
        };
        if let Some(pending) = group.oldest_pending {
            return Ok(pending.ms);
        }
        if group.lag() == 0 {
            return Ok(u64::MAX);
        }
        let unread = journal.list(Lane::Traffic, group.last_delivered, 1).await?;
        Ok(unread.first().map_or(group.last_delivered.ms, |entry| entry.id.ms))
    }
}
