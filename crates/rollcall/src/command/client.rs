//! `rollcall client …`

use access::redis_source::Kind;
use access::{AccessError, ClientPrefix, ClientRule, Store};
use admin::audit::Subject;
use serde_json::{Value as Json, json};

use super::audited::record;
use super::{CommandContext, sync};
use crate::cli::ClientCommand;
use crate::output::{Table, yes_or_no};

pub async fn run(context: &CommandContext, command: ClientCommand) -> anyhow::Result<()> {
    let store = context.open_store().await?;
    match command {
        ClientCommand::Sync(args) => sync::run(context, &store, Kind::Clients, args).await?,
        ClientCommand::Allow { prefix, name } => put(context, &store, prefix, name, true).await?,
        ClientCommand::Forbid { prefix, name } => put(context, &store, prefix, name, false).await?,
        ClientCommand::Remove { prefix } => {
            let record = record("client.remove", Subject::new("client", prefix));
            context.audited(record, store.remove_client(prefix), |record, ()| record).await?;
            let json = json!({ "prefix": prefix.to_string(), "removed": true });
            context.output.show(&json, &format!("removed client prefix {prefix}\n"))?;
        }
        ClientCommand::List => list(context, &store.list_clients().await?)?,
    }
    store.close().await;
    Ok(())
}

async fn put(
    context: &CommandContext,
    store: &Store,
    prefix: ClientPrefix,
    name: Option<String>,
    allowed: bool,
) -> anyhow::Result<()> {
    let name = match name {
        Some(name) => name,
        None => present_name(store, prefix).await?,
    };
    let action = if allowed { "client.allow" } else { "client.forbid" };
    let record = record(action, Subject::new("client", prefix)).with("name", &*name);
    let putting = async {
        match allowed {
            true => store.allow_client(prefix, &name).await,
            false => store.forbid_client(prefix, &name).await,
        }
    };
    context.audited(record, putting, |record, ()| record).await?;
    let rule = ClientRule { prefix, name, allowed };
    let verb = if allowed { "allowed" } else { "forbade" };
    context.output.show(&json_of(&rule), &format!("{verb} clients whose peer ids start with {prefix}\n"))?;
    Ok(())
}

/// Without a new name, a changed prefix keeps its name.
async fn present_name(store: &Store, prefix: ClientPrefix) -> Result<String, AccessError> {
    let rules = store.list_clients().await?;
    Ok(rules.into_iter().find(|rule| rule.prefix == prefix).map(|rule| rule.name).unwrap_or_default())
}

fn list(context: &CommandContext, rules: &[ClientRule]) -> std::io::Result<()> {
    let mut table = Table::new(&["prefix", "allowed", "name"]);
    for rule in rules {
        table.add(vec![rule.prefix.to_string(), yes_or_no(rule.allowed).to_owned(), rule.name.clone()]);
    }
    let rules: Vec<Json> = rules.iter().map(json_of).collect();
    context.output.show(&json!({ "clients": rules }), &table)
}

fn json_of(rule: &ClientRule) -> Json {
    json!({ "prefix": rule.prefix.to_string(), "name": rule.name, "allowed": rule.allowed })
}
