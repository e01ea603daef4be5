//! Torrents as people look through them: some by their numbers, those that a search finds, all in the order of size or
//! age.
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

use domain::TorrentId;

use super::rows::{Selected, readable, sql_integer, torrent_id};
use super::search::TorrentSearch;
use super::{Store, Torrent};
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
        search: &TorrentSearch,
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
    pub async fn count_found(&self, search: &TorrentSearch) -> Result<u64, AccessError> {
        let selection = Selection { what: What::Count, search: Some(search.clone()), ..Selection::all() };
        let counted = self.tables().await?.selected_numbers(&selection).await;
        Ok(counted.map_err(|error| self.explain(error))?.first().map_or(0, |count| count.unsigned_abs()))
    }

    /// Up to `limit` torrents in an order, all or those that a search finds.
    pub async fn torrents_in_order(
        &self,
        order: CatalogueOrder,
        search: Option<&TorrentSearch>,
        limit: u32,
    ) -> Result<CataloguePage, AccessError> {
        // One more than asked for tells whether there is more.
        let rows_max = limit.saturating_add(1);
        let selection = Selection {
            search: search.cloned(),
            order: Some(order),
            limit: Some(rows_max),
            ..Selection::all()
        };
        let rows = self.tables().await?.selected_torrents(&selection).await;
        let mut rows = rows.map_err(|error| self.explain(error))?;
        let is_more = rows.len() as u64 > u64::from(limit);
        rows.truncate(limit as usize);
        let last = rows.iter().rev().find_map(|row| order.by.place_of(row));
        let torrents = rows.into_iter().filter_map(|row| readable(row.torrent)).collect();
        Ok(CataloguePage { torrents, next: last.filter(|_| is_more) })
    }
}

/// What is wanted of the torrents of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Rows,
    Ids,
    Count,
}

/// Which torrents, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    what: What,
    ids: Option<Vec<i64>>,
    search: Option<TorrentSearch>,
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
        Selection { what: What::Rows, ids: None, search: None, order: None, limit: None }
    }

    /// The statement. Only our own words and numbers are in it: whatever anybody typed is a value.
    pub(crate) fn asked(&self, dialect: Dialect) -> Asked {
        let mut asking = Asking { dialect, asked: Asked::default(), has_condition: false };
        asking.push(match self.what {
            What::Rows => {
                "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at \
                 FROM torrents"
            }
            What::Ids => "SELECT id FROM torrents",
            What::Count => "SELECT count(*) FROM torrents",
        });
        if let Some(ids) = &self.ids {
            asking.condition();
            let listed = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            asking.push(&format!("id IN ({listed})"));
        }
        if let Some(search) = &self.search {
            asking.search(search);
        }
        if let Some(order) = &self.order {
            asking.order(order);
        } else if self.what == What::Ids {
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

    fn search(&mut self, search: &TorrentSearch) {
        self.condition();
        let (name, pattern) = match self.dialect {
            Dialect::Sqlite => ("(name GLOB ", search.glob()),
            Dialect::Postgres => ("(name ~ ", search.regex()),
            // As it stands: the usual collations take all emoji for the same character.
            Dialect::MySql => ("(name COLLATE utf8mb4_bin REGEXP ", search.regex()),
        };
        self.push(name);
        self.value(Value::Text(pattern));
        if let Some(id) = search.id() {
            self.push(" OR id = ");
            self.value(Value::Number(sql_integer(id.get())));
        }
        if let Some(pattern) = search.hash_pattern() {
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
        let search = TorrentSearch::new("beef'; DROP TABLE torrents").unwrap();
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
