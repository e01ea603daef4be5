//! From figures and marks to the rows of statements: what the site has yet to be given.

use std::net::IpAddr;

use database::{Type, Value};
use domain::{TorrentId, UserId};
use ledger::{Account, AccountKey, Figures, Present};

use super::marks::{PostedAccount, PostedTorrent, PostedUser, decimal, integer};
use crate::agent::agent_of;
use crate::stage::{Announced, PeerKey};

/// A row of a statement, in the order of [`crate::profile::Write::columns`], and which user and torrent it is about: zero if
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatementRow {
    pub(super) user: u64,
    pub(super) torrent: u64,
    pub(super) values: Vec<Value>,
}

/// A row to be written, with the mark that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference<M> {
    pub(super) row: StatementRow,
    pub(super) mark: M,
    /// Whether an amount is taken back.
    pub(super) is_negative: bool,
}

/// The differences of the four amounts.
struct Amounts {
    values: [Value; 4],
    is_any: bool,
    is_negative: bool,
}

fn amounts(is: &PostedUser, was: &PostedUser) -> Amounts {
    let pairs = [
        (is.uploaded, was.uploaded),
        (is.downloaded, was.downloaded),
        (is.credited_uploaded, was.credited_uploaded),
        (is.credited_downloaded, was.credited_downloaded),
    ];
    Amounts {
        values: pairs.map(|(is, was)| difference(is, was)),
        is_any: is != was,
        is_negative: pairs.iter().any(|(is, was)| is < was),
    }
}

fn difference(is: u128, was: u128) -> Value {
    let sign = if is < was { "-" } else { "" };
    Value::Decimal(format!("{sign}{}", is.abs_diff(was)))
}

/// Numbers far from the limit.
fn small_difference(is: u64, was: u64) -> Value {
    Value::Integer(is.checked_signed_diff(was).unwrap_or_default())
}

fn posted(figures: &Figures) -> PostedUser {
    PostedUser {
        uploaded: figures.uploaded,
        downloaded: figures.downloaded,
        credited_uploaded: figures.credited_uploaded(),
        credited_downloaded: figures.credited_downloaded(),
    }
}

fn seconds(at: Option<domain::UnixTime>) -> Value {
    at.map_or(Value::Null(Type::Integer), |at| at.0.into())
}

/// None if the site has it all.
pub(super) fn user(id: UserId, figures: &Figures, was: &PostedUser) -> Option<Difference<PostedUser>> {
    let mark = posted(figures);
    let Amounts { values: [up, down, credited_up, credited_down], is_any, is_negative } = amounts(&mark, was);
    let last_at = seconds(figures.last_seen);
    let values = vec![integer(id.get()), up, down, credited_up, credited_down, last_at];
    is_any.then(|| Difference { row: StatementRow { user: id.get(), torrent: 0, values }, mark, is_negative })
}

/// None if the site has it all.
pub(super) fn torrent(
    id: TorrentId,
    figures: &Figures,
    present: Present,
    was: &PostedTorrent,
) -> Option<Difference<PostedTorrent>> {
    let mark = PostedTorrent {
        uploaded: figures.uploaded,
        downloaded: figures.downloaded,
        completed: figures.completed_count,
        seeders: present.seeders,
        leechers: present.leechers,
    };
    let is_negative =
        mark.uploaded < was.uploaded || mark.downloaded < was.downloaded || mark.completed < was.completed;
    let values = vec![
        integer(id.get()),
        difference(mark.uploaded, was.uploaded),
        difference(mark.downloaded, was.downloaded),
        small_difference(mark.completed, was.completed),
        integer(mark.seeders),
        integer(mark.leechers),
        seconds(figures.last_seen),
    ];
    (mark != *was).then(|| Difference {
        row: StatementRow { user: 0, torrent: id.get(), values },
        mark,
        is_negative,
    })
}

