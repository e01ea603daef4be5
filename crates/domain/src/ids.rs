//! Ids, with strict parsing and compact storage.

use std::fmt;
use std::str::FromStr;

use siphasher::sip::SipHasher13;
use std::hash::Hasher;

use crate::hex;
use crate::time::UnixTime;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Infohashes and peer ids are written as forty hexadecimal digits.
    #[error("{what} must be 40 hexadecimal digits (these are {digits} characters)")]
    NotFortyHexDigits {
        what: &'static str,
        /// Length of the text.
        digits: usize,
    },
    /// Passkeys are 8 to 64 hexadecimal digits (W1).
    #[error("a passkey is {min} to {max} hexadecimal digits", min = Passkey::MIN_DIGITS, max = Passkey::MAX_DIGITS)]
    NotAPasskey,
    /// User and torrent ids are positive decimal numbers.
    #[error("{what} must be a decimal number from 1 to 9223372036854775807")]
    NotANumber { what: &'static str },
    /// Sessions are written as the client's and the run's number.
    #[error("a session is 16 hexadecimal digits, a dash and 8 hexadecimal digits")]
    Session,
    /// Nodes are written as hexadecimal numbers.
    #[error("a node is 16 hexadecimal digits")]
    Node,
    /// A client's key is written as a hexadecimal number.
    #[error("a client's key is 8 hexadecimal digits")]
    Key,
}

macro_rules! twenty_bytes {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 20]);

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                hex::decode_20(text.as_bytes())
                    .map($name)
                    .ok_or(IdError::NotFortyHexDigits { what: $what, digits: text.len() })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text = hex::encode_20(&self.0);
                f.write_str(std::str::from_utf8(&text).expect("hexadecimal digits are ASCII"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

twenty_bytes!(
    /// The SHA-1 of the info dictionary, or the first 20 bytes of a v2 hash (BEP 52).
    InfoHash,
    "an infohash"
);
twenty_bytes!(
    /// Chosen by the client; its first bytes identify program and version.
    PeerId,
    "a peer id"
);

macro_rules! positive_number {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// None for zero and for numbers beyond a signed SQL integer.
            pub const fn new(number: u64) -> Option<Self> {
                if number == 0 || number > i64::MAX as u64 { None } else { Some($name(number)) }
            }

            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits_only = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                let number = if digits_only { text.parse().ok() } else { None };
                number.and_then(Self::new).ok_or(IdError::NotANumber { what: $what })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

positive_number!(
    /// As in the site's database.
    UserId,
    "a user id"
);
positive_number!(
    /// As in the site's database.
    TorrentId,
    "a torrent id"
);

/// The secret in a user's announce URL: 8 to 64 hexadecimal digits, stored in lower case (W1).
///
/// `Debug` shows only its first digits. Use `Display` for the whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Passkey {
    /// Two digits per byte; zero after the last.
    packed: [u8; Passkey::MAX_DIGITS / 2],
    digits: u8,
}

impl Passkey {
    pub const MIN_DIGITS: usize = 8;
    pub const MAX_DIGITS: usize = 64;

    /// Parses ASCII; upper case is normalised.
    pub fn from_ascii(text: &[u8]) -> Result<Self, IdError> {
        if text.len() < Self::MIN_DIGITS || text.len() > Self::MAX_DIGITS {
            return Err(IdError::NotAPasskey);
        }
        let mut packed = [0; Self::MAX_DIGITS / 2];
        // On the path of every announce: bad digits are accumulated and rejected at the end, without a branch each.
        let mut bad = 0;
        for (byte, digits) in packed.iter_mut().zip(text.chunks(2)) {
            let high = hex::VALUES[usize::from(digits[0])];
            let low = digits.get(1).map_or(0, |low| hex::VALUES[usize::from(*low)]);
            bad |= high | low;
            *byte = high << 4 | (low & 0x0f);
        }
        if bad > 0x0f {
            return Err(IdError::NotAPasskey);
        }
        Ok(Passkey { packed, digits: text.len() as u8 })
    }

    /// 32 digits.
    pub fn from_random_bytes(bytes: [u8; 16]) -> Self {
        let mut packed = [0; Self::MAX_DIGITS / 2];
        packed[..16].copy_from_slice(&bytes);
        Passkey { packed, digits: 32 }
    }

    /// The digits, two per byte; the last byte of an odd number of digits has one, in its upper half.
    pub fn packed(&self) -> &[u8] {
        &self.packed[..Self::packed_bytes(self.digits)]
    }

    pub fn digits(&self) -> u8 {
        self.digits
    }

    /// Bytes of [`Passkey::packed`] for so many digits.
    pub const fn packed_bytes(digits: u8) -> usize {
        (digits as usize).div_ceil(2)
    }

    /// The inverse of [`Passkey::packed`]; none if no passkey is packed so.
    pub fn from_packed(bytes: &[u8], digits: u8) -> Option<Self> {
        let is_possible = (Self::MIN_DIGITS..=Self::MAX_DIGITS).contains(&usize::from(digits))
            && bytes.len() == Self::packed_bytes(digits)
            && (digits.is_multiple_of(2) || bytes.last().is_some_and(|last| last & 0x0f == 0));
        let mut packed = [0; Self::MAX_DIGITS / 2];
        packed.get_mut(..bytes.len()).filter(|_| is_possible)?.copy_from_slice(bytes);
        Some(Passkey { packed, digits })
    }

    /// For logs.
    pub fn redacted(&self) -> RedactedPasskey {
        RedactedPasskey(*self)
    }

    fn write_digits(&self, f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
        let mut text = [0; Self::MAX_DIGITS];
        for (position, digit) in text.iter_mut().enumerate() {
            let byte = self.packed[position / 2];
            *digit = hex::digit(if position % 2 == 0 { byte >> 4 } else { byte });
        }
        f.write_str(std::str::from_utf8(&text[..count]).expect("hexadecimal digits are ASCII"))
    }
}

impl FromStr for Passkey {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Passkey::from_ascii(text.as_bytes())
    }
}

impl fmt::Display for Passkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_digits(f, usize::from(self.digits))
    }
}

