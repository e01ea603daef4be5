//! `rollcall friend …`: who knows whom.

mod import;

use access::audit::Subject;
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use friends::{Friend, FriendStore};
use serde_json::{Value as Json, json};

use super::recorded::record;
use super::{Desk, PAGE_ROWS};
use crate::backends;
use crate::cli::FriendCommand;
use crate::output::Table;

/// Runs it.
pub async fn run(desk: &Desk, command: FriendCommand) -> anyhow::Result<()> {
    let store = desk.open_store().await?;
    let people = backends::open_people(&desk.config, &store).await?;
    let outcome = match command {
        FriendCommand::Add { one, other } => add(desk, &people, one, other).await,
        FriendCommand::Remove { one, other } => remove(desk, &people, one, other).await,
        FriendCommand::List { user } => list(desk, &people, user).await,
        FriendCommand::Import { file } => import::run(desk, &people, &file).await,
    };
    store.close().await;
    outcome
}

async fn add(desk: &Desk, people: &FriendStore, one: UserId, other: UserId) -> anyhow::Result<()> {
    let record = record("friend.add", Subject::user(Some(one))).with("friend", other.get());
    let pair = [(one, other)];
    let adding = people.add_friends(&pair, SystemClock.now());
    let done = desk.recorded(record, adding, |record, done| record.with("added", done.added)).await?;
    let text = match done.added {
        0 => format!("users {one} and {other} were friends already\n"),
        _ => format!("users {one} and {other} are friends now\n"),
    };
    let json = json!({ "user": one.get(), "friend": other.get(), "added": done.added > 0 });
    Ok(desk.output.show(&json, &text)?)
}

async fn remove(desk: &Desk, people: &FriendStore, one: UserId, other: UserId) -> anyhow::Result<()> {
    let record = record("friend.remove", Subject::user(Some(one))).with("friend", other.get());
    let removing = async {
        match people.remove_friends(&[(one, other)]).await? {
            0 => Err(anyhow::anyhow!(
                "users {one} and {other} are not friends: see rollcall friend list {one}"
            )),
            _ => Ok(()),
        }
    };
    desk.recorded(record, removing, |record, ()| record).await?;
    let json = json!({ "user": one.get(), "friend": other.get(), "removed": true });
    Ok(desk.output.show(&json, &format!("users {one} and {other} are no longer friends\n"))?)
}

async fn list(desk: &Desk, people: &FriendStore, user: UserId) -> anyhow::Result<()> {
    let mut friends: Vec<Friend> = Vec::new();
    loop {
        let after = friends.last().map(|friend| friend.id);
        let page = people.friends_of(user, after, PAGE_ROWS).await?;
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
    Ok(desk.output.show(&json!({ "user": user.get(), "friends": listed }), &table)?)
}
