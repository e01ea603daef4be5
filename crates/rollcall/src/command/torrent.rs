//! `rollcall torrent …`

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use access::redis_source::Kind;
use access::{AccessError, LeechSlots, NewTorrent, Store, TORRENT_NAME_CHARS_MAX, Torrent, TorrentChange};
use admin::audit::{Record, Subject};
use anyhow::{Context, bail};
use domain::clock::{Clock, SystemClock};
use domain::{IdError, InfoHash, TorrentId, UserId};
use serde_json::{Value as Json, json};
use wire::metainfo::{MAX_METAINFO_BYTES, Metainfo};

use super::audited::record;
use super::{CommandContext, PAGE_ROWS, accounts, sync, user};
use crate::announce_url::{AnnounceUrls, BaseUrl};
use crate::cli::{TorrentAddArgs, TorrentCommand};
use crate::output::{self, Fields, Table, yes_or_no};

/// A torrent by id or infohash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TorrentRef {
    Id(TorrentId),
    InfoHash(InfoHash),
}

impl FromStr for TorrentRef {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        // No id has forty digits, so the length decides.
        if text.len() == 40 { text.parse().map(Self::InfoHash) } else { text.parse().map(Self::Id) }
    }
}

impl fmt::Display for TorrentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TorrentRef::Id(id) => id.fmt(f),
            TorrentRef::InfoHash(info_hash) => info_hash.fmt(f),
        }
    }
}

pub async fn run(context: &CommandContext, command: TorrentCommand) -> anyhow::Result<()> {
    let store = context.open_store().await?;
    match command {
        TorrentCommand::Sync(args) => sync::run(context, &store, Kind::Torrents, args).await?,
        TorrentCommand::Add(args) => {
            let is_pending = args.pending;
            let new = read_new(args)?;
            let record = record("torrent.add", Subject::torrent(new.id))
                .with("infohash", new.info_hash.to_string())
                .with("name", &*new.name);
            let adding = async {
                match is_pending {
                    true => store.add_pending_torrent(new).await,
                    false => store.add_torrent(new).await,
                }
            };
            let details = |record: Record, added: &Torrent| record.about(Subject::torrent(Some(added.id)));
            show(context, &context.audited(record, adding, details).await?)?;
        }
        TorrentCommand::List => list(context, &find_all(&store).await?)?,
        TorrentCommand::Show { torrent } => {
            show_with_accounts(context, &find(&store, torrent).await?).await?
        }
        TorrentCommand::Remove { torrent } => remove(context, &store, torrent).await?,
        TorrentCommand::Enable { torrent } => set_enabled(context, &store, torrent, true).await?,
        TorrentCommand::Disable { torrent } => set_enabled(context, &store, torrent, false).await?,
        TorrentCommand::Approve { torrent } => set_approved(context, &store, torrent, true).await?,
        TorrentCommand::Unapprove { torrent } => set_approved(context, &store, torrent, false).await?,
        TorrentCommand::Set { torrent, leech_slots } => {
            set_slots(context, &store, torrent, leech_slots).await?;
        }
        TorrentCommand::AnnounceUrl { user, base } => announce_url(context, &store, user, base).await?,
    }
    store.close().await;
    Ok(())
}

/// Checks the name.
fn read_new(args: TorrentAddArgs) -> anyhow::Result<NewTorrent> {
    let new = read_any(args)?;
    if new.name.chars().count() > TORRENT_NAME_CHARS_MAX || new.name.contains('\0') {
        bail!("a name has at most {TORRENT_NAME_CHARS_MAX} characters, without NUL: set another with --name");
    }
    Ok(new)
}

