//! The column `clients` of an account: its clients with their runs, packed.
//!
//! Times and ids are encoded relative to each other, so that a client with one run takes about sixty bytes. Migration 8
//! packed the tables of older versions as text, because SQL wrote it; such a text is read, and never written.

use std::collections::BTreeMap;

use domain::{ClientId, RunId, UnixTime, hex};
use journal::EntryId;

use crate::account_state::{Client, ClientState, Clients};
use crate::figures::Stamp;
use crate::reported::Reported;
use crate::run::{Counters, Run, RunKey};
use crate::run_encoding::{added, difference, ms_of, pack_told, unpack_told};
use crate::sums;
use crate::varint::{push_number, push_time, take_bytes, take_number, take_time, take_u64};

/// The first byte of packed clients. The text of migration 8 begins with a letter.
const VERSION: u8 = 1;

const STATE_BITS: u64 = 0b11;
const IS_SETTLED: u64 = 0b100;
const HAS_SUMS: u64 = 0b1000;
const RUNS_SHIFT: u32 = 4;

/// The clients of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedClients {
    pub(crate) clients: Clients,
    /// See [`crate::figures::Account::clients_removed_until`].
    pub(crate) removed_until: UnixTime,
}

/// Empty if there are none.
pub(crate) fn pack<'a>(
    clients: impl Iterator<Item = (ClientId, &'a Client)>,
    removed_until: UnixTime,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    bytes.push(VERSION);
    push_time(&mut bytes, removed_until);
    let header = bytes.len();
    for (id, client) in clients {
        push_client(&mut bytes, id, client);
    }
    if bytes.len() == header && removed_until == UnixTime(0) {
        bytes.clear();
    }
    bytes
}

fn push_client(bytes: &mut Vec<u8>, id: ClientId, client: &Client) {
    let Client { state, latest, settled_until, sums, runs } = client;
    let sums = sums::pack(sums);
    let state = match state {
        ClientState::Inactive => 0,
        ClientState::Seeding => 1,
        ClientState::Leeching => 2,
    };
    let mut flags = state | (runs.len() as u64) << RUNS_SHIFT;
    if *settled_until != UnixTime(0) {
        flags |= IS_SETTLED;
    }
    if !sums.is_empty() {
        flags |= HAS_SUMS;
    }
    bytes.extend_from_slice(&id.0.to_le_bytes());
    push_number(bytes, flags);
    push_time(bytes, latest.at);
    push_number(bytes, difference(latest.origin.ms, ms_of(latest.at)));
    push_number(bytes, latest.origin.seq);
    if flags & IS_SETTLED != 0 {
        push_time(bytes, *settled_until);
    }
    if flags & HAS_SUMS != 0 {
        push_number(bytes, sums.len() as u64);
        bytes.extend_from_slice(&sums);
    }
    for run in runs {
        push_run(bytes, run, latest.at);
    }
}

fn push_run(bytes: &mut Vec<u8>, run: &Run, latest: UnixTime) {
    push_number(bytes, u64::from(run.key.run.0) << 1 | u64::from(run.is_settled));
    bytes.extend_from_slice(&run.key.node.to_le_bytes());
    push_number(bytes, run.low.uploaded);
    push_number(bytes, difference(run.high.uploaded, run.low.uploaded));
    push_number(bytes, run.low.downloaded);
    push_number(bytes, difference(run.high.downloaded, run.low.downloaded));
    push_number(bytes, difference(run.first.0.into(), latest.0.into()));
    push_number(bytes, difference(run.last.0.into(), latest.0.into()));
    pack_told(bytes, run);
}

/// None if the bytes are malformed.
pub(crate) fn unpack(mut bytes: &[u8]) -> Option<PackedClients> {
    let Some((first, rest)) = bytes.split_first() else { return Some(PackedClients::default()) };
    if *first != VERSION {
        return unpack_text(bytes);
    }
    bytes = rest;
    let removed_until = take_time(&mut bytes)?;
    let mut clients = Vec::new();
    while !bytes.is_empty() {
        clients.push(take_client(&mut bytes)?);
    }
    Some(PackedClients { clients, removed_until })
}

