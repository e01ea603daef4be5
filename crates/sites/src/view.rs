//! The view of the journal: entries tell which rows of the site have to be compared.
//!
//! Entries are acknowledged as soon as they are staged: amounts come from the ledger, and what a crash loses of the stage is
//! found again at the start (see [`crate::writer`]). So the site's database never holds back the journal.

use std::sync::Arc;

use async_trait::async_trait;
use journal::{Batch, Rejected, View, ViewError};
use ledger::Directory;

use crate::stage::Stage;

/// Consumer group of the view.
pub const GROUP: &str = "sites";

pub struct SitesView {
    stage: Arc<Stage>,
    directory: Arc<dyn Directory>,
}

impl SitesView {
    pub fn new(stage: Arc<Stage>, directory: Arc<dyn Directory>) -> SitesView {
        SitesView { stage, directory }
    }
}

#[async_trait]
impl View for SitesView {
    fn name(&self) -> &'static str {
        GROUP
    }

    /// Rejects nothing: an entry without user or torrent is rejected by the ledger, which credits nothing for it.
    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        self.stage.add_delivered(batch.arrivals, &*self.directory);
        Ok(Vec::new())
    }
}
