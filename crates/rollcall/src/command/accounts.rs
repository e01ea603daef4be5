//! Output of accounts and activity lists.

use std::sync::Arc;

use domain::clock::{Clock, SystemClock};
use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};
use ledger::{Account, AccountKey, Directory, Figures, HitAndRunStatus, Ledger, LogRisks};
use serde_json::{Map, Value as Json, json};
use views::{ActiveTorrent, Activity, Page, Rebuild};

use super::CommandContext;
use crate::cli::ActiveArgs;
use crate::output::{self, Table, yes_or_no};
use crate::wiring::stores::{self, Opened};

/// For reading only: no user or torrent is looked up.
struct EmptyDirectory;

impl Directory for EmptyDirectory {
    fn user_of(&self, _: &Passkey) -> Option<UserId> {
        None
    }

    fn torrent_of(&self, _: &InfoHash) -> Option<TorrentId> {
        None
    }
}

impl CommandContext {
    /// For reading.
    pub async fn open_ledger(&self) -> anyhow::Result<Ledger> {
        stores::open_ledger(&self.config, &self.data, Arc::new(EmptyDirectory), Arc::new(LogRisks)).await
    }

    /// Without Redis the lists are in the memory of a server: they are read from the journal again, with or without one.
    pub async fn open_activity(&self) -> anyhow::Result<Activity> {
        let Opened { store: activity, redis } = stores::open_activity(&self.config)?;
        if redis.is_none() {
            let journal = self.open_journal().await?;
            Rebuild::of(activity.clone()).catch_up(&*journal).await?;
        }
        Ok(activity)
    }
}

