//! Torrents and users as people look through them: some by their numbers, those that a search finds, torrents in the
//! order of size or age.
//!
//! # Guarantees
//!
//! Pages of an order join without gaps or repeats: sizes and dates stay what they are, and numbers decide ties. Places
//! are told by what stands in the columns, also where no torrent can be made of the row.
//!
//! # Deliberately absent
//!
//! How many seed and leech: nobody writes that into the database (see the swarms in memory, or the Redis layout). An
//! index on names: no database finds a part of a text by one; a hundred thousand names are read in a moment.

use domain::{TorrentId, UserId};

use super::rows::{Selected, readable, sql_integer, torrent_id, user_id};
use super::search::NameSearch;
use super::{Store, Torrent, User};
use crate::error::AccessError;

/// Numbers in one statement.
const IDS_PER_STATEMENT: usize = 1000;

/// What torrents are put in order by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueKey {
    /// The size of their content.
    Size,
    /// When they were added.
    Added,
}

impl CatalogueKey {
    const fn column(self) -> &'static str {
        match self {
            CatalogueKey::Size => "total_bytes",
            CatalogueKey::Added => "created_at",
        }
    }

    /// Where a row stands, if that can be read.
    fn place_of(self, row: &Selected) -> Option<(i64, TorrentId)> {
        let value = match self {
            CatalogueKey::Size => row.total_bytes,
            CatalogueKey::Added => row.created_at,
        };
        Some((value?, torrent_id(row.id?)?))
    }
}

/// An order, and where to go on in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogueOrder {
    /// By what; their numbers decide ties, in the same direction.
    pub by: CatalogueKey,
    /// Whether the largest comes first.
    pub descending: bool,
    /// Behind which place: the value, as it stands in its column, and the number of the last torrent that is known.
    pub after: Option<(i64, TorrentId)>,
}

/// A part of the torrents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CataloguePage {
    /// They, in order. Rows that nobody can read are left out, so there may be few, or none, and still more to come.
    pub torrents: Vec<Torrent>,
    /// Where to go on; none if these were the last.
    pub next: Option<(i64, TorrentId)>,
}

/// Looking through torrents.
impl Store {
    /// The torrents with these numbers, as far as there are such, in no order.
    pub async fn torrents_with(&self, ids: &[TorrentId]) -> Result<Vec<Torrent>, AccessError> {
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_PER_STATEMENT) {
            let numbers = some.iter().map(|id| sql_integer(id.get())).collect();
            let selection = Selection { ids: Some(numbers), ..Selection::all() };
            let rows = self.tables().await?.selected_torrents(&selection).await;
            let rows = rows.map_err(|error| self.explain(error))?;
            found.extend(rows.into_iter().filter_map(|row| readable(row.torrent)));
        }
        Ok(found)
    }

    /// The numbers of the first `limit` torrents that a search finds.
    pub async fn find_torrents(
        &self,
        search: &NameSearch,
        limit: u32,
    ) -> Result<Vec<TorrentId>, AccessError> {
        let selection = Selection {
            what: What::Ids,
            search: Some(search.clone()),
            limit: Some(limit),
            ..Selection::all()
        };
        let numbers = self.tables().await?.selected_numbers(&selection).await;
        let numbers = numbers.map_err(|error| self.explain(error))?;
        Ok(numbers.into_iter().filter_map(|id| TorrentId::new(u64::try_from(id).ok()?)).collect())
    }

    /// How many torrents a search finds.
    pub async fn count_found(&self, search: &NameSearch) -> Result<u64, AccessError> {
        let selection = Selection { what: What::Count, search: Some(search.clone()), ..Selection::all() };
        let counted = self.tables().await?.selected_numbers(&selection).await;
        Ok(counted.map_err(|error| self.explain(error))?.first().map_or(0, |count| count.unsigned_abs()))
    }

    /// Up to `limit` torrents in an order, all or those that a search finds.
    pub async fn torrents_in_order(
        &self,
        order: CatalogueOrder,
        search: Option<&NameSearch>,
        limit: u32,
    ) -> Result<CataloguePage, AccessError> {
        self.page_in_order(order, limit, Selection { search: search.cloned(), ..Selection::all() }).await
    }

    /// Up to `limit` torrents that await approval, in an order. An index keeps them by when they were added.
    pub async fn pending_torrents(
        &self,
        order: CatalogueOrder,
        limit: u32,
    ) -> Result<CataloguePage, AccessError> {
        self.page_in_order(order, limit, Selection { pending: true, ..Selection::all() }).await
    }

    /// How many torrents await approval.
    pub async fn count_pending_torrents(&self) -> Result<u64, AccessError> {
        let selection = Selection { what: What::Count, pending: true, ..Selection::all() };
        let counted = self.tables().await?.selected_numbers(&selection).await;
        Ok(counted.map_err(|error| self.explain(error))?.first().map_or(0, |count| count.unsigned_abs()))
    }

    async fn page_in_order(
        &self,
        order: CatalogueOrder,
        limit: u32,
        among: Selection,
    ) -> Result<CataloguePage, AccessError> {
        // One more than asked for tells whether there is more.
        let rows_max = limit.saturating_add(1);
        let selection = Selection { order: Some(order), limit: Some(rows_max), ..among };
        let rows = self.tables().await?.selected_torrents(&selection).await;
        let mut rows = rows.map_err(|error| self.explain(error))?;
        let is_more = rows.len() as u64 > u64::from(limit);
        rows.truncate(limit as usize);
        let last = rows.iter().rev().find_map(|row| order.by.place_of(row));
        let torrents = rows.into_iter().filter_map(|row| readable(row.torrent)).collect();
        Ok(CataloguePage { torrents, next: last.filter(|_| is_more) })
    }
}

