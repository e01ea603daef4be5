//! `rollcall key …`: API keys.

use admin::audit::Subject;
use admin::{ApiKey, ApiKeys, KeyId, Scopes};
use domain::UnixTime;
use domain::clock::{Clock, SystemClock};
use domain::time::rfc3339;
use serde_json::{Value as Json, json};

use super::CommandContext;
use super::audited::record;
use crate::cli::key::{KeyCommand, KeyCreateArgs};
use crate::output::{Fields, Table};

pub async fn run(context: &CommandContext, command: KeyCommand) -> anyhow::Result<()> {
    let store = context.open_store().await?;
    let keys = ApiKeys::on(store.database());
    match command {
        KeyCommand::Create(args) => create(context, &keys, args).await?,
        KeyCommand::List => list(context, &keys.list().await?)?,
        KeyCommand::Revoke { id } => revoke(context, &keys, id).await?,
    }
    store.close().await;
    Ok(())
}

async fn create(context: &CommandContext, keys: &ApiKeys, args: KeyCreateArgs) -> anyhow::Result<()> {
    let scopes: Scopes = args.scope.into_iter().collect();
    let now = SystemClock.now();
    let record =
        record("key.create", Subject::key("")).with("name", &*args.name).with("scopes", scopes.to_string());
    let creating = keys.create(&args.name, scopes, now);
    let key = context.audited(record, creating, |record, key| record.about(Subject::key(key.id))).await?;
    let json = json!({
        "id": key.id.as_str(),
        "name": args.name,
        "scopes": names_of(scopes),
        "key": key.text,
        "created_at": now.0,
    });
    let fields = Fields::default()
        .with("id", key.id)
        .with("name", &args.name)
        .with("scopes", scopes)
        .with("key", &key.text)
        .with("", "(shown only once; it cannot be read later)");
    Ok(context.output.show(&json, &fields)?)
}

async fn revoke(context: &CommandContext, keys: &ApiKeys, id: KeyId) -> anyhow::Result<()> {
    let revoking = keys.revoke(id, SystemClock.now());
    let record = record("key.revoke", Subject::key(id));
    let worked =
        context.audited(record, revoking, |record, worked| record.with("worked_until_now", *worked)).await?;
    let text = match worked {
        true => format!("revoked key {id}\n"),
        false => format!("key {id} was already revoked\n"),
    };
    Ok(context
        .output
        .show(&json!({ "id": id.as_str(), "revoked": true, "worked_until_now": worked }), &text)?)
}

fn list(context: &CommandContext, keys: &[ApiKey]) -> std::io::Result<()> {
    let shown =
        |at: Option<UnixTime>| at.map_or_else(|| "never".to_owned(), |at| rfc3339(u64::from(at.0) * 1000));
    let mut table = Table::new(&["id", "scopes", "created", "last used", "revoked", "name"]);
    for key in keys {
        table.add(vec![
            key.id.to_string(),
            key.scopes.to_string(),
            shown(Some(key.created_at)),
            shown(key.last_used_at),
            shown(key.revoked_at),
            key.name.clone(),
        ]);
    }
    let keys: Vec<Json> = keys.iter().map(json_of).collect();
    context.output.show(&json!({ "keys": keys }), &table)
}

fn json_of(key: &ApiKey) -> Json {
    json!({
        "id": key.id.as_str(),
        "name": key.name,
        "scopes": names_of(key.scopes),
        "created_at": key.created_at.0,
        "last_used_at": key.last_used_at.map(|at| at.0),
        "revoked_at": key.revoked_at.map(|at| at.0),
    })
}

fn names_of(scopes: Scopes) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.as_str()).collect()
}
