//! The table `clients`.

use super::Store;
use crate::clients::{ClientPrefix, ClientRule};
use crate::error::AccessError;

impl Store {
    /// Once a prefix is allowed, clients without a matching prefix are refused (M2).
    pub async fn allow_client(&self, prefix: ClientPrefix, name: &str) -> Result<(), AccessError> {
        self.put_client(ClientRule { prefix, name: name.to_owned(), allowed: true }).await
    }

    pub async fn forbid_client(&self, prefix: ClientPrefix, name: &str) -> Result<(), AccessError> {
        self.put_client(ClientRule { prefix, name: name.to_owned(), allowed: false }).await
    }

    /// Removes a prefix, allowed or forbidden.
    pub async fn remove_client(&self, prefix: ClientPrefix) -> Result<(), AccessError> {
        let mut transaction = self.begin().await?;
        let removed = transaction.delete_client(&prefix.to_string(), &prefix.to_hex()).await;
        if removed.map_err(|error| self.explain(error))? == 0 {
            return Err(AccessError::UnknownClient(prefix));
        }
        self.commit(transaction).await
    }

    pub async fn list_clients(&self) -> Result<Vec<ClientRule>, AccessError> {
        self.tables().all_clients().await.map_err(|error| self.explain(error))
    }

    async fn put_client(&self, rule: ClientRule) -> Result<(), AccessError> {
        let explain = |error| self.explain(error);
        let mut transaction = self.begin().await?;
        let prefix = rule.prefix;
        transaction.delete_client(&prefix.to_string(), &prefix.to_hex()).await.map_err(explain)?;
        transaction.insert_client(&rule).await.map_err(explain)?;
        self.commit(transaction).await
    }
}
