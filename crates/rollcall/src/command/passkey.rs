//! `rollcall passkey …`: passkeys of users, and the whitelist.

mod refresh;

use std::collections::BTreeSet;
use std::process::ExitCode;

use access::{Passkeys, Replaced, Store, User};
use admin::audit::{Record, Subject};
use anyhow::Context;
use domain::{Passkey, counted};
use serde_json::{Value as Json, json};

use super::audited::record;
use super::{CommandContext, user};
use crate::cli::PasskeyCommand;
use crate::wiring::gate::redis_source;
use crate::wiring::stores;

/// The exit code of `check` is its result.
pub async fn run(context: &CommandContext, command: PasskeyCommand) -> anyhow::Result<ExitCode> {
    let store = context.open_store().await?;
    let exit_code = run_on(context, &store, command).await;
    store.close().await;
    exit_code
}

async fn run_on(
    context: &CommandContext,
    store: &Store,
    command: PasskeyCommand,
) -> anyhow::Result<ExitCode> {
    let passkeys = Passkeys::new(stores::open_whitelist(&context.config, store)?.store, store.clone());
    match command {
        PasskeyCommand::Rotate { user, passkey } => {
            let rotating = async {
                store.rotate_passkey(user, passkey).await?;
                user::find(store, user).await
            };
            let record = record("passkey.rotate", Subject::user(Some(user)));
            user::show(context, &context.audited(record, rotating, user::audit_details).await?)?;
        }
        PasskeyCommand::Check { passkey } => return check(context, store, &passkeys, passkey).await,
        PasskeyCommand::Add { passkeys: given } => add(context, &passkeys, given).await?,
        PasskeyCommand::Remove { passkeys: given } => remove(context, &passkeys, given).await?,
        PasskeyCommand::Count => {
            let count = passkeys.count().await?;
            context.output.show(&json!({ "count": count }), &format!("{count}\n"))?;
        }
        PasskeyCommand::Refresh(args) => refresh::run(context, &passkeys, &args).await?,
        PasskeyCommand::Undo => undo(context, &passkeys).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn check(
    context: &CommandContext,
    store: &Store,
    passkeys: &Passkeys,
    passkey: Passkey,
) -> anyhow::Result<ExitCode> {
    let holder = store.user_by_passkey(&passkey).await?;
    let listed = passkeys.contains(&[passkey]).await.map(|answers| answers.contains(&true));
    // For one of our users, the result does not depend on Redis.
    let listed = if holder.as_ref().is_some_and(is_decided_by_row) { listed.ok() } else { Some(listed?) };
    let has_key = match (&holder, redis_source(&context.config)?) {
        (Some(user), _) if is_decided_by_row(user) => false,
        (_, Some(keys)) => keys.user_of(&passkey).await?.is_some(),
        (_, None) => false,
    };
    let verdict = Verdict { passkey, holder, listed, has_key };
    context.output.show(&verdict.to_json(), &verdict.text())?;
    Ok(if verdict.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the user's row decides: one of our users, or a disabled one. Others need whitelist or verification.
fn is_decided_by_row(user: &User) -> bool {
    !user.is_external || !user.enabled
}

struct Verdict {
    passkey: Passkey,
    holder: Option<User>,
    /// None if the whitelist cannot be read.
    listed: Option<bool>,
    /// Whether the site wrote a key `t:user:<passkey>`. Not checked if a user of ours decides.
    has_key: bool,
}

impl Verdict {
    /// The user whose row decides, if any.
    fn deciding_user(&self) -> Option<&User> {
        self.holder.as_ref().filter(|user| is_decided_by_row(user))
    }

    /// One of our users decides; for others the whitelist or the site's key is enough.
    fn is_valid(&self) -> bool {
        self.deciding_user().map_or(self.listed == Some(true) || self.has_key, |user| user.enabled)
    }

    fn reason(&self) -> Option<&'static str> {
        match self.deciding_user() {
            _ if self.is_valid() => None,
            Some(_) => Some("disabled"),
            None => Some("unknown"),
        }
    }

    fn to_json(&self) -> Json {
        let mut json = json!({
            "valid": self.is_valid(),
            "user": self.holder.as_ref().map(|user| user.id.get()),
            "whitelisted": self.listed,
            "reason": self.reason(),
        });
        if self.has_key {
            json["site_key"] = json!(true);
        }
        json
    }

    fn text(&self) -> String {
        let shown = self.passkey.redacted();
        let also = if self.listed == Some(true) { ", and it is on the whitelist" } else { "" };
        match (self.deciding_user(), self.is_valid()) {
            (Some(user), true) => format!("passkey {shown} is valid: user {}{also}\n", user.id),
            (Some(user), false) => {
                format!("passkey {shown} is not valid: user {} is disabled{also}\n", user.id)
            }
            (None, true) if self.has_key => {
                format!("passkey {shown} is valid: the site has a key for it in Redis\n")
            }
            (None, true) => format!("passkey {shown} is valid: it is on the whitelist\n"),
            (None, false) if self.holder.is_some() => {
                format!(
                    "passkey {shown} is no longer on the whitelist; the site's verify endpoint may accept it\n"
                )
            }
            (None, false) => {
                format!("passkey {shown} is not valid: no user has it, and it is not on the whitelist\n")
            }
        }
    }
}

async fn add(context: &CommandContext, passkeys: &Passkeys, given: Vec<Passkey>) -> anyhow::Result<()> {
    let given = without_repeats(given);
    let record = record("passkey.add", Subject::whitelist()).about_passkeys(&given);
    let adding = passkeys.add(&given);
    let added = context.audited(record, adding, |record, added| record.with("added", *added)).await?;
    let unchanged = given.len() as u64 - added;
    let text = match unchanged {
        0 => format!("added {added}\n"),
        _ => format!("added {added}; {unchanged} already on the whitelist\n"),
    };
    Ok(context.output.show(&json!({ "added": added, "unchanged": unchanged }), &text)?)
}

async fn remove(context: &CommandContext, passkeys: &Passkeys, given: Vec<Passkey>) -> anyhow::Result<()> {
    let given = without_repeats(given);
    let record = record("passkey.remove", Subject::whitelist()).about_passkeys(&given);
    let removing = passkeys.remove(&given);
    let removed =
        context.audited(record, removing, |record, removed| record.with("removed", *removed)).await?;
    let unchanged = given.len() as u64 - removed;
    let text = match unchanged {
        0 => format!("removed {removed}\n"),
        _ => format!("removed {removed}; {unchanged} not on the whitelist\n"),
    };
    Ok(context.output.show(&json!({ "removed": removed, "unchanged": unchanged }), &text)?)
}

async fn undo(context: &CommandContext, passkeys: &Passkeys) -> anyhow::Result<()> {
    let going_back = async {
        let nothing = "nothing to undo: no refresh has replaced a whitelist with passkeys in it";
        passkeys.undo().await?.context(nothing)
    };
    let record = record("passkey.undo", Subject::whitelist());
    let replaced = context.audited(record, going_back, audit_details).await?;
    show_replaced(context, replaced, "again to redo")
}

fn audit_details(record: Record, replaced: &Replaced) -> Record {
    record.with("before", replaced.before).with("after", replaced.after)
}

/// `undo` describes what `rollcall passkey undo` would do.
fn show_replaced(context: &CommandContext, replaced: Replaced, undo: &str) -> anyhow::Result<()> {
    let Replaced { before, after } = replaced;
    let text = format!(
        "the whitelist has {}, before {before} (rollcall passkey undo: {undo})\n",
        counted(after, "passkey")
    );
    Ok(context.output.show(&json!({ "before": before, "after": after }), &text)?)
}

fn without_repeats(given: Vec<Passkey>) -> Vec<Passkey> {
    given.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}