fn read_any(args: TorrentAddArgs) -> anyhow::Result<NewTorrent> {
    let created_at = SystemClock.now();
    let TorrentAddArgs { file, infohash, id, name, allow_public, .. } = args;
    if let Some(info_hash) = infohash {
        let name = name.unwrap_or_default();
        return Ok(NewTorrent { id, info_hash, info_hash_v2: None, name, total_bytes: 0, created_at });
    }
    let path = file.context("expected a .torrent file, or --infohash and --name")?;
    let metainfo = read_metainfo(&path)?;
    if !metainfo.private && !allow_public {
        bail!(
            "{} has no private flag, so clients would also find peers elsewhere, unaccounted: create it again \
             as a private torrent (transmission-create --private), or add it with --allow-public",
            path.display()
        );
    }
    Ok(NewTorrent {
        id,
        info_hash: metainfo.info_hash,
        info_hash_v2: metainfo.info_hash_v2,
        name: name.unwrap_or(metainfo.name),
        total_bytes: metainfo.total_bytes,
        created_at,
    })
}

/// Bounded, whatever file the path names.
fn read_metainfo(path: &Path) -> anyhow::Result<Metainfo> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    opened
        .take(MAX_METAINFO_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Metainfo::parse(&bytes).with_context(|| format!("{} is not a torrent", path.display()))
}

async fn find(store: &Store, torrent: TorrentRef) -> anyhow::Result<Torrent> {
    match torrent {
        TorrentRef::Id(id) => Ok(store.torrent(id).await?.ok_or(AccessError::UnknownTorrent(id))?),
        TorrentRef::InfoHash(info_hash) => {
            let found = store.torrent_by_info_hash(&info_hash).await?;
            found.with_context(|| format!("there is no torrent with infohash {info_hash}"))
        }
    }
}

async fn find_all(store: &Store) -> Result<Vec<Torrent>, AccessError> {
    let mut torrents: Vec<Torrent> = Vec::new();
    loop {
        let page = store.list_torrents(torrents.last().map(|torrent| torrent.id), PAGE_ROWS).await?;
        let is_last = page.len() < PAGE_ROWS as usize;
        torrents.extend(page);
        if is_last {
            return Ok(torrents);
        }
    }
}

fn show(context: &CommandContext, torrent: &Torrent) -> std::io::Result<()> {
    context.output.show(&json_of(torrent), &fields_of(torrent))
}

fn fields_of(torrent: &Torrent) -> Fields {
    let mut fields = Fields::default()
        .with("id", torrent.id)
        .with("name", &torrent.name)
        .with("infohash", torrent.info_hash);
    if let Some(info_hash_v2) = torrent.info_hash_v2 {
        fields = fields.with("infohash v2", info_hash_v2);
    }
    fields
        .with("size", output::size(torrent.total_bytes))
        .with("enabled", yes_or_no(torrent.enabled))
        .with("approved", yes_or_no(torrent.approved))
        .with("leech slots", torrent.leech_slots)
}

/// With its totals.
async fn show_with_accounts(context: &CommandContext, torrent: &Torrent) -> anyhow::Result<()> {
    let figures = context.open_ledger().await?.torrent(torrent.id).await?.unwrap_or_default();
    let fields = accounts::with_figures(fields_of(torrent), &figures);
    let mut json = json_of(torrent);
    if let Json::Object(object) = &mut json {
        object.extend(accounts::json_of_figures(&figures));
    }
    Ok(context.output.show(&json, &fields)?)
}

fn list(context: &CommandContext, torrents: &[Torrent]) -> std::io::Result<()> {
    let mut table = Table::new(&["id", "enabled", "approved", "infohash", "size", "name"]);
    for torrent in torrents {
        table.add(vec![
            torrent.id.to_string(),
            yes_or_no(torrent.enabled).to_owned(),
            yes_or_no(torrent.approved).to_owned(),
            torrent.info_hash.to_string(),
            output::size(torrent.total_bytes),
            torrent.name.clone(),
        ]);
    }
    let torrents: Vec<Json> = torrents.iter().map(json_of).collect();
    context.output.show(&json!({ "torrents": torrents }), &table)
}

