//! Posting: applies a batch of entries to the account state.
//!
//! A function of the state, the entries and the rules. Bytes of entries from our own trackers follow from the runs
//! ([`mod@crate::credit`]), so that an entry may come twice. Time is a union of spans ([`crate::spans`]). Everything
//! else is added, and requires that each entry is posted once (L6), which the store ensures; what several nodes
//! reported of the same announce is taken back according to the runs (`excess`). So the state is a function of the set
//! of entries, independent of order and batches, except where a limit is exceeded: what is withheld of a user, or of
//! entries without totals, depends on the order, and so does what is settled of a client or an account with very many
//! interruptions.

mod client_limit;
mod detect;
mod gain;
mod user_limit;

use std::collections::BTreeMap;

use domain::{
    AHEAD_MAX, AnnounceEvent, Cause, RateCeiling, RiskEvent, RiskKind, Seconds, SilenceLimit, UnixTime,
    counted,
};
use journal::{Rejected, TrafficEntry};

use crate::account_state::{AccountState, Changes, Client, ClientState};
use crate::admit::Admitted;
use crate::bucket::Bucket;
use crate::credit::{Credit, credit, credit_of, part_of_only, parts_of, stretches};
use crate::excess::{Excess, excess};
use crate::figures::{Account, AccountKey, Gain, Stamp};
use crate::multiplier::Multipliers;
use crate::reported::{Claimed, Reported};
use crate::run::{ClientRef, Counters, Report, Run, RunKey};
use crate::settle::settle;
use crate::sums::Moved;

pub(crate) use gain::plausible;
use gain::{EntryGain, gain_of};
use user_limit::Pending;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// Of one client.
    pub(crate) ceiling: RateCeiling,
    /// Of all clients of a user.
    pub(crate) user_ceiling: RateCeiling,
    pub(crate) session_retention: Seconds,
    pub(crate) silence: SilenceLimit,
    pub(crate) multipliers: &'a Multipliers,
    pub(crate) now: UnixTime,
    /// `now` in steady time.
    pub(crate) steady_now: UnixTime,
}

/// Results of posting besides the new state.
#[derive(Debug, Default)]
pub(crate) struct Posted {
    pub(crate) rejected: Vec<Rejected>,
    /// Entries that count without their bytes, because their runs are no longer stored.
    pub(crate) late: usize,
    pub(crate) risks: Vec<RiskEvent>,
    pub(crate) settled_runs: usize,
    /// Clients removed because their accounts had too many.
    pub(crate) removed_clients: usize,
    pub(crate) changes: Changes,
}

/// A client before the batch, and the gains of its entries.
struct ClientBefore<'e> {
    runs: Vec<Run>,
    /// The last entry of the batch.
    sample: Admitted<'e>,
    pending: Pending<'e>,
}

pub(crate) fn post(state: &mut AccountState, entries: &[Admitted<'_>], rules: &Rules<'_>) -> Posted {
    let mut posted = Posted::default();
    let known_users = user_limit::known_users(state);
    let mut before: BTreeMap<ClientRef, ClientBefore<'_>> = BTreeMap::new();
    for entry in by_account(entries) {
        let age = age_of(state, entry, rules);
        if let Age::TooOld(reason) = age {
            posted.rejected.push(Rejected { index: entry.index, reason });
            continue;
        }
        let client = state.clients.entry(entry.client()).or_default();
        let known = before.entry(entry.client()).or_insert_with(|| ClientBefore {
            runs: client.runs.clone(),
            sample: *entry,
            pending: Pending::default(),
        });
        known.sample = *entry;
        let gain = gain_of(entry, client, rules, &mut posted.risks);
        match age {
            Age::Late => posted.late += 1,
            _ => add_report(client, entry, &gain, rules),
        }
        known.pending.add_entry(entry, &gain, rules);
        let account = state.accounts.entry(entry.account()).or_default();
        detect::left_without_download(account, entry, rules, &mut posted.risks);
        update_latest(account, client, entry, rules);
        mark_changed(&mut posted.changes, entry);
        let earned = account_gain(account, &gain);
        add(state, entry.account(), &earned);
    }
    let mut pending: BTreeMap<ClientRef, Pending<'_>> = BTreeMap::new();
    for (client, before) in before {
        pending.insert(client, post_runs(state, client, before, rules, &mut posted));
    }
    let uploads = detect::Uploads::before(state, &pending);
    user_limit::apply(state, pending, &known_users, rules, &mut posted);
    uploads.ahead_of_download(state, rules, &mut posted.risks);
    detect::completed_without_download(state, entries, rules, &mut posted.risks);
    posted.removed_clients = posted.changes.accounts.iter().map(|key| client_limit::apply(state, *key)).sum();
    posted
}

/// Account by account, so that what an entry reads is still in the processor's cache; those of an account in their order.
/// Amounts of users and torrents do not depend on the order.
fn by_account<'e, 'a>(entries: &'e [Admitted<'a>]) -> Vec<&'e Admitted<'a>> {
    let mut ordered: Vec<(AccountKey, usize)> =
        entries.iter().enumerate().map(|(position, entry)| (entry.account(), position)).collect();
    ordered.sort_unstable();
    ordered.into_iter().map(|(_, position)| &entries[position]).collect()
}

