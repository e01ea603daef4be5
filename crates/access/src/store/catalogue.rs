//! Queries for lists of torrents and users: by ids, by search, and torrents sorted by size or age.
//!
//! Pages join without gaps or repeats: sizes and dates do not change, and ids break ties. A cursor is taken from the columns,
//! also if the row cannot be parsed.
//!
//! Seeder and leecher counts are not in the database. Names have no index, because no database uses one to search for a part
//! of a text; a hundred thousand names are scanned quickly enough.

use database::{Kind, Value};
use domain::named;
use domain::{TorrentId, UserId};

use super::rows::{NumberedRow, Selected, readable, sql_integer, torrent_id, user_id};
use super::search::NameSearch;
use super::{Store, Torrent, User};
use crate::error::AccessError;

const IDS_PER_STATEMENT: usize = 1000;

/// The sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueKey {
    Size,
    Added,
}

impl CatalogueKey {
    const fn column(self) -> &'static str {
        match self {
            CatalogueKey::Size => "total_bytes",
            CatalogueKey::Added => "created_at",
        }
    }

    /// The cursor of a row, if its columns can be parsed.
    fn cursor_of(self, row: &Selected) -> Option<(i64, TorrentId)> {
        let value = match self {
            CatalogueKey::Size => row.total_bytes,
            CatalogueKey::Added => row.created_at,
        };
        Some((value?, torrent_id(row.id?)?))
    }
}

/// A sort order with a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogueOrder {
    /// Ids break ties, in the same direction.
    pub by: CatalogueKey,
    pub descending: bool,
    /// The cursor: value of the sort column and id of the last torrent of the previous page.
    pub after: Option<(i64, TorrentId)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CataloguePage {
    /// Without rows that cannot be parsed, so a page may be short or empty and not be the last.
    pub torrents: Vec<Torrent>,
    /// The cursor of the next page; none at the end.
    pub next: Option<(i64, TorrentId)>,
}

impl Store {
    /// Those of the torrents that exist, in no order.
    pub async fn torrents_with(&self, ids: &[TorrentId]) -> Result<Vec<Torrent>, AccessError> {
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_PER_STATEMENT) {
            let numbers = some.iter().map(|id| sql_integer(id.get())).collect();
            let selection = Selection { ids: Some(numbers), ..Selection::all() };
            let rows = self.tables().selected_torrents(&selection).await;
            let rows = rows.map_err(|error| self.explain(error))?;
            found.extend(rows.into_iter().filter_map(|row| readable(row.torrent)));
        }
        Ok(found)
    }

    /// The ids of the first `limit` matches.
    pub async fn find_torrents(
        &self,
        search: &NameSearch,
        limit: u32,
    ) -> Result<Vec<TorrentId>, AccessError> {
        let selection = Selection {
            projection: Projection::Ids,
            search: Some(search.clone()),
            limit: Some(limit),
            ..Selection::all()
        };
        let numbers = self.tables().selected_numbers(&selection).await;
        let numbers = numbers.map_err(|error| self.explain(error))?;
        Ok(numbers.into_iter().filter_map(|id| TorrentId::new(u64::try_from(id).ok()?)).collect())
    }

    pub async fn count_found(&self, search: &NameSearch) -> Result<u64, AccessError> {
        let selection =
            Selection { projection: Projection::Count, search: Some(search.clone()), ..Selection::all() };
        let counted = self.tables().selected_numbers(&selection).await;
        Ok(counted.map_err(|error| self.explain(error))?.first().map_or(0, |count| count.unsigned_abs()))
    }

    pub async fn torrents_in_order(
        &self,
        order: CatalogueOrder,
        search: Option<&NameSearch>,
        limit: u32,
    ) -> Result<CataloguePage, AccessError> {
        self.page_in_order(order, limit, Selection { search: search.cloned(), ..Selection::all() }).await
    }

    /// There is an index for the order by date.
    pub async fn pending_torrents(
        &self,
        order: CatalogueOrder,
        limit: u32,
    ) -> Result<CataloguePage, AccessError> {
        self.page_in_order(order, limit, Selection { pending: true, ..Selection::all() }).await
    }

    pub async fn count_pending_torrents(&self) -> Result<u64, AccessError> {
        let selection = Selection { projection: Projection::Count, pending: true, ..Selection::all() };
        let counted = self.tables().selected_numbers(&selection).await;
        Ok(counted.map_err(|error| self.explain(error))?.first().map_or(0, |count| count.unsigned_abs()))
    }

    async fn page_in_order(
        &self,
        order: CatalogueOrder,
        limit: u32,
        among: Selection,
    ) -> Result<CataloguePage, AccessError> {
        // One row beyond the limit shows whether there are more.
        let rows_max = limit.saturating_add(1);
        let selection = Selection { order: Some(order), limit: Some(rows_max), ..among };
        let rows = self.tables().selected_torrents(&selection).await;
        let mut rows = rows.map_err(|error| self.explain(error))?;
        let has_more = rows.len() as u64 > u64::from(limit);
        rows.truncate(limit as usize);
        let last = rows.iter().rev().find_map(|row| order.by.cursor_of(row));
        let torrents = rows.into_iter().filter_map(|row| readable(row.torrent)).collect();
        Ok(CataloguePage { torrents, next: last.filter(|_| has_more) })
    }
}

