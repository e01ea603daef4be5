//! Portable statements.
//!
//! A statement is SQL with `?` for each parameter, and names in braces for what differs between the databases:
//!
//! | written | stands for |
//! |---|---|
//! | `{in}`, `{not in}` | whether a column is in a list, which is a parameter |
//! | `{rows N}` | a parameter of rows of N integers as a table `k` with columns `c0`, `c1`, … |
//! | `{rows}` | a [`super::Relation`] as a table: a parameter with named columns of any type |
//! | `{join}` | a join in the order of the tables, so that the rows of `k` come first |
//! | `{values}` | the rows of a bulk insert, after the names of its columns |
//! | `{insert or ignore}`, `{or ignore}` | an insert that skips existing rows: the beginning, and the end |
//! | `{or}` | SQLite only: of a bulk statement, after an `UPDATE` by `?1`, `?2`, …, before the `INSERT` of rows that it did not find |
//! | `{upsert A,B}` | begins the assignments for a row that exists with these keys |
//! | `{new A}` | in an upsert: the column of the new row |
//! | `{greatest}` | the function for the greatest of its arguments |
//! | `{lock}` | locks the rows that are read; on SQLite the transaction does |
//! | `{now}` | the database's clock, in seconds since 1970 |
//! | `{text A}` | a decimal column as text |

use std::fmt::Write as _;
use std::sync::LazyLock;

use super::value::{Rows, Type, Value};
use crate::Kind;

/// The text of a statement for each database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    sqlite: &'a str,
    postgres: &'a str,
    mysql: &'a str,
}

impl<'a> From<&'a str> for Statement<'a> {
    fn from(text: &'a str) -> Statement<'a> {
        Statement { sqlite: text, postgres: text, mysql: text }
    }
}

impl<'a> From<&'a String> for Statement<'a> {
    fn from(text: &'a String) -> Statement<'a> {
        Statement::from(text.as_str())
    }
}

/// In the order of [`Statement::each`].
impl<'a> From<&'a [String; 3]> for Statement<'a> {
    fn from([sqlite, postgres, mysql]: &'a [String; 3]) -> Statement<'a> {
        Statement { sqlite, postgres, mysql }
    }
}

impl<'a> From<&'a LazyLock<String>> for Statement<'a> {
    fn from(text: &'a LazyLock<String>) -> Statement<'a> {
        Statement::from(text.as_str())
    }
}

impl<'a> From<&'a LazyLock<[String; 3]>> for Statement<'a> {
    fn from(texts: &'a LazyLock<[String; 3]>) -> Statement<'a> {
        Statement::from(&**texts)
    }
}

impl<'a> Statement<'a> {
    /// For statements that the databases optimise differently, or in which they differ by more than words.
    pub const fn each(sqlite: &'a str, postgres: &'a str, mysql: &'a str) -> Statement<'a> {
        Statement { sqlite, postgres, mysql }
    }

    /// On SQLite: an update of one row, and the statement for rows that it does not find.
    pub(crate) fn update_or_insert(self) -> Option<(&'a str, Statement<'a>)> {
        let (update, insert) = self.sqlite.split_once(" {or} ")?;
        Some((update, Statement { sqlite: insert, ..self }))
    }

    /// Whether it is a bulk statement.
    pub(crate) fn is_bulk(self) -> bool {
        self.sqlite.contains("{values}")
    }

    /// Whether SQLite takes all keys as one parameter.
    pub(crate) fn takes_rows(self) -> bool {
        self.sqlite.contains("{rows")
    }

    pub(crate) const fn sqlite_text(self) -> &'a str {
        self.sqlite
    }

    const fn text(self, kind: Kind) -> &'a str {
        match kind {
            Kind::Sqlite => self.sqlite,
            Kind::Postgres => self.postgres,
            Kind::MySql => self.mysql,
        }
    }

    /// The statement for one database. `values` are its parameters.
    pub(crate) fn render(self, kind: Kind, values: &[Value]) -> String {
        let mut rendering = Rendering { kind, values, next: 0, placeholders: 0, out: String::new() };
        rendering.text(self.text(kind));
        rendering.out
    }

    /// A bulk statement: its only parameter are the rows of `{values}`. On SQLite it inserts one row.
    pub(crate) fn render_bulk(self, kind: Kind, rows: &Rows, literals: &str) -> String {
        let values = match kind {
            Kind::Sqlite => format!("VALUES ({})", vec!["?"; rows.width()].join(", ")),
            Kind::Postgres => unnest_values(&rows.types()),
            Kind::MySql => format!("VALUES {literals}"),
        };
        let (before, after) = self.text(kind).split_once("{values}").unwrap_or((self.text(kind), ""));
        let mut rendering = Rendering { kind, values: &[], next: 0, placeholders: 0, out: String::new() };
        rendering.text(before);
        rendering.out.push_str(&values);
        rendering.text(after);
        rendering.out
    }
}

