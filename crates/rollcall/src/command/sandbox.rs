//! `rollcall sandbox` (W9): test users, passkeys and sample torrents for trying an integration, and the commands to try
//! it with.
//!
//! # Layout
//!
//! - [`sample`]: the sample torrents
//! - [`recipes`]: the commands that are printed
//!
//! # Guarantees
//!
//! - Made twice, it is one sandbox: users keep their passkeys, torrents their infohashes.
//! - Its users and torrents have ids from [`SANDBOX_IDS`], from which no automatic id is taken. It can be cleared after
//!   a crash half-way, and by another machine.
//! - `clear` removes users that are marked as of the sandbox, and torrents that are one of our samples: no other row,
//!   whatever its id.
//!
//! # Deliberately absent
//!
//! Clearing the accounts: what test users moved stays there, as it does for everybody who leaves.

pub mod recipes;
pub mod sample;

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use access::audit::{Record, Subject};
use access::{AccessError, NewTorrent, NewUser, Passkeys, SANDBOX_IDS, Store, Torrent, User};
use anyhow::{Context, bail};
use domain::clock::{Clock, SystemClock};
use domain::{Passkey, TorrentId, UserId};
use serde_json::{Value as Json, json};

use super::audited::record;
use super::{CommandContext, PAGE_ROWS};
use crate::announce_url::{AnnounceUrls, BaseUrl};
use crate::cli::{SandboxArgs, SandboxCommand};
use crate::config::Tracker;
use crate::wiring::stores;
use recipes::{Recipe, SANDBOX_GROUP, Setting};
use sample::Sample;

/// The first number of users and torrents in a sandbox.
pub const FIRST_ID: u64 = *SANDBOX_IDS.start();

/// A user of the sandbox.
#[derive(Clone, Debug)]
pub struct Tester {
    /// Who.
    pub user: User,
    /// What they announce to.
    pub announce_url: String,
    /// Where their torrent files are.
    pub folder: PathBuf,
}

/// Runs it.
pub async fn run(context: &CommandContext, args: SandboxArgs) -> anyhow::Result<()> {
    let store = context.open_store().await?;
    match args.command {
        Some(SandboxCommand::Clear) => clear(context, &store).await?,
        None => create(context, &store, &args).await?,
    }
    store.close().await;
    Ok(())
}

async fn create(context: &CommandContext, store: &Store, args: &SandboxArgs) -> anyhow::Result<()> {
    let folder = folder_of(&context.data)?;
    let mut testers = Vec::new();
    for number in 1..=args.users {
        let user = ensure_user(context, store, number).await?;
        let announce_url = announce_url(&context.config.tracker, args.base.as_ref(), user.passkey)?;
        let folder = folder.join(format!("user-{}", user.id));
        testers.push(Tester { user, announce_url, folder });
    }
    let passkeys: Vec<Passkey> = testers.iter().map(|tester| tester.user.passkey).collect();
    ensure_listed(context, store, &passkeys).await?;
    let mut samples = Vec::new();
    for number in 1..=args.torrents {
        let sample = Sample::numbered(number);
        ensure_torrent(context, store, number, &sample).await?;
        samples.push(sample);
    }
    write_files(&folder, &testers, &samples)?;
    let setting = Setting { context, folder: &folder, testers: &testers, samples: &samples };
    let recipes = recipes::all(&setting)?;
    Ok(context.output.show(&json_of(&setting, &recipes), &text_of(&setting, &recipes))?)
}

fn whitelist(context: &CommandContext, store: &Store) -> anyhow::Result<Passkeys> {
    Ok(Passkeys::new(stores::open_whitelist(&context.config, store)?.store, store.clone()))
}

/// The folder of the sandbox, by a path that works from everywhere.
fn folder_of(data: &Path) -> anyhow::Result<PathBuf> {
    let absolute =
        std::path::absolute(data).with_context(|| format!("cannot tell where {} is", data.display()))?;
    Ok(absolute.join("sandbox"))
}

async fn ensure_user(context: &CommandContext, store: &Store, number: u32) -> anyhow::Result<User> {
    let id = UserId::new(FIRST_ID - 1 + u64::from(number)).context("too many users")?;
    if let Some(user) = store.user(id).await? {
        return of_sandbox(user);
    }
    let adding = async {
        let user = NewUser { id: Some(id), passkey: None, created_at: SystemClock.now() };
        match store.add_sandbox_user(user).await {
            // Another process makes the same sandbox just now.
            Err(AccessError::UserIdTaken(_)) => super::user::find(store, id).await,
            added => added,
        }
    };
    let record = record("user.add", Subject::user(Some(id)));
    of_sandbox(context.audited(record, adding, super::user::tell_of).await?)
}

/// A user that is not marked is left alone: it was added by other means.
fn of_sandbox(user: User) -> anyhow::Result<User> {
    if user.sandbox {
        return Ok(user);
    }
    bail!(
        "user {id} is not a user of the sandbox, but has one of its ids: remove it with \"rollcall user remove {id}\" if \
         it was made by the sandbox of an older version",
        id = user.id
    )
}

