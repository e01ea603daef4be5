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

use presence::Moment;
use register::Trouble;

use super::Sharing;
use crate::hub::Hub;

/// A lease lasts as long as so many renewals.
const RENEWALS_MAX: u128 = 5;

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
                // The list of gateways may have forgotten, in a failover, what was done because of it.
                if sharing.is_refused.load(Ordering::Acquire) {
                    self.join_anew(sharing, Moment(sharing.gap_at_ms.load(Ordering::Relaxed))).await;
                }
            }
            Ok(_) => self.join_anew(sharing, sharing.contact_at()).await,
            Err(error) => self.is_out_of_contact(sharing, &error),
        }
    }

    fn is_in_contact(&self, sharing: &Sharing, at: Moment) {
        let before_ms = sharing.contact_at_ms.swap(at.0, Ordering::Relaxed);
        if u128::from(at.0.saturating_sub(before_ms)) > sharing.settings.renew.as_millis() * RENEWALS_MAX {
            sharing.gap_at_ms.store(before_ms, Ordering::Relaxed);
        }
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
    async fn join_anew(&self, sharing: &Sharing, lost_at: Moment) {
        // People are published all the while: nobody under the new name who was not heard.
        sharing.heard_since_ms.fetch_max(lost_at.0, Ordering::AcqRel);
        if let Err(error) = sharing.register.rejoin().await {
            return self.is_out_of_contact(sharing, &error);
        }
        tracing::warn!("this gateway was taken for dead, and has joined the register anew");
        self.outside.counters.sharing.rejoins.increment();
        sharing.is_refused.store(false, Ordering::Release);
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
