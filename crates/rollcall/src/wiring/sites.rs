//! The tables of an existing site: reader, writer and view.

use std::sync::Arc;

use access::Store;
use anyhow::Context;
use database::Database;
use journal::{Journal, View};
use ledger::{Ledger, LogRisks};
use sites::{
    Profile, Reader, ReaderCounters, ReaderParts, SitesView, Stage, Writer, WriterCounters, WriterParts,
};
use tokio::sync::watch;

use super::resolver::Resolver;
use super::stores::{self, system_clock};
use crate::config::{Config, SiteWrite};

pub struct SitesInputs<'a> {
    pub config: &'a Config,
    pub journal: &'a Arc<dyn Journal>,
    /// Of the ledger.
    pub database: &'a Database,
    /// Of this process, if it has one.
    pub ledger: Option<&'a Arc<Ledger>>,
    pub resolver: &'a Resolver,
    pub store: &'a Store,
}

#[derive(Clone)]
pub struct SitesCounters {
    pub reader: Arc<ReaderCounters>,
    /// None if nothing is written.
    pub writer: Option<Arc<WriterCounters>>,
}

pub struct OpenSites {
    reader: Reader,
    writer: Option<(Writer, Arc<dyn View>)>,
}

impl OpenSites {
    /// None without a profile. The site's database need not be reachable yet.
    pub async fn open(inputs: SitesInputs<'_>) -> anyhow::Result<Option<OpenSites>> {
        let config = inputs.config;
        let Some((name, url)) = config.site_tables() else { return Ok(None) };
        let profile = Arc::new(Profile::load(name).context("sites.profile")?);
        let clock = system_clock();
        let directory = Arc::new(inputs.resolver.clone());
        let ledger = match inputs.ledger {
            Some(ledger) => Arc::clone(ledger),
            None => {
                let directory = Arc::clone(&directory) as Arc<dyn ledger::Directory>;
                let database = inputs.database.clone();
                let opened = stores::open_ledger(config, database, directory, Arc::new(LogRisks)).await;
                Arc::new(opened.context("cannot open the ledger for the site's tables")?)
            }
        };
        let reader = Reader::new(ReaderParts {
            profile: Arc::clone(&profile),
            url: url.to_owned(),
            store: inputs.store.clone(),
            ledger: Arc::clone(&ledger),
            clock: Arc::clone(&clock),
        });
        if config.sites.write == SiteWrite::Off || profile.reads_only() {
            return Ok(Some(OpenSites { reader, writer: None }));
        }
        let database = inputs.store.database();
        database::migrate(database, sites::MIGRATIONS).await?;
        let stage = Arc::new(Stage::default());
        let view = SitesView::new(Arc::clone(&stage), Arc::clone(&directory) as Arc<dyn ledger::Directory>);
        let writer = Writer::new(WriterParts {
            profile,
            url: url.to_owned(),
            ledger_number: sites::ledger_number(database).await?,
            ledger,
            ledger_group: config.ledger.group.as_str().to_owned(),
            journal: Arc::clone(inputs.journal),
            stage,
            directory,
            clock,
            silence: config.silence_limit().usual(),
        });
        Ok(Some(OpenSites { reader, writer: Some((writer, Arc::new(view))) }))
    }

    pub fn counters(&self) -> SitesCounters {
        SitesCounters {
            reader: self.reader.counters(),
            writer: self.writer.as_ref().map(|(writer, _)| writer.counters()),
        }
    }

    /// None if nothing is written.
    pub fn view(&self) -> Option<Arc<dyn View>> {
        self.writer.as_ref().map(|(_, view)| Arc::clone(view))
    }

    /// Runs until `stopped` is true.
    pub async fn run(self, stopped: watch::Receiver<bool>) {
        let reading = self.reader.run(turned(stopped.clone()));
        let writing = async {
            if let Some((writer, _)) = self.writer {
                writer.run(turned(stopped)).await;
            }
        };
        tokio::join!(reading, writing);
    }
}

async fn turned(mut stopped: watch::Receiver<bool>) {
    // The sender is dropped only at shutdown.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
