//! Multipliers: periods in which bytes count more or less.
//!
//! Of the multipliers and discounts ([`crate::discount`]) in force at an entry's `ts` the most generous one applies, in each
//! direction separately: the largest for upload, the smallest for download. If a discount is exact, only exact ones count.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use domain::{TorrentId, UnixTime, UserId};

use crate::discount::Discounts;

/// Larger values are taken for typing errors.
pub const PERCENT_MAX: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Site,
    Torrent(TorrentId),
    User(UserId),
}

impl Scope {
    /// The name in the database: `site`, `torrent` or `user`.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Site => "site",
            Scope::Torrent(_) => "torrent",
            Scope::User(_) => "user",
        }
    }

    /// The id of the torrent or user; zero for the site.
    pub const fn subject(self) -> u64 {
        match self {
            Scope::Site => 0,
            Scope::Torrent(torrent) => torrent.get(),
            Scope::User(user) => user.get(),
        }
    }

    /// None if name and id do not match.
    pub fn from_parts(name: &str, subject: u64) -> Option<Scope> {
        match name {
            "site" => Some(Scope::Site),
            "torrent" => TorrentId::new(subject).map(Scope::Torrent),
            "user" => UserId::new(subject).map(Scope::User),
            _ => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Site => f.write_str("site"),
            Scope::Torrent(torrent) => write!(f, "torrent {torrent}"),
            Scope::User(user) => write!(f, "user {user}"),
        }
    }
}

/// From 0 to [`PERCENT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    pub const HUNDRED: Percent = Percent(100);

    /// None above [`PERCENT_MAX`].
    pub const fn new(percent: u32) -> Option<Percent> {
        if percent > PERCENT_MAX { None } else { Some(Percent(percent)) }
    }

    pub const fn get(self) -> u32 {
        self.0
    }

    fn of(self, bytes: u64) -> u64 {
        let counted = u128::from(bytes) * u128::from(self.0) / 100;
        u64::try_from(counted).unwrap_or(u64::MAX)
    }

    /// What it adds to an amount, in hundredths.
    fn bonus_x100(self, bytes: u64) -> i128 {
        i128::from(bytes) * (i128::from(self.0) - 100)
    }
}

impl FromStr for Percent {
    type Err = NotAPercentage;
    fn from_str(text: &str) -> Result<Self, NotAPercentage> {
        text.parse().ok().and_then(Percent::new).ok_or(NotAPercentage)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a percentage is a whole number from 0 to 10000")]
pub struct NotAPercentage;

/// A multiplier without id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMultiplier {
    pub scope: Scope,
    pub upload: Percent,
    pub download: Percent,
    pub starts_at: UnixTime,
    /// Exclusive; none means until it is ended.
    pub ends_at: Option<UnixTime>,
    /// Shown to operators.
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiplier {
    pub id: u64,
    pub terms: NewMultiplier,
}

impl NewMultiplier {
    fn is_in_force(&self, at: UnixTime) -> bool {
        self.starts_at <= at && self.ends_at.is_none_or(|end| at < end)
    }
}

/// The multipliers for one entry, combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    upload: Percent,
    download: Percent,
}

impl InForce {
    /// Fractions of a byte do not count.
    pub fn uploaded(self, bytes: u64) -> u64 {
        self.upload.of(bytes)
    }

    /// Likewise.
    pub fn downloaded(self, bytes: u64) -> u64 {
        self.download.of(bytes)
    }

    pub(crate) fn bonus_uploaded_x100(self, bytes: u64) -> i128 {
        self.upload.bonus_x100(bytes)
    }

    pub(crate) fn bonus_downloaded_x100(self, bytes: u64) -> i128 {
        self.download.bonus_x100(bytes)
    }
}

/// All multipliers, by scope.
#[derive(Clone, Debug, Default)]
pub struct Multipliers {
    by_scope: HashMap<Scope, Vec<NewMultiplier>>,
    discounts: Discounts,
}

impl Multipliers {
    pub fn new(all: impl IntoIterator<Item = Multiplier>) -> Multipliers {
        let mut by_scope: HashMap<Scope, Vec<NewMultiplier>> = HashMap::new();
        for multiplier in all {
            by_scope.entry(multiplier.terms.scope).or_default().push(multiplier.terms);
        }
        Multipliers { by_scope, discounts: Discounts::default() }
    }

    pub(crate) fn with_discounts(self, discounts: Discounts) -> Multipliers {
        Multipliers { discounts, ..self }
    }

    /// For an entry of this user on this torrent at this time.
    pub fn in_force(&self, user: UserId, torrent: TorrentId, at: UnixTime) -> InForce {
        let scopes = [Scope::Site, Scope::Torrent(torrent), Scope::User(user)];
        let discounts = || self.discounts.in_force(user, torrent, at);
        let is_exact = discounts().any(|discount| discount.is_exact);
        let all = || {
            let known = scopes.iter().filter_map(|scope| self.by_scope.get(scope)).flatten();
            let known = known.filter(move |terms| !is_exact && terms.is_in_force(at));
            let discounts = discounts().filter(move |discount| discount.is_exact || !is_exact);
            known
                .map(|terms| (terms.upload, terms.download))
                .chain(discounts.map(|discount| (discount.upload, discount.download)))
        };
        InForce {
            upload: all().map(|(upload, _)| upload).max().unwrap_or(Percent::HUNDRED),
            download: all().map(|(_, download)| download).min().unwrap_or(Percent::HUNDRED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn multiplier(scope: Scope, upload: u32, download: u32, span: (u32, Option<u32>)) -> Multiplier {
        let terms = NewMultiplier {
            scope,
            upload: Percent::new(upload).unwrap(),
            download: Percent::new(download).unwrap(),
            starts_at: UnixTime(span.0),
            ends_at: span.1.map(UnixTime),
            note: String::new(),
        };
        Multiplier { id: 1, terms }
    }

    fn at(multipliers: &Multipliers, moment: u32) -> (u32, u32) {
        let (user, torrent) = (UserId::new(7).unwrap(), TorrentId::new(3).unwrap());
        let in_force = multipliers.in_force(user, torrent, UnixTime(moment));
        (in_force.upload.get(), in_force.download.get())
    }

    #[test]
    fn a_multiplier_is_in_force_from_its_start_until_before_its_end() {
        let multipliers = Multipliers::new([multiplier(Scope::Site, 200, 50, (100, Some(200)))]);
        assert_eq!(at(&multipliers, 99), (100, 100));
        assert_eq!(at(&multipliers, 100), (200, 50));
        assert_eq!(at(&multipliers, 199), (200, 50));
        assert_eq!(at(&multipliers, 200), (100, 100));
    }

    #[test]
    fn the_most_generous_wins_in_each_direction() {
        let multipliers = Multipliers::new([
            multiplier(Scope::Site, 150, 75, (0, None)),
            multiplier(Scope::Torrent(TorrentId::new(3).unwrap()), 100, 0, (0, None)),
            multiplier(Scope::User(UserId::new(7).unwrap()), 300, 100, (0, None)),
            multiplier(Scope::User(UserId::new(8).unwrap()), 900, 0, (0, None)),
        ]);
        assert_eq!(at(&multipliers, 5), (300, 0));
    }

    #[test]
    fn a_bonus_is_exact_in_hundredths() {
        let in_force = InForce { upload: Percent::new(133).unwrap(), download: Percent::new(0).unwrap() };
        assert_eq!(in_force.bonus_uploaded_x100(1), 33);
        assert_eq!(in_force.bonus_downloaded_x100(u64::MAX), -100 * i128::from(u64::MAX));
    }
}