/// Looking through users.
impl Store {
    /// The users with these numbers, as far as there are such, in no order.
    pub async fn users_with(&self, ids: &[UserId]) -> Result<Vec<User>, AccessError> {
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_PER_STATEMENT) {
            let numbers = some.iter().map(|id| sql_integer(id.get())).collect();
            let selection = Selection { of: Of::Users, ids: Some(numbers), ..Selection::all() };
            found.extend(self.selected_users(&selection).await?);
        }
        Ok(found)
    }

    /// The first `limit` users behind `after` that a search finds, by their numbers. A row that nobody can read is left
    /// out.
    pub async fn search_users(
        &self,
        search: &NameSearch,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<User>, AccessError> {
        let selection = Selection {
            of: Of::Users,
            search: Some(search.clone()),
            after: after.map(|id| sql_integer(id.get())),
            limit: Some(limit),
            ..Selection::all()
        };
        self.selected_users(&selection).await
    }

    /// The numbers of the first `limit` users that a search finds.
    pub async fn find_users(&self, search: &NameSearch, limit: u32) -> Result<Vec<UserId>, AccessError> {
        let selection = Selection {
            of: Of::Users,
            what: What::Ids,
            search: Some(search.clone()),
            limit: Some(limit),
            ..Selection::all()
        };
        let numbers = self.tables().await?.selected_numbers(&selection).await;
        let numbers = numbers.map_err(|error| self.explain(error))?;
        Ok(numbers.into_iter().filter_map(user_id).collect())
    }

    async fn selected_users(&self, selection: &Selection) -> Result<Vec<User>, AccessError> {
        let rows = self.tables().await?.selected_users(selection).await;
        Ok(rows.map_err(|error| self.explain(error))?.into_iter().filter_map(readable).collect())
    }
}

/// Whose table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Torrents,
    Users,
}

impl Of {
    const fn columns(self) -> &'static str {
        match self {
            Of::Torrents => {
                "id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at"
            }
            Of::Users => "id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at",
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Of::Torrents => "torrents",
            Of::Users => "users",
        }
    }
}

/// What is wanted of the rows of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Rows,
    Ids,
    Count,
}

/// Which torrents or users, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    of: Of,
    what: What,
    ids: Option<Vec<i64>>,
    search: Option<NameSearch>,
    /// Only torrents that await approval.
    pending: bool,
    /// Only rows behind this number, by their numbers.
    after: Option<i64>,
    order: Option<CatalogueOrder>,
    limit: Option<u32>,
}

/// Whose words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
    MySql,
}

/// A value on its way into a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
}

/// A statement with its values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

impl Selection {
    fn all() -> Selection {
        Selection {
            of: Of::Torrents,
            what: What::Rows,
            ids: None,
            search: None,
            pending: false,
            after: None,
            order: None,
            limit: None,
        }
    }

