//! The audit trail (W7): who changed what, as lines of JSON that are chained by their hashes.

/// When a line is brought to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditSync {
    /// Before the change is acknowledged.
    #[default]
    Always,
    /// Once a second.
    EverySecond,
    /// When the system likes.
    Never,
}
