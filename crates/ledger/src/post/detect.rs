//! Detection of suspicious amounts in a batch. They are reported, not withheld.

use std::collections::BTreeMap;

use domain::{AnnounceEvent, RiskEvent, RiskKind, TorrentId};

use super::user_limit::Pending;
use super::{Rules, bytes, risk_of, written_at};
use crate::account_state::AccountState;
use crate::admit::Admitted;
use crate::credit::Credit;
use crate::figures::{Account, Figures, Stamp};
use crate::run::ClientRef;

/// Accepted upload after a `stopped`: requests of peers may still be in flight.
const AFTER_STOP_SLACK: u128 = 64 << 20;
/// Accepted decrease of `left` without `downloaded`: clients count pieces and downloads at different times.
const LEFT_SLACK: u64 = 64 << 20;
/// The upload credited on a torrent may exceed its download by this much, and by a quarter: the last download of a
/// client that disappears is not reported.
const AHEAD_SLACK: u128 = 1 << 30;

/// `left` fell by more than `downloaded` grew, from one entry of a client to its next.
pub(super) fn left_without_download(
    account: &Account,
    entry: &Admitted<'_>,
    rules: &Rules<'_>,
    risks: &mut Vec<RiskEvent>,
) {
    let announce = &entry.arrival.entry;
    // An announce to a tracker that does not know the client contains no difference.
    let is_next = account.peer_id == Some(announce.peer_id)
        && announce.since_last.is_none_or(|elapsed| elapsed.0 > 0)
        && account.latest < Stamp { at: written_at(announce, rules), origin: entry.arrival.origin }
        && announce.event != AnnounceEvent::Started;
    let (Some(was), Some(is), true) = (account.left, announce.left, is_next) else {
        return;
    };
    let fell = was.saturating_sub(is);
    let slack = LEFT_SLACK.max(fell / 4);
    if fell > announce.downloaded_delta.saturating_add(slack) {
        risks.push(RiskEvent {
            downloaded_claimed: fell,
            downloaded_credited: announce.downloaded_delta,
            ..risk_of(RiskKind::LeftWithoutDownload, entry, rules.ceiling)
        });
    }
}

/// Upload claimed after a `stopped`, without a `started` in between.
pub(super) fn upload_after_stop(
    old: &Credit,
    new: &Credit,
    entry: &Admitted<'_>,
    rules: &Rules<'_>,
    risks: &mut Vec<RiskEvent>,
) {
    let grown = new.uploaded_after_stop.saturating_sub(old.uploaded_after_stop);
    if grown > 0 && new.uploaded_after_stop > AFTER_STOP_SLACK {
        risks.push(RiskEvent {
            uploaded_claimed: u64::try_from(grown).unwrap_or(u64::MAX),
            ..risk_of(RiskKind::UploadAfterStop, entry, rules.ceiling)
        });
    }
}

/// A completed torrent of which the user downloaded nothing.
pub(super) fn completed_without_download(
    state: &AccountState,
    entries: &[Admitted<'_>],
    rules: &Rules<'_>,
    risks: &mut Vec<RiskEvent>,
) {
    for entry in entries.iter().filter(|entry| entry.arrival.entry.event == AnnounceEvent::Completed) {
        if state.accounts.get(&entry.account()).is_some_and(|account| account.figures.downloaded == 0) {
            risks.push(risk_of(RiskKind::CompletedWithoutDownload, entry, rules.ceiling));
        }
    }
}

/// The largest uploader on each torrent of a batch, and the torrent's lead before.
pub(super) struct Uploads<'e>(BTreeMap<TorrentId, Upload<'e>>);

struct Upload<'e> {
    most: i128,
    entry: Admitted<'e>,
    steps_before: u32,
}

impl<'e> Uploads<'e> {
    pub(super) fn before(state: &AccountState, pending: &BTreeMap<ClientRef, Pending<'e>>) -> Uploads<'e> {
        let mut uploads: BTreeMap<TorrentId, Upload<'e>> = BTreeMap::new();
        for (client, pending) in pending.iter().filter(|(_, pending)| pending.uploaded() > 0) {
            let Some(entry) = pending.sample() else { continue };
            let steps_before = state.torrents.get(&client.torrent).map_or(0, steps_ahead);
            let upload = Upload { most: pending.uploaded(), entry: *entry, steps_before };
            let known = uploads.entry(client.torrent);
            known
                .and_modify(|known| {
                    if known.most < pending.uploaded() {
                        (known.most, known.entry) = (pending.uploaded(), *entry);
                    }
                })
                .or_insert(upload);
        }
        Uploads(uploads)
    }

    /// Reports each torrent whose lead has doubled: otherwise every honest seeder would be reported once it is ahead.
    pub(super) fn ahead_of_download(
        self,
        state: &AccountState,
        rules: &Rules<'_>,
        risks: &mut Vec<RiskEvent>,
    ) {
        for (torrent, upload) in self.0 {
            let Some(figures) = state.torrents.get(&torrent) else { continue };
            if steps_ahead(figures) > upload.steps_before {
                let amount = |bytes: u128| u64::try_from(bytes).unwrap_or(u64::MAX);
                risks.push(RiskEvent {
                    uploaded_claimed: bytes(upload.most),
                    uploaded_credited: amount(figures.uploaded),
                    downloaded_credited: amount(figures.downloaded),
                    ..risk_of(RiskKind::UploadAheadOfDownload, &upload.entry, rules.ceiling)
                });
            }
        }
    }
}

/// How often the slack must be doubled to cover the lead of the upload; zero while the slack covers it.
fn steps_ahead(figures: &Figures) -> u32 {
    let lead = figures.uploaded.saturating_sub(figures.downloaded);
    let slack = AHEAD_SLACK.max(figures.downloaded / 4);
    (lead / slack).checked_ilog2().map_or(0, |log| log + 1)
}
