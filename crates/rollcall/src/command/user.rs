//! `rollcall user …`

use access::redis_source::Kind;
use access::{AccessError, NewUser, Store, User, UserChange, UserName};
use admin::audit::{Record, Subject, passkey_subject_id};
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use serde_json::{Value as Json, json};

use super::accounts::{self, List};
use super::audited::record;
use super::{CommandContext, PAGE_ROWS, sync, why};
use crate::cli::{UserCommand, UserSetArgs};
use crate::output::{Fields, Table, yes_or_no};

pub async fn run(context: &CommandContext, command: UserCommand) -> anyhow::Result<()> {
    let store = context.open_store().await?;
    match command {
        UserCommand::Sync(args) => sync::run(context, &store, Kind::Users, args).await?,
        UserCommand::Add { id, passkey, name } => {
            let new = NewUser { id, passkey, created_at: SystemClock.now() };
            let adding = async {
                match name {
                    Some(name) => store.add_named_user(new, name).await,
                    None => store.add_user(new).await,
                }
            };
            let user = context.audited(record("user.add", Subject::user(id)), adding, audit_details).await?;
            show(context, &user)?;
        }
        UserCommand::List { show_passkeys } => list(context, &find_all(&store).await?, show_passkeys)?,
        UserCommand::Show { id } => show_with_accounts(context, &find(&store, id).await?).await?,
        UserCommand::Seeding(args) => {
            let passkey = find(&store, args.id).await?.passkey;
            accounts::show_list(context, &passkey, &args, List::Seeding).await?;
        }
        UserCommand::Leeching(args) => {
            let passkey = find(&store, args.id).await?.passkey;
            accounts::show_list(context, &passkey, &args, List::Leeching).await?;
        }
        UserCommand::Torrents { id } => accounts::show_accounts(context, id).await?,
        UserCommand::Why(args) => why::show(context, &store, args).await?,
        UserCommand::HitAndRuns { id } => accounts::show_hit_and_runs(context, id).await?,
        UserCommand::Remove { id } => {
            let record = record("user.remove", Subject::user(Some(id)));
            context.audited(record, store.remove_user(id), |record, ()| record).await?;
            context
                .output
                .show(&json!({ "id": id.get(), "removed": true }), &format!("removed user {id}\n"))?;
        }
        UserCommand::Enable { id } => set_enabled(context, &store, id, true).await?,
        UserCommand::Disable { id } => set_enabled(context, &store, id, false).await?,
        UserCommand::Set(args) => set(context, &store, args).await?,
    }
    store.close().await;
    Ok(())
}

/// The user's id, and a hash of the passkey.
pub fn audit_details(record: Record, user: &User) -> Record {
    record.about(Subject::user(Some(user.id))).with("passkey", passkey_subject_id(&user.passkey))
}

pub async fn find(store: &Store, id: UserId) -> Result<User, AccessError> {
    store.user(id).await?.ok_or(AccessError::UnknownUser(id))
}

async fn find_all(store: &Store) -> Result<Vec<User>, AccessError> {
    let mut users: Vec<User> = Vec::new();
    loop {
        let page = store.list_users(users.last().map(|user| user.id), PAGE_ROWS).await?;
        let is_last = page.len() < PAGE_ROWS as usize;
        users.extend(page);
        if is_last {
            return Ok(users);
        }
    }
}

/// With the full passkey.
pub fn show(context: &CommandContext, user: &User) -> std::io::Result<()> {
    context.output.show(&json_of(user, true), &fields_of(user))
}

