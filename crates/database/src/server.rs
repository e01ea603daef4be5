//! Pools of connections to PostgreSQL and to MariaDB or MySQL.
//!
//! # Guarantees
//!
//! - Sessions are alike, whatever the server's defaults: read committed, UTC, UTF-8, strict about values; a statement
//!   waits ten seconds for another's lock and then fails with what is worth a repeat.
//! - A server that does not answer costs five seconds, not a hanging start.
//! - Statements are not logged: they hold passkeys.

use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::address::{show_mysql, show_postgres};
use crate::error::DatabaseError;

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Enough for every view to write and for commands to read; far below what servers allow by default.
const CONNECTIONS_MAX: u32 = 10;

/// Notices about tables that exist already are no news.
const POSTGRES_SESSION: &str = "SET default_transaction_isolation = 'read committed'; SET lock_timeout = '10s'; \
     SET TimeZone = 'UTC'; SET client_min_messages = 'warning'";
/// Strict: a value that does not fit is an error, never cut off in silence.
const MYSQL_SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,\
     NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY', \
     SESSION time_zone = '+00:00', SESSION innodb_lock_wait_timeout = 10";

/// Connects once, so that what is wrong is told in the server's own words, and leaves the rest to the pool.
pub(crate) async fn open_postgres(options: PgConnectOptions) -> Result<PgPool, DatabaseError> {
    let options = options.application_name("rollcall").disable_statement_logging();
    let shown = show_postgres(&options);
    try_out(&options, &shown).await?;
    Ok(PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(POSTGRES_SESSION).await.map(|_| ()) })
        })
        .connect_lazy_with(options))
}

/// Connects once, so that what is wrong is told in the server's own words, and leaves the rest to the pool.
pub(crate) async fn open_mysql(options: MySqlConnectOptions) -> Result<MySqlPool, DatabaseError> {
    let options = options
        .charset("utf8mb4")
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .disable_statement_logging();
    let shown = show_mysql(&options);
    try_out(&options, &shown).await?;
    Ok(MySqlPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(MYSQL_SESSION).await.map(|_| ()) })
        })
        .connect_lazy_with(options))
}

async fn try_out<O>(options: &O, shown: &str) -> Result<(), DatabaseError>
where
    O: ConnectOptions<Connection: Sized>,
{
    let outcome =
        tokio::time::timeout(CONNECT_TIMEOUT, async { options.connect().await?.close().await }).await;
    match outcome {
        Ok(outcome) => outcome.map_err(|error| DatabaseError::from_server(shown.to_owned(), error)),
        Err(_) => Err(DatabaseError::Unreachable {
            shown: shown.to_owned(),
            reason: format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()),
        }),
    }
}
