//! Posting: what a batch of entries does to the books.
//!
//! A function of the books, the entries and the rules. Where our tracker wrote the entry, bytes follow from the runs
//! ([`mod@crate::credit`]), so that it may come twice. Everything else adds up, and counts on each entry being posted
//! once (L6), which is the store's part; what several nodes told of the same announce is taken back by what the runs say
//! (`excess`). So the books are a function of the set of entries: no order and no batches leave a trace.

use std::collections::BTreeMap;

use domain::{AnnounceEvent, Cause, RateCeiling, RiskEvent, RiskKind, Seconds, UnixTime};
use journal::{Rejected, TrafficEntry};

use crate::admit::Admitted;
use crate::books::{Books, Changes, Client, Presence};
use crate::credit::{credit, credit_of, stretches};
use crate::excess::{Excess, excess};
use crate::figures::{Account, Gain, Stamp};
use crate::multiplier::Multipliers;
use crate::run::{ClientRef, Counters, Run, RunKey};
use crate::settle::settle;
use crate::sums::Moved;
use crate::told::{Claimed, Spent, Told};

/// What holds for a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) ceiling: RateCeiling,
    pub(crate) session_retention: Seconds,
    pub(crate) multipliers: &'a Multipliers,
    pub(crate) now: UnixTime,
}

/// What posting did, besides to the books.
#[derive(Debug, Default)]
pub(crate) struct Posted {
    pub(crate) rejected: Vec<Rejected>,
    pub(crate) risks: Vec<RiskEvent>,
    pub(crate) changes: Changes,
}

/// A client as it was before the batch, and the last entry it has in it.
struct Before {
    runs: Vec<Run>,
    sample: Admitted,
}

/// Posts entries.
pub(crate) fn post(books: &mut Books, entries: &[Admitted], rules: &Rules<'_>) -> Posted {
    let mut posted = Posted::default();
    let mut before: BTreeMap<ClientRef, Before> = BTreeMap::new();
    for entry in entries {
        if let Err(reason) = check_age(books, entry, rules) {
            posted.rejected.push(Rejected { index: entry.index, reason });
            continue;
        }
        let client = books.clients.entry(entry.client()).or_default();
        before
            .entry(entry.client())
            .and_modify(|known| known.sample = *entry)
            .or_insert_with(|| Before { runs: client.runs.clone(), sample: *entry });
        let gain = gain_of(entry, rules, &mut posted.risks);
        hear(client, &entry.arrival.entry, &gain);
        let account = books.accounts.entry(entry.account()).or_default();
        note_latest(account, client, entry);
        note_changes(&mut posted.changes, entry);
        add(books, entry, &gain);
    }
    for (client, before) in before {
        post_runs(books, client, &before, rules, &mut posted);
    }
    posted
}

/// An entry of a run that has been forgotten cannot be told from a new one, so it is not taken.
fn check_age(books: &Books, entry: &Admitted, rules: &Rules<'_>) -> Result<(), String> {
    let Some(totals) = entry.arrival.entry.totals else {
        return Ok(());
    };
    let client = books.clients.get(&entry.client());
    let key = RunKey::new(totals.session.run, entry.arrival.entry.node);
    let is_known = client.is_some_and(|client| client.runs.iter().any(|run| run.key == key));
    let at = heard_at(&entry.arrival.entry);
    if is_known {
        return Ok(());
    }
    if at < rules.now - rules.session_retention {
        let days = rules.session_retention.0 / (24 * 60 * 60);
        return Err(format!("ts: {at} is older than sessions are kept ({days} days)"));
    }
    if client.is_some_and(|client| at <= client.settled_until) {
        return Err(format!("ts: {at} is older than the sessions that are kept of this client"));
    }
    Ok(())
}

/// When the client itself showed these counters: a peer that vanished is reported later than that.
fn heard_at(entry: &TrafficEntry) -> UnixTime {
    match entry.cause {
        Cause::Announce => entry.at,
        Cause::Timeout | Cause::Removal => entry.at - entry.since_last.unwrap_or_default(),
    }
}

/// Takes the counters into the client's runs, and what else the entry tells; without counters, what it brings.
fn hear(client: &mut Client, entry: &TrafficEntry, gain: &Gain) {
    let Some(totals) = entry.totals else {
        let brought = Moved { uploaded: gain.uploaded, downloaded: gain.downloaded };
        client.sums.foreign = client.sums.foreign.with(brought);
        return;
    };
    let key = RunKey::new(totals.session.run, entry.node);
    let counters = Counters { uploaded: totals.uploaded, downloaded: totals.downloaded };
    let (at, told) = (heard_at(entry), told_by(entry, counters, gain));
    match client.runs.iter_mut().find(|run| run.key == key) {
        Some(run) => run.hear(counters, at, told),
        None => client.runs.push(Run::heard(key, counters, at, told)),
    }
}

