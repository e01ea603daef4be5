//! `rollcall sandbox` (W9): test users, passkeys and sample torrents for testing an integration, and commands to do
//! so.
//!
//! # Layout
//!
//! - [`sample`]: the sample torrents
//! - [`recipes`]: the printed commands
//!
//! # Guarantees
//!
//! - Idempotent: users keep their passkeys, torrents their infohashes.
//! - Users and torrents have ids from [`SANDBOX_IDS`], which are never assigned automatically. It can be cleared
//!   after a crash, and from another machine.
//! - `clear` removes users marked as of the sandbox and our sample torrents: no other row, whatever its id.
//!
//! # Deliberately absent
//!
//! Clearing the accounts: those of removed users stay.

pub mod recipes;
pub mod sample;

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use access::{AccessError, NewTorrent, NewUser, Passkeys, SANDBOX_IDS, Store, Torrent, User};
use admin::audit::{Record, Subject};
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
use recipes::{Recipe, SANDBOX_GROUP, SandboxContext};
use sample::Sample;

/// First id of users and torrents.
pub const FIRST_ID: u64 = *SANDBOX_IDS.start();

#[derive(Clone, Debug)]
pub struct SandboxUser {
    pub user: User,
    pub announce_url: String,
    /// Folder of the user's torrent files.
    pub folder: PathBuf,
}

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
    let mut sandbox_users = Vec::new();
    for number in 1..=args.users {
        let user = ensure_user(context, store, number).await?;
        let announce_url = announce_url(&context.config.tracker, args.base.as_ref(), user.passkey)?;
        let folder = folder.join(format!("user-{}", user.id));
        sandbox_users.push(SandboxUser { user, announce_url, folder });
    }
    let passkeys: Vec<Passkey> = sandbox_users.iter().map(|sandbox_user| sandbox_user.user.passkey).collect();
    ensure_listed(context, store, &passkeys).await?;
    let mut samples = Vec::new();
    for number in 1..=args.torrents {
        let sample = Sample::numbered(number);
        ensure_torrent(context, store, number, &sample).await?;
        samples.push(sample);
    }
    write_files(&folder, &sandbox_users, &samples)?;
    let sandbox =
        SandboxContext { context, folder: &folder, sandbox_users: &sandbox_users, samples: &samples };
    let recipes = recipes::all(&sandbox)?;
    Ok(context.output.show(&json_of(&sandbox, &recipes), &text_of(&sandbox, &recipes))?)
}

fn whitelist(context: &CommandContext, store: &Store) -> anyhow::Result<Passkeys> {
    Ok(Passkeys::new(stores::open_whitelist(&context.config, store)?.store, store.clone()))
}

/// Absolute, for the printed commands.
fn folder_of(data: &Path) -> anyhow::Result<PathBuf> {
    let absolute =
        std::path::absolute(data).with_context(|| format!("cannot make {} absolute", data.display()))?;
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
            // Another process creates the same sandbox at the same time.
            Err(AccessError::UserIdTaken(_)) => super::user::find(store, id).await,
            added => added,
        }
    };
    let record = record("user.add", Subject::user(Some(id)));
    of_sandbox(context.audited(record, adding, super::user::audit_details).await?)
}

/// An unmarked user was not created by the sandbox.
fn of_sandbox(user: User) -> anyhow::Result<User> {
    if user.sandbox {
        return Ok(user);
    }
    bail!(
        "user {id} is not a user of the sandbox but has one of its ids: remove it with \"rollcall user remove {id}\" if \
         it was created by the sandbox of an older version",
        id = user.id
    )
}

/// The verify endpoint also uses the whitelist.
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
                "torrent {id} ({}) is not a sample torrent, but has an id reserved for the sandbox: give it another id",
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

/// HTTP first: every client supports it, and loopback needs no encryption.
fn announce_url(tracker: &Tracker, base: Option<&BaseUrl>, passkey: Passkey) -> anyhow::Result<String> {
    let urls = match base {
        Some(base) => AnnounceUrls::of_base(base, tracker, passkey),
        None => AnnounceUrls::of_listeners(&reachable_tracker(tracker), passkey)?,
    };
    let first = urls.http.iter().chain(&urls.https).chain(&urls.udp).next();
    Ok(first.context("there is no announce URL")?.clone())
}

/// Wildcard addresses become loopback, where the commands are run.
fn reachable_tracker(tracker: &Tracker) -> Tracker {
    let all_reachable_address = |list: &[SocketAddr]| list.iter().copied().map(reachable_address).collect();
    Tracker {
        http_addr: all_reachable_address(&tracker.http_addr),
        https_addr: all_reachable_address(&tracker.https_addr),
        udp_addr: all_reachable_address(&tracker.udp_addr),
        ..tracker.clone()
    }
}

