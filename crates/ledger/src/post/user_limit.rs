//! The limit over all clients of a user: a second token bucket for their bytes (J8).

use std::collections::{BTreeMap, BTreeSet};

use domain::{RiskEvent, RiskKind, UnixTime, UserId};

use super::gain::{EntryGain, reported_time};
use super::{Posted, Rules, add, bytes, reported_at, risk_of};
use crate::account_state::AccountState;
use crate::admit::Admitted;
use crate::bucket::{Bucket, BucketLimit, UserBucket};
use crate::excess::{Excess, share};
use crate::figures::{AccountKey, Gain};
use crate::run::{ClientRef, Counters};
use crate::sums::Moved;

/// The gain of one client in a batch, before the user's limit.
#[derive(Debug, Default)]
pub(super) struct Pending<'e> {
    /// The last entry.
    sample: Option<Admitted<'e>>,
    /// The start of the time that its entries report on.
    from: Option<UnixTime>,
    to: UnixTime,
    moved: Moved,
    bonus_uploaded_x100: i128,
    bonus_downloaded_x100: i128,
    taken_back: Excess,
}

impl<'e> Pending<'e> {
    pub(super) fn add_entry(&mut self, entry: &Admitted<'e>, gain: &EntryGain, rules: &Rules<'_>) {
        let announce = &entry.arrival.entry;
        let to = reported_at(announce, rules);
        let from = to - reported_time(announce, rules.silence.grace);
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

    pub(super) fn sample(&self) -> Option<&Admitted<'e>> {
        self.sample.as_ref()
    }

    /// Bytes to be granted by the bucket: the sum, if positive.
    fn wanted(&self) -> Counters {
        Counters { uploaded: bytes(self.moved.uploaded), downloaded: bytes(self.moved.downloaded) }
    }

    /// The final gain, without `withheld`.
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

/// Users with entries before the batch.
pub(super) type KnownUsers = BTreeSet<UserId>;

pub(super) fn known_users(state: &AccountState) -> KnownUsers {
    state.users.iter().filter(|(_, figures)| figures.first_seen.is_some()).map(|(user, _)| *user).collect()
}

/// The gain of all clients of a user in a batch.
#[derive(Clone, Copy, Default)]
struct UserBatch {
    from: UnixTime,
    to: UnixTime,
    up: u128,
    down: u128,
}

/// Adds the gains of the batch, as far as the buckets of its users allow.
pub(super) fn apply(
    state: &mut AccountState,
    pending: BTreeMap<ClientRef, Pending<'_>>,
    known_users: &KnownUsers,
    rules: &Rules<'_>,
    posted: &mut Posted,
) {
    let mut left = grant(state, &pending, known_users, rules);
    for (client, pending) in pending {
        let wanted = pending.wanted();
        let left = left.entry(client.user).or_default();
        let granted = wanted.min(*left);
        *left = left.minus(granted);
        let withheld = wanted.minus(granted);
        let mut gain = pending.gain(withheld);
        let sums = &mut state.clients.entry(client).or_default().sums;
        release(&mut sums.withheld.uploaded, &mut gain.uploaded);
        release(&mut sums.withheld.downloaded, &mut gain.downloaded);
        sums.withheld = sums
            .withheld
            .with(Moved { uploaded: withheld.uploaded.into(), downloaded: withheld.downloaded.into() });
        let key = AccountKey { user: client.user, torrent: client.torrent };
        let account = state.accounts.entry(key).or_default();
        let (completed_count, repeated_count) =
            account.count_completions(pending.taken_back.completions.saturating_neg());
        add(state, key, &Gain { completed_count, repeated_count, ..gain });
        if withheld != Counters::default()
            && let Some(sample) = pending.sample()
        {
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

/// What is taken back is subtracted from withheld bytes first.
fn release(withheld: &mut i128, gain: &mut i128) {
    let released = (*withheld).min(gain.saturating_neg()).max(0);
    *withheld -= released;
    *gain += released;
}

/// What each user of the batch is granted, for all clients together.
fn grant(
    state: &mut AccountState,
    pending: &BTreeMap<ClientRef, Pending<'_>>,
    known_users: &KnownUsers,
    rules: &Rules<'_>,
) -> BTreeMap<UserId, Counters> {
    let limit = BucketLimit::of_user(rules.user_ceiling);
    let mut batches: BTreeMap<UserId, UserBatch> = BTreeMap::new();
    for (client, pending) in pending {
        let Some(from) = pending.from else { continue };
        let wanted = pending.wanted();
        let batch = batches.entry(client.user).or_insert(UserBatch { from, ..UserBatch::default() });
        batch.from = batch.from.min(from);
        batch.to = batch.to.max(pending.to);
        batch.up += u128::from(wanted.uploaded);
        batch.down += u128::from(wanted.downloaded);
    }
    let amount = |bytes: u128| u64::try_from(bytes).unwrap_or(u64::MAX);
    let grant_to = |(user, batch): (UserId, UserBatch)| {
        let wanted = Counters { uploaded: amount(batch.up), downloaded: amount(batch.down) };
        let bucket = state.user_buckets.entry(user).or_default();
        (user, bucket.grant(&batch, wanted, known_users.contains(&user), &limit))
    };
    batches.into_iter().map(grant_to).collect()
}

impl UserBucket {
    fn grant(
        &mut self,
        batch: &UserBatch,
        wanted: Counters,
        is_known: bool,
        limit: &BucketLimit,
    ) -> Counters {
        let UserBatch { from, to, .. } = *batch;
        if self.tokens.is_unused() {
            // A known user without a bucket is from an older version.
            let tokens = if is_known { Bucket::full_at(from) } else { Bucket::of_new_user(from, limit) };
            *self = UserBucket { tokens, since: from };
        }
        if from < self.since {
            // A late entry shows that the user was active before.
            self.tokens.grant_late(self.since.since(from), Counters::default(), limit);
            self.since = from;
        }
        self.tokens.grant(to, wanted, limit)
    }
}
