//! `rollcall friend …`

mod import;

use admin::audit::Subject;
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use friends::{Friend, FriendStore};
use serde_json::{Value as Json, json};

use super::audited::record;
use super::{CommandContext, PAGE_ROWS};
use crate::cli::FriendCommand;
use crate::output::Table;
use crate::wiring::stores;

pub async fn run(context: &CommandContext, command: FriendCommand) -> anyhow::Result<()> {
    let store = context.open_store().await?;
    let friends = stores::open_friends(&context.config, &store).await?;
    let outcome = match command {
        FriendCommand::Add { one, other } => add(context, &friends, one, other).await,
        FriendCommand::Remove { one, other } => remove(context, &friends, one, other).await,
        FriendCommand::List { user } => list(context, &friends, user).await,
        FriendCommand::Import { file } => import::run(context, &friends, &file).await,
    };
    store.close().await;
    outcome
}

async fn add(
    context: &CommandContext,
    friends: &FriendStore,
    one: UserId,
    other: UserId,
) -> anyhow::Result<()> {
    let record = record("friend.add", Subject::user(Some(one))).with("friend", other.get());
    let pair = [(one, other)];
    let adding = friends.add_friends(&pair, SystemClock.now());
    let done = context.audited(record, adding, |record, done| record.with("added", done.added)).await?;
    let text = match done.added {
        0 => format!("users {one} and {other} are already friends\n"),
        _ => format!("users {one} and {other} are now friends\n"),
    };
    let json = json!({ "user": one.get(), "friend": other.get(), "added": done.added > 0 });
    Ok(context.output.show(&json, &text)?)
}

async fn remove(
    context: &CommandContext,
    friends: &FriendStore,
    one: UserId,
    other: UserId,
) -> anyhow::Result<()> {
    let record = record("friend.remove", Subject::user(Some(one))).with("friend", other.get());
    let removing = async {
        match friends.remove_friends(&[(one, other)]).await? {
            0 => Err(anyhow::anyhow!(
                "users {one} and {other} are not friends: see rollcall friend list {one}"
            )),
            _ => Ok(()),
        }
    };
    context.audited(record, removing, |record, ()| record).await?;
    let json = json!({ "user": one.get(), "friend": other.get(), "removed": true });
    Ok(context.output.show(&json, &format!("users {one} and {other} are no longer friends\n"))?)
}

async fn list(context: &CommandContext, store: &FriendStore, user: UserId) -> anyhow::Result<()> {
    let mut friends: Vec<Friend> = Vec::new();
    loop {
        let after = friends.last().map(|friend| friend.id);
        let page = store.friends_of(user, after, PAGE_ROWS).await?;
        let is_last = page.len() < PAGE_ROWS as usize;
        friends.extend(page);
        if is_last {
            break;
        }
    }
    let mut table = Table::new(&["friend", "since"]);
    for friend in &friends {
        table.add(vec![friend.id.to_string(), friend.since.to_string()]);
    }
    let listed: Vec<Json> =
        friends.iter().map(|friend| json!({ "id": friend.id.get(), "since": friend.since.0 })).collect();
    Ok(context.output.show(&json!({ "user": user.get(), "friends": listed }), &table)?)
}
