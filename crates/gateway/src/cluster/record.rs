//! What is written and read of a user.

use std::time::Duration;

use domain::{UnixTime, UserId};
use presence::remote::NodeEntry;
use presence::{Declaration, Status};

use super::node::NodeName;

/// A node's entry, and how long it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedEntry {
    pub node: NodeName,
    pub entry: NodeEntry,
    /// Remaining validity unless the node renews it.
    pub remaining: Duration,
}

/// A user's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub user: UserId,
    /// Sorted by node name. The reading node's own entry is included.
    pub entries: Vec<TimedEntry>,
    pub declaration: Option<Declaration>,
    /// Last activity while visible to others; set once the user is not.
    pub last_seen: Option<UnixTime>,
    /// Set while the user is invisible.
    pub hidden_since: Option<UnixTime>,
    /// Remaining time in which the user can reconnect after their nodes died.
    pub pending: Option<Duration>,
    /// Version of the public view.
    pub public_version: u64,
    /// The version of all of it.
    pub own_version: u64,
}

/// Change of this node's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// An entry without devices counts as removed.
    Put(NodeEntry),
    /// The user has no session here any more.
    Remove {
        /// The last activity at this node.
        last_alive: UnixTime,
    },
    /// Remove the entry; if it was the last one, the user becomes pending.
    Abandon,
}

/// One write to a user's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryUpdate {
    pub user: UserId,
    pub change: EntryChange,
    /// A new declaration, or its removal; none leaves it unchanged.
    pub declaration: Option<Option<Declaration>>,
    /// Age of the declaration. A newer one of another node wins.
    pub declared_ago: Duration,
    /// The declaration known to this node. Used only where Redis has no record of the user, or one that is older than
    /// `known_version`.
    pub local_declaration: Option<Declaration>,
    /// The own version of the record that this node has taken in last; 0 for none.
    pub known_version: u64,
    /// Versions (public, own) that readers have seen; those in Redis never lie below.
    pub version_floor: (u64, u64),
    /// Used if the record has no last-seen time.
    pub last_seen: Option<UnixTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    Unchanged {
        /// Version of the public view.
        public_version: u64,
        /// The version of all of it.
        own_version: u64,
    },
    /// The record changed, and watching nodes were notified. This node learns of it by this value only.
    Changed(Box<RecordChange>),
    /// This node was declared dead and must rejoin.
    Fenced,
    /// There is no record, and nothing to remove.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordChange {
    pub record: Record,
    /// The status before, as the user's own devices see it.
    pub from: Status,
    pub to: Status,
    /// Offline before; now connected or pending.
    pub arrived: bool,
    /// Connected or pending before; now offline.
    pub left: bool,
    /// Redis had no record: the user is new, or Redis lost its data.
    pub is_first: bool,
    /// By the clock of Redis. Changes of one user are ordered by it, whichever nodes made them.
    pub at_ms: u64,
}

/// Reply to a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchReply {
    /// The caller has this version.
    Same {
        /// Remaining validity of the entries of other nodes.
        remaining: Vec<(NodeName, Duration)>,
    },
    Record(Box<Record>),
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// False if this node was declared dead and must rejoin.
    pub is_member: bool,
    /// Nodes with a valid lease, sorted by name.
    pub nodes: Vec<NodeName>,
    /// Whether no other node's lease held when this one joined.
    pub was_alone: bool,
}
