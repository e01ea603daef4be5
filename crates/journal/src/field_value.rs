//! Parsing of the values of fields: strict, and from bytes, because a check for UTF-8 costs more than most values.

use std::net::IpAddr;

use domain::hex::{NOT_A_DIGIT, VALUES};
use domain::{
    AnnounceEvent, Cause, ClientId, ClientKey, InfoHash, NodeId, Passkey, PeerId, RunId, SessionId,
    TorrentId, UserId,
};

/// Digits that no number of 64 bits overflows.
const SAFE_DIGITS: usize = 19;

pub(crate) trait FieldValue: Sized {
    /// None if the bytes are not such a value.
    fn parse(value: &[u8]) -> Option<Self>;
}

impl FieldValue for u64 {
    fn parse(value: &[u8]) -> Option<u64> {
        let (safe, rest) = value.split_at(value.len().min(SAFE_DIGITS));
        let digit = |byte: &u8| Some(u64::from(byte.wrapping_sub(b'0'))).filter(|digit| *digit < 10);
        let number = safe.iter().try_fold(0, |number, byte| Some(10 * number + digit(byte)?))?;
        let number = rest
            .iter()
            .try_fold(number, |number: u64, byte| number.checked_mul(10)?.checked_add(digit(byte)?))?;
        (!value.is_empty()).then_some(number)
    }
}

impl FieldValue for u32 {
    fn parse(value: &[u8]) -> Option<u32> {
        u64::parse(value)?.try_into().ok()
    }
}

impl FieldValue for u16 {
    fn parse(value: &[u8]) -> Option<u16> {
        u64::parse(value)?.try_into().ok()
    }
}

impl FieldValue for UserId {
    fn parse(value: &[u8]) -> Option<UserId> {
        UserId::new(u64::parse(value)?)
    }
}

impl FieldValue for TorrentId {
    fn parse(value: &[u8]) -> Option<TorrentId> {
        TorrentId::new(u64::parse(value)?)
    }
}

impl FieldValue for Passkey {
    fn parse(value: &[u8]) -> Option<Passkey> {
        Passkey::from_ascii(value).ok()
    }
}

impl FieldValue for InfoHash {
    fn parse(value: &[u8]) -> Option<InfoHash> {
        InfoHash::from_ascii(value).ok()
    }
}

impl FieldValue for PeerId {
    fn parse(value: &[u8]) -> Option<PeerId> {
        PeerId::from_ascii(value).ok()
    }
}

impl FieldValue for IpAddr {
    fn parse(value: &[u8]) -> Option<IpAddr> {
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}

impl FieldValue for NodeId {
    fn parse(value: &[u8]) -> Option<NodeId> {
        hex::<16>(value).map(NodeId)
    }
}

impl FieldValue for SessionId {
    fn parse(value: &[u8]) -> Option<SessionId> {
        let (client, rest) = value.split_at_checked(16)?;
        let run = hex::<8>(rest.strip_prefix(b"-")?)?;
        Some(SessionId { client: ClientId(hex::<16>(client)?), run: RunId(run as u32) })
    }
}

impl FieldValue for ClientKey {
    fn parse(value: &[u8]) -> Option<ClientKey> {
        hex::<8>(value).map(|key| ClientKey(key as u32))
    }
}

impl FieldValue for AnnounceEvent {
    fn parse(value: &[u8]) -> Option<AnnounceEvent> {
        use AnnounceEvent::{Completed, None, Started, Stopped};
        [None, Started, Completed, Stopped].into_iter().find(|event| event.name().as_bytes() == value)
    }
}

impl FieldValue for Cause {
    fn parse(value: &[u8]) -> Option<Cause> {
        use Cause::{Announce, Removal, Timeout};
        [Announce, Timeout, Removal].into_iter().find(|cause| cause.name().as_bytes() == value)
    }
}

/// Exactly so many digits, at most 16, of either case.
fn hex<const DIGITS: usize>(text: &[u8]) -> Option<u64> {
    let text: &[u8; DIGITS] = text.try_into().ok()?;
    let (mut number, mut bad) = (0, 0);
    for byte in text {
        let digit = VALUES[usize::from(*byte)];
        bad |= digit;
        number = number << 4 | u64::from(digit & 0x0f);
    }
    const { assert!(NOT_A_DIGIT > 0x0f) };
    (bad <= 0x0f).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As `std` parses them, except for a leading plus.
        #[test]
        fn numbers_are_parsed_like_those_of_the_standard_library(text in "[-+]?[0-9]{0,25}|\\PC{0,5}") {
            let expected = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
            prop_assert_eq!(u64::parse(text.as_bytes()), expected(&text));
            let narrow = text.parse::<u16>().ok().filter(|_| !text.starts_with('+'));
            prop_assert_eq!(u16::parse(text.as_bytes()), narrow);
        }

        #[test]
        fn ids_are_parsed_as_they_are_written(client: u64, run: u32, node: u64) {
            let session = SessionId { client: ClientId(client), run: RunId(run) };
            prop_assert_eq!(SessionId::parse(session.to_string().as_bytes()), Some(session));
            prop_assert_eq!(NodeId::parse(NodeId(node).to_string().as_bytes()), Some(NodeId(node)));
            prop_assert_eq!(ClientKey::parse(ClientKey(run).to_string().as_bytes()), Some(ClientKey(run)));
        }

        #[test]
        fn any_text_is_parsed_by_the_types_themselves_alike(text in "[0-9a-fA-F-]{0,26}") {
            prop_assert_eq!(SessionId::parse(text.as_bytes()), text.parse().ok());
            prop_assert_eq!(NodeId::parse(text.as_bytes()), text.parse().ok());
            prop_assert_eq!(ClientKey::parse(text.as_bytes()), text.parse().ok());
        }
    }
}
