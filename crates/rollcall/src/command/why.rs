//! `rollcall user why`: explains a user's figures, like the page "Why" of the dashboard.

use std::collections::HashMap;
use std::fmt;

use access::{Store, User};
use anyhow::Context;
use domain::{AnnounceEvent, Cause, TorrentId, UserId};
use journal::{EntryFilter, EntryId, Lane, SearchBounds, TorrentFilter, TrafficEntry};
use ledger::{
    AccountKey, ClientState, EXPLAINED_CLIENTS_MAX, ExplainedClient, Figures, Ledger, Moved, PastMultipliers,
};
use serde_json::{Value as Json, json};

use super::{CommandContext, PAGE_ROWS, accounts, user};
use crate::cli::WhyArgs;
use crate::output::{self, Fields, Table};

/// Journal entries scanned by one search.
const SCANNED_MAX: usize = 1_000_000;

/// Shows the figures, the totals of each client, and the announces that the journal still has.
pub(super) async fn show(context: &CommandContext, store: &Store, args: WhyArgs) -> anyhow::Result<()> {
    let user = user::find(store, args.id).await?;
    let ledger = context.open_ledger().await?;
    let figures = figures_of(&ledger, user.id, args.torrent).await?;
    let clients = clients_of(&ledger, user.id, args.torrent).await?;
    let torrent = match args.torrent {
        Some(id) => Some(sought_torrent(store, id).await?),
        None => None,
    };
    let sought = EntryFilter { user: Some(user.id), passkey: Some(user.passkey), torrent, kind: None };
    let bounds = SearchBounds { found_max: args.limit as usize, scanned_max: SCANNED_MAX };
    let journal = context.open_journal().await?;
    let found = journal.search(Lane::Traffic, EntryId::MAX, &sought, bounds).await?;
    let terms = ledger.past_multipliers().await?;
    let read = found.entries.iter().filter_map(|stored| TrafficEntry::parse(&stored.fields).ok());
    let entries: Vec<ExplainedEntry> = read.map(|entry| ExplainedEntry::of(&terms, user.id, entry)).collect();
    let text = WhyReport {
        names: names_of(store, &clients, &entries, args.torrent).await?,
        user: &user,
        torrent: args.torrent,
        figures: &figures,
        clients: &clients,
        entries: &entries,
        is_cut: found.next.is_some(),
    };
    let json = json!({
        "user": user.id.get(),
        "torrent": args.torrent.map(TorrentId::get),
        "figures": accounts::json_of_figures(&figures),
        "clients": clients.iter().map(ClientTotals::to_json).collect::<Vec<_>>(),
        "entries": entries.iter().map(ExplainedEntry::to_json).collect::<Vec<_>>(),
        "complete": found.next.is_none(),
    });
    Ok(context.output.show(&json, &text)?)
}

/// On one torrent, or on all.
async fn figures_of(ledger: &Ledger, user: UserId, torrent: Option<TorrentId>) -> anyhow::Result<Figures> {
    let Some(torrent) = torrent else {
        return Ok(ledger.user(user).await?.unwrap_or_default());
    };
    let account = ledger.account(AccountKey { user, torrent }).await?;
    let account = account.with_context(|| {
        format!("user {user} never announced torrent {torrent}: see rollcall user torrents {user}")
    })?;
    Ok(account.figures)
}

/// Names of the torrents in the report.
async fn names_of(
    store: &Store,
    clients: &[ClientTotals],
    entries: &[ExplainedEntry],
    torrent: Option<TorrentId>,
) -> anyhow::Result<HashMap<TorrentId, String>> {
    let totals = clients.iter().map(|totals| totals.torrent);
    let announced = entries.iter().filter_map(|explained| explained.entry.torrent);
    let mut ids: Vec<TorrentId> = totals.chain(announced).chain(torrent).collect();
    ids.sort_unstable();
    ids.dedup();
    let torrents = store.torrents_with(&ids).await?;
    Ok(torrents.into_iter().map(|torrent| (torrent.id, torrent.name)).collect())
}

