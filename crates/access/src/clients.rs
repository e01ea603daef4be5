//! Rules for client programs, by prefixes of their peer ids.
//!
//! Each rule allows or forbids a prefix, and the longest matching prefix decides: `-TR` may be allowed and `-TR2` forbidden. A
//! client without a matching prefix is refused if any prefix is allowed, and allowed otherwise.

use std::fmt;
use std::str::FromStr;

use domain::{PeerId, hex};

/// Marks a prefix in hexadecimal.
const HEX_MARK: &str = "hex:";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a client prefix is 1 to {max} characters of printable ASCII such as -TR3, or {HEX_MARK} and two hexadecimal digits per byte",
    max = ClientPrefix::MAX_BYTES
)]
pub struct NotAPrefix;

/// The first 1 to 20 bytes of a peer id.
///
/// The text is the prefix itself if it is printable ASCII (`-TR3`), else `hex:` and digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientPrefix {
    /// Padded with zeros.
    bytes: [u8; Self::MAX_BYTES],
    length: u8,
}

impl ClientPrefix {
    /// The length of a peer id.
    pub const MAX_BYTES: usize = 20;

    pub fn from_bytes(prefix: &[u8]) -> Result<Self, NotAPrefix> {
        if prefix.is_empty() || prefix.len() > Self::MAX_BYTES {
            return Err(NotAPrefix);
        }
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..prefix.len()].copy_from_slice(prefix);
        Ok(ClientPrefix { bytes, length: prefix.len() as u8 })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// In hexadecimal, also if it is printable.
    pub(crate) fn to_hex(self) -> String {
        format!("{HEX_MARK}{}", hex::encode(self.as_bytes()))
    }

    fn from_hex(digits: &[u8]) -> Result<Self, NotAPrefix> {
        Self::from_bytes(&hex::decode(digits).ok_or(NotAPrefix)?)
    }
}

impl FromStr for ClientPrefix {
    type Err = NotAPrefix;
    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        if let Some(digits) = text.strip_prefix(HEX_MARK) {
            return Self::from_hex(digits.as_bytes());
        }
        let printable = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if printable { Self::from_bytes(text.as_bytes()) } else { Err(NotAPrefix) }
    }
}

impl fmt::Display for ClientPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.as_bytes()) {
            Ok(text) if text.parse() == Ok(*self) => f.write_str(text),
            _ => f.write_str(&self.to_hex()),
        }
    }
}

impl fmt::Debug for ClientPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRule {
    pub prefix: ClientPrefix,
    /// Name of the program.
    pub name: String,
    pub allowed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndexedRule {
    prefix: ClientPrefix,
    allowed: bool,
    /// Index of the longest rule that is a proper prefix of this one.
    shorter: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRules {
    /// By bytes, without duplicates.
    sorted: Vec<IndexedRule>,
    any_allowed: bool,
}

impl ClientRules {
    /// A prefix that is both allowed and forbidden, in two spellings, is forbidden.
    pub fn new(rules: impl IntoIterator<Item = (ClientPrefix, bool)>) -> Self {
        let mut sorted: Vec<IndexedRule> = rules
            .into_iter()
            .map(|(prefix, allowed)| IndexedRule { prefix, allowed, shorter: None })
            .collect();
        let any_allowed = sorted.iter().any(|rule| rule.allowed);
        sorted.sort_by(|a, b| (a.prefix.as_bytes(), a.allowed).cmp(&(b.prefix.as_bytes(), b.allowed)));
        sorted.dedup_by_key(|rule| rule.prefix);

        // A prefix sorts directly before all that begin with it, so the prefixes of the current rule form a stack.
        let mut stack: Vec<u32> = Vec::new();
        for index in 0..sorted.len() {
            let prefix = sorted[index].prefix;
            while let Some(top) = stack.last() {
                if prefix.as_bytes().starts_with(sorted[*top as usize].prefix.as_bytes()) {
                    break;
                }
                stack.pop();
            }
            sorted[index].shorter = stack.last().copied();
            stack.push(index as u32);
        }
        ClientRules { sorted, any_allowed }
    }

    pub fn allows(&self, peer_id: &PeerId) -> bool {
        self.rule_for(peer_id).map_or(!self.any_allowed, |rule| rule.allowed)
    }

    /// Decides by these rules and others together: the longest prefix decides, and these rules if both have it.
    pub fn allows_with(&self, others: &ClientRules, peer_id: &PeerId) -> bool {
        let (own, other) = (self.rule_for(peer_id), others.rule_for(peer_id));
        let rule = match (own, other) {
            (Some(own), Some(other)) if other.prefix.length > own.prefix.length => Some(other),
            (own, other) => own.or(other),
        };
        rule.map_or(!self.any_allowed && !others.any_allowed, |rule| rule.allowed)
    }

    /// The longest matching rule.
    ///
    /// Every matching rule sorts before the peer id, and all rules between the longest match and the peer id begin with that
    /// match. So the search starts at the last rule before the peer id, and follows `shorter` until a rule matches.
    fn rule_for(&self, peer_id: &PeerId) -> Option<&IndexedRule> {
        let end = self.sorted.partition_point(|rule| rule.prefix.as_bytes() <= peer_id.0.as_slice());
        let mut candidate = end.checked_sub(1);
        while let Some(index) = candidate {
            let rule = &self.sorted[index];
            if peer_id.0.starts_with(rule.prefix.as_bytes()) {
                return Some(rule);
            }
            candidate = rule.shorter.map(|shorter| shorter as usize);
        }
        None
    }

    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}
