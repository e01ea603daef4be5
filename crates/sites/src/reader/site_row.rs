//! Parses rows of the site.

use access::{ClientPrefix, ClientRule, LeechSlots, SiteTorrent, SiteUser};
use database::{FromRow, FromValue, Row, SqlError, Value};
use domain::{InfoHash, Passkey, TorrentId, UserId, hex};
use ledger::{Discount, DiscountScope, Percent};

/// A torrent that has an infohash, and how well: the least one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    is_disabled: bool,
    is_pending: bool,
    pub(super) id: TorrentId,
}

impl Rank {
    pub(super) fn of(torrent: &SiteTorrent) -> Rank {
        Rank { is_disabled: !torrent.enabled, is_pending: !torrent.approved, id: torrent.id }
    }
}

/// A row with its id, and what it says; an error if it cannot be used.
pub(super) struct SiteRow<T> {
    pub(super) id: u64,
    pub(super) value: Result<T, String>,
}

/// A number that the database may return as an integer, a boolean or text.
struct Number(i64);

impl FromValue for Number {
    fn from_value(value: Value) -> Option<Number> {
        match value {
            Value::Integer(number) => Some(Number(number)),
            Value::Boolean(flag) => Some(Number(flag.into())),
            other => String::from_value(other)?.trim().parse().ok().map(Number),
        }
    }
}

fn number(row: &mut Row, name: &str) -> Result<i64, String> {
    let read: Result<Number, SqlError> = row.get();
    read.map(|number| number.0).map_err(|_| format!("{name} is not a number"))
}

fn flag(row: &mut Row, name: &str) -> Result<bool, String> {
    Ok(number(row, name)? != 0)
}

fn bytes(row: &mut Row, name: &str) -> Result<Option<Vec<u8>>, String> {
    row.get().map_err(|_| format!("{name} is neither text nor bytes"))
}

impl FromRow for SiteRow<SiteUser> {
    fn from_row(row: &mut Row) -> Result<Self, SqlError> {
        let id = row.get::<Number>()?.0.unsigned_abs();
        Ok(SiteRow { id, value: user(id, row) })
    }
}

fn user(id: u64, row: &mut Row) -> Result<SiteUser, String> {
    let passkey = bytes(row, "passkey")?.ok_or("passkey is NULL")?;
    Ok(SiteUser {
        id: UserId::new(id).ok_or("id is not positive")?,
        passkey: Passkey::from_ascii(&passkey).map_err(|error| format!("passkey: {error}"))?,
        enabled: flag(row, "enabled")?,
        leech_slots: slots(row)?,
    })
}

fn slots(row: &mut Row) -> Result<LeechSlots, String> {
    let slots: Option<Number> = row.get().map_err(|_| "leech_slots is not a number")?;
    let slots = slots.map(|number| number.0.min(LeechSlots::MAX.into()));
    LeechSlots::from_number(slots).map_err(|error| error.to_string())
}

impl FromRow for SiteRow<SiteTorrent> {
    fn from_row(row: &mut Row) -> Result<Self, SqlError> {
        let id = row.get::<Number>()?.0.unsigned_abs();
        Ok(SiteRow { id, value: torrent(id, row) })
    }
}

fn torrent(id: u64, row: &mut Row) -> Result<SiteTorrent, String> {
    let info_hash_v1 = bytes(row, "infohash")?.ok_or("infohash is NULL")?;
    let info_hash_v2 = bytes(row, "infohash_v2")?.filter(|bytes| !bytes.is_empty());
    Ok(SiteTorrent {
        id: TorrentId::new(id).ok_or("id is not positive")?,
        info_hash: info_hash(&info_hash_v1, "infohash")?,
        info_hash_v2: info_hash_v2.map(|bytes| info_hash(&bytes, "infohash_v2")).transpose()?,
        enabled: flag(row, "enabled")?,
        approved: flag(row, "approved")?,
        total_bytes: number(row, "total_bytes")?.unsigned_abs(),
        name: bytes(row, "name")?.map(|name| cut(&name)).unwrap_or_default(),
    })
}

/// 20 or 32 bytes, or as many hexadecimal digits; of 32 bytes the first 20 (BEP 52).
fn info_hash(bytes: &[u8], name: &str) -> Result<InfoHash, String> {
    let decoded = match bytes.len() {
        40 | 64 => hex::decode(bytes),
        _ => Some(bytes.to_vec()),
    };
    let is_whole = |bytes: &Vec<u8>| matches!(bytes.len(), 20 | 32);
    let first = decoded.filter(is_whole).and_then(|bytes| bytes[..20].try_into().ok());
    first.map(InfoHash).ok_or_else(|| format!("{name} is not 20 or 32 bytes, nor as many hexadecimal digits"))
}

/// The name of a torrent, as long as one may be here.
fn cut(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(access::TORRENT_NAME_CHARS_MAX).collect()
}

/// A rule about clients; none if it cannot be used.
pub(super) struct ClientRow(pub(super) Option<ClientRule>);

impl FromRow for ClientRow {
    fn from_row(row: &mut Row) -> Result<Self, SqlError> {
        let prefix: Option<Vec<u8>> = row.get()?;
        let allowed = row.get::<Number>()?.0 != 0;
        let prefix = prefix.and_then(|prefix| ClientPrefix::from_bytes(&prefix).ok());
        Ok(ClientRow(prefix.map(|prefix| ClientRule { prefix, name: String::new(), allowed })))
    }
}

/// A discount; none if it cannot be used.
pub(super) struct DiscountRow(pub(super) Option<Discount>);

impl DiscountRow {
    pub(super) fn has_effect(discount: &Discount) -> bool {
        discount.is_exact || (discount.upload, discount.download) != (Percent::HUNDRED, Percent::HUNDRED)
    }
}

impl FromRow for DiscountRow {
    fn from_row(row: &mut Row) -> Result<Self, SqlError> {
        let mut id = || Ok::<_, SqlError>(row.get::<Option<Number>>()?.map_or(0, |id| id.0.unsigned_abs()));
        let scope = DiscountScope { user: UserId::new(id()?), torrent: TorrentId::new(id()?) };
        let mut percent = || {
            let number = row.get::<Number>()?.0;
            Ok::<_, SqlError>(u32::try_from(number).ok().and_then(Percent::new))
        };
        let (upload, download) = (percent()?, percent()?);
        let is_exact = row.get::<Number>()?.0 != 0;
        let discount = |(upload, download)| Discount { scope, upload, download, is_exact };
        Ok(DiscountRow(upload.zip(download).map(discount)))
    }
}
