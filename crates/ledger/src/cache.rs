//! The rows that batches touched last, kept with SQLite's connection.
//!
//! # Guarantees
//!
//! - It holds what the rows hold. It belongs to the one connection that writes, is used inside its write transactions
//!   only, and is dropped if another connection has committed anything to the file since, or if a transaction failed
//!   ([`database::SqliteSession::take_kept`]). Every writer of these rows in this process is in `load`.
//! - At most [`ACCOUNTS_MAX`] accounts, and as many users and torrents: beyond that it starts again.
//!
//! On servers there is none: nothing shows there whether another program has written a row.

use std::collections::HashMap;

use domain::{PeerId, TorrentId, UnixTime, UserId};
use journal::EntryId;

use crate::bucket::UserBucket;
use crate::client_encoding::{self, PackedClients};
use crate::figures::{Account, AccountKey, Figures, Stamp};
use crate::rows::NUMBER_MAX;
use crate::spans;
use crate::varint::{push_number, push_signed, push_time, take_bytes, take_number, take_signed, take_time};

/// About two hundred bytes each.
pub(crate) const ACCOUNTS_MAX: usize = 1 << 18;

#[derive(Debug, Default)]
pub(crate) struct Cache {
    pub(crate) users: HashMap<UserId, (Figures, UserBucket)>,
    pub(crate) torrents: HashMap<TorrentId, Figures>,
    /// Packed: as values they would take five times as much.
    accounts: HashMap<AccountKey, Box<[u8]>>,
}

impl Cache {
    pub(crate) fn account(&self, key: &AccountKey) -> Option<(Account, PackedClients)> {
        take_account(&mut &self.accounts.get(key)?[..])
    }

    pub(crate) fn insert_account(&mut self, key: AccountKey, account: &Account, clients: &[u8]) {
        let mut bytes = Vec::with_capacity(96 + clients.len());
        push_account(&mut bytes, account, clients);
        self.accounts.insert(key, bytes.into_boxed_slice());
    }

    pub(crate) fn is_full(&self) -> bool {
        self.accounts.len().max(self.users.len()).max(self.torrents.len()) > ACCOUNTS_MAX
    }
}

const HAS_LEFT: u64 = 1;
const HAS_LEECHED: u64 = 1 << 1;
const WAS_REMOVED: u64 = 1 << 2;
const HAS_PEER_ID: u64 = 1 << 3;
const IS_COMPLETED: u64 = 1 << 4;
const HAS_PRESENT_UNTIL: u64 = 1 << 5;
const HAS_FIRST_SEEN: u64 = 1 << 6;
const HAS_LAST_SEEN: u64 = 1 << 7;

fn push_account(bytes: &mut Vec<u8>, account: &Account, clients: &[u8]) {
    let Account { figures, left, completed_at, latest, peer_id, present_until, .. } = account;
    let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    let flags = flag(left.is_some(), HAS_LEFT)
        | flag(account.has_leeched, HAS_LEECHED)
        | flag(account.was_removed, WAS_REMOVED)
        | flag(peer_id.is_some(), HAS_PEER_ID)
        | flag(completed_at.is_some(), IS_COMPLETED)
        | flag(present_until.is_some(), HAS_PRESENT_UNTIL)
        | flag(figures.first_seen.is_some(), HAS_FIRST_SEEN)
        | flag(figures.last_seen.is_some(), HAS_LAST_SEEN);
    push_number(bytes, flags);
    for amount in [figures.uploaded, figures.downloaded] {
        push_number(bytes, amount as u64);
        push_number(bytes, (amount >> 64) as u64);
    }
    push_signed(bytes, figures.bonus_uploaded_x100);
    push_signed(bytes, figures.bonus_downloaded_x100);
    let numbers = [
        figures.seeding_s,
        figures.leeching_s,
        figures.completed_count,
        figures.repeated_count,
        account.seeding_clients,
        account.leeching_clients,
        latest.origin.ms,
        latest.origin.seq,
    ];
    numbers.iter().for_each(|number| push_number(bytes, *number));
    push_time(bytes, latest.at);
    let times = [figures.first_seen, figures.last_seen, *completed_at, *present_until];
    times.iter().flatten().for_each(|at| push_time(bytes, *at));
    left.iter().for_each(|left| push_number(bytes, (*left).min(NUMBER_MAX)));
    peer_id.iter().for_each(|peer_id| bytes.extend_from_slice(&peer_id.0));
    let time = spans::pack(&account.time);
    push_number(bytes, time.len() as u64);
    bytes.extend_from_slice(&time);
    bytes.extend_from_slice(clients);
}