impl Store {
    /// Those of the users that exist.
    pub async fn users_with(&self, ids: &[UserId]) -> Result<Vec<User>, AccessError> {
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_PER_STATEMENT) {
            let numbers = some.iter().map(|id| sql_integer(id.get())).collect();
            let selection = Selection { table: Table::Users, ids: Some(numbers), ..Selection::all() };
            found.extend(self.selected_users(&selection).await?);
        }
        Ok(found)
    }

    /// The first `limit` matches after `after`, by id, without rows that cannot be parsed.
    pub async fn search_users(
        &self,
        search: &NameSearch,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<User>, AccessError> {
        let selection = Selection {
            table: Table::Users,
            search: Some(search.clone()),
            after: after.map(|id| sql_integer(id.get())),
            limit: Some(limit),
            ..Selection::all()
        };
        self.selected_users(&selection).await
    }

    /// The ids of the first `limit` matches.
    pub async fn find_users(&self, search: &NameSearch, limit: u32) -> Result<Vec<UserId>, AccessError> {
        let selection = Selection {
            table: Table::Users,
            projection: Projection::Ids,
            search: Some(search.clone()),
            limit: Some(limit),
            ..Selection::all()
        };
        let numbers = self.tables().selected_numbers(&selection).await;
        let numbers = numbers.map_err(|error| self.explain(error))?;
        Ok(numbers.into_iter().filter_map(user_id).collect())
    }

    async fn selected_users(&self, selection: &Selection) -> Result<Vec<User>, AccessError> {
        let rows = self.tables().selected_users(selection).await;
        Ok(rows.map_err(|error| self.explain(error))?.into_iter().filter_map(readable).collect())
    }
}

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Table {
        Torrents = "torrents",
        Users = "users",
    }
}