/// The site asks the whitelist as well: there they are, too.
async fn ensure_listed(context: &CommandContext, store: &Store, passkeys: &[Passkey]) -> anyhow::Result<()> {
    let whitelist = whitelist(context, store)?;
    if whitelist.contains(passkeys).await?.into_iter().all(|is_listed| is_listed) {
        return Ok(());
    }
    let record = record("passkey.add", Subject::whitelist()).about_passkeys(passkeys);
    context.audited(record, whitelist.add(passkeys), |record, added| record.with("added", *added)).await?;
    Ok(())
}

async fn ensure_torrent(
    context: &CommandContext,
    store: &Store,
    number: u32,
    sample: &Sample,
) -> anyhow::Result<()> {
    let id = torrent_id(number)?;
    if let Some(torrent) = store.torrent(id).await? {
        return match torrent.info_hash == sample.info_hash {
            true => Ok(()),
            false => bail!(
                "torrent {id} ({}) is not one of ours, and its number is kept free for the sandbox: give it another number",
                torrent.name
            ),
        };
    }
    let torrent = NewTorrent {
        id: Some(id),
        info_hash: sample.info_hash,
        info_hash_v2: None,
        name: sample.name.clone(),
        total_bytes: sample.content.len() as u64,
        created_at: SystemClock.now(),
    };
    let adding = async {
        match store.add_torrent(torrent).await {
            Ok(_) | Err(AccessError::TorrentIdTaken(_)) => Ok(()),
            Err(error) => Err(error),
        }
    };
    let record = record("torrent.add", Subject::torrent(Some(id)))
        .with("infohash", sample.info_hash.to_string())
        .with("name", &*sample.name);
    context.audited(record, adding, |record, ()| record).await
}

fn torrent_id(number: u32) -> anyhow::Result<TorrentId> {
    TorrentId::new(FIRST_ID - 1 + u64::from(number)).context("too many torrents")
}

/// The one URL that every client understands: HTTP before HTTPS, since nobody else is on the way here, before UDP.
fn announce_url(tracker: &Tracker, base: Option<&BaseUrl>, passkey: Passkey) -> anyhow::Result<String> {
    let urls = match base {
        Some(base) => AnnounceUrls::of_base(base, tracker, passkey),
        None => AnnounceUrls::of_listeners(&seen_from_here(tracker), passkey)?,
    };
    let first = urls.http.iter().chain(&urls.https).chain(&urls.udp).next();
    Ok(first.context("there is no announce URL")?.clone())
}

/// A server that listens on every address can be reached on loopback, where the commands are going to be typed.
fn seen_from_here(tracker: &Tracker) -> Tracker {
    let all_from_here = |list: &[SocketAddr]| list.iter().copied().map(from_here).collect();
    Tracker {
        http_addr: all_from_here(&tracker.http_addr),
        https_addr: all_from_here(&tracker.https_addr),
        udp_addr: all_from_here(&tracker.udp_addr),
        ..tracker.clone()
    }
}

/// An address as this machine can dial it.
pub(crate) fn from_here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Everything in the folder can be written again: what is there already is replaced by the same.
fn write_files(folder: &Path, testers: &[Tester], samples: &[Sample]) -> anyhow::Result<()> {
    let content = folder.join("content");
    make_private_folder(folder)?;
    make_private_folder(&content)?;
    make_private_folder(&folder.join("downloads"))?;
    for sample in samples {
        write_file(&content.join(&sample.name), &sample.content)?;
    }
    for tester in testers {
        make_private_folder(&tester.folder)?;
        for sample in samples {
            write_file(&tester.folder.join(sample.torrent_name()), &sample.metainfo(&tester.announce_url))?;
        }
    }
    Ok(())
}