enum Age {
    /// Its run is known, or can be a new one.
    Fresh,
    /// Its run may have been settled, joined, or removed with its client: its bytes cannot be distinguished from new ones.
    Late,
    /// Older than the retention time.
    TooOld(String),
}

fn age_of(state: &AccountState, entry: &Admitted<'_>, rules: &Rules<'_>) -> Age {
    let Some(totals) = entry.arrival.entry.totals else {
        return Age::Fresh;
    };
    let client = state.clients.get(&entry.client());
    let removed_until =
        state.accounts.get(&entry.account()).map_or(UnixTime(0), |account| account.clients_removed_until);
    let key = RunKey::new(totals.session.run, entry.arrival.entry.node);
    if client.is_some_and(|client| client.runs.iter().any(|run| run.key == key)) {
        return Age::Fresh;
    }
    let at = reported_at(&entry.arrival.entry, rules);
    if at < rules.now - rules.session_retention {
        let days = rules.session_retention.0 / (24 * 60 * 60);
        return Age::TooOld(format!(
            "ts: {at} is older than the session retention ({})",
            counted(days, "day")
        ));
    }
    let lost_until = client.map_or(removed_until, |client| client.settled_until.max(removed_until));
    if at <= lost_until { Age::Late } else { Age::Fresh }
}

/// When an entry was written, in steady time; in wall time if the steady time is ahead because the clock was wrong when
/// the node started.
fn written_at(entry: &TrafficEntry, rules: &Rules<'_>) -> UnixTime {
    let (steady, wall) = (entry.steady_at(), entry.at);
    if steady > rules.steady_now + AHEAD_MAX { steady.min(wall) } else { steady }
}

/// When the client reported these counters: a timeout or removal is written later.
fn reported_at(entry: &TrafficEntry, rules: &Rules<'_>) -> UnixTime {
    let written_at = written_at(entry, rules);
    match entry.cause {
        Cause::Announce => written_at,
        Cause::Timeout | Cause::Removal => written_at - entry.since_last.unwrap_or_default(),
    }
}

/// Adds the counters and the other amounts of an entry to the client's runs; without counters, its bytes to the sums.
fn add_report(client: &mut Client, admitted: &Admitted<'_>, gain: &EntryGain, rules: &Rules<'_>) {
    let entry = &admitted.arrival.entry;
    let Some(totals) = entry.totals else {
        let contribution =
            Moved { uploaded: gain.raw.uploaded.into(), downloaded: gain.raw.downloaded.into() };
        client.sums.foreign = client.sums.foreign.with(contribution);
        return;
    };
    let key = RunKey::new(totals.session.run, entry.node);
    let counters = Counters { uploaded: totals.uploaded, downloaded: totals.downloaded };
    let report = Report {
        counters,
        at: reported_at(entry, rules),
        id: admitted.arrival.origin,
        is_stop: entry.event == AnnounceEvent::Stopped && entry.cause == Cause::Announce,
        // The amounts of the entry and the counter range they cover: what another node adds for the same range is
        // surplus.
        reported: Reported {
            uploaded: Claimed::up_to(counters.uploaded, entry.uploaded_delta, gain.bonus_uploaded_x100),
            downloaded: Claimed::up_to(
                counters.downloaded,
                entry.downloaded_delta,
                gain.bonus_downloaded_x100,
            ),
            completions: u64::from(gain.is_completion),
            uncredited_upload: entry.uncredited_upload,
        },
    };
    match client.runs.iter_mut().find(|run| run.key == key) {
        Some(run) => run.add(&report),
        None => client.runs.push(Run::starting(key, &report)),
    }
}