struct Rendering<'a> {
    kind: Kind,
    values: &'a [Value],
    /// The parameter that the next placeholder stands for.
    next: usize,
    /// Placeholders so far, as PostgreSQL counts them.
    placeholders: usize,
    out: String,
}

impl Rendering<'_> {
    fn text(&mut self, text: &str) {
        self.out.reserve(text.len() + 32);
        let mut rest = text;
        while let Some(at) = rest.find(['?', '{']) {
            self.out.push_str(&rest[..at]);
            if rest.as_bytes()[at] == b'?' {
                self.placeholder();
                self.next += 1;
                rest = &rest[at + 1..];
                continue;
            }
            let end = rest[at..].find('}').map_or(rest.len(), |length| at + length);
            self.word(&rest[at + 1..end]);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        self.out.push_str(rest);
    }

    fn placeholder(&mut self) {
        self.placeholders += 1;
        match self.kind {
            Kind::Postgres => write!(self.out, "${}", self.placeholders),
            Kind::Sqlite | Kind::MySql => write!(self.out, "?"),
        }
        .expect("writing to memory cannot fail");
    }

    /// Writes what a name in braces stands for.
    fn word(&mut self, word: &str) {
        use Kind::{MySql, Postgres, Sqlite};
        let (name, argument) = word.split_once(' ').unwrap_or((word, ""));
        let written = match (name, self.kind) {
            ("in", _) => return self.list(["IN", "= ANY"]),
            ("not", _) => return self.list(["NOT IN", "<> ALL"]),
            ("rows", _) if argument.is_empty() => return self.relation(),
            ("rows", _) => return self.rows(argument.parse().unwrap_or(1)),
            ("join", Sqlite) => "CROSS JOIN",
            ("join", Postgres) => "JOIN",
            ("join", MySql) => "STRAIGHT_JOIN",
            ("insert", Sqlite | Postgres) => "INSERT INTO",
            ("insert", MySql) => "INSERT IGNORE INTO",
            ("or", Sqlite | Postgres) => "ON CONFLICT DO NOTHING",
            ("or", MySql) => "",
            ("upsert", Sqlite | Postgres) => &format!("ON CONFLICT ({argument}) DO UPDATE SET"),
            ("upsert", MySql) => "ON DUPLICATE KEY UPDATE",
            ("new", Sqlite | Postgres) => &format!("excluded.{argument}"),
            ("new", MySql) => &format!("VALUES({argument})"),
            ("greatest", Sqlite) => "max",
            ("greatest", Postgres | MySql) => "greatest",
            ("lock", Sqlite) => "",
            ("lock", Postgres | MySql) => "FOR UPDATE",
            ("now", Sqlite) => "unixepoch()",
            ("now", Postgres) => "extract(epoch FROM clock_timestamp())::BIGINT",
            ("now", MySql) => "unix_timestamp()",
            ("text", Sqlite) => argument,
            ("text", Postgres) => &format!("{argument}::TEXT"),
            ("text", MySql) => &format!("CAST({argument} AS CHAR)"),
            _ => unreachable!("no statement contains {{{word}}}"),
        };
        self.out.push_str(written);
    }

    /// `operators`: the usual one, and that of PostgreSQL's arrays.
    fn list(&mut self, [usual, of_array]: [&str; 2]) {
        match self.kind {
            Kind::Sqlite => {
                self.out.push_str(usual);
                self.out.push_str(" (SELECT value FROM json_each(?))");
            }
            Kind::Postgres => {
                self.out.push_str(of_array);
                self.out.push_str(" (");
                self.placeholder();
                self.out.push(')');
            }
            Kind::MySql => {
                let length = match self.values.get(self.next) {
                    Some(Value::Integers(numbers)) => numbers.len(),
                    Some(Value::Texts(texts)) => texts.len(),
                    _ => 0,
                };
                // An empty list is not allowed.
                let places = match length {
                    0 => "SELECT 0 FROM dual WHERE false".to_owned(),
                    _ => vec!["?"; length].join(","),
                };
                write!(self.out, "{usual} ({places})").expect("writing to memory cannot fail");
            }
        }
        self.next += 1;
    }

    fn rows(&mut self, width: usize) {
        let columns = |column: fn(usize) -> String| (0..width).map(column).collect::<Vec<_>>().join(", ");
        match self.kind {
            Kind::Sqlite => {
                let listed = columns(|n| format!("value ->> {n} AS c{n}"));
                write!(self.out, "(SELECT {listed} FROM json_each(?)) k")
            }
            Kind::Postgres => {
                self.out.push_str("unnest(");
                for n in 0..width {
                    self.out.push_str(if n > 0 { ", " } else { "" });
                    self.placeholder();
                    self.out.push_str("::BIGINT[]");
                }
                write!(self.out, ") AS k ({})", columns(|n| format!("c{n}")))
            }
            Kind::MySql => {
                let listed = columns(|n| format!("c{n} BIGINT PATH '$[{n}]'"));
                write!(self.out, "JSON_TABLE(?, '$[*]' COLUMNS ({listed})) k")
            }
        }
        .expect("writing to memory cannot fail");
        self.next += 1;
    }
}