struct WhyReport<'a> {
    names: HashMap<TorrentId, String>,
    user: &'a User,
    torrent: Option<TorrentId>,
    figures: &'a Figures,
    clients: &'a [ClientTotals],
    entries: &'a [ExplainedEntry],
    is_cut: bool,
}

impl WhyReport<'_> {
    fn name(&self, torrent: Option<TorrentId>) -> String {
        torrent.and_then(|id| self.names.get(&id)).cloned().unwrap_or_default()
    }

    fn fields(&self) -> Fields {
        let fields = match &self.user.name {
            Some(name) => Fields::default().with("user", format!("{} ({name})", self.user.id)),
            None => Fields::default().with("user", self.user.id),
        };
        let fields = match self.torrent {
            Some(torrent) => fields.with("torrent", format!("{torrent} ({})", self.name(Some(torrent)))),
            None => fields,
        };
        accounts::with_figures(fields, self.figures).with("ratio", accounts::ratio_text(self.figures))
    }

    fn client_table(&self) -> Table {
        let mut table = Table::new(&["torrent", "client", "state", "uploaded", "downloaded", "name"]);
        for totals in self.clients {
            table.add(totals.cells(self.name(Some(totals.torrent))));
        }
        if self.clients.len() > 1 {
            let sum =
                |of: fn(&Moved) -> i128| signed_bytes(self.clients.iter().map(|one| of(&one.moved)).sum());
            let (uploaded, downloaded) = (sum(|moved| moved.uploaded), sum(|moved| moved.downloaded));
            table.add(vec!["all".to_owned(), String::new(), String::new(), uploaded, downloaded]);
        }
        table
    }

    fn entry_table(&self) -> Table {
        let columns = [
            "at (UTC)",
            "torrent",
            "event",
            "uploaded",
            "credited",
            "downloaded",
            "credited",
            "client",
            "name",
        ];
        let mut table = Table::new(&columns);
        for explained in self.entries {
            table.add(explained.cells(self.name(explained.entry.torrent)));
        }
        table
    }
}

impl fmt::Display for WhyReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_cut { "; --limit shows more" } else { "" };
        writeln!(
            f,
            "{}\ntotals of each client, without multipliers\n{}",
            self.fields(),
            self.client_table()
        )?;
        writeln!(f, "announces, newest first, credited by the multipliers in force at their time{more}")?;
        write!(f, "{}", self.entry_table())
    }
}

async fn sought_torrent(store: &Store, id: TorrentId) -> anyhow::Result<TorrentFilter> {
    let known = store.torrent(id).await?;
    let hashes = known.iter().flat_map(|torrent| [Some(torrent.info_hash), torrent.info_hash_v2]);
    Ok(TorrentFilter { id, info_hashes: hashes.flatten().collect() })
}

/// What one client transferred on a torrent.
struct ClientTotals {
    torrent: TorrentId,
    /// Id and state; none for the sum of all other clients.
    client: Option<(String, &'static str)>,
    moved: Moved,
}

/// On one torrent, or on the first page of a user's torrents.
async fn clients_of(
    ledger: &Ledger,
    user: UserId,
    torrent: Option<TorrentId>,
) -> anyhow::Result<Vec<ClientTotals>> {
    let torrents = match torrent {
        Some(torrent) => vec![torrent],
        None => {
            let page = ledger.accounts_of(user, None, PAGE_ROWS).await?;
            page.accounts.iter().map(|(key, _)| key.torrent).collect()
        }
    };
    let mut all = Vec::new();
    for torrent in torrents {
        let key = AccountKey { user, torrent };
        let Some(explained) = ledger.explain(key, EXPLAINED_CLIENTS_MAX).await? else { continue };
        all.extend(explained.clients.iter().map(|client| ClientTotals {
            torrent,
            client: Some((format!("{:016x}", client.client.0), state_of(client))),
            moved: client.contribution(),
        }));
        let moved = explained.rest;
        if moved.uploaded != 0 || moved.downloaded != 0 {
            all.push(ClientTotals { torrent, client: None, moved });
        }
    }
    Ok(all)
}

fn state_of(client: &ExplainedClient) -> &'static str {
    match client.state {
        ClientState::Inactive => "gone",
        ClientState::Seeding => "seeding",
        ClientState::Leeching => "leeching",
    }
}

