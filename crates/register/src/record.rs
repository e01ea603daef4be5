//! What is written and read of a person.

use std::time::Duration;

use domain::{UnixTime, UserId};
use presence::elsewhere::Part;
use presence::{Declaration, Status};

use crate::node::NodeName;

/// What one node says of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// Which node.
    pub node: NodeName,
    /// What it says.
    pub part: Part,
    /// How long it may be believed without a further word.
    pub remaining: Duration,
}

/// All that the register knows of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who.
    pub user: UserId,
    /// What the nodes say at which they have sessions, in the order of the nodes' names. The asker's own is among them.
    pub parts: Vec<PartOf>,
    /// What they declared.
    pub declaration: Option<Declaration>,
    /// Their last sign of life while others could see them, once those cannot.
    pub last_seen: Option<UnixTime>,
    /// Since when they hide, if they do.
    pub hidden_since: Option<UnixTime>,
    /// How long they may still come back, if their nodes died.
    pub pending: Option<Duration>,
    /// The version of what others may see.
    pub public_version: u64,
    /// The version of all of it.
    pub own_version: u64,
}

/// What became of this node's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This is what there is. A part without devices is one that is dropped.
    Put(Part),
    /// Nobody is here any more.
    Drop {
        /// The last sign of life here.
        last_alive: UnixTime,
    },
    /// The part goes; if it was the last, the person is pending.
    Behind,
}

/// Something to write of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Who.
    pub user: UserId,
    /// What became of this node's part.
    pub change: Change,
    /// What they declared just now, or that they took it back; none leaves it as it is.
    pub declaration: Option<Option<Declaration>>,
    /// How long ago they did. What was declared at another node since then counts.
    pub declared_ago: Duration,
    /// What this node believes them to have declared. It counts only where Redis has no record of them (it lost its data,
    /// or they have not been here for long), or one that is older than what this node has taken in.
    pub believed: Option<Declaration>,
    /// The own version of the record that this node has taken in last; 0 for none.
    pub known: u64,
    /// Versions (public, own) that readers have seen; those in Redis never lie below.
    pub floor: (u64, u64),
    /// When they were last seen, if the record does not say.
    pub last_seen: Option<UnixTime>,
}

/// What came of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// Nothing changed; deadlines moved.
    Unchanged {
        /// The version of what others may see.
        public_version: u64,
        /// The version of all of it.
        own_version: u64,
    },
    /// Something changed, and who is interested is told. This node itself is told by this value only.
    Changed(Box<Outcome>),
    /// This node was declared dead; it must join anew.
    Fenced,
    /// There is no record, and nothing to drop.
    Unknown,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What is known now.
    pub record: Record,
    /// The status before, as the person's own devices see it.
    pub from: Status,
    /// The status now.
    pub to: Status,
    /// They were not here or pending before, and are now.
    pub arrived: bool,
    /// They were here or pending before, and are not now.
    pub left: bool,
    /// Redis had no record of them: it is the first time, or it lost its data.
    pub is_first: bool,
    /// When that was, by the clock of Redis, in milliseconds: the changes of one person are in the order of it, whichever
    /// nodes made them.
    pub at_ms: u64,
}

/// What is known of somebody in whom this node is interested from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The version is the one that the asker knows.
    Same {
        /// How long the parts of other nodes may still be believed, each by itself.
        remaining: Vec<(NodeName, Duration)>,
    },
    /// This is known.
    Record(Box<Record>),
    /// There is no record.
    Unknown,
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is a node. If not, it was declared dead and must join anew.
    pub is_member: bool,
    /// The nodes whose lease holds, in the order of their names.
    pub nodes: Vec<NodeName>,
    /// Whether no other node's lease held when this one joined.
    pub was_alone: bool,
}