impl Rendering<'_> {
    /// A derived table; the statement gives it its name.
    fn relation(&mut self) {
        let Some(Value::Relation(relation)) = self.values.get(self.next) else {
            unreachable!("the parameter of {{rows}} is a relation");
        };
        self.next += 1;
        self.out.push_str(&relation.table(self.kind, self.placeholders));
        if self.kind == Kind::Postgres {
            self.placeholders += relation.columns().len();
        } else {
            self.placeholders += 1;
        }
    }
}

/// PostgreSQL: one array for each column.
fn unnest_values(types: &[Type]) -> String {
    let array = |(n, column): (usize, &Type)| match column {
        Type::Boolean => format!("${}::BOOLEAN[]", n + 1),
        Type::Integer => format!("${}::BIGINT[]", n + 1),
        Type::Decimal | Type::Text => format!("${}::TEXT[]", n + 1),
        Type::Bytes => format!("${}::BYTEA[]", n + 1),
    };
    let cast = |(n, column): (usize, &Type)| match column {
        Type::Decimal => format!("k.c{n}::NUMERIC"),
        _ => format!("k.c{n}"),
    };
    let casts = types.iter().enumerate().map(cast).collect::<Vec<_>>().join(", ");
    let arrays = types.iter().enumerate().map(array).collect::<Vec<_>>().join(", ");
    let names = (0..types.len()).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
    format!("SELECT {casts} FROM unnest({arrays}) AS k ({names})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, values: &[Value]) -> [String; 3] {
        [Kind::Sqlite, Kind::Postgres, Kind::MySql].map(|kind| Statement::from(text).render(kind, values))
    }

    #[test]
    fn parameters_and_lists_are_written_for_each_database() {
        let values = [7.into(), Value::integers([1, 2]), 9.into()];
        let [sqlite, postgres, mysql] =
            rendered("SELECT a FROM t WHERE b = ? AND c {in} AND d > ? {lock}", &values);
        assert_eq!(
            sqlite,
            "SELECT a FROM t WHERE b = ? AND c IN (SELECT value FROM json_each(?)) AND d > ? "
        );
        assert_eq!(postgres, "SELECT a FROM t WHERE b = $1 AND c = ANY ($2) AND d > $3 FOR UPDATE");
        assert_eq!(mysql, "SELECT a FROM t WHERE b = ? AND c IN (?,?) AND d > ? FOR UPDATE");
        assert_eq!(rendered("a {in}", &[Value::integers([])])[2], "a IN (SELECT 0 FROM dual WHERE false)");
    }

    #[test]
    fn rows_of_keys_take_one_parameter_for_each_column_on_postgres() {
        let rows = Value::Rows(Rows::new([[Value::from(1), 2.into()]]));
        let [sqlite, postgres, mysql] =
            rendered("SELECT t.x FROM {rows 2} {join} t ON t.a = k.c0 AND t.b = ?", &[rows, 3.into()]);
        assert!(sqlite.contains("(SELECT value ->> 0 AS c0, value ->> 1 AS c1 FROM json_each(?)) k CROSS"));
        assert!(
            postgres.ends_with(
                "unnest($1::BIGINT[], $2::BIGINT[]) AS k (c0, c1) JOIN t ON t.a = k.c0 AND t.b = $3"
            )
        );
        assert!(mysql.contains("COLUMNS (c0 BIGINT PATH '$[0]', c1 BIGINT PATH '$[1]')) k STRAIGHT_JOIN"));
    }

    #[test]
    fn an_upsert_is_written_for_each_database() {
        let rows = Rows::new([[Value::from(1), Value::Decimal("2".to_owned())]]);
        let text = "INSERT INTO t (id, a) {values} {upsert id} a = {new a}";
        let bulk = |kind| Statement::from(text).render_bulk(kind, &rows, "(1,2)");
        assert_eq!(
            bulk(Kind::Sqlite),
            "INSERT INTO t (id, a) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET a = excluded.a"
        );
        assert_eq!(
            bulk(Kind::Postgres),
            "INSERT INTO t (id, a) SELECT k.c0, k.c1::NUMERIC FROM unnest($1::BIGINT[], $2::TEXT[]) AS k (c0, c1) \
             ON CONFLICT (id) DO UPDATE SET a = excluded.a"
        );
        assert_eq!(
            bulk(Kind::MySql),
            "INSERT INTO t (id, a) VALUES (1,2) ON DUPLICATE KEY UPDATE a = VALUES(a)"
        );
    }
}
