//! Names of nodes.

use std::fmt;
use std::sync::Arc;

use keyspace::RedisError;

/// One run of a node: `<name>.<start><random>`. A node that was declared dead rejoins under a new incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName(Arc<str>);

/// The longest name of a node.
const NAME_BYTES_MAX: usize = 64;
/// The longest name of an incarnation.
const BYTES_MAX: usize = NAME_BYTES_MAX + 32;

impl NodeName {
    /// A new incarnation of the node `name`, started at `now_ms`. `random` distinguishes incarnations of the same
    /// millisecond.
    pub fn incarnate(name: &str, now_ms: u64, random: u16) -> Result<NodeName, RedisError> {
        let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
        if !fits || !name.bytes().all(is_allowed) {
            return Err(RedisError::Settings {
                reason: format!(
                    "the name of a node must be 1 to {NAME_BYTES_MAX} visible ASCII characters without commas, colons and \
                     braces: \"{}\" is not",
                    name.escape_debug()
                ),
            });
        }
        Ok(NodeName(format!("{name}.{now_ms:x}{random:04x}").into()))
    }

    /// An incarnation that was written down; none if it cannot be one.
    pub fn read(text: &str) -> Option<NodeName> {
        let fits = text.len() <= BYTES_MAX && text.bytes().all(is_allowed);
        let (name, start) = text.rsplit_once('.')?;
        (fits && !name.is_empty() && !start.is_empty()).then(|| NodeName(text.into()))
    }

    /// The name of the node, whichever incarnation it is.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(name, _)| name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b',' | b':' | b'{' | b'}')
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_contains_the_name_of_its_node() {
        let node = NodeName::incarnate("gw-a.example.org", 0x1234, 0xab).unwrap();
        assert_eq!(node.as_str(), "gw-a.example.org.123400ab");
        assert_eq!(node.name(), "gw-a.example.org");
        assert_eq!(NodeName::read(node.as_str()), Some(node));
        for wrong in ["", "a,b", "a b", "{a}", "a:b", &"x".repeat(65)] {
            assert!(NodeName::incarnate(wrong, 1, 1).is_err(), "{wrong}");
        }
        for wrong in ["", "a", ".1", "a.", "a b.1"] {
            assert_eq!(NodeName::read(wrong), None, "{wrong}");
        }
    }
}