async fn remove(context: &CommandContext, store: &Store, torrent: TorrentRef) -> anyhow::Result<()> {
    let removing = async {
        let Torrent { id, .. } = find(store, torrent).await?;
        store.remove_torrent(id).await?;
        anyhow::Ok(id)
    };
    let record = record("torrent.remove", Subject::new("torrent", torrent));
    let id =
        context.audited(record, removing, |record, id| record.about(Subject::torrent(Some(*id)))).await?;
    context.output.show(&json!({ "id": id.get(), "removed": true }), &format!("removed torrent {id}\n"))?;
    Ok(())
}

async fn set_enabled(
    context: &CommandContext,
    store: &Store,
    torrent: TorrentRef,
    enabled: bool,
) -> anyhow::Result<()> {
    let action = if enabled { "torrent.enable" } else { "torrent.disable" };
    let change = TorrentChange { enabled: Some(enabled), ..TorrentChange::default() };
    let record = record(action, Subject::new("torrent", torrent));
    let id = make_change(context, store, torrent, change, record).await?;
    let text = format!("{} torrent {id}\n", if enabled { "enabled" } else { "disabled" });
    context.output.show(&json!({ "id": id.get(), "enabled": enabled }), &text)?;
    Ok(())
}

async fn set_approved(
    context: &CommandContext,
    store: &Store,
    torrent: TorrentRef,
    approved: bool,
) -> anyhow::Result<()> {
    let action = if approved { "torrent.approve" } else { "torrent.unapprove" };
    let change = TorrentChange { approved: Some(approved), ..TorrentChange::default() };
    let record = record(action, Subject::new("torrent", torrent));
    let id = make_change(context, store, torrent, change, record).await?;
    let text = match approved {
        true => format!("approved torrent {id}\n"),
        false => format!("torrent {id} is pending\n"),
    };
    context.output.show(&json!({ "id": id.get(), "approved": approved }), &text)?;
    Ok(())
}

async fn set_slots(
    context: &CommandContext,
    store: &Store,
    torrent: TorrentRef,
    slots: LeechSlots,
) -> anyhow::Result<()> {
    let change = TorrentChange { leech_slots: Some(slots), ..TorrentChange::default() };
    let record = record("torrent.change", Subject::new("torrent", torrent));
    let record = record.with("leech_slots", slots.to_string());
    let id = make_change(context, store, torrent, change, record).await?;
    let text = format!("leech slots of torrent {id}: {slots}\n");
    context.output.show(&json!({ "id": id.get(), "leech_slots": slots.to_number() }), &text)?;
    Ok(())
}

/// Returns the torrent's id.
async fn make_change(
    context: &CommandContext,
    store: &Store,
    torrent: TorrentRef,
    change: TorrentChange,
    record: Record,
) -> anyhow::Result<TorrentId> {
    let changing = async {
        let Torrent { id, .. } = find(store, torrent).await?;
        store.change_torrent(id, change).await?;
        anyhow::Ok(id)
    };
    context.audited(record, changing, |record, id| record.about(Subject::torrent(Some(*id)))).await
}

async fn announce_url(
    context: &CommandContext,
    store: &Store,
    id: UserId,
    base: Option<BaseUrl>,
) -> anyhow::Result<()> {
    let passkey = user::find(store, id).await?.passkey;
    let tracker = &context.config.tracker;
    let urls = match base {
        Some(base) => AnnounceUrls::of_base(&base, tracker, passkey),
        None => AnnounceUrls::of_listeners(tracker, passkey)?,
    };
    let lines: String = urls.iter().map(|url| format!("{url}\n")).collect();
    let json = json!({ "user": id.get(), "https": urls.https, "http": urls.http, "udp": urls.udp });
    context.output.show(&json, &lines)?;
    Ok(())
}

fn json_of(torrent: &Torrent) -> Json {
    json!({
        "id": torrent.id.get(),
        "name": torrent.name,
        "infohash": torrent.info_hash.to_string(),
        "infohash_v2": torrent.info_hash_v2.map(|info_hash| info_hash.to_string()),
        "total_bytes": torrent.total_bytes.to_string(),
        "enabled": torrent.enabled,
        "approved": torrent.approved,
        "leech_slots": torrent.leech_slots.to_number(),
        "created_at": torrent.created_at.0,
    })
}
