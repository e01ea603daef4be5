//! Changes that are recorded in the audit trail: one call around each.
//!
//! The trail is opened first, so that a trail that cannot be written stops the change. The change runs. What became of it
//! is recorded, also a failure. Only then does the command tell of it.

use std::os::unix::fs::MetadataExt;

use access::Audit;
use access::audit::{Record, Subject, actor_of_command};
use anyhow::{Context, anyhow};

use super::CommandContext;
use crate::wiring::stores;

impl CommandContext {
    /// Opens the audit trail; fails if it cannot be written.
    pub fn open_audit(&self) -> anyhow::Result<Audit> {
        Ok(Audit::open(self.config.audit_settings(&self.data), stores::system_clock())?)
    }

    /// Makes a change and records how it ended. `tell` adds what is known only afterwards.
    pub async fn audited<T, E: Into<anyhow::Error>>(
        &self,
        record: Record,
        change: impl Future<Output = Result<T, E>>,
        tell: impl FnOnce(Record, &T) -> Record,
    ) -> anyhow::Result<T> {
        let audit = self.open_audit().context("nothing was changed, since it could not be recorded")?;
        match change.await.map_err(Into::into) {
            Ok(done) => {
                let written = audit.record(tell(record, &done)).await;
                written.context("the change was made, but it could not be recorded")?;
                Ok(done)
            }
            Err(error) => {
                let reason = crate::one_line(&error);
                match audit.record(record.failed(&reason)).await {
                    Ok(_) => Err(error),
                    Err(unwritten) => Err(anyhow!("{reason}; nor could that be recorded: {unwritten}")),
                }
            }
        }
    }
}

/// A record by whoever runs this command.
pub fn record(action: &'static str, subject: Subject) -> Record {
    Record::ok(action, actor_of_command(&system_user()), subject)
}

/// The name behind sudo, if there is one; then the name of the session; then the number of the account. Whoever may run
/// commands can set the first two: they are for people who work together, not proof against them.
fn system_user() -> String {
    let named = ["SUDO_USER", "USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let account = || std::fs::metadata("/proc/self").map(|process| format!("uid {}", process.uid()));
    named
        .into_iter()
        .find(|name| !name.is_empty())
        .or_else(|| account().ok())
        .unwrap_or_else(|| "unknown".to_owned())
}
