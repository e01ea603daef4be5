//! The table of banned ports.

use super::Store;
use crate::error::AccessError;
use crate::ports::{BannedPorts, PortRange};

/// Banned ports.
impl Store {
    /// Refuses clients that listen on these ports. The same range again gets the new reason.
    pub async fn ban_ports(&self, range: PortRange, reason: &str) -> Result<(), AccessError> {
        let ban = BannedPorts { range, reason: reason.to_owned() };
        let inserted = self.tables().await?.insert_banned_ports(&ban).await;
        inserted.map_err(|error| self.explain(error))
    }

    /// Lets clients listen on all of these ports again. A banned range that reaches further is cut.
    pub async fn allow_ports(&self, range: PortRange) -> Result<(), AccessError> {
        // What somebody else changes meanwhile is read again. Each time, somebody has got on.
        while !self.try_allow_ports(range).await? {}
        Ok(())
    }

    /// False if somebody else has changed one of the bans since they were read; nothing was done then.
    async fn try_allow_ports(&self, range: PortRange) -> Result<bool, AccessError> {
        let explain = |error| self.explain(error);
        let mut transaction = self.begin().await?;
        let mut bans = transaction.all_banned_ports().await.map_err(explain)?;
        bans.retain(|ban| ban.range.overlaps(range));
        if bans.is_empty() {
            return Err(AccessError::PortsNotBanned(range));
        }
        for ban in bans {
            if transaction.delete_banned_ports(ban.range).await.map_err(explain)? == 0 {
                // Its rest would be banned anew, of which the other may have allowed a part.
                return Ok(false);
            }
            for rest in ban.range.without(range) {
                let rest = BannedPorts { range: rest, reason: ban.reason.clone() };
                transaction.insert_banned_ports(&rest).await.map_err(explain)?;
            }
        }
        self.commit(transaction).await?;
        Ok(true)
    }

    /// All banned ports, by their numbers.
    pub async fn list_banned_ports(&self) -> Result<Vec<BannedPorts>, AccessError> {
        self.tables().await?.all_banned_ports().await.map_err(|error| self.explain(error))
    }
}
