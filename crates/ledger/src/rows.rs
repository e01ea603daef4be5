//! Conversion between rows and account state.
//!
//! Unsigned 64-bit numbers (of entry ids) are stored as signed numbers with the same bits: SQL never computes with them.

use database::Value;
use domain::{PeerId, TorrentId, UnixTime, UserId, hex};
use journal::EntryId;

use crate::account_state::Clients;
use crate::bucket::{Bucket, UserBucket};
use crate::client_encoding::{self, PackedClients};
use crate::error::LedgerError;
use crate::figures::{Account, AccountKey, Figures, Stamp};
use crate::multiplier::{Multiplier, NewMultiplier, Percent, Scope};
use crate::spans;

database::rows! {
    /// The columns that users, torrents and accounts have in common.
    #[derive(Debug)]
    pub(crate) struct SumsRow {
        uploaded: String,
        downloaded: String,
        bonus_uploaded_x100: String,
        bonus_downloaded_x100: String,
        seeding_s: i64,
        leeching_s: i64,
        completed_count: i64,
        repeated_count: i64,
        first_seen: Option<i64>,
        last_seen: Option<i64>,
    }

    /// A user or a torrent.
    #[derive(Debug)]
    pub(crate) struct FiguresRow {
        pub(crate) id: i64,
        sums: SumsRow,
    }

    #[derive(Debug)]
    pub(crate) struct UserRow {
        pub(crate) figures: FiguresRow,
        bucket_since: i64,
        bucket_ts: i64,
        bucket_up: i64,
        bucket_down: i64,
    }

    #[derive(Debug)]
    pub(crate) struct AccountRow {
        user_id: i64,
        torrent_id: i64,
        sums: SumsRow,
        left_bytes: Option<i64>,
        seeding_clients: i64,
        leeching_clients: i64,
        completed_at: Option<i64>,
        latest_ts: i64,
        latest_ms: i64,
        latest_seq: i64,
        peer_id: String,
        /// For other programs; follows from the peer id.
        _client: String,
        time_spent: Vec<u8>,
        present_until: Option<i64>,
        history: i64,
        clients: Vec<u8>,
    }

    /// The packed clients of an account.
    #[derive(Debug)]
    pub(crate) struct ClientsRow {
        user_id: i64,
        torrent_id: i64,
        clients: Vec<u8>,
    }

    #[derive(Debug)]
    pub(crate) struct MultiplierRow {
        id: i64,
        scope: String,
        subject: i64,
        upload_percent: i64,
        download_percent: i64,
        starts_at: i64,
        ends_at: Option<i64>,
        note: String,
    }

    #[derive(Debug)]
    pub(crate) struct EntryIdRow {
        ms: i64,
        seq: i64,
    }

    #[derive(Debug)]
    pub(crate) struct DeadLetterRow {
        origin_ms: i64,
        origin_seq: i64,
    }

    #[derive(Debug)]
    pub(crate) struct AppliedRow {
        pub(crate) fenced: i64,
        pub(crate) applied: Vec<u8>,
        pub(crate) place: EntryIdRow,
    }
}

impl EntryIdRow {
    pub(crate) fn entry_id(&self) -> EntryId {
        EntryId { ms: from_bits(self.ms), seq: from_bits(self.seq) }
    }
}

impl DeadLetterRow {
    pub(crate) fn origin(&self) -> EntryId {
        EntryId { ms: from_bits(self.origin_ms), seq: from_bits(self.origin_seq) }
    }
}

/// Bits of the column `history` of an account.
const HAS_LEECHED: i64 = 1;
const WAS_REMOVED: i64 = 2;

/// The signed number with the same bits.
pub(crate) const fn to_bits(number: u64) -> i64 {
    number.cast_signed()
}

const fn from_bits(number: i64) -> u64 {
    number.cast_unsigned()
}

/// The greatest number in a column.
pub(crate) const NUMBER_MAX: u64 = i64::MAX.cast_unsigned();

/// As its columns hold it: numbers saturate at the limit of SQL.
pub(crate) fn bucket_as_stored(mut bucket: UserBucket) -> UserBucket {
    for spent in [&mut bucket.tokens.spent_up, &mut bucket.tokens.spent_down] {
        *spent = (*spent).min(NUMBER_MAX.into());
    }
    bucket
}