impl fmt::Debug for Passkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.redacted(), f)
    }
}

/// A passkey as shown in logs: `1f3a…`.
#[derive(Clone, Copy)]
pub struct RedactedPasskey(Passkey);

impl fmt::Display for RedactedPasskey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_digits(f, 4)?;
        f.write_str("…")
    }
}

/// The `key` of an announce: a number that links the announces of a client when its address or peer id changes. Zero
/// means that the client sent none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientKey(pub u32);

impl ClientKey {
    pub const NONE: ClientKey = ClientKey(0);

    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// Parses the `key` of an HTTP announce.
    ///
    /// Clients that also use UDP write the same 32 bits as up to eight hexadecimal digits, which are parsed as that
    /// number; any other text is hashed to 32 bits.
    pub fn from_http(text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::NONE;
        }
        let as_hex = (text.len() <= 8)
            .then(|| text.iter().try_fold(0_u32, |sum, d| Some(sum << 4 | u32::from(hex::digit_value(*d)?))))
            .flatten();
        ClientKey(as_hex.unwrap_or_else(|| {
            let mut hasher = SipHasher13::new();
            hasher.write(text);
            (hasher.finish() as u32).max(1)
        }))
    }
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FromStr for ClientKey {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_hex = text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = is_hex.then(|| u32::from_str_radix(text, 16).ok()).flatten();
        number.map(ClientKey).ok_or(IdError::Key)
    }
}

/// A client on one torrent for one user, under any peer id.
///
/// Every node derives the same value. A client that stops and starts again keeps its id; [`RunId`] distinguishes its
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

impl ClientId {
    /// From the key, which outlives a changed peer id, or from the peer id without a key.
    pub fn derive(user: UserId, info_hash: &InfoHash, key: ClientKey, peer_id: &PeerId) -> ClientId {
        // The definition of SipHash-1-3 with a zero key is fixed: other nodes and later versions agree.
        let mut hasher = SipHasher13::new();
        hasher.write(&user.get().to_be_bytes());
        hasher.write(&info_hash.0);
        if key.is_some() {
            hasher.write(&key.0.to_be_bytes());
        } else {
            hasher.write(&peer_id.0);
        }
        ClientId(hasher.finish())
    }
}

/// Distinguishes the runs of one client: no node assigns the same number twice within seven weeks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u32);

impl RunId {
    /// In entries of other producers, which have no counters.
    pub const NONE: RunId = RunId(0);
}

/// One run of one client (`sid`): as far as its tracker knows, counters only grow within it.
///
/// A tracker that has lost the state of a client begins a new run. Whether that run continues an earlier one is
/// determined by the ledger, from the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub client: ClientId,
    pub run: RunId,
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:08x}", self.client.0, self.run.0)
    }
}

impl FromStr for SessionId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = |part: &str, count: usize| {
            let is_hex = part.len() == count && part.bytes().all(|b| b.is_ascii_hexdigit());
            is_hex.then(|| u64::from_str_radix(part, 16).ok()).flatten()
        };
        let parsed = text.split_once('-').and_then(|(client, run)| {
            let run = u32::try_from(digits(run, 8)?).ok()?;
            Some(SessionId { client: ClientId(digits(client, 16)?), run: RunId(run) })
        });
        parsed.ok_or(IdError::Session)
    }
}

/// The process that wrote an event. New at each start; two nodes share one only if they start in the same second, with
/// a probability of one in four billion (one in 65,536, if they have the same name).
///
/// The upper half is the second of the start, followed by 16 bits of a hash of the node's name, which persists across
/// restarts, and 16 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// For a process that starts now, on the node with this name.
    pub fn starting(now: UnixTime, node_name: &str, random: u64) -> NodeId {
        // The definition of SipHash-1-3 with a zero key is fixed: later versions derive the same value.
        let mut hasher = SipHasher13::new();
        hasher.write(node_name.as_bytes());
        NodeId(u64::from(now.0) << 32 | (hasher.finish() & 0xffff) << 16 | random & 0xffff)
    }

    /// Whether this process is a restart of the other one's node.
    pub fn is_restart_of(self, other: NodeId) -> bool {
        let (name_hash, other_name_hash) = (self.0 >> 16 & 0xffff, other.0 >> 16 & 0xffff);
        self != other && name_hash == other_name_hash && self.0 >> 32 >= other.0 >> 32
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(NodeId).ok_or(IdError::Node)
    }
}