impl Table {
    const fn columns(self) -> &'static str {
        match self {
            Table::Torrents => Torrent::COLUMNS,
            Table::Users => User::COLUMNS,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Projection {
    Rows,
    Ids,
    Count,
}

#[derive(Clone, Debug)]
pub(crate) struct Selection {
    table: Table,
    projection: Projection,
    ids: Option<Vec<i64>>,
    search: Option<NameSearch>,
    /// Only torrents that are not approved.
    pending: bool,
    /// Only rows after this id.
    after: Option<i64>,
    order: Option<CatalogueOrder>,
    limit: Option<u32>,
}

impl Selection {
    fn all() -> Selection {
        Selection {
            table: Table::Torrents,
            projection: Projection::Rows,
            ids: None,
            search: None,
            pending: false,
            after: None,
            order: None,
            limit: None,
        }
    }

    /// The SQL, which contains only fixed text and integers, and its parameters.
    pub(crate) fn statement(&self, kind: Kind) -> (String, Vec<Value>) {
        let mut builder =
            StatementBuilder { kind, sql: String::new(), values: Vec::new(), has_condition: false };
        let columns = match self.projection {
            Projection::Rows => self.table.columns(),
            Projection::Ids => "id",
            Projection::Count => "count(*)",
        };
        builder.push(&format!("SELECT {columns} FROM {}", self.table.name()));
        if let Some(ids) = &self.ids {
            builder.condition();
            let listed = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            builder.push(&format!("id IN ({listed})"));
        }
        if let Some(search) = &self.search {
            builder.search(self.table, search);
        }
        if self.pending {
            builder.condition();
            builder.push("approved = FALSE");
        }
        if let Some(after) = self.after {
            builder.condition();
            builder.push("id > ");
            builder.value(Value::Integer(after));
        }
        if let Some(order) = &self.order {
            builder.order(order);
        } else if self.projection == Projection::Ids || self.table == Table::Users {
            builder.push(" ORDER BY id");
        }
        if let Some(limit) = self.limit {
            builder.push(&format!(" LIMIT {limit}"));
        }
        (builder.sql, builder.values)
    }
}

struct StatementBuilder {
    kind: Kind,
    sql: String,
    values: Vec<Value>,
    has_condition: bool,
}

impl StatementBuilder {
    fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    fn value(&mut self, value: Value) {
        self.values.push(value);
        self.push("?");
    }

    fn condition(&mut self) {
        self.push(if self.has_condition { " AND " } else { " WHERE " });
        self.has_condition = true;
    }

    fn search(&mut self, table: Table, search: &NameSearch) {
        self.condition();
        let (name, pattern) = match self.kind {
            Kind::Sqlite => ("(name GLOB ", search.glob()),
            Kind::Postgres => ("(name ~ ", search.regex()),
            // Binary: the usual collations treat all emoji as equal.
            Kind::MySql => ("(name COLLATE utf8mb4_bin REGEXP ", search.regex()),
        };
        self.push(name);
        self.value(Value::Text(pattern));
        if let Some(id) = search.id() {
            self.push(" OR id = ");
            self.value(Value::Integer(id));
        }
        if let Some(pattern) = search.hash_pattern().filter(|_| table == Table::Torrents) {
            for column in ["infohash", "infohash_v2"] {
                // The others compare these columns case-insensitively.
                let column = match self.kind {
                    Kind::Postgres => format!("lower({column})"),
                    Kind::Sqlite | Kind::MySql => column.to_owned(),
                };
                self.push(&format!(" OR {column} LIKE "));
                self.value(Value::Text(pattern.clone()));
            }
        }
        self.push(")");
    }

    fn order(&mut self, order: &CatalogueOrder) {
        let column = order.by.column();
        let (after, direction) = if order.descending { ("<", " DESC") } else { (">", "") };
        // Not every database has a constraint against other ids, which a cursor cannot express.
        self.condition();
        self.push("id > 0");
        if let Some((value, id)) = order.after {
            self.condition();
            let value = Value::Integer(value);
            self.push(&format!("({column} {after} "));
            self.value(value.clone());
            self.push(&format!(" OR ({column} = "));
            self.value(value);
            self.push(&format!(" AND id {after} "));
            self.value(Value::Integer(sql_integer(id.get())));
            self.push("))");
        }
        self.push(&format!(" ORDER BY {column}{direction}, id{direction}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_input_is_never_in_the_sql() {
        let search = NameSearch::new("beef'; DROP TABLE torrents").unwrap();
        let order = CatalogueOrder {
            by: CatalogueKey::Size,
            descending: true,
            after: TorrentId::new(7).map(|id| (5, id)),
        };
        let selection =
            Selection { search: Some(search), order: Some(order), limit: Some(3), ..Selection::all() };
        let (sql, values) = selection.statement(Kind::Postgres);
        assert!(
            sql.ends_with(
                "WHERE (name ~ ?) AND id > 0 AND (total_bytes < ? OR (total_bytes = ? AND id < ?)) \
                 ORDER BY total_bytes DESC, id DESC LIMIT 3"
            ),
            "{sql}"
        );
        assert_eq!(values.len(), 4);
    }
}
