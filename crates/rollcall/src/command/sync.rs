//! `rollcall torrent|user|client sync`: writes the keys of the Redis source from the database.

use access::Store;
use access::redis_source::sync::sync;
use access::redis_source::{Kind, SyncOptions, SyncReport};
use admin::audit::Subject;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::CommandContext;
use super::audited::record;
use crate::cli::sync::SyncArgs;
use crate::output::{Fields, yes_or_no};
use crate::wiring::gate::redis_source;

pub async fn run(context: &CommandContext, store: &Store, kind: Kind, args: SyncArgs) -> anyhow::Result<()> {
    let keys = redis_source(&context.config)?.context(
        "Redis is not configured: set redis.url (without Redis, everything is in the data folder)",
    )?;
    let rows = match kind {
        Kind::Torrents => store.count_torrents().await?,
        Kind::Users => store.count_users().await?,
        Kind::Clients => 0,
    };
    let bar = ProgressBar::new(rows);
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} read  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let options = SyncOptions { flush: args.flush, is_dry: args.dry_run, allow_empty: args.allow_empty };
    let syncing = sync(store, &keys, kind, options, |read| bar.set_position(read));
    let report = match args.dry_run {
        true => syncing.await?,
        false => {
            let record =
                record("site_keys.sync", Subject::new("site_keys", kind.name())).with("flush", args.flush);
            let details = |record: admin::audit::Record, report: &SyncReport| {
                record.with("written", report.written).with("removed", report.removed)
            };
            context.audited(record, syncing, details).await?
        }
    };
    bar.finish_and_clear();
    show(context, kind, args, &report)
}

fn show(context: &CommandContext, kind: Kind, args: SyncArgs, report: &SyncReport) -> anyhow::Result<()> {
    let json = json!({
        "kind": kind.name(),
        "dry_run": args.dry_run,
        "wanted": report.wanted,
        "written": report.written,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "unknown": report.unknown,
    });
    let fields = Fields::default()
        .with("keys of", kind.name())
        .with("dry run", yes_or_no(args.dry_run))
        .with("wanted", report.wanted)
        .with("written", report.written)
        .with("unchanged", report.unchanged)
        .with("removed", report.removed)
        .with("unknown, left", report.unknown);
    Ok(context.output.show(&json, &fields)?)
}