/// A wildcard address becomes loopback.
pub(crate) fn reachable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Existing files are replaced by the same content.
fn write_files(folder: &Path, sandbox_users: &[SandboxUser], samples: &[Sample]) -> anyhow::Result<()> {
    let content = folder.join("content");
    make_private_folder(folder)?;
    make_private_folder(&content)?;
    make_private_folder(&folder.join("downloads"))?;
    for sample in samples {
        write_file(&content.join(&sample.name), &sample.content)?;
    }
    for sandbox_user in sandbox_users {
        make_private_folder(&sandbox_user.folder)?;
        for sample in samples {
            write_file(
                &sandbox_user.folder.join(sample.torrent_name()),
                &sample.metainfo(&sandbox_user.announce_url),
            )?;
        }
    }
    Ok(())
}

/// Torrent files contain passkeys.
fn make_private_folder(path: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot create the folder {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .with_context(|| format!("cannot set the permissions of {}", path.display()))
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn json_of(sandbox: &SandboxContext<'_>, recipes: &[Recipe]) -> Json {
    let user = |sandbox_user: &SandboxUser| {
        json!({
            "id": sandbox_user.user.id.get(),
            "passkey": sandbox_user.user.passkey.to_string(),
            "announce_url": sandbox_user.announce_url,
            "torrent_files": sandbox_user.folder,
        })
    };
    let torrent = |(sample, number): (&Sample, u64)| {
        json!({
            "id": FIRST_ID + number,
            "name": sample.name,
            "infohash": sample.info_hash.to_string(),
            "total_bytes": sample.content.len().to_string(),
            "content": sandbox.folder.join("content").join(&sample.name),
        })
    };
    let recipe =
        |recipe: &Recipe| json!({ "name": recipe.name, "what": recipe.what, "command": recipe.command });
    json!({
        "folder": sandbox.folder,
        "users": sandbox.sandbox_users.iter().map(user).collect::<Vec<_>>(),
        "torrents": sandbox.samples.iter().zip(0..).map(torrent).collect::<Vec<_>>(),
        "commands": recipes.iter().map(recipe).collect::<Vec<_>>(),
    })
}

fn text_of(sandbox: &SandboxContext<'_>, recipes: &[Recipe]) -> String {
    let mut text =
        "A sandbox for testing an integration. Remove it with: rollcall sandbox clear\n\n".to_owned();
    for sandbox_user in sandbox.sandbox_users {
        let _ = writeln!(text, "user {}     passkey {}", sandbox_user.user.id, sandbox_user.user.passkey);
    }
    for (sample, number) in sandbox.samples.iter().zip(0..) {
        let _ =
            writeln!(text, "torrent {}  infohash {}  {}", FIRST_ID + number, sample.info_hash, sample.name);
    }
    let _ = writeln!(text, "files in {}", sandbox.folder.display());
    for recipe in recipes {
        let _ = write!(text, "\n# {}\n{}\n", recipe.what, recipe.command);
    }
    text
}

/// Passkeys are removed from the whitelist first, because only the users list them.
async fn clear(context: &CommandContext, store: &Store) -> anyhow::Result<()> {
    let (users, kept) = users_of_sandbox(store).await?;
    let passkeys: Vec<Passkey> = users.iter().map(|user| user.passkey).collect();
    if !passkeys.is_empty() {
        let whitelist = whitelist(context, store)?;
        let record = record("passkey.remove", Subject::whitelist()).about_passkeys(&passkeys);
        let details = |record: Record, removed: &u64| record.with("removed", *removed);
        context.audited(record, whitelist.remove(&passkeys), details).await?;
    }
    for user in &users {
        let removing = async { ignore_absent(store.remove_user(user.id).await) };
        let record = record("user.remove", Subject::user(Some(user.id)));
        context.audited(record, removing, |record, ()| record).await?;
    }
    let torrents = torrents_of_sandbox(store).await?;
    for torrent in &torrents {
        let removing = async { ignore_absent(store.remove_torrent(torrent.id).await) };
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
            "note: kept, because they are not marked as users of the sandbox: {}. Remove one with: rollcall user remove ID",
            kept.join(", ")
        );
    }
    let text = format!(
        "removed: users: {}, torrents: {}, folder {}: {}\nThe accounts of the users are kept.\n",
        users.len(),
        torrents.len(),
        folder.display(),
        if had_files { "yes" } else { "did not exist" },
    );
    Ok(context.output.show(&json, &text)?)
}

/// Another process may clear the same sandbox.
fn ignore_absent(outcome: Result<(), AccessError>) -> Result<(), AccessError> {
    match outcome {
        Err(AccessError::UnknownUser(_) | AccessError::UnknownTorrent(_)) => Ok(()),
        outcome => outcome,
    }
}

/// Users of the sandbox, and other users with its ids.
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

/// An unread group would prevent trimming.
async fn destroy_group(context: &CommandContext) -> anyhow::Result<()> {
    let Some(stores::RedisBackend { redis, names }) = stores::redis_backend(&context.config)? else {
        return Ok(());
    };
    let command = redis::cmd("XGROUP").arg("DESTROY").arg(names.traffic()).arg(SANDBOX_GROUP).to_owned();
    match redis.query::<i64>(&command).await {
        Ok(_) => Ok(()),
        // Without a stream there is no group.
        Err(error) if !error.is_retryable() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