/// The later entry wins: for the client its state, for the account `left` and peer id.
fn update_latest(account: &mut Account, client: &mut Client, entry: &Admitted<'_>, rules: &Rules<'_>) {
    let announce = &entry.arrival.entry;
    let stamp = Stamp { at: written_at(announce, rules), origin: entry.arrival.origin };
    if stamp >= client.latest {
        let client_state = state_after(announce);
        account.move_client(client.state, client_state);
        client.state = client_state;
        client.latest = stamp;
    }
    if announce.event != AnnounceEvent::Stopped {
        let until = stamp.at + rules.silence.of(announce.interval);
        account.present_until = account.present_until.max(Some(until));
    }
    account.has_leeched |= is_leeching(announce);
    if stamp >= account.latest {
        account.was_removed = announce.cause == Cause::Removal;
        account.latest = stamp;
        account.left = announce.left;
        account.peer_id = Some(announce.peer_id);
    }
    if announce.event == AnnounceEvent::Completed {
        account.completed_at = Some(account.completed_at.map_or(announce.at, |first| first.min(announce.at)));
    }
}

/// Whether the client reported that something is left. A `stopped` without `left` does not count.
fn is_leeching(entry: &TrafficEntry) -> bool {
    let is_silent = entry.event == AnnounceEvent::Stopped && entry.left.is_none();
    entry.cause == Cause::Announce && !is_silent && !entry.is_complete()
}

/// The state after an entry (L3).
fn state_after(entry: &TrafficEntry) -> ClientState {
    match entry.event {
        AnnounceEvent::Stopped => ClientState::Inactive,
        _ if entry.is_complete() => ClientState::Seeding,
        _ => ClientState::Leeching,
    }
}

fn mark_changed(changes: &mut Changes, entry: &Admitted<'_>) {
    changes.users.insert(entry.user);
    changes.torrents.insert(entry.torrent);
    changes.accounts.insert(entry.account());
}

/// The immediate gain of an entry. Bytes follow once the whole batch is known.
fn account_gain(account: &mut Account, gain: &EntryGain) -> Gain {
    let (completed_count, repeated_count) = account.count_completions(i64::from(gain.is_completion));
    let mut earned = Gain {
        bonus_uploaded_x100: gain.bonus_uploaded_x100,
        bonus_downloaded_x100: gain.bonus_downloaded_x100,
        completed_count,
        repeated_count,
        seen_at: Some(gain.at),
        ..Gain::default()
    };
    if let Some((from, to)) = gain.seeding {
        earned.seeding_s = account.time.seeding.insert(from, to).into();
    }
    if let Some((from, to)) = gain.leeching {
        earned.leeching_s = account.time.leeching.insert(from, to).into();
    }
    earned
}

fn add(state: &mut AccountState, key: AccountKey, gain: &Gain) {
    state.users.entry(key.user).or_default().add(gain);
    state.torrents.entry(key.torrent).or_default().add(gain);
    state.accounts.entry(key).or_default().figures.add(gain);
}

