//! Format of a key: `rck_<id, 8 digits>_<secret, 40 digits>`.

use std::fmt;
use std::str::FromStr;

use domain::hex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::AdminError;

/// Makes leaked keys recognisable.
const PREFIX: &str = "rck_";
const ID_DIGITS: usize = 8;
const ID_BYTES: usize = ID_DIGITS / 2;
const SECRET_BYTES: usize = 20;
/// The length of [`KeyId::CONFIGURED`].
const ID_CHARS_MAX: usize = 15;

/// The public part of a key, for logs and the audit trail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId {
    /// Padded with zeros.
    chars: [u8; ID_CHARS_MAX],
    length: u8,
}

impl KeyId {
    /// The id of `site.tracker_api_key`. It is not a valid id of a key in the database.
    pub const CONFIGURED: KeyId = KeyId { chars: *b"tracker_api_key", length: ID_CHARS_MAX as u8 };

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.chars[..usize::from(self.length)]).expect("only ASCII is ever put in")
    }

    /// The id in the text of a key.
    pub(super) fn within(text: &str) -> Option<KeyId> {
        let rest = text.strip_prefix(PREFIX)?;
        let (id, secret) = rest.split_at_checked(ID_DIGITS)?;
        secret.strip_prefix('_')?;
        id.parse().ok()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key's id has 8 digits, 0 to 9 and a to f: see rollcall key list")]
pub struct NotAKeyId;

impl FromStr for KeyId {
    type Err = NotAKeyId;

    fn from_str(text: &str) -> Result<Self, NotAKeyId> {
        let digits = text.as_bytes();
        if digits.len() != ID_DIGITS || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(NotAKeyId);
        }
        let mut chars = [0; ID_CHARS_MAX];
        chars[..ID_DIGITS].copy_from_slice(digits);
        Ok(KeyId { chars, length: ID_DIGITS as u8 })
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct NewKey {
    pub id: KeyId,
    /// The whole key. It is not stored.
    pub text: String,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl NewKey {
    pub(super) fn random() -> Result<NewKey, AdminError> {
        let mut bytes = [0; ID_BYTES + SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(AdminError::Random)?;
        let digits = hex::encode(&bytes);
        let (id, secret) = digits.split_at(ID_DIGITS);
        Ok(NewKey {
            id: id.parse().expect("lowercase hexadecimal digits"),
            text: format!("{PREFIX}{id}_{secret}"),
        })
    }
}

/// SHA-256 of the text of a key.
#[derive(Clone, Copy)]
pub(super) struct KeyHash([u8; 32]);

impl KeyHash {
    pub(super) fn of(text: &str) -> Self {
        KeyHash(Sha256::digest(text.as_bytes()).into())
    }

    /// Lower case.
    pub(super) fn to_hex(self) -> String {
        hex::encode(&self.0)
    }

    pub(super) fn from_hex(digits: &[u8]) -> Option<Self> {
        hex::decode(digits)?.try_into().ok().map(KeyHash)
    }

    /// In constant time.
    pub(super) fn equals(&self, other: &KeyHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_keys_have_the_documented_format_and_differ() {
        let (one, two) = (NewKey::random().unwrap(), NewKey::random().unwrap());
        assert_ne!(one.text, two.text);
        assert_eq!(one.text.len(), 4 + 8 + 1 + 40);
        assert!(one.text.starts_with(&format!("rck_{}_", one.id)));
        assert_eq!(KeyId::within(&one.text), Some(one.id));
        assert!(!format!("{one:?}").contains(&one.text[13..]), "the secret is not shown");
    }

    #[test]
    fn an_id_is_found_only_in_a_text_with_the_format_of_a_key() {
        for text in
            ["", "rck_", "rck_0123456", "rck_01234567", "rck_0123456g_00", "rck_0123456é_", "RCK_01234567_"]
        {
            assert_eq!(KeyId::within(text), None, "{text:?}");
        }
        assert_eq!(KeyId::within("rck_01234567_").unwrap().as_str(), "01234567");
        assert!("tracker_api_key".parse::<KeyId>().is_err(), "not a valid id");
    }

    #[test]
    fn hashes_round_trip_through_hex() {
        let hash = KeyHash::of("x");
        assert!(KeyHash::from_hex(hash.to_hex().as_bytes()).unwrap().equals(&hash));
        assert!(!KeyHash::of("y").equals(&hash));
        assert!(KeyHash::from_hex(b"00").is_none());
        assert!(KeyHash::from_hex(&[b'+'; 64]).is_none());
    }
}
