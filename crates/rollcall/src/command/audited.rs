//! Audited changes.
//!
//! The trail is opened first, so that no change is made if it cannot be written. Success and failure are recorded
//! before the command prints its result.

use std::os::unix::fs::MetadataExt;

use admin::Audit;
use admin::audit::{Record, Subject, actor_of_command};
use anyhow::{Context, anyhow};

use super::CommandContext;
use crate::wiring::stores;

impl CommandContext {
    /// Fails if the audit trail cannot be written.
    pub fn open_audit(&self) -> anyhow::Result<Audit> {
        Ok(Audit::open(self.config.audit_settings(&self.data), stores::system_clock())?)
    }

    /// Makes a change and records its result. `details` adds fields that are known only afterwards.
    pub async fn audited<T, E: Into<anyhow::Error>>(
        &self,
        record: Record,
        change: impl Future<Output = Result<T, E>>,
        details: impl FnOnce(Record, &T) -> Record,
    ) -> anyhow::Result<T> {
        let audit =
            self.open_audit().context("nothing was changed, because the audit trail cannot be written")?;
        match change.await.map_err(Into::into) {
            Ok(done) => {
                let written = audit.record(details(record, &done)).await;
                written.context("the change was made, but not recorded in the audit trail")?;
                Ok(done)
            }
            Err(error) => {
                let reason = crate::one_line(&error);
                match audit.record(record.failed(&reason)).await {
                    Ok(_) => Err(error),
                    Err(audit_error) => {
                        Err(anyhow!("{reason}; and the failure could not be recorded: {audit_error}"))
                    }
                }
            }
        }
    }
}

/// By the system user who runs this command.
pub fn record(action: &'static str, subject: Subject) -> Record {
    Record::ok(action, actor_of_command(&system_user()), subject)
}

/// The user behind sudo, else of the session, else the uid. The first two can be set by the caller: they identify
/// colleagues, but prove nothing.
fn system_user() -> String {
    let named = ["SUDO_USER", "USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let account = || std::fs::metadata("/proc/self").map(|process| format!("uid {}", process.uid()));
    named
        .into_iter()
        .find(|name| !name.is_empty())
        .or_else(|| account().ok())
        .unwrap_or_else(|| "unknown".to_owned())
}
