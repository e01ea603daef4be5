//! Users that the tracker has disabled may not be present.
//!
//! # Guarantees
//!
//! - A disabled user gets no connection and sends no heartbeat. The check is repeated under the shard's lock, so a
//!   connection that was being made while its user was disabled is refused, or is there to be closed.
//! - A user that the tracker does not know is not disabled: presence also serves people without a tracker account.

use std::sync::Arc;

use domain::UserId;

use crate::hub::Hub;
use crate::protocol::CloseCode;

/// Whether the tracker knows a user and has disabled them. Called under locks: answers from memory, and does not block.
pub type IsDisabled = Arc<dyn Fn(UserId) -> bool + Send + Sync>;

impl Hub {
    /// Whether a user may not connect.
    pub fn is_disabled(&self, user: UserId) -> bool {
        (self.is_disabled)(user)
    }

    /// Ends all sessions of a user who was disabled or removed, at this gateway: every gateway follows the user table
    /// itself. Their clients do not reconnect (3507). Gives how many sessions that were.
    pub fn disconnect_disabled(&self, user: UserId) -> usize {
        for conn in self.devices(user).iter().filter_map(|session| session.conn) {
            self.close_connection(user, conn, CloseCode::PermissionDenied);
        }
        // The first close code counts, so this one ends what is left: the sessions.
        self.disconnect_here(user, None, false)
    }
}
