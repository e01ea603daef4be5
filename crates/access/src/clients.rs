//! Which client programs may announce, told by the first bytes of their peer ids.
//!
//! Each rule allows or forbids a prefix, and the longest prefix that fits decides: `-TR` may be allowed and `-TR2`
//! forbidden. Where none fits, a client is refused once anything is allowed (the rules are a list of the welcome), and
//! welcome otherwise (they are a list of the unwelcome, or empty).

use std::fmt;
use std::str::FromStr;

use domain::PeerId;

/// Marks a prefix that is written in hexadecimal digits.
const HEX_MARK: &str = "hex:";

/// The text is no prefix of a peer id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a client prefix is 1 to {max} characters of printable ASCII such as -TR3, or {HEX_MARK} and two hexadecimal digits a byte",
    max = ClientPrefix::MAX_BYTES
)]
pub struct NotAPrefix;

/// The first 1 to 20 bytes of a peer id.
///
/// Written as it stands where it is printable ASCII (`-TR3`), else as `hex:` and digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientPrefix {
    /// Zero behind the last.
    bytes: [u8; Self::MAX_BYTES],
    length: u8,
}

impl ClientPrefix {
    /// No prefix is longer than a peer id.
    pub const MAX_BYTES: usize = 20;

    /// The prefix of these bytes.
    pub fn from_bytes(prefix: &[u8]) -> Result<Self, NotAPrefix> {
        if prefix.is_empty() || prefix.len() > Self::MAX_BYTES {
            return Err(NotAPrefix);
        }
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..prefix.len()].copy_from_slice(prefix);
        Ok(ClientPrefix { bytes, length: prefix.len() as u8 })
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The prefix in hexadecimal, whatever it consists of.
    pub(crate) fn to_hex(self) -> String {
        let digits: String = self.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{HEX_MARK}{digits}")
    }

    fn from_hex(digits: &[u8]) -> Result<Self, NotAPrefix> {
        if !digits.len().is_multiple_of(2) || digits.len() > 2 * Self::MAX_BYTES {
            return Err(NotAPrefix);
        }
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let bytes: Option<Vec<u8>> =
            digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect();
        Self::from_bytes(&bytes.ok_or(NotAPrefix)?)
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

/// One line of the list of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRule {
    /// How the peer ids begin.
    pub prefix: ClientPrefix,
    /// What people call the program.
    pub name: String,
    /// Whether it is allowed or forbidden.
    pub allowed: bool,
}

/// A rule, ready to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sorted {
    prefix: ClientPrefix,
    allowed: bool,
    /// Where the longest rule stands that is a proper prefix of this one.
    shorter: Option<u32>,
}

/// All rules together, built for quick decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRules {
    /// In the order of their bytes, each prefix once.
    sorted: Vec<Sorted>,
    any_allowed: bool,
}

impl ClientRules {
    /// Prepares the rules. A prefix that is both allowed and forbidden (in two spellings) is forbidden.
    pub fn new(rules: impl IntoIterator<Item = (ClientPrefix, bool)>) -> Self {
        let mut sorted: Vec<Sorted> =
            rules.into_iter().map(|(prefix, allowed)| Sorted { prefix, allowed, shorter: None }).collect();
        let any_allowed = sorted.iter().any(|rule| rule.allowed);
        sorted.sort_by(|a, b| (a.prefix.as_bytes(), a.allowed).cmp(&(b.prefix.as_bytes(), b.allowed)));
        sorted.dedup_by_key(|rule| rule.prefix);

        // A prefix sorts directly before all that begin with it, so the open ones form a stack.
        let mut open: Vec<u32> = Vec::new();
        for index in 0..sorted.len() {
            let prefix = sorted[index].prefix;
            while let Some(top) = open.last() {
                if prefix.as_bytes().starts_with(sorted[*top as usize].prefix.as_bytes()) {
                    break;
                }
                open.pop();
            }
            sorted[index].shorter = open.last().copied();
            open.push(index as u32);
        }
        ClientRules { sorted, any_allowed }
    }

    /// Whether a client that calls itself `peer_id` may announce.
    pub fn allows(&self, peer_id: &PeerId) -> bool {
        self.rule_for(peer_id).map_or(!self.any_allowed, |rule| rule.allowed)
    }

    /// Whether a client may announce by these rules and others together: the longest prefix decides, ours where both
    /// have it.
    pub fn allows_with(&self, others: &ClientRules, peer_id: &PeerId) -> bool {
        let (own, other) = (self.rule_for(peer_id), others.rule_for(peer_id));
        let rule = match (own, other) {
            (Some(own), Some(other)) if other.prefix.length > own.prefix.length => Some(other),
            (own, other) => own.or(other),
        };
        rule.map_or(!self.any_allowed && !others.any_allowed, |rule| rule.allowed)
    }

    /// The longest prefix that fits.
    ///
    /// Every rule that fits sorts before the peer id, and all between the longest of them and the peer id begin with
    /// it. So the walk starts at the last rule before the peer id and shortens it until it fits.
    fn rule_for(&self, peer_id: &PeerId) -> Option<&Sorted> {
        let behind = self.sorted.partition_point(|rule| rule.prefix.as_bytes() <= peer_id.0.as_slice());
        let mut candidate = behind.checked_sub(1);
        while let Some(index) = candidate {
            let rule = &self.sorted[index];
            if peer_id.0.starts_with(rule.prefix.as_bytes()) {
                return Some(rule);
            }
            candidate = rule.shorter.map(|shorter| shorter as usize);
        }
        None
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are none, so that every client is welcome.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}
