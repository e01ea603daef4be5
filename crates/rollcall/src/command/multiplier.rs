//! `rollcall multiplier …`

use admin::audit::Subject;
use domain::clock::{Clock, SystemClock};
use ledger::{Multiplier, NewMultiplier, Scope};
use serde_json::{Value as Json, json};

use super::CommandContext;
use super::audited::record;
use crate::cli::{MultiplierAddArgs, MultiplierCommand};
use crate::output::{self, Table};

pub async fn run(context: &CommandContext, command: MultiplierCommand) -> anyhow::Result<()> {
    let ledger = context.open_ledger().await?;
    match command {
        MultiplierCommand::Add(args) => {
            let record = record("multiplier.add", Subject::new("multiplier", ""));
            let adding = ledger.add_multiplier(terms_of(args));
            let multiplier = context
                .audited(record, adding, |record, added| {
                    record.about(Subject::new("multiplier", added.id)).with("terms", json_of(added))
                })
                .await?;
            show(context, &[multiplier])
        }
        MultiplierCommand::List => show(context, &ledger.multipliers().await?),
        MultiplierCommand::Remove { id } => {
            let removing = async {
                match ledger.end_multiplier(id).await? {
                    true => Ok(()),
                    false => Err(anyhow::anyhow!(
                        "there is no multiplier {id} that has not ended: see rollcall multiplier list"
                    )),
                }
            };
            let record = record("multiplier.remove", Subject::new("multiplier", id));
            context.audited(record, removing, |record, ()| record).await?;
            let text = format!("ended multiplier {id}\n");
            Ok(context.output.show(&json!({ "id": id, "removed": true }), &text)?)
        }
    }
}

fn terms_of(args: MultiplierAddArgs) -> NewMultiplier {
    let scope = match (args.torrent, args.user) {
        (Some(torrent), _) => Scope::Torrent(torrent),
        (None, Some(user)) => Scope::User(user),
        (None, None) => Scope::Site,
    };
    let now = SystemClock.now();
    NewMultiplier {
        scope,
        upload: args.upload,
        download: args.download,
        starts_at: args.from.map_or(now, |when| when.after(now)),
        ends_at: args.until.map(|when| when.after(now)),
        note: args.note,
    }
}

fn show(context: &CommandContext, multipliers: &[Multiplier]) -> anyhow::Result<()> {
    let mut table = Table::new(&["id", "for", "upload", "download", "from", "until", "note"]);
    for Multiplier { id, terms } in multipliers {
        table.add(vec![
            id.to_string(),
            terms.scope.to_string(),
            format!("{} %", terms.upload),
            format!("{} %", terms.download),
            output::moment(terms.starts_at),
            terms.ends_at.map_or_else(|| "no end".to_owned(), output::moment),
            terms.note.clone(),
        ]);
    }
    let listed: Vec<Json> = multipliers.iter().map(json_of).collect();
    Ok(context.output.show(&json!({ "multipliers": listed }), &table)?)
}

fn json_of(multiplier: &Multiplier) -> Json {
    let terms = &multiplier.terms;
    json!({
        "id": multiplier.id,
        "scope": terms.scope.name(),
        "subject": terms.scope.subject(),
        "upload_percent": terms.upload.get(),
        "download_percent": terms.download.get(),
        "starts_at": terms.starts_at.0,
        "ends_at": terms.ends_at.map(|at| at.0),
        "note": terms.note,
    })
}
