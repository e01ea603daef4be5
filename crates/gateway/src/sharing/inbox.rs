//! What other gateways tell: the task that reads the inbox.

use std::sync::Arc;

use register::Heard;

use crate::hub::Hub;

/// The task.
pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sharing) = &hub.outside.sharing else { return };
    let mut inbox = sharing.register.inbox();
    loop {
        match inbox.next().await {
            Heard::Record(record) => {
                let now = hub.now();
                let after = hub.shard(record.user).hear(now, *record, &hub.outside);
                hub.finish(after);
            }
            Heard::Message(message) => hub.hear_message(message),
            Heard::Gap => {
                hub.outside.counters.sharing.gaps.increment();
                hub.ask_all_again();
                hub.hear_gap();
            }
        }
    }
}
