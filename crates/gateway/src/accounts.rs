//! Users that the tracker has disabled may not be present.
//!
//! # Guarantees
//!
//! - A disabled user gets no connection and sends no heartbeat. The check is repeated under the shard's lock, so a
//!   connection that was being made while its user was disabled is refused, or is there to be closed.
//! - A user that the tracker does not know is not disabled: presence also serves users without a tracker account.

use std::sync::Arc;

use domain::UserId;

use crate::hub::Hub;
use crate::protocol::CloseCode;

/// Whether the tracker knows a user and has disabled them. Called under locks: must answer from memory and not block.
pub type IsDisabled = Arc<dyn Fn(UserId) -> bool + Send + Sync>;

impl Hub {
    /// Whether a user may not connect.
    pub fn is_disabled(&self, user: UserId) -> bool {
        (self.is_disabled)(user)
    }

    /// Ends all sessions of a disabled or removed user at this gateway; every gateway follows the user table itself.
    /// Clients do not reconnect (3507). Returns the number of sessions.
    pub fn disconnect_disabled(&self, user: UserId) -> usize {
        for conn in self.devices(user).iter().filter_map(|session| session.conn) {
            self.close_connection(user, conn, CloseCode::PermissionDenied);
        }
        // The first close code counts; this ends the remaining sessions.
        self.disconnect_here(user, None, false)
    }
}
