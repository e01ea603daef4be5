//! The database: reachable, schema current, durable settings; and the SQLite files of the data folder.

use std::path::Path;

use database::{Inspection, Kind, Schema};
use domain::clock::{Clock, SystemClock};

use super::Target;
use super::clock;
use super::finding::Findings;

pub(super) async fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("database");
    let url = target.config.database_url(&target.data);
    let before_ms = SystemClock.now_ms();
    let looked = database::inspect(&url, schemas).await;
    let ours_ms = (before_ms, SystemClock.now_ms());
    match looked {
        Ok(Some(inspection)) => {
            judge(&mut findings, &inspection);
            if Kind::of(&url) != Some(Kind::Sqlite) {
                let theirs_ms = u64::try_from(inspection.now_ms).unwrap_or(0);
                clock::compare(&mut findings, "the database", theirs_ms, ours_ms);
            }
        }
        Ok(None) => findings
            .ok(format!("{} does not exist yet: the first start creates it", database::redacted(&url))),
        Err(error) => findings.problem(
            crate::one_line(&anyhow::Error::new(error)),
            "fix that, or correct database.url; then run rollcall doctor again",
        ),
    }
    if target.config.redis_settings().is_ok_and(|settings| settings.is_none()) {
        file(&mut findings, &target.data.join("journal.db"), journal::sqlite::schema()).await;
    }
    findings
}

fn schemas(kind: Kind) -> Vec<Schema> {
    let all = [access::MIGRATIONS, ledger::MIGRATIONS, sites::MIGRATIONS, friends::MIGRATIONS];
    all.into_iter().map(|migrations| migrations.schema(kind)).collect()
}

async fn file(findings: &mut Findings, path: &Path, schema: Schema) {
    match database::inspect_sqlite(path, &[schema]).await {
        Ok(Some(inspection)) => judge(findings, &inspection),
        Ok(None) => {}
        Err(error) => findings.problem(
            crate::one_line(&anyhow::Error::new(error)),
            format!("check its owner and its mode: ls -l {}*", path.display()),
        ),
    }
}

fn judge(findings: &mut Findings, inspection: &Inspection) {
    let Inspection { shown, version, .. } = inspection;
    for damage in &inspection.integrity_errors {
        findings.problem(
            format!("{shown} is damaged: {}", damage.replace('\n', " ")),
            format!(
                "stop the server and restore a backup, or recover what is left: sqlite3 {shown} .recover"
            ),
        );
    }
    for (name, value) in &inspection.settings {
        setting(findings, shown, name, value);
    }
    let is_older =
        |(schema, applied): &&(Schema, Option<i64>)| applied.is_some_and(|newest| newest < schema.newest);
    let is_newer =
        |(schema, applied): &&(Schema, Option<i64>)| applied.is_some_and(|newest| newest > schema.newest);
    let applied = &inspection.applied;
    if applied.iter().any(|entry| is_newer(&entry)) {
        findings.problem(
            format!("{shown} ({version}) was created by a newer rollcall"),
            "use that version or a newer one, or restore a backup from before",
        );
    } else if applied.iter().any(|entry| is_older(&entry)) {
        findings.warning(
            format!("{shown} ({version}) was created by an older rollcall; the next start migrates it"),
            "make a backup first; then restart the server",
        );
    } else if applied.iter().all(|(_, newest)| newest.is_none()) {
        findings.ok(format!("{shown} ({version}) is empty: the first start creates the tables"));
    } else {
        findings.ok(format!("{shown} ({version}) is reachable and its schema is current"));
    }
}

/// Settings that decide whether a commit survives a crash.
fn setting(findings: &mut Findings, shown: &str, name: &str, value: &str) {
    match (name, value) {
        // A new file has not been switched yet.
        ("journal_mode", mode) if mode != "wal" => findings.warning(
            format!("{shown} has the journal mode {mode}: readers and writers wait for each other"),
            "restart the server, which switches it to WAL; if it stays, the file system has no shared memory: move the folder",
        ),
        ("fsync", "off") => findings.problem(
            format!("{shown}: fsync = off: a crash of its machine can damage all data"),
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();",
        ),
        ("synchronous_commit", "off") => findings.warning(
            format!("{shown}: synchronous_commit = off: a crash can lose the last accounts"),
            "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();",
        ),
        ("innodb_flush_log_at_trx_commit", value) if value != "1" => findings.warning(
            format!(
                "{shown}: innodb_flush_log_at_trx_commit = {value}: a crash can lose the last second of accounts"
            ),
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1; and the same in my.cnf",
        ),
        _ => {}
    }
}
