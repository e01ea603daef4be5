//! The standing of this gateway: renewed in time, and what follows when it was lost.
//!
//! # Guarantees
//!
//! - A gateway that was declared dead writes no more under its old name. It joins anew, and publishes only sessions that
//!   gave a sign of life since it was last known to be alive: the others may have gone elsewhere.
//! - After the register could not be reached, everybody is published and asked about again: what it holds may be old,
//!   or lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use register::Trouble;

use super::Sharing;
use crate::hub::Hub;

/// The task.
pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sharing) = &hub.outside.sharing else { return };
    loop {
        hub.renew(sharing).await;
        let every = sharing.settings.renew;
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = sharing.refused.notified() => {}
        }
    }
}

impl Hub {
    async fn renew(&self, sharing: &Sharing) {
        let before = self.now();
        let renewed = sharing.register.renew(&self.lease_info()).await;
        match renewed {
            Ok(standing) if standing.is_member => {
                self.is_in_contact(sharing, before);
                self.hear_nodes(&standing.nodes);
            }
            Ok(_) => self.join_anew(sharing).await,
            Err(error) => self.is_out_of_contact(sharing, &error),
        }
    }

    fn is_in_contact(&self, sharing: &Sharing, at: presence::Moment) {
        sharing.contact_at_ms.store(at.0, Ordering::Relaxed);
        if sharing.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the register answers again; everybody is told of and asked about again");
            self.tell_all_again();
            self.ask_all_again();
        }
    }

    fn is_out_of_contact(&self, sharing: &Sharing, error: &Trouble) {
        if !sharing.is_away.swap(true, Ordering::Relaxed) {
            self.outside.counters.sharing.outages.increment();
            tracing::warn!(%error, "the register cannot be reached: who is here is shown to those here only");
        }
    }

    /// This gateway was declared dead, and lives.
    async fn join_anew(&self, sharing: &Sharing) {
        let lost_at = sharing.contact_at();
        if let Err(error) = sharing.register.rejoin().await {
            return self.is_out_of_contact(sharing, &error);
        }
        tracing::warn!("this gateway was taken for dead, and has joined the register anew");
        self.outside.counters.sharing.rejoins.increment();
        sharing.heard_since_ms.store(lost_at.0, Ordering::Release);
        sharing.names.write().push(sharing.register.node());
        sharing.is_away.store(false, Ordering::Relaxed);
        sharing.contact_at_ms.store(self.now().0, Ordering::Relaxed);
        self.tell_all_again();
        self.ask_all_again();
        sharing.marked.notify_one();
    }

    /// Whether no other gateway was there when this one came. False if that cannot be found out.
    pub(crate) async fn was_alone(&self, sharing: &Sharing) -> bool {
        match sharing.register.renew(&self.lease_info()).await {
            Ok(standing) => standing.was_alone,
            Err(error) => {
                self.is_out_of_contact(sharing, &error);
                false
            }
        }
    }
}
