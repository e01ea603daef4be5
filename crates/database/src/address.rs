//! Addresses of databases.
//!
//! The shown form of an address contains neither a password nor parameters, which may be secret.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;

use crate::error::DatabaseError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Sqlite,
    Postgres,
    /// MariaDB or MySQL.
    MySql,
}

impl Kind {
    /// By the scheme of the address; none if it is unknown or nothing follows it.
    pub fn of(url: &str) -> Option<Kind> {
        let (scheme, rest) = url.split_once(':')?;
        let kind = match scheme {
            "sqlite" => Kind::Sqlite,
            "postgres" | "postgresql" => Kind::Postgres,
            "mysql" | "mariadb" => Kind::MySql,
            _ => return None,
        };
        let is_complete = match kind {
            Kind::Sqlite => !rest.strip_prefix("//").unwrap_or(rest).is_empty(),
            Kind::Postgres | Kind::MySql => rest.strip_prefix("//").is_some_and(|server| !server.is_empty()),
        };
        is_complete.then_some(kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Sqlite => "SQLite",
            Kind::Postgres => "PostgreSQL",
            Kind::MySql => "MariaDB",
        })
    }
}

/// A parsed address.
#[derive(Debug)]
pub(crate) enum Address {
    Sqlite(PathBuf),
    Postgres(Box<PgConnectOptions>),
    MySql(Box<MySqlConnectOptions>),
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Address, DatabaseError> {
        let malformed = |source| DatabaseError::MalformedUrl { shown: redacted(url), source };
        match Kind::of(url) {
            None => Err(DatabaseError::UnsupportedUrl { shown: redacted(url) }),
            Some(Kind::Sqlite) => sqlite_path(url).map(Address::Sqlite),
            Some(Kind::Postgres) => {
                let options = PgConnectOptions::from_str(url).map_err(malformed)?;
                Ok(Address::Postgres(Box::new(options)))
            }
            Some(Kind::MySql) => {
                let options = MySqlConnectOptions::from_str(url).map_err(malformed)?;
                if options.get_database().is_none_or(str::is_empty) {
                    return Err(DatabaseError::NoDatabaseNamed { shown: show_mysql(&options) });
                }
                Ok(Address::MySql(Box::new(options)))
            }
        }
    }
}

fn sqlite_path(url: &str) -> Result<PathBuf, DatabaseError> {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    match rest.strip_prefix("//").unwrap_or(rest) {
        ":memory:" => Err(DatabaseError::InMemory),
        path => Ok(PathBuf::from(path)),
    }
}

/// An address without password and parameters. Of an invalid address only the scheme, because any part may be secret.
pub fn redacted(url: &str) -> String {
    match Kind::of(url) {
        Some(Kind::Sqlite) => url.to_owned(),
        Some(Kind::Postgres) => PgConnectOptions::from_str(url)
            .map_or_else(|_| scheme_only(url), |options| show_postgres(&options)),
        Some(Kind::MySql) => MySqlConnectOptions::from_str(url)
            .map_or_else(|_| scheme_only(url), |options| show_mysql(&options)),
        None => scheme_only(url),
    }
}

fn scheme_only(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) if !rest.is_empty() => format!("{scheme}://…"),
        // An address without a scheme.
        _ if url.contains('@') => "…".to_owned(),
        _ => url.to_owned(),
    }
}

pub(crate) fn show_postgres(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let user = options.get_username();
    format!("postgres://{user}@{host}/{}", options.get_database().unwrap_or(user))
}

pub(crate) fn show_mysql(options: &MySqlConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    format!("mysql://{}@{host}/{}", options.get_username(), options.get_database().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redacted_address_has_neither_password_nor_parameters() {
        let shown = [
            (
                "postgres://rollcall:s3cret@db.example:5433/site?sslmode=require",
                "postgres://rollcall@db.example:5433/site",
            ),
            (
                "postgresql://rollcall@db.example/site?password=s3cret",
                "postgres://rollcall@db.example:5432/site",
            ),
            ("mysql://rollcall:s3cret@db.example/site", "mysql://rollcall@db.example:3306/site"),
            (
                "mariadb://rollcall:s3%40cret@127.0.0.1:3307/site?charset=utf8mb4",
                "mysql://rollcall@127.0.0.1:3307/site",
            ),
            ("postgres://rollcall:s3cret@db.example:port/site", "postgres://…"),
            ("rollcall:s3cret@db.example/site", "…"),
            ("oracle://rollcall:s3cret@db.example/site", "oracle://…"),
            ("sqlite:data/rollcall.db", "sqlite:data/rollcall.db"),
        ];
        for (url, expected) in shown {
            assert_eq!(redacted(url), expected);
            assert!(!redacted(url).contains("cret"));
        }
    }

    #[test]
    fn the_scheme_determines_the_kind() {
        assert_eq!(Kind::of("sqlite:data/rollcall.db"), Some(Kind::Sqlite));
        assert_eq!(Kind::of("sqlite:///var/lib/rollcall.db"), Some(Kind::Sqlite));
        assert_eq!(Kind::of("postgresql://localhost/site"), Some(Kind::Postgres));
        assert_eq!(Kind::of("mariadb://localhost/site"), Some(Kind::MySql));
        for url in ["", "sqlite:", "sqlite://", "postgres:", "postgres://", "mysql:site", "data/rollcall.db"]
        {
            assert_eq!(Kind::of(url), None, "{url:?}");
        }
    }

    #[test]
    fn an_address_of_mariadb_must_name_a_database() {
        assert!(matches!(
            Address::parse("mysql://root@localhost"),
            Err(DatabaseError::NoDatabaseNamed { .. })
        ));
        assert!(matches!(Address::parse("sqlite::memory:"), Err(DatabaseError::InMemory)));
    }
}
