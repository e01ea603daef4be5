//! A node of the register: joining, staying, leaving.

use std::sync::Arc;

use keyspace::{Redis, Trouble};

use crate::counters::RegisterCounters;
use crate::inbox::Inbox;
use crate::message::Message;
use crate::node::NodeName;
use crate::record::{Outcome, Published, Record, Standing, Update, Watched};
use crate::settings::RegisterSettings;
use domain::UserId;

/// A node of the register.
pub struct Register {
    node: NodeName,
    counters: Arc<RegisterCounters>,
}

fn not_yet() -> Trouble {
    Trouble::Unavailable { reason: "the register is not open yet".to_owned() }
}

#[expect(missing_docs, reason = "the signatures come first")]
impl Register {
    pub async fn join(_redis: Redis, _name: &str, _settings: RegisterSettings) -> Result<Register, Trouble> {
        Err(not_yet())
    }
    pub fn node(&self) -> NodeName {
        self.node.clone()
    }
    pub fn counters(&self) -> &Arc<RegisterCounters> {
        &self.counters
    }
    pub async fn renew(&self, _info: &str) -> Result<Standing, Trouble> {
        Err(not_yet())
    }
    pub async fn infos(&self) -> Result<Vec<(NodeName, String)>, Trouble> {
        Err(not_yet())
    }
    pub async fn rejoin(&self) -> Result<(), Trouble> {
        Err(not_yet())
    }
    pub async fn leave(&self) -> Result<(), Trouble> {
        Err(not_yet())
    }
    pub async fn publish(&self, updates: &[Update]) -> Vec<Result<Published, Trouble>> {
        updates.iter().map(|_| Err(not_yet())).collect()
    }
    pub async fn watch(&self, users: &[(UserId, u64)]) -> Vec<Result<Watched, Trouble>> {
        users.iter().map(|_| Err(not_yet())).collect()
    }
    pub async fn read(&self, users: &[UserId]) -> Vec<Result<Option<Record>, Trouble>> {
        users.iter().map(|_| Err(not_yet())).collect()
    }
    pub async fn send(&self, _to: &NodeName, _messages: &[Message]) -> Result<(), Trouble> {
        Err(not_yet())
    }
    pub fn inbox(&self) -> Inbox {
        Inbox {}
    }
    pub async fn reap(&self, _limit: usize) -> Result<Vec<(UserId, Outcome)>, Trouble> {
        Err(not_yet())
    }
}
