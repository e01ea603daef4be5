//! The table `banned_ports`.

use super::Store;
use crate::error::AccessError;
use crate::ports::{BannedPorts, PortRange};

impl Store {
    /// Banning the same range again replaces the reason.
    pub async fn ban_ports(&self, range: PortRange, reason: &str) -> Result<(), AccessError> {
        let ban = BannedPorts { range, reason: reason.to_owned() };
        let inserted = self.tables().insert_banned_ports(&ban).await;
        inserted.map_err(|error| self.explain(error))
    }

    /// Removes these ports from all banned ranges, which are shortened or split.
    pub async fn allow_ports(&self, range: PortRange) -> Result<(), AccessError> {
        // Retried after each conflict, in which another process has made progress.
        while !self.try_allow_ports(range).await? {}
        Ok(())
    }

    /// False, without any change, if another process changed one of the ranges since they were read.
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
                // The other process may have allowed a part of this range, which must not be banned again.
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

    /// By port.
    pub async fn list_banned_ports(&self) -> Result<Vec<BannedPorts>, AccessError> {
        self.tables().all_banned_ports().await.map_err(|error| self.explain(error))
    }
}
