//! The limit over all clients of a user: a second token bucket that their bytes go through (J8).

use std::collections::BTreeMap;

use domain::{RiskEvent, RiskKind, UnixTime, UserId};

use super::gain::{EntryGain, reported_time};
use super::{Posted, Rules, add, bytes, heard_at, risk_of};
use crate::admit::Admitted;
use crate::books::Books;
use crate::bucket::{Bucket, BucketLimit};
use crate::excess::{Excess, share};
use crate::figures::{AccountKey, Gain};
use crate::run::{ClientRef, Counters};
use crate::sums::Moved;

/// What a batch brings to one client, before the user's limit.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The last entry.
    sample: Option<Admitted>,
    /// The time that its entries report on.
    from: Option<UnixTime>,
    to: UnixTime,
    moved: Moved,
    bonus_uploaded_x100: i128,
    bonus_downloaded_x100: i128,
    taken_back: Excess,
}

impl Pending {
    pub(super) fn add_entry(&mut self, entry: &Admitted, gain: &EntryGain, rules: &Rules<'_>) {
        let said = &entry.arrival.entry;
        let to = heard_at(said);
        let from = to - reported_time(said, rules.peer_grace);
        self.sample = Some(*entry);
        self.from = Some(self.from.map_or(from, |known| known.min(from)));
        self.to = self.to.max(to);
        self.moved = self
            .moved
            .with(Moved { uploaded: gain.raw.uploaded.into(), downloaded: gain.raw.downloaded.into() });
        self.bonus_uploaded_x100 = self.bonus_uploaded_x100.saturating_add(gain.bonus_uploaded_x100);
        self.bonus_downloaded_x100 = self.bonus_downloaded_x100.saturating_add(gain.bonus_downloaded_x100);
    }

    pub(super) fn add_runs(&mut self, gained: Moved, taken_back: Excess) {
        self.moved = self.moved.with(gained);
        self.taken_back = taken_back;
    }

    pub(super) fn uploaded(&self) -> i128 {
        self.moved.uploaded
    }

    pub(super) fn sample(&self) -> Option<&Admitted> {
        self.sample.as_ref()
    }

    /// Bytes that the bucket has to grant: what was moved, unless more was taken back than added.
    fn wanted(&self) -> Counters {
        Counters { uploaded: bytes(self.moved.uploaded), downloaded: bytes(self.moved.downloaded) }
    }

    /// What is posted in the end, where `withheld` of it is not credited.
    fn gain(&self, withheld: Counters) -> Gain {
        let bonus = |added: i128, taken_back: i128, withheld: u64, wanted: u64| {
            let left = added.saturating_sub(taken_back);
            taken_back.saturating_add(share(left, withheld, wanted)).saturating_neg()
        };
        let wanted = self.wanted();
        Gain {
            uploaded: self.moved.uploaded - i128::from(withheld.uploaded),
            downloaded: self.moved.downloaded - i128::from(withheld.downloaded),
            bonus_uploaded_x100: bonus(
                self.bonus_uploaded_x100,
                self.taken_back.bonus_uploaded_x100,
                withheld.uploaded,
                wanted.uploaded,
            ),
            bonus_downloaded_x100: bonus(
                self.bonus_downloaded_x100,
                self.taken_back.bonus_downloaded_x100,
                withheld.downloaded,
                wanted.downloaded,
            ),
            ..Gain::default()
        }
    }
}

/// Since when the users of a batch were known before it.
pub(super) type KnownSince = BTreeMap<UserId, UnixTime>;

pub(super) fn known_since(books: &Books, entries: &[Admitted]) -> KnownSince {
    let users = entries.iter().map(|entry| entry.user);
    users.filter_map(|user| Some((user, books.users.get(&user)?.first_seen?))).collect()
}

/// Refills the buckets of all users in the batch up to the time of their last entry in it.
pub(super) fn refill(
    books: &mut Books,
    pending: &BTreeMap<ClientRef, Pending>,
    known_since: &KnownSince,
    rules: &Rules<'_>,
) {
    let limit = BucketLimit::of_user(rules.user_ceiling);
    let mut times: BTreeMap<UserId, (UnixTime, UnixTime)> = BTreeMap::new();
    for (client, pending) in pending {
        let Some(from) = pending.from else { continue };
        let known = times.entry(client.user).or_insert((from, pending.to));
        *known = (known.0.min(from), known.1.max(pending.to));
    }
    for (user, (from, to)) in times {
        let bucket = books.user_buckets.entry(user).or_default();
        let since = known_since.get(&user);
        match since {
            None => *bucket = Bucket::of_new_user(from, &limit),
            // From before buckets were kept.
            Some(_) if bucket.is_unused() => *bucket = Bucket::full_at(from),
            // An entry that comes late shows that the user was there before.
            Some(since) => bucket.refill_late(since.since(from), &limit),
        }
        bucket.refill(to, &limit);
    }
}

/// Adds what the batch brings, as far as the buckets of its users reach.
pub(super) fn apply(
    books: &mut Books,
    pending: BTreeMap<ClientRef, Pending>,
    rules: &Rules<'_>,
    posted: &mut Posted,
) {
    let limit = BucketLimit::of_user(rules.user_ceiling);
    for (client, pending) in pending {
        let wanted = pending.wanted();
        let granted = match books.user_buckets.get_mut(&client.user) {
            Some(bucket) => bucket.grant(bucket.at, wanted, &limit),
            None => wanted,
        };
        let withheld = wanted.minus(granted);
        let gain = pending.gain(withheld);
        let key = AccountKey { user: client.user, torrent: client.torrent };
        let account = books.accounts.entry(key).or_default();
        let (completed_count, repeated_count) =
            account.count_completions(pending.taken_back.completions.saturating_neg());
        add(books, key, &Gain { completed_count, repeated_count, ..gain });
        if withheld == Counters::default() {
            continue;
        }
        let sums = &mut books.clients.entry(client).or_default().sums;
        sums.withheld = sums
            .withheld
            .with(Moved { uploaded: withheld.uploaded.into(), downloaded: withheld.downloaded.into() });
        if let Some(sample) = pending.sample() {
            posted.risks.push(RiskEvent {
                uploaded_claimed: wanted.uploaded,
                uploaded_credited: granted.uploaded,
                downloaded_claimed: wanted.downloaded,
                downloaded_credited: granted.downloaded,
                ..risk_of(RiskKind::UserRate, sample, rules.user_ceiling)
            });
        }
    }
}
