//! The task that reads this gateway's inbox.

use std::sync::Arc;

use crate::cluster::InboxEvent;

use crate::hub::Hub;

pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sync) = &hub.context.sync else { return };
    let mut inbox = sync.store.inbox();
    loop {
        match inbox.next().await {
            InboxEvent::Record(record) => {
                let now = hub.now();
                let after = hub.shard(record.user).apply_record(now, *record, &hub.context);
                hub.finish(after);
            }
            InboxEvent::Message(message) => hub.receive_message(message),
            InboxEvent::Gap => {
                hub.context.counters.sync.gaps.increment();
                hub.recheck_all();
                hub.receive_gap();
            }
        }
    }
}