impl ClientTotals {
    fn to_json(&self) -> Json {
        json!({
            "torrent": self.torrent.get(),
            "client_id": self.client.as_ref().map(|(id, _)| id),
            "state": self.client.as_ref().map(|(_, state)| state),
            "uploaded": self.moved.uploaded.to_string(),
            "downloaded": self.moved.downloaded.to_string(),
        })
    }

    fn cells(&self, name: String) -> Vec<String> {
        let (id, state) = self.client.clone().unwrap_or_else(|| ("others".to_owned(), ""));
        let (uploaded, downloaded) = (signed_bytes(self.moved.uploaded), signed_bytes(self.moved.downloaded));
        vec![self.torrent.to_string(), id, state.to_owned(), uploaded, downloaded, name]
    }
}

fn signed_bytes(amount: i128) -> String {
    format!("{}{}", if amount < 0 { "-" } else { "" }, output::bytes(amount.unsigned_abs()))
}

/// `-` for an announce without an event.
fn event_of(entry: &TrafficEntry) -> &'static str {
    match (entry.cause, entry.event) {
        (Cause::Timeout | Cause::Removal, _) => entry.cause.name(),
        (Cause::Announce, AnnounceEvent::None) => "-",
        (Cause::Announce, event) => event.name(),
    }
}

struct ExplainedEntry {
    entry: TrafficEntry,
    /// Credited upload and download; none if unknown.
    credited: Option<(u64, u64)>,
}

impl ExplainedEntry {
    fn of(terms: &PastMultipliers, user: UserId, entry: TrafficEntry) -> ExplainedEntry {
        let moved = terms.plausible(&entry);
        let key = entry.torrent.map(|torrent| AccountKey { user, torrent });
        let in_force = key.and_then(|key| terms.in_force(key, entry.at));
        let credited =
            in_force.map(|terms| (terms.uploaded(moved.uploaded), terms.downloaded(moved.downloaded)));
        ExplainedEntry { entry, credited }
    }

    fn to_json(&self) -> Json {
        let entry = &self.entry;
        json!({
            "at": entry.at.0,
            "torrent": entry.torrent.map(TorrentId::get),
            "infohash": entry.info_hash.to_string(),
            "event": entry.event.name(),
            "cause": entry.cause.name(),
            "uploaded_delta": entry.uploaded_delta.to_string(),
            "downloaded_delta": entry.downloaded_delta.to_string(),
            "credited_uploaded": self.credited.map(|(uploaded, _)| uploaded.to_string()),
            "credited_downloaded": self.credited.map(|(_, downloaded)| downloaded.to_string()),
            "client": ledger::client_of(&entry.peer_id),
        })
    }

    fn cells(&self, name: String) -> Vec<String> {
        let entry = &self.entry;
        let credited = |of: fn((u64, u64)) -> u64| {
            self.credited.map_or_else(|| "unknown".to_owned(), |both| output::bytes(of(both).into()))
        };
        vec![
            output::second(entry.at),
            entry.torrent.map_or_else(|| "-".to_owned(), |torrent| torrent.to_string()),
            event_of(entry).to_owned(),
            output::bytes(entry.uploaded_delta.into()),
            credited(|both| both.0),
            output::bytes(entry.downloaded_delta.into()),
            credited(|both| both.1),
            ledger::client_of(&entry.peer_id),
            name,
        ]
    }
}
