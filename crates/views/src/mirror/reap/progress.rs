//! How far into the journal the mirror has got: nobody is silent peer_keys word is still on its way.

use std::sync::atomic::Ordering;

use domain::UnixTime;
use journal::Lane;

use crate::error::ViewsError;
use crate::mirror::Mirror;

impl Mirror {
    /// Notes that everything up to this millisecond was applied.
    pub(in crate::mirror) fn record_applied(&self, ms: u64) {
        self.reaping.applied_ms.fetch_max(ms, Ordering::Relaxed);
    }

    /// Whether everything that was said until then has been applied. The journal is asked once at most, and only if the
    /// last entry was earlier.
    pub(super) async fn has_applied_until(
        &self,
        then: UnixTime,
        frontier: &mut Option<u64>,
    ) -> Result<bool, ViewsError> {
        // Places in the journal go by the wall clock.
        let then_ms = u64::from(self.date_of(then).0) * 1000;
        if self.reaping.applied_ms.load(Ordering::Relaxed) > then_ms {
            return Ok(true);
        }
        let reached = match *frontier {
            Some(reached) => reached,
            None => {
                let reached = self.first_unapplied_ms().await?;
                *frontier = Some(reached);
                reached
            }
        };
        Ok(reached > then_ms)
    }

    /// The millisecond of the first entry that is yet to be applied; the end of time if there is none.
    async fn first_unapplied_ms(&self) -> Result<u64, ViewsError> {
        let journal = &self.parts.journal;
        let status = journal.status(Lane::Traffic).await?;
        let Some(group) = status.groups.iter().find(|group| group.name == self.settings.group) else {
            // Everything is still to be read.
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
