//! Users that the tracker has disabled may not be present.
//!
//! # Guarantees
//!
//! - A disabled user gets no connection and sends no heartbeat. The check is repeated under the shard's lock, so a
//!   connection that was being made while its user was disabled is refused, or is there to be closed.
//! - A user that the tracker does not know is not disabled: presence also serves users without a tracker account.

use std::sync::Arc;

use domain::UserId;

/// Whether the tracker knows a user and has disabled them. Called under locks: must answer from memory and not block.
pub type IsDisabled = Arc<dyn Fn(UserId) -> bool + Send + Sync>;
