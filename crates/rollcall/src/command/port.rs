//! `rollcall port …`

use access::BannedPorts;
use access::audit::Subject;
use serde_json::{Value as Json, json};

use super::Desk;
use super::recorded::record;
use crate::cli::PortCommand;
use crate::output::Table;

/// Runs it.
pub async fn run(desk: &Desk, command: PortCommand) -> anyhow::Result<()> {
    let store = desk.open_store().await?;
    match command {
        PortCommand::Ban { ports, reason } => {
            let record = record("port.ban", Subject::new("port", ports)).with("reason", &*reason);
            desk.recorded(record, store.ban_ports(ports, &reason), |record, ()| record).await?;
            let ban = BannedPorts { range: ports, reason };
            desk.output.show(&json_of(&ban), &format!("banned clients that listen on {ports}\n"))?;
        }
        PortCommand::Allow { ports } => {
            let record = record("port.allow", Subject::new("port", ports));
            desk.recorded(record, store.allow_ports(ports), |record, ()| record).await?;
            let json = json!({ "first": ports.first(), "last": ports.last(), "allowed": true });
            desk.output.show(&json, &format!("allowed clients to listen on {ports}\n"))?;
        }
        PortCommand::List => list(desk, &store.list_banned_ports().await?)?,
    }
    store.close().await;
    Ok(())
}

fn list(desk: &Desk, bans: &[BannedPorts]) -> std::io::Result<()> {
    let mut table = Table::new(&["ports", "reason"]);
    for ban in bans {
        table.add(vec![ban.range.to_string(), ban.reason.clone()]);
    }
    let bans: Vec<Json> = bans.iter().map(json_of).collect();
    desk.output.show(&json!({ "ports": bans }), &table)
}

fn json_of(ban: &BannedPorts) -> Json {
    json!({ "first": ban.range.first(), "last": ban.range.last(), "reason": ban.reason })
}