fn take_client(bytes: &mut &[u8]) -> Option<(ClientId, Client)> {
    let id = ClientId(take_u64(bytes)?);
    let flags = take_number(bytes)?;
    let at = take_time(bytes)?;
    let ms = added(ms_of(at), take_number(bytes)?);
    let latest = Stamp { at, origin: EntryId { ms, seq: take_number(bytes)? } };
    let settled_until = if flags & IS_SETTLED != 0 { take_time(bytes)? } else { UnixTime(0) };
    let packed_sums = match flags & HAS_SUMS != 0 {
        true => {
            let length = take_number(bytes)?;
            take_bytes(bytes, usize::try_from(length).ok()?)?
        }
        false => &[],
    };
    let count = usize::try_from(flags >> RUNS_SHIFT).ok()?;
    // A run takes more than a byte: a malformed count cannot allocate without bound.
    let mut runs = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        runs.push(take_run(bytes, at)?);
    }
    let state = state_of(flags & STATE_BITS)?;
    Some((id, Client { state, latest, settled_until, sums: sums::unpack(packed_sums)?, runs }))
}

fn state_of(number: u64) -> Option<ClientState> {
    match number {
        0 => Some(ClientState::Inactive),
        1 => Some(ClientState::Seeding),
        2 => Some(ClientState::Leeching),
        _ => None,
    }
}

fn take_run(bytes: &mut &[u8], latest: UnixTime) -> Option<Run> {
    let number = take_number(bytes)?;
    let key = RunKey { run: RunId(u32::try_from(number >> 1).ok()?), node: take_u64(bytes)? };
    let uploaded = take_number(bytes)?;
    let uploaded_high = added(uploaded, take_number(bytes)?);
    let downloaded = take_number(bytes)?;
    let downloaded_high = added(downloaded, take_number(bytes)?);
    let mut take_near = || Some(UnixTime(u32::try_from(added(latest.0.into(), take_number(bytes)?)).ok()?));
    let (first, last) = (take_near()?, take_near()?);
    let mut run = Run {
        key,
        low: Counters { uploaded, downloaded },
        high: Counters { uploaded: uploaded_high, downloaded: downloaded_high },
        first,
        last,
        first_id: EntryId::ZERO,
        last_id: EntryId::ZERO,
        is_settled: number & 1 != 0,
        stopped: None,
        reported: Reported::NONE,
    };
    unpack_told(bytes, &mut run)?;
    Some(run)
}

/// Rows of older versions, each ended by `;`: `c` and the columns of a client, or `r` and those of a run.
fn unpack_text(bytes: &[u8]) -> Option<PackedClients> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut clients: BTreeMap<u64, Client> = BTreeMap::new();
    let lines = || text.split_terminator(';');
    for line in lines().filter_map(|line| line.strip_prefix('c')) {
        let (id, client) = client_of_text(line)?;
        clients.insert(id, client);
    }
    for line in lines().filter_map(|line| line.strip_prefix('r')) {
        let (id, run) = run_of_text(line)?;
        clients.entry(id).or_default().runs.push(run);
    }
    if !lines().all(|line| line.starts_with(['c', 'r'])) {
        return None;
    }
    let clients = clients.into_iter().map(|(id, client)| (ClientId(id), client)).collect();
    Some(PackedClients { clients, removed_until: UnixTime(0) })
}

/// The numbers of a row, and the bytes at its end.
fn columns<const COUNT: usize>(line: &str) -> Option<([i64; COUNT], Vec<u8>)> {
    let mut words = line.split(' ');
    let mut numbers = [0; COUNT];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    let bytes = hex::decode(words.next()?.as_bytes())?;
    words.next().is_none().then_some((numbers, bytes))
}

fn client_of_text(line: &str) -> Option<(u64, Client)> {
    let ([id, state, at, ms, seq, settled_until], packed_sums) = columns(line)?;
    let origin = EntryId { ms: ms.cast_unsigned(), seq: seq.cast_unsigned() };
    let client = Client {
        state: state_of(u64::try_from(state).ok()?)?,
        latest: Stamp { at: UnixTime(u32::try_from(at).ok()?), origin },
        settled_until: UnixTime(u32::try_from(settled_until).ok()?),
        sums: sums::unpack(&packed_sums)?,
        runs: Vec::new(),
    };
    Some((id.cast_unsigned(), client))
}

