//! Whose turn it is: of many gateways on one database, one tells the site who comes and goes, and one shortens the
//! history.
//!
//! # Guarantees
//!
//! - A gateway that is alone has every turn, always, and pays nothing for it.
//! - Otherwise a turn is a lease in Redis: nobody else has it while we do. Who ends gives it back at once; after a crash
//!   it is free after its length.
//! - While Redis cannot be asked nobody begins a turn, and whoever has one loses it before another may begin it.
//!
//! # Deliberately absent
//!
//! A promise that what was begun in a turn ends within it: what is done in a turn bears being done twice.

use std::time::Duration;

use keyspace::{Lease, Redis};
use tokio::sync::watch;

/// A lease is renewed so often in its length.
const RENEWALS: u32 = 5;

/// Something that one gateway does at a time.
#[derive(Debug, Default)]
pub struct Turn {
    /// None for who is alone.
    lease: Option<Lease>,
}

impl Turn {
    /// The turn of a gateway that is alone.
    pub fn alone() -> Turn {
        Turn::default()
    }

    /// A turn that gateways on the same Redis take. `holder` names this process, and no other that ever was.
    pub fn among_many(redis: Redis, key: &str, holder: &str, length: Duration) -> Turn {
        Turn { lease: Some(Lease::new(redis, key.to_owned(), holder.to_owned(), length)) }
    }

    /// Whether nobody else takes it.
    pub fn is_alone(&self) -> bool {
        self.lease.is_none()
    }

    /// Whether it is surely ours right now.
    pub fn is_ours(&self) -> bool {
        self.lease.as_ref().is_none_or(Lease::is_held)
    }

    /// How often to ask for it again.
    pub(crate) fn renewal(&self) -> Duration {
        // Nobody takes it from who is alone.
        self.lease.as_ref().map_or(Duration::from_secs(3600), |lease| lease.length() / RENEWALS)
    }

    /// Takes it, or makes it last longer. True if it is ours.
    pub async fn take(&self) -> bool {
        let Some(lease) = &self.lease else { return true };
        match lease.take().await {
            Ok(is_ours) => is_ours,
            Err(trouble) => {
                tracing::debug!(%trouble, "whose turn it is cannot be asked");
                lease.is_held()
            }
        }
    }

    /// Gives it back.
    pub async fn give_back(&self) {
        let Some(lease) = &self.lease else { return };
        if let Err(trouble) = lease.release().await {
            tracing::debug!(%trouble, "a turn could not be given back; it ends by itself");
        }
    }

    /// Waits until it is ours; false if it is to end before.
    pub(crate) async fn wait(&self, stopped: &mut watch::Receiver<bool>) -> bool {
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return false,
                is_ours = self.take() => {
                    if is_ours {
                        return true;
                    }
                }
            }
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return false,
                () = tokio::time::sleep(self.renewal()) => {}
            }
        }
    }
}
