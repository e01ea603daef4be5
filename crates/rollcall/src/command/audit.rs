//! `rollcall audit …`

use std::path::PathBuf;
use std::process::ExitCode;

use admin::audit::verify::verify_trail;
use admin::audit::{AuditQuery, Entry, LineHash, Verdict, read};
use anyhow::ensure;
use serde_json::{Value as Json, json};

use super::CommandContext;
use crate::cli::audit::{AuditCommand, AuditListArgs};
use crate::output::{Fields, Table};

/// The exit code of `verify` is its result.
pub fn run(context: &CommandContext, command: AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::List(args) => {
            list(context, args)?;
            Ok(ExitCode::SUCCESS)
        }
        AuditCommand::Verify { file, expect_last } => verify(context, file, expect_last),
    }
}

fn list(context: &CommandContext, args: AuditListArgs) -> anyhow::Result<()> {
    let path = context.config.audit_settings(&context.data).file;
    let limit = args.limit as usize;
    let mut entries: Vec<Entry> = Vec::new();
    let mut next = args.before;
    loop {
        let query = AuditQuery { before: next, limit: limit - entries.len(), action: args.action.clone() };
        let page = read::newest(&path, &query)?;
        entries.extend(page.entries);
        next = page.next;
        if next.is_none() || entries.len() >= limit {
            break;
        }
    }
    let mut table = Table::new(&["seq", "at", "actor", "action", "subject", "result", "details"]);
    for entry in &entries {
        table.add(vec![
            entry.seq.to_string(),
            entry.at.clone(),
            entry.actor_id.clone(),
            entry.action.clone(),
            format!("{} {}", entry.subject_type, entry.subject_id),
            entry.result.as_str().to_owned(),
            details_of(entry),
        ]);
    }
    Ok(context.output.show(&json!({ "entries": entries, "next": next }), &table)?)
}

fn details_of(entry: &Entry) -> String {
    let details = entry.details.iter().map(|(name, value)| match value {
        Json::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    details.collect::<Vec<_>>().join(" ")
}

fn verify(
    context: &CommandContext,
    file: Option<PathBuf>,
    expect_last: Option<LineHash>,
) -> anyhow::Result<ExitCode> {
    if let Some(file) = &file {
        ensure!(file.exists(), "{} does not exist", file.display());
    }
    let path = file.unwrap_or_else(|| context.config.audit_settings(&context.data).file);
    let verdict = verify_trail(&path, expect_last.as_ref())?;
    context.output.show(&json_of(&verdict), &text_of(&verdict))?;
    Ok(if verdict.fault.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json_of(verdict: &Verdict) -> Json {
    let last = verdict.last.as_ref();
    let fault = verdict.fault.as_ref();
    json!({
        "valid": verdict.fault.is_none(),
        "records": verdict.records,
        "torn": verdict.torn,
        "last": last.map(|last| json!({ "seq": last.seq, "at": last.at, "hash": last.hash })),
        "fault": fault.map(|fault| json!({ "line": fault.line, "reason": fault.reason })),
    })
}

fn text_of(verdict: &Verdict) -> String {
    let mut fields = Fields::default().with("records", verdict.records);
    if verdict.torn > 0 {
        fields = fields
            .with("half-written lines", format!("{}, each reported by the record after it", verdict.torn));
    }
    if let Some(last) = &verdict.last {
        fields = fields.with("last", format!("{} at {}", last.seq, last.at)).with("last hash", &last.hash);
    }
    let answer = match &verdict.fault {
        None => Fields::default().with("the chain is intact", ""),
        Some(fault) => Fields::default().with("THE CHAIN IS BROKEN", fault),
    };
    format!("{fields}{answer}")
}
