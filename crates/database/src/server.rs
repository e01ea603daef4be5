//! Connection pools for PostgreSQL and for MariaDB or MySQL.
//!
//! # Guarantees
//!
//! - Sessions have the same settings, independent of the server's defaults: read committed, UTC, UTF-8, strict mode. A
//!   statement waits ten seconds for a lock and then fails with a retryable error.
//! - Opening fails after five seconds if the server does not answer.
//! - Statements are not logged: they contain passkeys.

use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::address::{show_mysql, show_postgres};
use crate::error::DatabaseError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Enough for every view to write and for commands to read; far below the servers' default limits.
const CONNECTIONS_MAX: u32 = 10;

/// Suppresses notices about existing tables.
const POSTGRES_SESSION: &str = "SET default_transaction_isolation = 'read committed'; SET lock_timeout = '10s'; \
     SET TimeZone = 'UTC'; SET client_min_messages = 'warning'";
/// Strict: a value that does not fit is an error and is never truncated.
const MYSQL_SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,\
     NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY', \
     SESSION time_zone = '+00:00', SESSION innodb_lock_wait_timeout = 10";

/// Makes one connection first, so that an error is the server's own; the pool connects lazily.
pub(crate) async fn open_postgres(options: PgConnectOptions) -> Result<PgPool, DatabaseError> {
    let options = options.application_name("rollcall").disable_statement_logging();
    let shown = show_postgres(&options);
    test_connection(&options, &shown).await?;
    Ok(PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(POSTGRES_SESSION).await.map(|_| ()) })
        })
        .connect_lazy_with(options))
}

/// Makes one connection first, so that an error is the server's own; the pool connects lazily.
pub(crate) async fn open_mysql(options: MySqlConnectOptions) -> Result<MySqlPool, DatabaseError> {
    let options = options
        .charset("utf8mb4")
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .disable_statement_logging();
    let shown = show_mysql(&options);
    test_connection(&options, &shown).await?;
    Ok(MySqlPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(MYSQL_SESSION).await.map(|_| ()) })
        })
        .connect_lazy_with(options))
}

async fn test_connection<O>(options: &O, shown: &str) -> Result<(), DatabaseError>
where
    O: ConnectOptions<Connection: Sized>,
{
    let outcome =
        tokio::time::timeout(CONNECT_TIMEOUT, async { options.connect().await?.close().await }).await;
    match outcome {
        Ok(outcome) => outcome.map_err(|error| DatabaseError::from_server(shown.to_owned(), error.into())),
        Err(_) => Err(DatabaseError::Unreachable {
            shown: shown.to_owned(),
            reason: format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()),
        }),
    }
}
