//! The table of client prefixes.

use sqlx::sqlite::SqliteConnection;

use super::Store;
use super::rows::{read_client, readable};
use crate::clients::{ClientPrefix, ClientRule};
use crate::error::AccessError;

/// Clients.
impl Store {
    /// Lets clients with this prefix announce. From the first on, those that no prefix fits are refused (M2).
    pub async fn allow_client(&self, prefix: ClientPrefix, name: &str) -> Result<(), AccessError> {
        self.put_client(prefix, name, true).await
    }

    /// Refuses clients with this prefix.
    pub async fn forbid_client(&self, prefix: ClientPrefix, name: &str) -> Result<(), AccessError> {
        self.put_client(prefix, name, false).await
    }

    /// Takes a prefix off the list, allowed or forbidden.
    pub async fn remove_client(&self, prefix: ClientPrefix) -> Result<(), AccessError> {
        let mut transaction = self.begin().await?;
        let removed = delete_client(&mut transaction, prefix).await.map_err(|error| self.explain(error))?;
        if removed == 0 {
            return Err(AccessError::UnknownClient(prefix));
        }
        self.commit(transaction).await
    }

    /// All prefixes.
    pub async fn list_clients(&self) -> Result<Vec<ClientRule>, AccessError> {
        let mut connection = self.pool.acquire().await.map_err(|error| self.explain(error))?;
        all_clients(&mut connection).await.map_err(|error| self.explain(error))
    }

    async fn put_client(&self, prefix: ClientPrefix, name: &str, allowed: bool) -> Result<(), AccessError> {
        let mut transaction = self.begin().await?;
        delete_client(&mut transaction, prefix).await.map_err(|error| self.explain(error))?;
        sqlx::query("INSERT INTO clients (prefix, name, allowed) VALUES (?, ?, ?)")
            .bind(prefix.to_string())
            .bind(name)
            .bind(allowed)
            .execute(&mut *transaction)
            .await
            .map_err(|error| self.explain(error))?;
        self.commit(transaction).await
    }
}

/// Deletes a prefix in either of its spellings.
async fn delete_client(connection: &mut SqliteConnection, prefix: ClientPrefix) -> Result<u64, sqlx::Error> {
    let done = sqlx::query("DELETE FROM clients WHERE prefix = ?1 OR lower(prefix) = ?2")
        .bind(prefix.to_string())
        .bind(prefix.to_hex())
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

/// All prefixes that can be read, in the order of their spelling.
pub(crate) async fn all_clients(connection: &mut SqliteConnection) -> Result<Vec<ClientRule>, sqlx::Error> {
    let rows = sqlx::query("SELECT prefix, name, allowed FROM clients ORDER BY prefix")
        .fetch_all(connection)
        .await?;
    Ok(rows.iter().filter_map(|row| readable(read_client(row))).collect())
}