/// What an entry adds by itself, and what that reaches over: what another node adds of the same is too much.
fn told_by(entry: &TrafficEntry, counters: Counters, gain: &Gain) -> Told {
    let at = u64::from(heard_at(entry).0);
    Told {
        seeding: Spent::until(at, gain.seeding_s.unsigned_abs()),
        leeching: Spent::until(at, gain.leeching_s.unsigned_abs()),
        uploaded: Claimed::up_to(counters.uploaded, entry.uploaded_delta, gain.bonus_uploaded_x100),
        downloaded: Claimed::up_to(counters.downloaded, entry.downloaded_delta, gain.bonus_downloaded_x100),
        completions: gain.completed_count.unsigned_abs(),
    }
}

/// The later entry wins: for the client what it does, for the account what is left and who said so.
fn note_latest(account: &mut Account, client: &mut Client, entry: &Admitted) {
    let said = &entry.arrival.entry;
    let stamp = Stamp { at: said.at, origin: entry.arrival.origin };
    if stamp >= client.latest {
        let presence = presence_after(said);
        account.move_client(client.presence, presence);
        client.presence = presence;
        client.latest = stamp;
    }
    if stamp >= account.latest {
        account.latest = stamp;
        account.left = said.left;
        account.peer_id = Some(said.peer_id);
    }
    if said.event == AnnounceEvent::Completed {
        account.completed_at = Some(account.completed_at.map_or(said.at, |first| first.min(said.at)));
    }
}

/// What the client does from now on (L3).
fn presence_after(entry: &TrafficEntry) -> Presence {
    match entry.event {
        AnnounceEvent::Stopped => Presence::Gone,
        _ if entry.is_complete() => Presence::Seeding,
        _ => Presence::Leeching,
    }
}

/// What the entry adds by itself.
fn gain_of(entry: &Admitted, rules: &Rules<'_>, risks: &mut Vec<RiskEvent>) -> Gain {
    let said = &entry.arrival.entry;
    let moved = match said.totals {
        Some(_) => Counters { uploaded: said.uploaded_delta, downloaded: said.downloaded_delta },
        None => plausible(entry, rules.ceiling, risks),
    };
    let in_force = rules.multipliers.in_force(entry.user, entry.torrent, said.at);
    // Our own entries are credited by their runs, but what multipliers add belongs to the moment.
    let raw = if said.totals.is_some() { Counters::default() } else { moved };
    let (seeding_s, leeching_s) = time_before(said);
    Gain {
        uploaded: raw.uploaded.into(),
        downloaded: raw.downloaded.into(),
        bonus_uploaded_x100: in_force.bonus_uploaded_x100(moved.uploaded),
        bonus_downloaded_x100: in_force.bonus_downloaded_x100(moved.downloaded),
        seeding_s,
        leeching_s,
        completed_count: i64::from(said.event == AnnounceEvent::Completed),
        seen_at: Some(said.at),
    }
}

/// So much of what an entry claims by itself is believed. Our own entries have totals, and their runs are held against
/// the ceiling; others have only what they say.
pub(crate) fn believed(said: &TrafficEntry, ceiling: RateCeiling) -> Counters {
    let allowance = match said.totals {
        Some(_) => u64::MAX,
        None => ceiling.allowance(said.since_last.filter(|elapsed| elapsed.0 > 0).unwrap_or(said.interval)),
    };
    Counters {
        uploaded: said.uploaded_delta.min(allowance),
        downloaded: said.downloaded_delta.min(allowance),
    }
}

/// What an entry without totals claims, up to the ceiling (J8).
fn plausible(entry: &Admitted, ceiling: RateCeiling, risks: &mut Vec<RiskEvent>) -> Counters {
    let said = &entry.arrival.entry;
    let granted = believed(said, ceiling);
    if granted.uploaded < said.uploaded_delta || granted.downloaded < said.downloaded_delta {
        risks.push(RiskEvent {
            uploaded_claimed: said.uploaded_delta,
            uploaded_credited: granted.uploaded,
            downloaded_claimed: said.downloaded_delta,
            downloaded_credited: granted.downloaded,
            ..risk_of(RiskKind::ClientRate, entry, ceiling)
        });
    }
    granted
}

/// Seconds of seeding and of leeching before this entry (L4). Who fell silent earns nothing, nor who has just begun;
/// until it was completed, a torrent was leeched.
fn time_before(entry: &TrafficEntry) -> (i64, i64) {
    if entry.cause != Cause::Announce || entry.event == AnnounceEvent::Started {
        return (0, 0);
    }
    let seconds = i64::from(entry.since_last.unwrap_or(entry.interval).0);
    let was_seeding = entry.left == Some(0) && entry.event != AnnounceEvent::Completed;
    if was_seeding { (seconds, 0) } else { (0, seconds) }
}