/// Amounts are decimal strings: they exceed the numbers of most JSON parsers (L2).
pub fn json_of_figures(figures: &Figures) -> Map<String, Json> {
    let seconds = |at: Option<UnixTime>| at.map(|at| at.0);
    let json = json!({
        "uploaded": figures.uploaded.to_string(),
        "downloaded": figures.downloaded.to_string(),
        "credited_uploaded": figures.credited_uploaded().to_string(),
        "credited_downloaded": figures.credited_downloaded().to_string(),
        "seeding_s": figures.seeding_s,
        "leeching_s": figures.leeching_s,
        "completed": figures.completed_count,
        "completed_again": figures.repeated_count,
        "first_seen": seconds(figures.first_seen),
        "last_seen": seconds(figures.last_seen),
    });
    match json {
        Json::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub fn ratio_text(figures: &Figures) -> String {
    figures.ratio().map_or_else(|| "none yet".to_owned(), |ratio| format!("{ratio:.3}"))
}

pub fn with_figures(fields: output::Fields, figures: &Figures) -> output::Fields {
    let credited = |raw: u128, credited: u128| match raw == credited {
        true => output::bytes(raw),
        false => format!("{} (credited as {})", output::bytes(raw), output::bytes(credited)),
    };
    let last_seen = match figures.last_seen {
        Some(at) => output::ago(at, SystemClock.now()),
        None => "never".to_owned(),
    };
    fields
        .with("uploaded", credited(figures.uploaded, figures.credited_uploaded()))
        .with("downloaded", credited(figures.downloaded, figures.credited_downloaded()))
        .with("seeding", output::duration(figures.seeding_s))
        .with("leeching", output::duration(figures.leeching_s))
        .with("completed", figures.completed_count)
        .with("last seen", last_seen)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Seeding,
    Leeching,
}

/// Newest first.
pub async fn show_list(
    context: &CommandContext,
    passkey: &Passkey,
    args: &ActiveArgs,
    list: List,
) -> anyhow::Result<()> {
    let activity = context.open_activity().await?;
    let mut torrents: Vec<ActiveTorrent> = Vec::new();
    let mut page = Page::first(args.limit as usize);
    loop {
        page.limit = args.limit as usize - torrents.len();
        let listing = match list {
            List::Seeding => activity.seeding(passkey, &page).await?,
            List::Leeching => activity.leeching(passkey, &page).await?,
        };
        torrents.extend(listing.torrents);
        page.after = listing.next;
        if page.after.is_none() || torrents.len() >= args.limit as usize {
            break;
        }
    }
    let counts = activity.counts(passkey).await?;
    let count = match list {
        List::Seeding => counts.seeding,
        List::Leeching => counts.leeching,
    };
    let now = SystemClock.now();
    let mut table = Table::new(&["infohash", "last announce"]);
    for torrent in &torrents {
        table.add(vec![torrent.info_hash.to_string(), output::ago(torrent.at, now)]);
    }
    let listed: Vec<Json> = torrents
        .iter()
        .map(|torrent| json!({ "infohash": torrent.info_hash.to_string(), "last_announce": torrent.at.0 }))
        .collect();
    Ok(context.output.show(&json!({ "count": count, "torrents": listed }), &table)?)
}

pub async fn show_accounts(context: &CommandContext, user: UserId) -> anyhow::Result<()> {
    let ledger = context.open_ledger().await?;
    let mut table =
        Table::new(&["torrent", "uploaded", "downloaded", "seeding", "completed", "seeds now", "client"]);
    let mut accounts = Vec::new();
    let mut after = None;
    loop {
        let page = ledger.accounts_of(user, after, super::PAGE_ROWS).await?;
        for (key, account) in &page.accounts {
            let figures = &account.figures;
            table.add(vec![
                key.torrent.to_string(),
                output::bytes(figures.uploaded),
                output::bytes(figures.downloaded),
                output::duration(figures.seeding_s),
                yes_or_no(account.is_completed()).to_owned(),
                yes_or_no(account.is_seeding()).to_owned(),
                account.client(),
            ]);
            accounts.push(Json::from(json_of_account(key, account)));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(context.output.show(&json!({ "user": user.get(), "accounts": accounts }), &table)?)
}

fn json_of_account(key: &AccountKey, account: &Account) -> Map<String, Json> {
    let mut fields = json_of_figures(&account.figures);
    let more = [
        ("torrent", json!(key.torrent.get())),
        ("left", json!(account.left)),
        ("seeding", json!(account.is_seeding())),
        ("leeching", json!(account.is_leeching())),
        ("is_completed", json!(account.is_completed())),
        ("completed_at", json!(account.completed_at.map(|at| at.0))),
        ("client", json!(account.client())),
    ];
    fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    fields
}

pub async fn show_hit_and_runs(context: &CommandContext, user: UserId) -> anyhow::Result<()> {
    let ledger = context.open_ledger().await?;
    let now = SystemClock.now();
    let owing = ledger.hit_and_runs(user, &context.config.hit_and_run_policy()).await?;
    let mut table = Table::new(&["torrent", "state", "seeding", "uploaded", "downloaded"]);
    let mut listed = Vec::new();
    for (key, account, standing) in &owing {
        let (name, detail) = match standing {
            HitAndRunStatus::Clear => continue,
            HitAndRunStatus::Owing { seeding_s_left } => {
                ("owing", format!("owes {} more", output::duration(*seeding_s_left)))
            }
            HitAndRunStatus::HitAndRun { since } => (
                "hit_and_run",
                format!("hit and run, absent for {}", output::duration(now.since(*since).0.into())),
            ),
        };
        let figures = &account.figures;
        table.add(vec![
            key.torrent.to_string(),
            detail,
            output::duration(figures.seeding_s),
            output::bytes(figures.uploaded),
            output::bytes(figures.downloaded),
        ]);
        let mut fields = json_of_account(key, account);
        fields.insert("state".to_owned(), name.into());
        if let HitAndRunStatus::Owing { seeding_s_left } = standing {
            fields.insert("seeding_s_left".to_owned(), (*seeding_s_left).into());
        }
        listed.push(Json::from(fields));
    }
    Ok(context.output.show(&json!({ "user": user.get(), "hit_and_runs": listed }), &table)?)
}