fn take_account(bytes: &mut &[u8]) -> Option<(Account, PackedClients)> {
    let flags = take_number(bytes)?;
    let has = |bit: u64| flags & bit != 0;
    let mut amount = || Some(u128::from(take_number(bytes)?) | u128::from(take_number(bytes)?) << 64);
    let (uploaded, downloaded) = (amount()?, amount()?);
    let (bonus_uploaded_x100, bonus_downloaded_x100) = (take_signed(bytes)?, take_signed(bytes)?);
    let mut numbers = [0; 8];
    for number in &mut numbers {
        *number = take_number(bytes)?;
    }
    let [seeding_s, leeching_s, completed_count, repeated_count, seeding_clients, leeching_clients, ms, seq] =
        numbers;
    let latest = Stamp { at: take_time(bytes)?, origin: EntryId { ms, seq } };
    let mut time_if =
        |bit| -> Option<Option<UnixTime>> { if has(bit) { take_time(bytes).map(Some) } else { Some(None) } };
    let (first_seen, last_seen) = (time_if(HAS_FIRST_SEEN)?, time_if(HAS_LAST_SEEN)?);
    let (completed_at, present_until) = (time_if(IS_COMPLETED)?, time_if(HAS_PRESENT_UNTIL)?);
    let left = if has(HAS_LEFT) { Some(take_number(bytes)?) } else { None };
    let peer_id = match has(HAS_PEER_ID) {
        true => Some(PeerId(take_bytes(bytes, 20)?.try_into().ok()?)),
        false => None,
    };
    let length = usize::try_from(take_number(bytes)?).ok()?;
    let time = spans::unpack(take_bytes(bytes, length)?)?;
    let clients = client_encoding::unpack(bytes)?;
    let figures = Figures {
        uploaded,
        downloaded,
        bonus_uploaded_x100,
        bonus_downloaded_x100,
        seeding_s,
        leeching_s,
        completed_count,
        repeated_count,
        first_seen,
        last_seen,
    };
    let account = Account {
        figures,
        left,
        seeding_clients,
        leeching_clients,
        completed_at,
        latest,
        peer_id,
        time,
        present_until,
        has_leeched: has(HAS_LEECHED),
        was_removed: has(WAS_REMOVED),
        clients_removed_until: clients.removed_until,
    };
    Some((account, clients))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::TorrentId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cached_account_is_what_was_inserted(
            amounts: [u128; 2], bonus: [i128; 2], numbers: [u64; 8], times: [u32; 6], options: [bool; 8],
            peer_id: [u8; 20], left in 0..=NUMBER_MAX,
        ) {
            let time = |n: usize| UnixTime(times[n]);
            let mut spent = spans::TimeSpent::default();
            spent.seeding.insert(UnixTime(times[0] / 2), UnixTime(times[0] / 2 + 9));
            let figures = Figures {
                uploaded: amounts[0],
                downloaded: amounts[1],
                bonus_uploaded_x100: bonus[0],
                bonus_downloaded_x100: bonus[1],
                seeding_s: numbers[0],
                leeching_s: numbers[1],
                completed_count: numbers[2],
                repeated_count: numbers[3],
                first_seen: options[0].then_some(time(0)),
                last_seen: options[7].then_some(time(1)),
            };
            let account = Account {
                figures,
                left: options[1].then_some(left),
                seeding_clients: numbers[4],
                leeching_clients: numbers[5],
                completed_at: options[2].then_some(time(2)),
                latest: Stamp { at: time(3), origin: EntryId { ms: numbers[6], seq: numbers[7] } },
                peer_id: options[3].then_some(PeerId(peer_id)),
                time: spent,
                present_until: options[4].then_some(time(4)),
                has_leeched: options[5],
                was_removed: options[6],
                clients_removed_until: time(5),
            };
            let clients = client_encoding::pack(std::iter::empty(), account.clients_removed_until);
            let key = AccountKey { user: UserId::new(1).unwrap(), torrent: TorrentId::new(2).unwrap() };
            let mut cache = Cache::default();
            cache.insert_account(key, &account, &clients);
            let packed = PackedClients { clients: Vec::new(), removed_until: time(5) };
            prop_assert_eq!(cache.account(&key), Some((account, packed)));
        }
    }
}
