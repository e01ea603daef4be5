//! `rollcall serve`

use std::path::PathBuf;

use access::Store;

use crate::config::Config;
use crate::logging;

/// Starts the server: logs, then the database, then the listeners.
pub async fn run(config: Config, data: PathBuf) -> anyhow::Result<()> {
    let _log_control = logging::init(&config.log)?;
    let store = Store::open(&config.database_url(&data)).await?;
    tracing::info!(database = %store.path().display(), "database open");
    store.close().await;
    anyhow::bail!("this build has no listeners: only the other commands work")
}
