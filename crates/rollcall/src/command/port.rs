//! `rollcall port …`

use access::BannedPorts;
use admin::audit::Subject;
use serde_json::{Value as Json, json};

use super::CommandContext;
use super::audited::record;
use crate::cli::PortCommand;
use crate::output::Table;

pub async fn run(context: &CommandContext, command: PortCommand) -> anyhow::Result<()> {
    let store = context.open_store().await?;
    match command {
        PortCommand::Ban { ports, reason } => {
            let record = record("port.ban", Subject::new("port", ports)).with("reason", &*reason);
            context.audited(record, store.ban_ports(ports, &reason), |record, ()| record).await?;
            let ban = BannedPorts { range: ports, reason };
            context.output.show(&json_of(&ban), &format!("banned clients that listen on {ports}\n"))?;
        }
        PortCommand::Allow { ports } => {
            let record = record("port.allow", Subject::new("port", ports));
            context.audited(record, store.allow_ports(ports), |record, ()| record).await?;
            let json = json!({ "first": ports.first(), "last": ports.last(), "allowed": true });
            context.output.show(&json, &format!("allowed clients to listen on {ports}\n"))?;
        }
        PortCommand::List => list(context, &store.list_banned_ports().await?)?,
    }
    store.close().await;
    Ok(())
}

fn list(context: &CommandContext, bans: &[BannedPorts]) -> std::io::Result<()> {
    let mut table = Table::new(&["ports", "reason"]);
    for ban in bans {
        table.add(vec![ban.range.to_string(), ban.reason.clone()]);
    }
    let bans: Vec<Json> = bans.iter().map(json_of).collect();
    context.output.show(&json!({ "ports": bans }), &table)
}

fn json_of(ban: &BannedPorts) -> Json {
    json!({ "first": ban.range.first(), "last": ban.range.last(), "reason": ban.reason })
}