    /// The statement. Only our own words and numbers are in it: whatever anybody typed is a value.
    pub(crate) fn asked(&self, dialect: Dialect) -> Asked {
        let mut asking = Asking { dialect, asked: Asked::default(), has_condition: false };
        let what = match self.what {
            What::Rows => self.of.columns(),
            What::Ids => "id",
            What::Count => "count(*)",
        };
        asking.push(&format!("SELECT {what} FROM {}", self.of.table()));
        if let Some(ids) = &self.ids {
            asking.condition();
            let listed = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            asking.push(&format!("id IN ({listed})"));
        }
        if let Some(search) = &self.search {
            asking.search(self.of, search);
        }
        if self.pending {
            asking.condition();
            asking.push("approved = FALSE");
        }
        if let Some(after) = self.after {
            asking.condition();
            asking.push("id > ");
            asking.value(Value::Number(after));
        }
        if let Some(order) = &self.order {
            asking.order(order);
        } else if self.what == What::Ids || self.of == Of::Users {
            asking.push(" ORDER BY id");
        }
        if let Some(limit) = self.limit {
            asking.push(&format!(" LIMIT {limit}"));
        }
        asking.asked
    }
}

/// A statement in the making.
struct Asking {
    dialect: Dialect,
    asked: Asked,
    has_condition: bool,
}

impl Asking {
    fn push(&mut self, sql: &str) {
        self.asked.sql.push_str(sql);
    }

    fn value(&mut self, value: Value) {
        self.asked.values.push(value);
        match self.dialect {
            Dialect::Postgres => self.push(&format!("${}", self.asked.values.len())),
            Dialect::Sqlite | Dialect::MySql => self.push("?"),
        }
    }

    fn condition(&mut self) {
        self.push(if self.has_condition { " AND " } else { " WHERE " });
        self.has_condition = true;
    }

    fn search(&mut self, of: Of, search: &NameSearch) {
        self.condition();
        let (name, pattern) = match self.dialect {
            Dialect::Sqlite => ("(name GLOB ", search.glob()),
            Dialect::Postgres => ("(name ~ ", search.regex()),
            // As it stands: the usual collations take all emoji for the same character.
            Dialect::MySql => ("(name COLLATE utf8mb4_bin REGEXP ", search.regex()),
        };
        self.push(name);
        self.value(Value::Text(pattern));
        if let Some(number) = search.number() {
            self.push(" OR id = ");
            self.value(Value::Number(number));
        }
        if let Some(pattern) = search.hash_pattern().filter(|_| of == Of::Torrents) {
            for column in ["infohash", "infohash_v2"] {
                // The others compare these columns without regard to case.
                let column = match self.dialect {
                    Dialect::Postgres => format!("lower({column})"),
                    Dialect::Sqlite | Dialect::MySql => column.to_owned(),
                };
                self.push(&format!(" OR {column} LIKE "));
                self.value(Value::Text(pattern.clone()));
            }
        }
        self.push(")");
    }

    fn order(&mut self, order: &CatalogueOrder) {
        let column = order.by.column();
        let (behind, direction) = if order.descending { ("<", " DESC") } else { (">", "") };
        // Not every database keeps sites from others, which no torrent and no place can have.
        self.condition();
        self.push("id > 0");
        if let Some((value, id)) = order.after {
            self.condition();
            let value = Value::Number(value);
            self.push(&format!("({column} {behind} "));
            self.value(value.clone());
            self.push(&format!(" OR ({column} = "));
            self.value(value);
            self.push(&format!(" AND id {behind} "));
            self.value(Value::Number(sql_integer(id.get())));
            self.push("))");
        }
        self.push(&format!(" ORDER BY {column}{direction}, id{direction}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_never_in_the_statement() {
        let search = NameSearch::new("beef'; DROP TABLE torrents").unwrap();
        let order = CatalogueOrder {
            by: CatalogueKey::Size,
            descending: true,
            after: TorrentId::new(7).map(|id| (5, id)),
        };
        let selection =
            Selection { search: Some(search), order: Some(order), limit: Some(3), ..Selection::all() };
        let asked = selection.asked(Dialect::Postgres);
        assert!(
            asked.sql.ends_with(
                "WHERE (name ~ $1) AND id > 0 AND (total_bytes < $2 OR (total_bytes = $3 AND id < $4)) \
                 ORDER BY total_bytes DESC, id DESC LIMIT 3"
            ),
            "{}",
            asked.sql
        );
        assert_eq!(asked.values.len(), 4);
    }
}
