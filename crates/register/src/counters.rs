//! What a node counts, ready for a metrics page.

use domain::{Counter, Histogram, Level};

/// What happened since the start.
#[derive(Debug, Default)]
pub struct RegisterCounters {
    /// Updates that were sent.
    pub published: Counter,
    /// Those that changed something.
    pub changed: Counter,
    /// Those that only moved deadlines.
    pub refreshed: Counter,
    /// Those that were refused because this node was declared dead.
    pub fenced: Counter,
    /// People who were asked for, with or without interest in them.
    pub asked: Counter,
    /// Entries that were put into inboxes of other nodes.
    pub entries_sent: Counter,
    /// Entries for nodes that have no inbox any more.
    pub entries_undelivered: Counter,
    /// Entries that could not be sent and wait for another try.
    pub entries_owed: Level,
    /// Entries that were given up because too many waited.
    pub entries_given_up: Counter,
    /// Entries that were read from the own inbox.
    pub entries_heard: Counter,
    /// Entries of a kind that is not known here.
    pub entries_unknown: Counter,
    /// Times that entries may have been missed.
    pub gaps: Counter,
    /// Entries in the own inbox, when last looked at.
    pub inbox_length: Level,
    /// Times that the own inbox was found as full as it may be.
    pub inbox_full: Counter,
    /// Times that this node joined anew.
    pub rejoins: Counter,
    /// Nodes whose lease holds, when last looked at.
    pub nodes: Level,
    /// Shards that this node owns.
    pub shards_owned: Level,
    /// Parts of nodes that were gone.
    pub reaped_gone: Counter,
    /// Parts whose deadline passed although their node lives.
    pub reaped_late: Counter,
    /// People whose time to come back was over.
    pub reaped_pending: Counter,
    /// People found with a part that was over for long and of which nothing said that it was due.
    pub found_lost: Counter,
    /// People of a gone node whose last change was told again, since it may not have been told.
    pub retold: Counter,
    /// Commands that failed.
    pub failures: Counter,
    /// Values in Redis that are not what we write there.
    pub malformed: Counter,
    /// How long pipelines took.
    pub pipeline_seconds: Histogram,
}
