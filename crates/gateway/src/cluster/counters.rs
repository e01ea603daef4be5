//! Counters of one node.

use domain::{Counter, Histogram, Level};

#[derive(Debug, Default)]
pub struct ClusterCounters {
    pub published: Counter,
    pub changed: Counter,
    /// Those that only moved deadlines.
    pub refreshed: Counter,
    /// Those that were refused because this node was declared dead.
    pub fenced: Counter,
    /// Users whose records were read, watched or not.
    pub users_read: Counter,
    /// Entries that were put into inboxes of other nodes.
    pub entries_sent: Counter,
    /// Entries for nodes that have no inbox any more.
    pub entries_undelivered: Counter,
    /// Entries that could not be sent and wait for another try.
    pub entries_unsent: Level,
    /// Entries dropped because too many waited.
    pub entries_dropped: Counter,
    /// Entries that were read from the own inbox.
    pub entries_received: Counter,
    /// Entries of an unknown kind.
    pub entries_unknown: Counter,
    /// Times that entries may have been missed.
    pub gaps: Counter,
    /// Length of this node's inbox at the last renewal.
    pub inbox_length: Level,
    /// Times that this node's inbox was full.
    pub inbox_full: Counter,
    /// Rejoins under a new incarnation.
    pub rejoins: Counter,
    /// Nodes with a valid lease, at the last renewal.
    pub nodes: Level,
    /// Shards that this node owns.
    pub shards_owned: Level,
    /// Entries of dead nodes.
    pub reaped_gone: Counter,
    /// Entries whose deadline passed although their node is alive.
    pub reaped_late: Counter,
    /// Users whose pending period ended.
    pub reaped_pending: Counter,
    /// Users with an expired entry that no deadline set listed any more.
    pub found_lost: Counter,
    /// Users of a dead node whose last change was sent to watchers again, because it may not have been sent.
    pub renotified: Counter,
    pub failures: Counter,
    /// Values in Redis that this program does not write.
    pub malformed: Counter,
    pub pipeline_seconds: Histogram,
}
