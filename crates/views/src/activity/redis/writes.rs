//! The commands that bring the keys of a user in line with what is in memory. All values are absolute.

use std::io::Write as _;

use domain::{InfoHash, UnixTime};
use redis::Cmd;

use super::UserKeys;
use crate::activity::record::{ClientState, Record, Summary};

/// Members or fields per command.
const MEMBERS_MAX: usize = 500;

/// What to write of one user.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Members with scores, by state.
    added: [Vec<(InfoHash, UnixTime)>; 3],
    /// Members to remove, by state.
    removed: [Vec<Vec<u8>>; 3],
    records: Vec<(InfoHash, Vec<u8>)>,
    removed_records: Vec<InfoHash>,
}

const fn index_of(state: ClientState) -> usize {
    match state {
        ClientState::Seeding => 0,
        ClientState::Leeching => 1,
        ClientState::Stopped => 2,
    }
}

impl Writes {
    /// The list's time only.
    pub(super) fn put_time(&mut self, info_hash: InfoHash, shown: Summary) {
        self.added[index_of(shown.state)].push((info_hash, shown.at));
    }

    /// A torrent's clients have changed; no record if there are none left.
    pub(super) fn put(&mut self, info_hash: InfoHash, before: Option<Summary>, record: Option<&Record>) {
        let after = record.and_then(Record::summary);
        if let Some(after) = after {
            self.put_time(info_hash, after);
        }
        let obsolete = |state: &ClientState| match before {
            Some(before) => before.state == *state,
            // If only the record was lost, the torrent may still be in a list (A3).
            None => *state != ClientState::Stopped,
        };
        let states = ClientState::ALL.iter().filter(|state| obsolete(state));
        for state in states.filter(|state| after.is_none_or(|after| after.state != **state)) {
            self.removed[index_of(*state)].push(digits_of(&info_hash).to_vec());
        }
        match record {
            Some(record) => self.records.push((info_hash, record.to_bytes())),
            None => self.removed_records.push(info_hash),
        }
    }

    /// A member without a record.
    pub(super) fn remove_member(&mut self, state: ClientState, member: Vec<u8>) {
        self.removed[index_of(state)].push(member);
    }

    /// In an order in which a torrent is never in two lists at once (A3), also if they are executed in part.
    pub(super) fn push_commands(&self, keys: &UserKeys, commands: &mut Vec<Cmd>) {
        let lists = [&keys.seed, &keys.leech, &keys.stopped];
        for (list, members) in lists.iter().zip(&self.removed) {
            for members in members.chunks(MEMBERS_MAX) {
                commands.push(command("ZREM", list, members, |command, member| {
                    command.arg(member.as_slice());
                }));
            }
        }
        for (list, members) in lists.iter().zip(&self.added) {
            for members in members.chunks(MEMBERS_MAX) {
                commands.push(command("ZADD", list, members, |command, (info_hash, at)| {
                    command.arg(at.0).arg(digits_of(info_hash).as_slice());
                }));
            }
        }
        for records in self.records.chunks(MEMBERS_MAX) {
            commands.push(command("HSET", &keys.clients, records, |command, (info_hash, record)| {
                command.arg(digits_of(info_hash).as_slice()).arg(record.as_slice());
            }));
        }
        for removed in self.removed_records.chunks(MEMBERS_MAX) {
            commands.push(command("HDEL", &keys.clients, removed, |command, info_hash| {
                command.arg(digits_of(info_hash).as_slice());
            }));
        }
    }
}

fn command<T>(name: &str, key: &str, items: &[T], add: impl Fn(&mut Cmd, &T)) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    items.iter().for_each(|item| add(&mut command, item));
    command
}

/// The infohash as in the lists (A1).
fn digits_of(info_hash: &InfoHash) -> [u8; 40] {
    let mut digits = [0; 40];
    write!(digits.as_mut_slice(), "{info_hash}").expect("an infohash has forty digits");
    digits
}
