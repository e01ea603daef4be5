//! Names of consumers: whose they are, and of which incarnation.

use std::fmt;

/// A process, as consumers are named after it: its node, which stays, and its start, which does not.
///
/// Whoever starts knows by the names alone which consumers were its own in an earlier incarnation, and need not wait until
/// they have been silent for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessName {
    node: String,
    started_ms: u64,
}

impl ProcessName {
    /// The node's name may hold letters, digits, `-` and `_`; anything else becomes `-`.
    pub fn new(node: &str, started_ms: u64) -> Self {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let node = node.chars().map(|c| if is_fine(c) { c } else { '-' }).collect();
        ProcessName { node, started_ms }
    }

    /// The process, as it is written, that a consumer belongs to; none if it is no consumer of ours.
    pub fn of_consumer(consumer: &str) -> Option<String> {
        let parts: Vec<&str> = consumer.split('.').collect();
        let [node, started_ms, _, incarnation] = parts.as_slice() else { return None };
        let is_ours = u64::from_str_radix(started_ms, 16).is_ok() && incarnation.parse::<u32>().is_ok();
        is_ours.then(|| format!("{node}.{started_ms}"))
    }

    /// The name of its node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The name of one of its consumers. A consumer that was fenced begins another incarnation.
    pub fn consumer(&self, role: &str, incarnation: u32) -> String {
        format!("{self}.{role}.{incarnation}")
    }

    /// Whether a consumer belonged to this node before this process started.
    pub fn was_ours(&self, consumer: &str) -> bool {
        let mut parts = consumer.split('.');
        let node = parts.next();
        let started_ms = parts.next().and_then(|text| u64::from_str_radix(text, 16).ok());
        node == Some(&self.node) && started_ms.is_some_and(|started_ms| started_ms != self.started_ms)
    }

    /// Whether a consumer belongs to this process.
    pub fn is_ours(&self, consumer: &str) -> bool {
        consumer.strip_prefix(&self.to_string()).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:x}", self.node, self.started_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_consumers_and_those_of_its_earlier_lives() {
        let before = ProcessName::new("node.1", 1000);
        let now = ProcessName::new("node.1", 2000);
        let other = ProcessName::new("node-12", 1000);
        let consumer = before.consumer("reader-0", 0);
        assert_eq!(consumer, "node-1.3e8.reader-0.0");
        assert!(before.is_ours(&consumer) && !before.was_ours(&consumer));
        assert!(now.was_ours(&consumer) && !now.is_ours(&consumer));
        assert!(!other.was_ours(&consumer) && !other.is_ours(&consumer));
        assert!(!now.was_ours("consumer-1"), "a foreign consumer");
        assert_eq!(ProcessName::of_consumer(&consumer), Some(before.to_string()));
        for foreign in ["consumer-1", "worker.1", "a.b.c.d", ""] {
            assert_eq!(ProcessName::of_consumer(foreign), None, "{foreign}");
        }
    }
}