/// Torrent files have passkeys in them.
fn make_private_folder(path: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot make the folder {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .with_context(|| format!("cannot keep {} private", path.display()))
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn json_of(setting: &Setting<'_>, recipes: &[Recipe]) -> Json {
    let user = |tester: &Tester| {
        json!({
            "id": tester.user.id.get(),
            "passkey": tester.user.passkey.to_string(),
            "announce_url": tester.announce_url,
            "torrent_files": tester.folder,
        })
    };
    let torrent = |(sample, number): (&Sample, u64)| {
        json!({
            "id": FIRST_ID + number,
            "name": sample.name,
            "infohash": sample.info_hash.to_string(),
            "total_bytes": sample.content.len().to_string(),
            "content": setting.folder.join("content").join(&sample.name),
        })
    };
    let recipe =
        |recipe: &Recipe| json!({ "name": recipe.name, "what": recipe.what, "command": recipe.command });
    json!({
        "folder": setting.folder,
        "users": setting.testers.iter().map(user).collect::<Vec<_>>(),
        "torrents": setting.samples.iter().zip(0..).map(torrent).collect::<Vec<_>>(),
        "commands": recipes.iter().map(recipe).collect::<Vec<_>>(),
    })
}

fn text_of(setting: &Setting<'_>, recipes: &[Recipe]) -> String {
    let mut text =
        "A sandbox to try an integration in. Remove it with: rollcall sandbox clear\n\n".to_owned();
    for tester in setting.testers {
        let _ = writeln!(text, "user {}     passkey {}", tester.user.id, tester.user.passkey);
    }
    for (sample, number) in setting.samples.iter().zip(0..) {
        let _ =
            writeln!(text, "torrent {}  infohash {}  {}", FIRST_ID + number, sample.info_hash, sample.name);
    }
    let _ = writeln!(text, "files in {}", setting.folder.display());
    for recipe in recipes {
        let _ = write!(text, "\n# {}\n{}\n", recipe.what, recipe.command);
    }
    text
}

/// Removes what [`create`] made. Passkeys leave the whitelist first, since only the users say which they are.
async fn clear(context: &CommandContext, store: &Store) -> anyhow::Result<()> {
    let (users, kept) = users_of_sandbox(store).await?;
    let passkeys: Vec<Passkey> = users.iter().map(|user| user.passkey).collect();
    if !passkeys.is_empty() {
        let whitelist = whitelist(context, store)?;
        let record = record("passkey.remove", Subject::whitelist()).about_passkeys(&passkeys);
        let tell = |record: Record, removed: &u64| record.with("removed", *removed);
        context.audited(record, whitelist.remove(&passkeys), tell).await?;
    }
    for user in &users {
        let removing = async { forgive_absence(store.remove_user(user.id).await) };
        let record = record("user.remove", Subject::user(Some(user.id)));
        context.audited(record, removing, |record, ()| record).await?;
    }
    let torrents = torrents_of_sandbox(store).await?;
    for torrent in &torrents {
        let removing = async { forgive_absence(store.remove_torrent(torrent.id).await) };
        let record = record("torrent.remove", Subject::torrent(Some(torrent.id)));
        context.audited(record, removing, |record, ()| record).await?;
    }
    destroy_group(context).await?;
    let folder = folder_of(&context.data)?;
    let had_files = match fs::remove_dir_all(&folder) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error).with_context(|| format!("cannot remove {}", folder.display())),
    };
    let json = json!({ "users": users.len(), "torrents": torrents.len(), "files": had_files });
    if !kept.is_empty() {
        let kept: Vec<String> = kept.iter().map(|user| user.id.to_string()).collect();
        eprintln!(
            "note: kept, since they are not marked as users of the sandbox: {}. Remove one with: rollcall user remove ID",
            kept.join(", ")
        );
    }
    let text = format!(
        "removed: users: {}, torrents: {}, folder {}: {}\nWhat the users moved stays in the accounts.\n",
        users.len(),
        torrents.len(),
        folder.display(),
        if had_files { "yes" } else { "was not there" },
    );
    Ok(context.output.show(&json, &text)?)
}

/// Somebody else may clear the same sandbox just now.
fn forgive_absence(outcome: Result<(), AccessError>) -> Result<(), AccessError> {
    match outcome {
        Err(AccessError::UnknownUser(_) | AccessError::UnknownTorrent(_)) => Ok(()),
        outcome => outcome,
    }
}

/// The users of the sandbox, and others that have ids of the sandbox.
async fn users_of_sandbox(store: &Store) -> anyhow::Result<(Vec<User>, Vec<User>)> {
    let mut users = store.list_users(UserId::new(FIRST_ID - 1), PAGE_ROWS).await?;
    users.retain(|user| SANDBOX_IDS.contains(&user.id.get()));
    Ok(users.into_iter().partition(|user| user.sandbox))
}

async fn torrents_of_sandbox(store: &Store) -> anyhow::Result<Vec<Torrent>> {
    let mut torrents = store.list_torrents(TorrentId::new(FIRST_ID - 1), PAGE_ROWS).await?;
    torrents.retain(|torrent| {
        let number = u32::try_from(torrent.id.get().saturating_sub(FIRST_ID - 1)).unwrap_or(u32::MAX);
        SANDBOX_IDS.contains(&torrent.id.get()) && Sample::numbered(number).info_hash == torrent.info_hash
    });
    Ok(torrents)
}

/// The group of the printed commands would keep entries from being removed for ever.
async fn destroy_group(context: &CommandContext) -> anyhow::Result<()> {
    let Some(stores::RedisBackend { redis, names }) = stores::redis_backend(&context.config)? else {
        return Ok(());
    };
    let command = redis::cmd("XGROUP").arg("DESTROY").arg(names.traffic()).arg(SANDBOX_GROUP).to_owned();
    match redis.query::<i64>(&command).await {
        Ok(_) => Ok(()),
        // There is no stream, so there is no group.
        Err(trouble) if !trouble.is_retryable() => Ok(()),
        Err(trouble) => Err(trouble.into()),
    }
}