/// None if the site has it all. The latest announce, if it is known, is always written.
pub(super) fn account(
    key: AccountKey,
    account: &Account,
    latest: Option<&Announced>,
    was: &PostedAccount,
) -> Option<Difference<PostedAccount>> {
    let figures = &account.figures;
    let presence = match (account.is_seeding(), account.is_leeching()) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    };
    let mark = PostedAccount {
        amounts: posted(figures),
        seeding_s: figures.seeding_s,
        leeching_s: figures.leeching_s,
        completed: figures.completed_count,
        presence,
        last_at: figures.last_seen.unwrap_or_default().0,
    };
    if mark == *was && latest.is_none() {
        return None;
    }
    let Amounts { values: [up, down, credited_up, credited_down], is_negative, .. } =
        amounts(&mark.amounts, &was.amounts);
    let totals = latest.and_then(|latest| latest.totals);
    let total = |total: Option<u64>| total.map_or(Value::Null(Type::Decimal), |total| decimal(total.into()));
    let agent = account.peer_id.as_ref().and_then(agent_of);
    let values = vec![
        integer(key.user.get()),
        integer(key.torrent.get()),
        up,
        down,
        credited_up,
        credited_down,
        small_difference(mark.seeding_s, was.seeding_s),
        small_difference(mark.leeching_s, was.leeching_s),
        small_difference(mark.completed, was.completed),
        total(totals.map(|(uploaded, _)| uploaded)),
        total(totals.map(|(_, downloaded)| downloaded)),
        account.left.map_or(Value::Null(Type::Integer), integer),
        // What the site calls a seeder has everything, whether or not it is there.
        (account.is_seeding() || account.left == Some(0)).into(),
        (presence > 0).into(),
        agent.into(),
        latest.map(|latest| latest.ip.to_string()).into(),
        latest.map(|latest| u32::from(latest.port)).into(),
        seconds(account.completed_at),
        seconds(figures.first_seen),
        mark.last_at.into(),
    ];
    let is_negative = is_negative
        || mark.seeding_s < was.seeding_s
        || mark.leeching_s < was.leeching_s
        || mark.completed < was.completed;
    let row = StatementRow { user: key.user.get(), torrent: key.torrent.get(), values };
    Some(Difference { row, mark, is_negative })
}

/// None unless the account was completed since.
pub(super) fn completion(
    key: AccountKey,
    account: &Account,
    latest: Option<&Announced>,
    was: &PostedAccount,
) -> Option<StatementRow> {
    (account.figures.completed_count > was.completed).then(|| StatementRow {
        user: key.user.get(),
        torrent: key.torrent.get(),
        values: vec![
            integer(key.user.get()),
            integer(key.torrent.get()),
            seconds(account.completed_at),
            latest.map(|latest| latest.ip.to_string()).into(),
        ],
    })
}

pub(super) fn peer(key: &PeerKey, announced: &Announced) -> StatementRow {
    let addresses = || [Some(announced.ip), announced.other_ip].into_iter().flatten();
    let text = |ip: Option<IpAddr>| Value::from(ip.map(|ip| ip.to_string()));
    let ip_bytes = match announced.ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let total = |total: Option<u64>| total.map_or(Value::Null(Type::Decimal), |total| decimal(total.into()));
    StatementRow {
        user: key.account.user.get(),
        torrent: key.account.torrent.get(),
        values: vec![
            integer(key.account.user.get()),
            integer(key.account.torrent.get()),
            Value::Bytes(key.peer_id.0.to_vec()),
            text(Some(announced.ip)),
            Value::Bytes(ip_bytes),
            text(addresses().find(IpAddr::is_ipv4)),
            text(addresses().find(IpAddr::is_ipv6)),
            u32::from(announced.port).into(),
            agent_of(&key.peer_id).into(),
            total(announced.totals.map(|(uploaded, _)| uploaded)),
            total(announced.totals.map(|(_, downloaded)| downloaded)),
            announced.left.map_or(Value::Null(Type::Integer), integer),
            announced.is_complete.into(),
            announced.at.0.into(),
        ],
    }
}

pub(super) fn peer_gone(key: &PeerKey, announced: &Announced, cause: &'static str) -> StatementRow {
    StatementRow {
        user: key.account.user.get(),
        torrent: key.account.torrent.get(),
        values: vec![
            integer(key.account.user.get()),
            integer(key.account.torrent.get()),
            Value::Bytes(key.peer_id.0.to_vec()),
            announced.at.0.into(),
            cause.into(),
        ],
    }
}