/// Compares the credit of a client's runs with that before the batch, and takes back the surplus.
fn post_runs<'e>(
    state: &mut AccountState,
    key: ClientRef,
    before: ClientBefore<'e>,
    rules: &Rules<'_>,
    posted: &mut Posted,
) -> Pending<'e> {
    let ClientBefore { runs, sample, mut pending } = before;
    let client = state.clients.entry(key).or_default();
    if client.runs == runs {
        return pending;
    }
    let start = client.sums.bucket;
    let ((old, old_excess), (new, new_excess)) = (
        credit_and_excess(&runs, rules.ceiling, start),
        credit_and_excess(&client.runs, rules.ceiling, start),
    );
    let gained = Moved {
        uploaded: difference(new.uploaded, old.uploaded),
        downloaded: difference(new.downloaded, old.downloaded),
    };
    let withheld_uploaded = difference(new.withheld_uploaded, old.withheld_uploaded).max(0);
    let withheld_downloaded = difference(new.withheld_downloaded, old.withheld_downloaded).max(0);
    if withheld_uploaded > 0 || withheld_downloaded > 0 {
        posted.risks.push(RiskEvent {
            uploaded_claimed: bytes(gained.uploaded.max(0) + withheld_uploaded),
            uploaded_credited: bytes(gained.uploaded),
            downloaded_claimed: bytes(gained.downloaded.max(0) + withheld_downloaded),
            downloaded_credited: bytes(gained.downloaded),
            ..risk_of(RiskKind::ClientRate, &sample, rules.ceiling)
        });
    }
    detect::upload_after_stop(&old, &new, &sample, rules, &mut posted.risks);
    if let Some(settled) = settle(&mut client.runs, rules.ceiling, start) {
        client.settled_until = client.settled_until.max(settled.until);
        client.sums.bucket = settled.bucket;
        let kept = credit(&client.runs, rules.ceiling, settled.bucket);
        client.sums.settled = client.sums.settled.with(Moved {
            uploaded: difference(new.uploaded, kept.uploaded),
            downloaded: difference(new.downloaded, kept.downloaded),
        });
    }
    posted.settled_runs +=
        runs.iter().filter(|old| !client.runs.iter().any(|run| run.key == old.key)).count();
    pending.add_runs(gained, taken_back(&old_excess, &new_excess));
    pending
}

/// The credit of these runs, and what they reported beyond it.
fn credit_and_excess(runs: &[Run], ceiling: RateCeiling, bucket: Bucket) -> (Credit, Excess) {
    if let [run] = runs
        && let Some(part) = part_of_only(run, ceiling, bucket)
    {
        return (credit_of(&[part]), Excess::default());
    }
    let stretches = stretches(runs, ceiling);
    let parts = parts_of(&stretches, ceiling, bucket);
    (credit_of(&parts), excess(&stretches, &parts))
}

/// The surplus not yet taken back.
fn taken_back(old: &Excess, new: &Excess) -> Excess {
    Excess {
        completions: new.completions.saturating_sub(old.completions),
        bonus_uploaded_x100: new.bonus_uploaded_x100.saturating_sub(old.bonus_uploaded_x100),
        bonus_downloaded_x100: new.bonus_downloaded_x100.saturating_sub(old.bonus_downloaded_x100),
    }
}

/// Amounts of one client: sums of 64-bit numbers, far from the limit.
fn difference(new: u128, old: u128) -> i128 {
    new.checked_signed_diff(old).unwrap_or(i128::MAX)
}

/// Amounts of one client in one batch, capped at 64 bits.
fn bytes(amount: i128) -> u64 {
    u64::try_from(amount.max(0)).unwrap_or(u64::MAX)
}

/// A risk event without amounts.
fn risk_of(kind: RiskKind, entry: &Admitted<'_>, ceiling: RateCeiling) -> RiskEvent {
    let announce = &entry.arrival.entry;
    RiskEvent {
        kind,
        user: entry.user,
        torrent: Some(entry.torrent),
        info_hash: announce.info_hash,
        peer_id: announce.peer_id,
        ip: announce.ip,
        at: announce.at,
        elapsed: announce.since_last.unwrap_or_default(),
        uploaded_claimed: 0,
        downloaded_claimed: 0,
        uploaded_credited: 0,
        downloaded_credited: 0,
        ceiling,
        count: 0,
        unreported: 0,
    }
}

#[cfg(test)]
mod tests;
