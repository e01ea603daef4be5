//! Looks at people whom nobody here watches: one question to the register, nothing is kept.

use domain::UserId;
use hashbrown::HashMap;
use presence::{Roster, View};
use register::Record;

use super::Sharing;
use super::hearing::{elsewhere, lapse, remotes};
use crate::hub::Hub;

/// People in one question.
const BATCH_MAX: usize = 1_000;

impl Hub {
    /// What others may see of these people, of whom the register knows something. None of them where it does not answer
    /// in time: then what is written of them has to do.
    pub(crate) async fn look_elsewhere(
        &self,
        users: &[UserId],
    ) -> HashMap<UserId, View, foldhash::fast::RandomState> {
        let mut views = HashMap::default();
        let Some(sharing) = &self.outside.sharing else { return views };
        for batch in users.chunks(BATCH_MAX) {
            let asked = sharing.register.read(batch);
            let Ok(records) = tokio::time::timeout(sharing.settings.patience, asked).await else {
                self.outside.counters.sharing.unanswered.increment();
                break;
            };
            if records.iter().any(Result::is_err) {
                self.outside.counters.sharing.unanswered.increment();
            }
            for record in records.into_iter().flatten().flatten() {
                views.insert(record.user, self.view_of(sharing, &record));
            }
        }
        views
    }

    /// By the same rules as for those who are watched.
    fn view_of(&self, sharing: &Sharing, record: &Record) -> View {
        let now = self.now();
        let mut roster = Roster::new(self.policy(), now, 0);
        let mut remotes = remotes(now, record, &[], sharing);
        let has_lapsed = lapse(now, &mut remotes);
        roster.know(now, record.user, presence::LastKnown::default());
        let mut elsewhere = elsewhere(now, record, &remotes);
        if has_lapsed {
            elsewhere.wait_for_lost(roster.pending_end(now));
        }
        roster.hear_elsewhere(now, elsewhere, &mut Vec::new());
        roster.public_view(record.user)
    }
}
