//! What other nodes tell.

use crate::message::Message;
use crate::record::Record;

/// What is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// This is known now of a person in whom this node is, or was, interested.
    Record(Box<Record>),
    /// Another node says this.
    Message(Message),
    /// Entries may be missing: watch everybody again.
    Gap,
}

/// The own inbox.
pub struct Inbox {}

impl Inbox {
    /// What is heard next.
    pub async fn next(&mut self) -> Heard {
        std::future::pending().await
    }
}