/// With the full passkey, totals and current activity.
async fn show_with_accounts(context: &CommandContext, user: &User) -> anyhow::Result<()> {
    let figures = context.open_ledger().await?.user(user.id).await?.unwrap_or_default();
    let active = context.open_activity().await?.counts(&user.passkey).await?;
    let fields = fields_of(user);
    let ratio = figures.ratio();
    let fields = accounts::with_figures(fields, &figures)
        .with("ratio", accounts::ratio_text(&figures))
        .with("seeds now", active.seeding)
        .with("leeches now", active.leeching);
    let mut json = json_of(user, true);
    if let Json::Object(object) = &mut json {
        object.extend(accounts::json_of_figures(&figures));
        object.insert("ratio".to_owned(), ratio.into());
        object.insert("seeding".to_owned(), active.seeding.into());
        object.insert("leeching".to_owned(), active.leeching.into());
    }
    Ok(context.output.show(&json, &fields)?)
}

fn fields_of(user: &User) -> Fields {
    let fields = Fields::default().with("id", user.id);
    let fields = match &user.name {
        Some(name) => fields.with("name", name),
        None => fields,
    };
    fields
        .with("passkey", user.passkey)
        .with("enabled", yes_or_no(user.enabled))
        .with("external", yes_or_no(user.is_external))
        .with("leech slots", user.leech_slots)
}

fn list(context: &CommandContext, users: &[User], show_passkeys: bool) -> std::io::Result<()> {
    let mut table = Table::new(&["id", "enabled", "external", "passkey", "name"]);
    for user in users {
        table.add(vec![
            user.id.to_string(),
            yes_or_no(user.enabled).to_owned(),
            yes_or_no(user.is_external).to_owned(),
            passkey_of(user, show_passkeys),
            user.name.clone().unwrap_or_default(),
        ]);
    }
    let users: Vec<Json> = users.iter().map(|user| json_of(user, show_passkeys)).collect();
    context.output.show(&json!({ "users": users }), &table)
}

async fn set_enabled(
    context: &CommandContext,
    store: &Store,
    id: UserId,
    enabled: bool,
) -> anyhow::Result<()> {
    let action = if enabled { "user.enable" } else { "user.disable" };
    let record = record(action, Subject::user(Some(id)));
    context.audited(record, store.set_user_enabled(id, enabled), |record, ()| record).await?;
    let text = format!("{} user {id}\n", if enabled { "enabled" } else { "disabled" });
    context.output.show(&json!({ "id": id.get(), "enabled": enabled }), &text)?;
    Ok(())
}

async fn set(context: &CommandContext, store: &Store, args: UserSetArgs) -> anyhow::Result<()> {
    let UserSetArgs { id, leech_slots, name } = args;
    let name = match name.as_deref() {
        Some("") => Some(None),
        Some(text) => Some(Some(text.parse::<UserName>()?)),
        None => None,
    };
    let mut record = record("user.change", Subject::user(Some(id)));
    let mut json = serde_json::Map::from_iter([("id".to_owned(), id.get().into())]);
    let mut text = String::new();
    if let Some(slots) = leech_slots {
        record = record.with("leech_slots", slots.to_string());
        json.insert("leech_slots".to_owned(), slots.to_number().into());
        text += &format!("leech slots of user {id}: {slots}\n");
    }
    if let Some(name) = &name {
        let shown = name.as_ref().map(UserName::as_str);
        record = record.with("name", shown.unwrap_or_default());
        json.insert("name".to_owned(), shown.into());
        text += &format!("name of user {id}: {}\n", shown.unwrap_or("none"));
    }
    let change = UserChange { leech_slots, name, ..UserChange::default() };
    context.audited(record, store.change_user(id, change), |record, ()| record).await?;
    Ok(context.output.show(&Json::Object(json), &text)?)
}

fn json_of(user: &User, show_passkeys: bool) -> Json {
    json!({
        "id": user.id.get(),
        "name": user.name,
        "passkey": passkey_of(user, show_passkeys),
        "enabled": user.enabled,
        "external": user.is_external,
        "leech_slots": user.leech_slots.to_number(),
        "created_at": user.created_at.0,
    })
}

fn passkey_of(user: &User, in_full: bool) -> String {
    if in_full { user.passkey.to_string() } else { user.passkey.redacted().to_string() }
}