/// Saturates at the limit of SQL.
pub(crate) fn counted(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn user_value(user: UserId) -> Value {
    Value::Integer(counted(user.get()))
}

pub(crate) fn torrent_value(torrent: TorrentId) -> Value {
    Value::Integer(counted(torrent.get()))
}

fn moment(at: Option<UnixTime>) -> Value {
    at.map(|at| i64::from(at.0)).into()
}

fn sums_values(figures: &Figures) -> [Value; 10] {
    [
        Value::Decimal(figures.uploaded.to_string()),
        Value::Decimal(figures.downloaded.to_string()),
        Value::Decimal(figures.bonus_uploaded_x100.to_string()),
        Value::Decimal(figures.bonus_downloaded_x100.to_string()),
        counted(figures.seeding_s).into(),
        counted(figures.leeching_s).into(),
        counted(figures.completed_count).into(),
        counted(figures.repeated_count).into(),
        moment(figures.first_seen),
        moment(figures.last_seen),
    ]
}

/// In the column order of its table.
pub(crate) fn torrent_values(id: TorrentId, figures: &Figures) -> [Value; 11] {
    let [a, b, c, d, e, f, g, h, i, j] = sums_values(figures);
    [torrent_value(id), a, b, c, d, e, f, g, h, i, j]
}

/// In the column order of its table.
pub(crate) fn user_values(id: UserId, figures: &Figures, bucket: &UserBucket) -> [Value; 15] {
    let [a, b, c, d, e, f, g, h, i, j] = sums_values(figures);
    let spent = |bytes: u128| Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX));
    let UserBucket { tokens, since } = *bucket;
    let (since, at) = (i64::from(since.0).into(), i64::from(tokens.at.0).into());
    let (up, down) = (spent(tokens.spent_up), spent(tokens.spent_down));
    [user_value(id), a, b, c, d, e, f, g, h, i, j, since, at, up, down]
}

pub(crate) fn account_key_values(key: &AccountKey) -> [Value; 2] {
    [user_value(key.user), torrent_value(key.torrent)]
}

/// In the column order of its table.
pub(crate) fn account_values(key: &AccountKey, account: &Account, clients: Vec<u8>) -> [Value; 25] {
    let [user, torrent] = account_key_values(key);
    let [a, b, c, d, e, f, g, h, i, j] = sums_values(&account.figures);
    let [ts, ms, seq] = stamp_values(&account.latest);
    let peer_id = account.peer_id.map_or_else(String::new, |peer_id| peer_id.to_string());
    [
        user,
        torrent,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        account.left.map(counted).into(),
        counted(account.seeding_clients).into(),
        counted(account.leeching_clients).into(),
        moment(account.completed_at),
        ts,
        ms,
        seq,
        peer_id.into(),
        account.client().into(),
        Value::Bytes(spans::pack(&account.time)),
        moment(account.present_until),
        Value::Integer(
            i64::from(account.has_leeched) * HAS_LEECHED + i64::from(account.was_removed) * WAS_REMOVED,
        ),
        Value::Bytes(clients),
    ]
}

fn stamp_values(stamp: &Stamp) -> [Value; 3] {
    [i64::from(stamp.at.0).into(), to_bits(stamp.origin.ms).into(), to_bits(stamp.origin.seq).into()]
}

/// Without the id.
pub(crate) fn multiplier_values(terms: &NewMultiplier) -> [Value; 7] {
    [
        terms.scope.name().into(),
        counted(terms.scope.subject()).into(),
        i64::from(terms.upload.get()).into(),
        i64::from(terms.download.get()).into(),
        i64::from(terms.starts_at.0).into(),
        moment(terms.ends_at),
        terms.note.as_str().into(),
    ]
}

fn unreadable(what: &'static str, value: impl ToString) -> LedgerError {
    LedgerError::Unreadable { what, value: value.to_string() }
}

pub(crate) fn user_of(number: i64) -> Result<UserId, LedgerError> {
    let id = u64::try_from(number).ok().and_then(UserId::new);
    id.ok_or_else(|| unreadable("the number of a user", number))
}

pub(crate) fn torrent_of(number: i64) -> Result<TorrentId, LedgerError> {
    let id = u64::try_from(number).ok().and_then(TorrentId::new);
    id.ok_or_else(|| unreadable("the number of a torrent", number))
}

fn count_of(what: &'static str, number: i64) -> Result<u64, LedgerError> {
    u64::try_from(number).map_err(|_| unreadable(what, number))
}

pub(crate) fn time_of(number: i64) -> Result<UnixTime, LedgerError> {
    u32::try_from(number).map(UnixTime).map_err(|_| unreadable("a time", number))
}

fn amount_of<T: std::str::FromStr>(text: &str) -> Result<T, LedgerError> {
    text.parse().map_err(|_| unreadable("an amount", text))
}

