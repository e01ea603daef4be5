//! JSON of accounts and figures: bytes are decimal strings (L2).

use domain::UnixTime;
use ledger::{Account, AccountKey, Figures, HitAndRunStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::torrents_by_id::Torrents;

/// Traffic, times and completions.
#[derive(Serialize, ToSchema)]
#[schema(as = Figures)]
pub(crate) struct FiguresJson {
    /// Raw bytes.
    #[schema(example = "1099511627776", pattern = "^[0-9]+$")]
    pub uploaded: String,
    /// Raw bytes.
    #[schema(example = "549755813888", pattern = "^[0-9]+$")]
    pub downloaded: String,
    /// Bytes after multipliers.
    #[schema(pattern = "^[0-9]+$")]
    pub credited_uploaded: String,
    /// Bytes after multipliers.
    #[schema(pattern = "^[0-9]+$")]
    pub credited_downloaded: String,
    /// Wall-clock seconds per user and torrent; several clients at a time count once.
    pub seeding_s: u64,
    /// As `seeding_s`.
    pub leeching_s: u64,
    /// First completions.
    pub completed: u64,
    /// Repeated completions.
    pub completed_again: u64,
    /// Time of the first announce.
    pub first_seen: Option<u32>,
    /// Time of the last announce.
    pub last_seen: Option<u32>,
}

impl FiguresJson {
    pub(crate) fn of(figures: &Figures) -> FiguresJson {
        let seconds = |at: Option<UnixTime>| at.map(|at| at.0);
        FiguresJson {
            uploaded: figures.uploaded.to_string(),
            downloaded: figures.downloaded.to_string(),
            credited_uploaded: figures.credited_uploaded().to_string(),
            credited_downloaded: figures.credited_downloaded().to_string(),
            seeding_s: figures.seeding_s,
            leeching_s: figures.leeching_s,
            completed: figures.completed_count,
            completed_again: figures.repeated_count,
            first_seen: seconds(figures.first_seen),
            last_seen: seconds(figures.last_seen),
        }
    }
}

/// A user's account on a torrent.
#[derive(Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountJson {
    /// Torrent id.
    pub torrent: u64,
    /// Null if the torrent was removed.
    pub infohash: Option<String>,
    /// Null if the torrent was removed.
    pub name: Option<String>,
    /// `left` of the latest announce; null if the client did not send it.
    #[schema(pattern = "^[0-9]+$")]
    pub left: Option<String>,
    /// Whether the user seeds the torrent now.
    pub seeding: bool,
    /// Whether the user leeches the torrent now.
    pub leeching: bool,
    /// Time of the first completion.
    pub completed_at: Option<u32>,
    /// Client of the latest announce, such as `-TR3000-`.
    pub client: String,
    pub figures: FiguresJson,
}

impl AccountJson {
    pub(crate) fn of(key: &AccountKey, account: &Account, torrents: &Torrents) -> AccountJson {
        let torrent = torrents.get(&key.torrent);
        AccountJson {
            torrent: key.torrent.get(),
            infohash: torrent.map(|torrent| torrent.info_hash.to_string()),
            name: torrent.map(|torrent| torrent.name.clone()),
            left: account.left.map(|left| left.to_string()),
            seeding: account.is_seeding(),
            leeching: account.is_leeching(),
            completed_at: account.completed_at.map(|at| at.0),
            client: account.client(),
            figures: FiguresJson::of(&account.figures),
        }
    }
}

/// A hit-and-run, or an account with seeding time owed.
#[derive(Serialize, ToSchema)]
pub(crate) struct HitAndRun {
    /// `owing` (active, but not for long enough yet) or `hit_and_run` (no longer active).
    #[schema(example = "owing")]
    pub state: String,
    /// Seconds of activity still owed; null for a hit-and-run.
    pub seeding_s_left: Option<u64>,
    /// End of the activity; null while active.
    pub gone_since: Option<u32>,
    pub account: AccountJson,
}

impl HitAndRun {
    /// None if nothing is owed.
    pub(crate) fn of(account: AccountJson, status: &HitAndRunStatus) -> Option<HitAndRun> {
        let (name, seeding_s_left, gone_since) = match status {
            HitAndRunStatus::Clear => return None,
            HitAndRunStatus::Owing { seeding_s_left } => ("owing", Some(*seeding_s_left), None),
            HitAndRunStatus::HitAndRun { since } => ("hit_and_run", None, Some(since.0)),
        };
        Some(HitAndRun { state: name.to_owned(), seeding_s_left, gone_since, account })
    }
}
