//! The port: duties of an activity store.
//!
//! # Duties of every store
//!
//! - **Order-independent.** The stored state depends only on the set of applied reports, not on their order or number,
//!   by the rules of [`super::record`].
//! - **One list at a time.** A torrent is in at most one list of a user at any moment (A3); a change is atomic (A2).
//! - **No expired data.** Expired reports are removed before every read (A4); an expired client does not hide the state
//!   of another one.
//! - **Repeatable.** Applying a batch again completes what was applied in part before an error.
//! - **Isolated users.** A damaged key of one user does not affect others.
//! - **Complete sweeps.** Sweeps find every user with an expired report, at a cost proportional to the number of due
//!   users, never by scanning all users.
//!
//! The suite in `tests/it/activity` runs on every store.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use domain::{InfoHash, Passkey, Seconds, UnixTime};

use super::fold::UserChanges;
use super::record::ClientState;
use super::settings::Window;
use crate::error::ViewsError;

/// Upper bound of [`Page::limit`].
pub const PAGE_TORRENTS_MAX: usize = 1000;

/// Torrents of one user that are removed per call. A thousand take about a millisecond.
pub const REMOVE_MAX: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveTorrent {
    pub info_hash: InfoHash,
    /// The last announce.
    pub at: UnixTime,
}

/// The position after a torrent in a list, which is ordered by last announce and infohash, descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub at: UnixTime,
    pub info_hash: InfoHash,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.info_hash)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: use the cursor of the previous page (time, dash, infohash)")]
pub struct NotACursor;

impl FromStr for Cursor {
    type Err = NotACursor;
    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (at, info_hash) = text.split_once('-').ok_or(NotACursor)?;
        let at = at.parse().map(UnixTime).map_err(|_| NotACursor)?;
        let info_hash = info_hash.parse().map_err(|_| NotACursor)?;
        Ok(Cursor { at, info_hash })
    }
}

/// Requests a part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// None for the first page.
    pub after: Option<Cursor>,
    /// Maximum number of torrents; never more than [`PAGE_TORRENTS_MAX`].
    pub limit: usize,
}

impl Page {
    pub const fn first(limit: usize) -> Self {
        Page { after: None, limit }
    }

    pub(crate) fn torrents_max(&self) -> usize {
        self.limit.clamp(1, PAGE_TORRENTS_MAX)
    }
}

/// A page of a list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub torrents: Vec<ActiveTorrent>,
    /// None on the last page.
    pub next: Option<Cursor>,
}

impl Listing {
    /// `found` has one torrent more than the page if there is a next page.
    pub(crate) fn of(mut found: Vec<ActiveTorrent>, page: &Page) -> Self {
        let has_more = found.len() > page.torrents_max();
        found.truncate(page.torrents_max());
        let last = found.last().filter(|_| has_more);
        let next = last.map(|torrent| Cursor { at: torrent.at, info_hash: torrent.info_hash });
        Listing { torrents: found, next }
    }
}

/// Lengths of a user's lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub seeding: u64,
    pub leeching: u64,
}

/// Result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Checked users.
    pub users: u64,
    /// Torrents with expired reports.
    pub torrents: u64,
    /// Users with a key of the wrong type.
    pub damaged: u64,
    /// Whether a limit was reached, so that more may be due.
    pub is_behind: bool,
}

/// A user whose changes could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Index in the users passed to [`ActivityStore::apply`].
    pub user: usize,
    pub reason: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    pub refused: Vec<Refused>,
    /// Clients beyond [`super::record::CLIENTS_MAX`], and torrents beyond the maximum of a user, that were evicted.
    pub clients_evicted: u64,
}

/// What a store holds in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Torrents of all users.
    pub torrents: u64,
    pub bytes: u64,
}

#[async_trait]
pub trait ActivityStore: Send + Sync + 'static {
    async fn apply(&self, users: &[UserChanges], window: &Window) -> Result<Applied, ViewsError>;

    /// A page of a list, newest announce first; torrents of the same second by infohash, descending.
    async fn list(
        &self,
        passkey: &Passkey,
        state: ClientState,
        page: &Page,
        window: &Window,
    ) -> Result<Listing, ViewsError>;

    /// The lengths of a user's lists, read atomically.
    async fn counts(&self, passkey: &Passkey, window: &Window) -> Result<Counts, ViewsError>;

    /// All users with a non-empty list. Includes reports that expired since the last sweep. A user who changes during
    /// the call may be missing.
    async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError>;

    /// Checks up to `users_max` due users and removes their expired reports.
    async fn sweep(&self, users_max: usize, window: &Window) -> Result<Swept, ViewsError>;

    /// The most extra silence of any stored report: a rebuild reads that much more of the journal. Zero for a store
    /// that is not rebuilt.
    fn longest_extra_silence(&self) -> Seconds {
        Seconds(0)
    }

    fn memory_usage(&self) -> MemoryUsage;
}