impl SumsRow {
    fn figures(&self) -> Result<Figures, LedgerError> {
        Ok(Figures {
            uploaded: amount_of(&self.uploaded)?,
            downloaded: amount_of(&self.downloaded)?,
            bonus_uploaded_x100: amount_of(&self.bonus_uploaded_x100)?,
            bonus_downloaded_x100: amount_of(&self.bonus_downloaded_x100)?,
            seeding_s: count_of("seeding_s", self.seeding_s)?,
            leeching_s: count_of("leeching_s", self.leeching_s)?,
            completed_count: count_of("completed_count", self.completed_count)?,
            repeated_count: count_of("repeated_count", self.repeated_count)?,
            first_seen: self.first_seen.map(time_of).transpose()?,
            last_seen: self.last_seen.map(time_of).transpose()?,
        })
    }
}

impl FiguresRow {
    pub(crate) fn figures(&self) -> Result<Figures, LedgerError> {
        self.sums.figures()
    }

    pub(crate) fn of_user(&self) -> Result<(UserId, Figures), LedgerError> {
        Ok((user_of(self.id)?, self.figures()?))
    }
}

impl UserRow {
    pub(crate) fn bucket(&self) -> Result<UserBucket, LedgerError> {
        let tokens = Bucket {
            at: time_of(self.bucket_ts)?,
            spent_up: count_of("bucket_up", self.bucket_up)?.into(),
            spent_down: count_of("bucket_down", self.bucket_down)?.into(),
        };
        Ok(UserBucket { tokens, since: time_of(self.bucket_since)? })
    }
}

impl AccountRow {
    pub(crate) fn account(&self) -> Result<(AccountKey, Account), LedgerError> {
        self.with_clients().map(|(key, account, _)| (key, account))
    }

    pub(crate) fn with_clients(&self) -> Result<(AccountKey, Account, Clients), LedgerError> {
        let peer_id = self.peer_id.parse::<PeerId>().ok();
        let packed = clients_of(&self.clients)?;
        let account = Account {
            figures: self.sums.figures()?,
            left: self.left_bytes.map(|left| count_of("left_bytes", left)).transpose()?,
            seeding_clients: count_of("seeding_clients", self.seeding_clients)?,
            leeching_clients: count_of("leeching_clients", self.leeching_clients)?,
            completed_at: self.completed_at.map(time_of).transpose()?,
            latest: stamp_of(self.latest_ts, self.latest_ms, self.latest_seq)?,
            peer_id,
            time: spans::unpack(&self.time_spent)
                .ok_or_else(|| unreadable("the time spent on a torrent", hex::encode(&self.time_spent)))?,
            present_until: self.present_until.map(time_of).transpose()?,
            has_leeched: self.history & HAS_LEECHED > 0,
            was_removed: self.history & WAS_REMOVED > 0,
            clients_removed_until: packed.removed_until,
        };
        Ok((account_key_of(self.user_id, self.torrent_id)?, account, packed.clients))
    }
}

impl ClientsRow {
    pub(crate) fn clients(&self) -> Result<(AccountKey, Clients), LedgerError> {
        let key = account_key_of(self.user_id, self.torrent_id)?;
        Ok((key, clients_of(&self.clients)?.clients))
    }
}

fn account_key_of(user: i64, torrent: i64) -> Result<AccountKey, LedgerError> {
    Ok(AccountKey { user: user_of(user)?, torrent: torrent_of(torrent)? })
}

fn clients_of(packed: &[u8]) -> Result<PackedClients, LedgerError> {
    client_encoding::unpack(packed)
        .ok_or_else(|| unreadable("the clients of an account (ledger_accounts.clients)", hex::encode(packed)))
}

fn stamp_of(ts: i64, ms: i64, seq: i64) -> Result<Stamp, LedgerError> {
    Ok(Stamp { at: time_of(ts)?, origin: EntryId { ms: from_bits(ms), seq: from_bits(seq) } })
}

impl MultiplierRow {
    pub(crate) fn multiplier(&self) -> Result<Multiplier, LedgerError> {
        let percent = |number: i64| {
            let percent = u32::try_from(number).ok().and_then(Percent::new);
            percent.ok_or_else(|| unreadable("a percentage", number))
        };
        let subject = count_of("the subject of a multiplier", self.subject)?;
        let terms = NewMultiplier {
            scope: Scope::from_parts(&self.scope, subject)
                .ok_or_else(|| unreadable("the scope of a multiplier", &self.scope))?,
            upload: percent(self.upload_percent)?,
            download: percent(self.download_percent)?,
            starts_at: time_of(self.starts_at)?,
            ends_at: self.ends_at.map(time_of).transpose()?,
            note: self.note.clone(),
        };
        Ok(Multiplier { id: count_of("the number of a multiplier", self.id)?, terms })
    }
}