fn run_of_text(line: &str) -> Option<(u64, Run)> {
    let ([id, run, node, up_low, up_high, down_low, down_high, first, last, is_settled], told) =
        columns(line)?;
    let counters =
        |up: i64, down: i64| Counters { uploaded: up.cast_unsigned(), downloaded: down.cast_unsigned() };
    let time = |number: i64| u32::try_from(number).ok().map(UnixTime);
    let mut run = Run {
        key: RunKey { run: RunId(u32::try_from(run).ok()?), node: node.cast_unsigned() },
        low: counters(up_low, down_low),
        high: counters(up_high, down_high),
        first: time(first)?,
        last: time(last)?,
        first_id: EntryId::ZERO,
        last_id: EntryId::ZERO,
        is_settled: is_settled != 0,
        stopped: None,
        reported: Reported::NONE,
    };
    let mut told = &told[..];
    if told.is_empty() {
        told = &[0];
    }
    unpack_told(&mut told, &mut run)?;
    told.is_empty().then_some((id.cast_unsigned(), run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Bucket;
    use crate::reported::Claimed;
    use crate::sums::{Moved, Sums};
    use proptest::prelude::*;

    fn run(number: u32, at: u32, uploaded: (u64, u64), is_settled: bool) -> Run {
        let id = |at: u32| EntryId { ms: u64::from(at) * 1000 + 7, seq: 3 };
        Run {
            key: RunKey { run: RunId(number), node: u64::from(number) << 33 },
            low: Counters { uploaded: uploaded.0, downloaded: 5 },
            high: Counters { uploaded: uploaded.1, downloaded: u64::MAX },
            first: UnixTime(at),
            last: UnixTime(at.saturating_add(99)),
            first_id: id(at),
            last_id: id(at),
            is_settled,
            stopped: is_settled.then_some(id(at)),
            reported: Reported { uploaded: Claimed::up_to(uploaded.1, 9, 4), ..Reported::NONE },
        }
    }

    fn client(at: u32, runs: Vec<Run>) -> Client {
        Client {
            state: ClientState::Seeding,
            latest: Stamp { at: UnixTime(at), origin: EntryId { ms: u64::from(at), seq: 1 } },
            settled_until: UnixTime(at / 2),
            sums: Sums {
                foreign: Moved { uploaded: at.into(), downloaded: -1 },
                bucket: Bucket { at: UnixTime(at), spent_up: 1, spent_down: 2 },
                ..Sums::default()
            },
            runs,
        }
    }

    proptest! {
        #[test]
        fn packed_clients_round_trip(
            shapes in prop::collection::vec((any::<u64>(), any::<u32>(), prop::collection::vec(any::<(u32, u32, (u64, u64), bool)>(), 0..4)), 0..5),
            removed_until: u32,
        ) {
            let shapes: Clients = shapes.into_iter().map(|(id, at, runs)| {
                let runs = runs.into_iter().map(|(number, at, uploaded, is_settled)| run(number, at, uploaded, is_settled));
                (ClientId(id), client(at, runs.collect()))
            }).collect();
            let packed = pack(shapes.iter().map(|(id, client)| (*id, client)), UnixTime(removed_until));
            let expected = PackedClients { clients: shapes, removed_until: UnixTime(removed_until) };
            prop_assert_eq!(unpack(&packed), Some(expected));
        }

        #[test]
        fn unpacking_never_panics(mut bytes: Vec<u8>, text in "[cr0-9 ;]{0,40}") {
            let _ = (unpack(&bytes), unpack(text.as_bytes()));
            bytes.insert(0, VERSION);
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn a_client_with_one_run_takes_about_sixty_bytes() {
        let started = 1_794_000_000;
        let run = Run {
            low: Counters::default(),
            high: Counters { uploaded: 9 << 30, downloaded: 0 },
            ..run(1, started, (0, 0), false)
        };
        let client = Client {
            latest: Stamp { at: UnixTime(started), origin: run.last_id },
            settled_until: UnixTime(0),
            sums: Sums::default(),
            ..client(started, vec![run])
        };
        let packed = pack([(ClientId(7), &client)].into_iter(), UnixTime(0));
        assert!(packed.len() < 70, "{} bytes", packed.len());
        assert!(pack(std::iter::empty(), UnixTime(0)).is_empty());
    }

    #[test]
    fn the_text_of_the_migration_is_read() {
        let text = "r-1 4 -2 10 11 12 13 1794000000 1794000100 0 ;c-1 2 1794000100 1794000100000 3 0 ;c5 0 1 2 3 4 ;";
        let read = unpack(text.as_bytes()).unwrap().clients;
        let ids: Vec<u64> = read.iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [5, u64::MAX]);
        let client = &read[1].1;
        assert_eq!((client.state, client.latest.origin.seq), (ClientState::Leeching, 3));
        assert_eq!(client.runs[0].key, RunKey { run: RunId(4), node: u64::MAX - 1 });
        assert_eq!(client.runs[0].high, Counters { uploaded: 11, downloaded: 13 });
        for malformed in ["x", "c1;", "c1 9 1 1 1 1 ;", "r1 1 1 1 1 1 1 1 1 1 ff;", "c1 0 1 2 3 4 0;"] {
            assert_eq!(unpack(malformed.as_bytes()), None, "{malformed}");
        }
    }
}
