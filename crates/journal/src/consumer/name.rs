//! Consumer names.

use std::fmt;

/// The process part of a consumer name: the node, which persists, and the start, which does not.
///
/// The names alone show which consumers belonged to earlier processes of the same node; their entries are taken over
/// without waiting for `dead_after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessName {
    node: String,
    started_ms: u64,
}

impl ProcessName {
    /// Characters other than letters, digits, `-` and `_` become `-`.
    pub fn new(node: &str, started_ms: u64) -> Self {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let node = node.chars().map(|c| if is_fine(c) { c } else { '-' }).collect();
        ProcessName { node, started_ms }
    }

    /// The process part of a consumer name; none if the consumer belongs to another program.
    pub fn of_consumer(consumer: &str) -> Option<String> {
        let parts: Vec<&str> = consumer.split('.').collect();
        let [node, started_ms, _, incarnation] = parts.as_slice() else { return None };
        let is_ours = u64::from_str_radix(started_ms, 16).is_ok() && incarnation.parse::<u32>().is_ok();
        is_ours.then(|| format!("{node}.{started_ms}"))
    }

    pub fn node(&self) -> &str {
        &self.node
    }

    /// A fenced consumer continues with the next incarnation.
    pub fn consumer(&self, role: &str, incarnation: u32) -> String {
        format!("{self}.{role}.{incarnation}")
    }

    /// Whether a consumer belonged to an earlier process of this node.
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
    fn a_process_recognises_its_consumers_and_those_of_its_node_before() {
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
