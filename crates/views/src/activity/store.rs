//! The port: what a store of activity owes, whatever it is.
//!
//! # Duties of every store
//!
//! - **Right in any order.** What is stored depends only on the set of reports taken, not on their order or number:
//!   the rules are those of [`super::record`].
//! - **One list at a time.** A torrent is in at most one list of a user at any moment (A3); a change is atomic (A2).
//! - **Nothing old is shown.** What is too old is removed before every read (A4); a client that is too old no longer
//!   hides what another one does.
//! - **Harmless to repeat.** Whatever was applied in part before an error is put right by applying it again.
//! - **One bad user stops nobody else.**
//! - **Nobody is forgotten.** Whoever has anything stored is found by a sweep once something of it is too old, at a
//!   cost proportional to what is due; never by going through all users.
//!
//! The suite in `tests/activity` runs on every store.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use domain::{InfoHash, Passkey, UnixTime};

use super::fold::UserChanges;
use super::record::ClientState;
use super::settings::Window;
use crate::error::ViewsError;

/// The most torrents one page holds.
pub const PAGE_TORRENTS_MAX: usize = 1000;

/// The most torrents of one user that are removed in one go. A thousand take about as many microseconds.
pub const REMOVE_MAX: usize = 1000;

/// A torrent in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveTorrent {
    /// The torrent.
    pub info_hash: InfoHash,
    /// The last announce.
    pub at: UnixTime,
}

/// The place behind a torrent in a list: what follows was announced earlier, or in the same second and has a lesser
/// infohash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Its last announce.
    pub at: UnixTime,
    /// The torrent.
    pub info_hash: InfoHash,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.info_hash)
    }
}

/// The text is no place in a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a place in a list is a time, a dash and an infohash, as the page before gave it")]
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

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Behind which place; none for the beginning.
    pub after: Option<Cursor>,
    /// How many torrents at most; never more than [`PAGE_TORRENTS_MAX`].
    pub limit: usize,
}

impl Page {
    /// The first page.
    pub const fn first(limit: usize) -> Self {
        Page { after: None, limit }
    }

    /// The number of torrents on it at most.
    pub(crate) fn torrents_max(&self) -> usize {
        self.limit.clamp(1, PAGE_TORRENTS_MAX)
    }
}

/// A part of a list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The torrents.
    pub torrents: Vec<ActiveTorrent>,
    /// Where the next page begins; none if this is the last.
    pub next: Option<Cursor>,
}

impl Listing {
    /// A page of what was found, which may be one torrent more than fits.
    pub(crate) fn of(mut found: Vec<ActiveTorrent>, page: &Page) -> Self {
        let has_more = found.len() > page.torrents_max();
        found.truncate(page.torrents_max());
        let last = found.last().filter(|_| has_more);
        let next = last.map(|torrent| Cursor { at: torrent.at, info_hash: torrent.info_hash });
        Listing { torrents: found, next }
    }
}

/// How many torrents a user has in each list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Torrents being seeded.
    pub seeding: u64,
    /// Torrents being downloaded.
    pub leeching: u64,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Users looked at.
    pub users: u64,
    /// Torrents of which something was too old.
    pub torrents: u64,
    /// Users whose keys hold something else.
    pub damaged: u64,
    /// Whether as many users were looked at as allowed, so that more may be due.
    pub is_behind: bool,
}

/// A user whose changes cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its position among the users.
    pub user: usize,
    /// Why.
    pub reason: String,
}

/// What applying changes led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Users whose changes cannot be taken.
    pub refused: Vec<Refused>,
    /// Clients that were forgotten because a user has too many on one torrent.
    pub clients_evicted: u64,
}

/// Where activity is kept.
#[async_trait]
pub trait ActivityStore: Send + Sync + 'static {
    /// Takes what users' clients say.
    async fn apply(&self, users: &[UserChanges], window: &Window) -> Result<Applied, ViewsError>;

    /// A part of a list, newest first; torrents of the same second by infohash, the greatest first.
    async fn list(
        &self,
        passkey: &Passkey,
        state: ClientState,
        page: &Page,
        window: &Window,
    ) -> Result<Listing, ViewsError>;

    /// How long a user's lists are, both at the same moment.
    async fn counts(&self, passkey: &Passkey, window: &Window) -> Result<Counts, ViewsError>;

    /// Everyone with anything in either list, and how long the lists are. Read as they stand: what became too old since
    /// the last sweep is still counted. A user who comes or goes meanwhile may be missing.
    async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError>;

    /// Looks at no more than `users_max` users of whom something is due, and removes what is too old.
    async fn sweep(&self, users_max: usize, window: &Window) -> Result<Swept, ViewsError>;
}
