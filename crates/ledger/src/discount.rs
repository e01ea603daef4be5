//! Discounts that an existing site gives: multipliers for all traffic, that of a user, of a torrent, or of a user on a torrent.
//!
//! They are read from the site's tables and replaced as a whole. An ended one stays for a time, since entries are credited by
//! what was in force at their `ts`, however late they are applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use database::{Database, Rows, SqlError};
use domain::{TorrentId, UnixTime, UserId};

use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::multiplier::Percent;
use crate::rows::{counted, time_of};

/// Ended discounts are kept for longer than the journal can keep entries, by which figures are explained.
const KEPT_S: u32 = 53 * 7 * 24 * 60 * 60;
/// Rows of a statement.
const BATCH_ROWS: usize = 500;

const LIST: &str =
    "SELECT id, user_id, torrent_id, upload_percent, download_percent, is_exact, starts_at, ends_at
     FROM ledger_discounts ORDER BY id";
const IN_FORCE: &str =
    "SELECT id, user_id, torrent_id, upload_percent, download_percent, is_exact, starts_at, ends_at
     FROM ledger_discounts WHERE ends_at IS NULL ORDER BY id";
const ADD: &str = "INSERT INTO ledger_discounts
     (user_id, torrent_id, upload_percent, download_percent, is_exact, starts_at) {values}";
const END: &str = "UPDATE ledger_discounts SET ends_at = ? WHERE id {in} AND ends_at IS NULL";
const RAISE_VERSION: &str = "UPDATE ledger_discount_state SET version = version + 1 WHERE id = 1";
const DELETE_OLD: &str = "DELETE FROM ledger_discounts WHERE ends_at < ?";

/// Whose traffic a discount is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiscountScope {
    /// None for every user.
    pub user: Option<UserId>,
    /// None for every torrent.
    pub torrent: Option<TorrentId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Discount {
    pub scope: DiscountScope,
    pub upload: Percent,
    pub download: Percent,
    /// Nothing improves on it.
    pub is_exact: bool,
}

#[derive(Clone, Copy, Debug)]
struct Period {
    discount: Discount,
    starts_at: UnixTime,
    ends_at: Option<UnixTime>,
}

/// All discounts, by scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discounts(HashMap<DiscountScope, Vec<Period>>);

impl Discounts {
    /// Those for an entry of this user on this torrent at this time.
    pub(crate) fn in_force(
        &self,
        user: UserId,
        torrent: TorrentId,
        at: UnixTime,
    ) -> impl Iterator<Item = &Discount> {
        let scopes = [(None, None), (Some(user), None), (None, Some(torrent)), (Some(user), Some(torrent))];
        // Most installations have none.
        let scopes = scopes.into_iter().filter(|_| !self.0.is_empty());
        let periods =
            scopes.filter_map(|(user, torrent)| self.0.get(&DiscountScope { user, torrent })).flatten();
        let is_in_force =
            move |period: &&Period| period.starts_at <= at && period.ends_at.is_none_or(|end| at < end);
        periods.filter(is_in_force).map(|period| &period.discount)
    }

    pub(crate) async fn load(database: &Database) -> Result<Discounts, LedgerError> {
        let mut by_scope: HashMap<DiscountScope, Vec<Period>> = HashMap::new();
        for row in database.query::<DiscountRow>(LIST, &[]).await? {
            let period = row.period()?;
            by_scope.entry(period.discount.scope).or_default().push(period);
        }
        Ok(Discounts(by_scope))
    }
}

database::rows! {
    struct DiscountRow {
        id: i64,
        user_id: i64,
        torrent_id: i64,
        upload_percent: i64,
        download_percent: i64,
        is_exact: i64,
        starts_at: i64,
        ends_at: Option<i64>,
    }
}

impl DiscountRow {
    fn discount(&self) -> Discount {
        // A row is written here only, with percentages in range.
        let percent =
            |number: i64| u32::try_from(number).ok().and_then(Percent::new).unwrap_or(Percent::HUNDRED);
        let scope = DiscountScope {
            user: UserId::new(self.user_id.unsigned_abs()),
            torrent: TorrentId::new(self.torrent_id.unsigned_abs()),
        };
        Discount {
            scope,
            upload: percent(self.upload_percent),
            download: percent(self.download_percent),
            is_exact: self.is_exact != 0,
        }
    }

    fn period(&self) -> Result<Period, LedgerError> {
        Ok(Period {
            discount: self.discount(),
            starts_at: time_of(self.starts_at)?,
            ends_at: self.ends_at.map(time_of).transpose()?,
        })
    }
}

impl Ledger {
    /// The discounts in force now.
    pub async fn discounts(&self) -> Result<Vec<Discount>, LedgerError> {
        let rows: Vec<DiscountRow> = self.database.query(IN_FORCE, &[]).await?;
        Ok(rows.iter().map(DiscountRow::discount).collect())
    }

    /// Replaces the discounts in force from the next second on, and returns how many began or ended. Entries of this
    /// second may have been credited by the former ones already.
    pub async fn set_discounts(&self, wanted: &BTreeSet<Discount>) -> Result<usize, LedgerError> {
        let now = self.clock.now();
        let rows: Vec<DiscountRow> = self.database.query(IN_FORCE, &[]).await?;
        let mut ended: Vec<i64> = Vec::new();
        let mut present: BTreeMap<Discount, i64> = BTreeMap::new();
        for row in &rows {
            let discount = row.discount();
            // Two processes may have added the same one.
            if !wanted.contains(&discount) || present.insert(discount, row.id).is_some() {
                ended.push(row.id);
            }
        }
        let added: Vec<&Discount> =
            wanted.iter().filter(|discount| !present.contains_key(discount)).collect();
        if ended.is_empty() && added.is_empty() {
            return Ok(0);
        }
        let from = i64::from(now.0) + 1;
        let mut transaction = self.database.begin().await?;
        let replaced: Result<(), SqlError> = async {
            transaction.execute(RAISE_VERSION, &[]).await?;
            for some in ended.chunks(BATCH_ROWS) {
                let ids = database::Value::integers(some.iter().copied());
                transaction.execute(END, &[from.into(), ids]).await?;
            }
            for some in added.chunks(BATCH_ROWS) {
                let rows = Rows::new(some.iter().map(|discount| values(discount, from)));
                transaction.write_rows(ADD, &rows).await?;
            }
            transaction.execute(DELETE_OLD, &[(from - i64::from(KEPT_S)).into()]).await.map(drop)
        }
        .await;
        replaced?;
        transaction.commit().await?;
        self.multiplier_cache.clear();
        Ok(ended.len() + added.len())
    }
}

fn values(discount: &Discount, from: i64) -> [database::Value; 6] {
    let Discount { scope, upload, download, is_exact } = discount;
    [
        counted(scope.user.map_or(0, UserId::get)).into(),
        counted(scope.torrent.map_or(0, TorrentId::get)).into(),
        i64::from(upload.get()).into(),
        i64::from(download.get()).into(),
        i64::from(*is_exact).into(),
        from.into(),
    ]
}
