//! Amounts, as they are written: bytes as decimal texts (L2).

use domain::UnixTime;
use ledger::{Account, AccountKey, Figures, Standing};
use serde::Serialize;
use utoipa::ToSchema;

use super::torrents_by_id::Torrents;

/// What was moved, and how long.
#[derive(Serialize, ToSchema)]
#[schema(as = Figures)]
pub(crate) struct FiguresJson {
    /// Bytes uploaded, as they are, in decimal digits.
    #[schema(example = "1099511627776", pattern = "^[0-9]+$")]
    pub uploaded: String,
    /// Bytes downloaded, as they are.
    #[schema(example = "549755813888", pattern = "^[0-9]+$")]
    pub downloaded: String,
    /// Bytes uploaded, with what multipliers add.
    #[schema(pattern = "^[0-9]+$")]
    pub credited_uploaded: String,
    /// Bytes downloaded, with what multipliers add or take.
    #[schema(pattern = "^[0-9]+$")]
    pub credited_downloaded: String,
    /// Seconds spent seeding: wall clock for each user on each torrent, however many clients seed at the same time.
    pub seeding_s: u64,
    /// Seconds spent leeching, likewise.
    pub leeching_s: u64,
    /// How many times a user completed a torrent for the first time.
    pub completed: u64,
    /// How many times a user completed a torrent again.
    pub completed_again: u64,
    /// When first heard of.
    pub first_seen: Option<u32>,
    /// When last heard of.
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

/// A user on a torrent.
#[derive(Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountJson {
    /// The torrent's number.
    pub torrent: u64,
    /// Its infohash; null if it was removed.
    pub infohash: Option<String>,
    /// What people call it; null if it was removed.
    pub name: Option<String>,
    /// Bytes still wanted, by the latest announce; null if the client did not say.
    #[schema(pattern = "^[0-9]+$")]
    pub left: Option<String>,
    /// Whether the user seeds it right now.
    pub seeding: bool,
    /// Whether the user leeches it right now.
    pub leeching: bool,
    /// When it was first completed.
    pub completed_at: Option<u32>,
    /// The program that announced it last, such as `-TR3000-`.
    pub client: String,
    /// The amounts.
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

/// Where a user owes seeding.
#[derive(Serialize, ToSchema)]
pub(crate) struct HitAndRun {
    /// `owing` (there, and not active for long enough yet) or `hit_and_run` (gone without having been).
    #[schema(example = "owing")]
    pub standing: String,
    /// How many more seconds of seeding or leeching are owed; null once it is a hit and run.
    pub seeding_s_left: Option<u64>,
    /// Since when they are gone; null while they are there.
    pub gone_since: Option<u32>,
    /// The account.
    pub account: AccountJson,
}

impl HitAndRun {
    /// None where nothing is owed.
    pub(crate) fn of(account: AccountJson, standing: &Standing) -> Option<HitAndRun> {
        let (name, seeding_s_left, gone_since) = match standing {
            Standing::Clear => return None,
            Standing::Owing { seeding_s_left } => ("owing", Some(*seeding_s_left), None),
            Standing::HitAndRun { since } => ("hit_and_run", None, Some(since.0)),
        };
        Some(HitAndRun { standing: name.to_owned(), seeding_s_left, gone_since, account })
    }
}