fn note_changes(changes: &mut Changes, entry: &Admitted) {
    changes.users.insert(entry.user);
    changes.torrents.insert(entry.torrent);
    changes.accounts.insert(entry.account());
    changes.clients.insert(entry.client());
}

fn add(books: &mut Books, entry: &Admitted, gain: &Gain) {
    books.users.entry(entry.user).or_default().add(gain);
    books.torrents.entry(entry.torrent).or_default().add(gain);
    books.accounts.entry(entry.account()).or_default().figures.add(gain);
}

/// Credits what a client's runs come to now, against what they came to before the batch; and takes back what was told
/// more than once.
fn post_runs(books: &mut Books, key: ClientRef, before: &Before, rules: &Rules<'_>, posted: &mut Posted) {
    let client = books.clients.entry(key).or_default();
    if client.runs == before.runs {
        return;
    }
    let was = stretches(&before.runs, rules.ceiling);
    let is = stretches(&client.runs, rules.ceiling);
    let (old, new) = (credit_of(&was, rules.ceiling), credit_of(&is, rules.ceiling));
    let uploaded = difference(new.uploaded, old.uploaded);
    let downloaded = difference(new.downloaded, old.downloaded);
    let withheld_uploaded = difference(new.withheld_uploaded, old.withheld_uploaded).max(0);
    let withheld_downloaded = difference(new.withheld_downloaded, old.withheld_downloaded).max(0);
    if withheld_uploaded > 0 || withheld_downloaded > 0 {
        posted.risks.push(RiskEvent {
            uploaded_claimed: bytes(uploaded.max(0) + withheld_uploaded),
            uploaded_credited: bytes(uploaded.max(0)),
            downloaded_claimed: bytes(downloaded.max(0) + withheld_downloaded),
            downloaded_credited: bytes(downloaded.max(0)),
            ..risk_of(RiskKind::ClientRate, &before.sample, rules.ceiling)
        });
    }
    if let Some(until) = settle(&mut client.runs, rules.ceiling) {
        client.settled_until = client.settled_until.max(until);
        let kept = credit(&client.runs, rules.ceiling);
        client.sums.settled = client.sums.settled.with(Moved {
            uploaded: difference(new.uploaded, kept.uploaded),
            downloaded: difference(new.downloaded, kept.downloaded),
        });
    }
    note_changed_runs(key, &before.runs, &client.runs, &mut posted.changes);
    let gain = Gain { uploaded, downloaded, ..taken_back(&excess(&was), &excess(&is)) };
    add(books, &before.sample, &gain);
}

/// What was told too often, and not yet taken back.
fn taken_back(old: &Excess, new: &Excess) -> Gain {
    // Seconds and completions of one client, far from the limit.
    let less = |new: u64, old: u64| old.checked_signed_diff(new).unwrap_or_default();
    Gain {
        bonus_uploaded_x100: old.bonus_uploaded_x100.saturating_sub(new.bonus_uploaded_x100),
        bonus_downloaded_x100: old.bonus_downloaded_x100.saturating_sub(new.bonus_downloaded_x100),
        seeding_s: less(new.seeding_s, old.seeding_s),
        leeching_s: less(new.leeching_s, old.leeching_s),
        completed_count: less(new.completed_count, old.completed_count),
        ..Gain::default()
    }
}

fn note_changed_runs(key: ClientRef, before: &[Run], after: &[Run], changes: &mut Changes) {
    let changed = after.iter().filter(|run| !before.contains(run));
    changes.runs.extend(changed.map(|run| (key, *run)));
    let gone = before.iter().filter(|old| !after.iter().any(|run| run.key == old.key));
    changes.gone_runs.extend(gone.map(|run| (key, run.key)));
}

/// Amounts of one client: sums of 64-bit numbers, far from the limit.
fn difference(new: u128, old: u128) -> i128 {
    new.checked_signed_diff(old).unwrap_or(i128::MAX)
}

/// Amounts of one client in one batch; beyond 64 bits, the most there is.
fn bytes(amount: i128) -> u64 {
    u64::try_from(amount.max(0)).unwrap_or(u64::MAX)
}

/// A risk event without figures.
fn risk_of(kind: RiskKind, entry: &Admitted, ceiling: RateCeiling) -> RiskEvent {
    RiskEvent {
        kind,
        user: entry.user,
        torrent: Some(entry.torrent),
        info_hash: entry.arrival.entry.info_hash,
        peer_id: entry.arrival.entry.peer_id,
        ip: entry.arrival.entry.ip,
        at: entry.arrival.entry.at,
        elapsed: entry.arrival.entry.since_last.unwrap_or_default(),
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
