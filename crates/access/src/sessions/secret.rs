//! The secret of a session, in an `HttpOnly` cookie, and its CSRF token.
//!
//! The secret is 256 random bits. The CSRF token, which scripts send with each change, is a hash of it: it belongs to one
//! session, is valid in every process, and does not disclose the secret.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::AccessError;

/// 256 bits in base64.
pub const SECRET_CHARS: usize = 43;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Domain separation of the CSRF token from other hashes of a secret.
const CSRF_PREFIX: &[u8] = b"rollcall csrf\n";

#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret(String);

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSecret")
    }
}

impl SessionSecret {
    pub(super) fn random() -> Result<SessionSecret, AccessError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(AccessError::Random)?;
        Ok(SessionSecret(base64url(&bytes)))
    }

    /// None if the text does not have the format of a secret.
    pub fn read(text: &str) -> Option<SessionSecret> {
        let is_valid = text.len() == SECRET_CHARS && text.bytes().all(|byte| ALPHABET.contains(&byte));
        is_valid.then(|| SessionSecret(text.to_owned()))
    }

    /// The value of the cookie.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The CSRF token.
    pub fn csrf(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(CSRF_PREFIX);
        hasher.update(self.0.as_bytes());
        base64url(&hasher.finalize())
    }

    /// Compares a CSRF token in constant time.
    pub fn allows(&self, csrf: &str) -> bool {
        self.csrf().as_bytes().ct_eq(csrf.as_bytes()).into()
    }

    pub(super) fn hash(&self) -> SessionHash {
        SessionHash(Sha256::digest(self.0.as_bytes()).into())
    }
}

/// SHA-256 of a secret, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionHash([u8; 32]);

impl SessionHash {
    /// Lower case.
    pub(super) fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// RFC 4648, section 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..=chunk.len() {
            let index = bits >> (18 - 6 * place) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_matches_rfc_4648() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64url(bytes.as_bytes()), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn a_secret_round_trips_and_is_not_shown_by_debug() {
        let secret = SessionSecret::random().unwrap();
        assert_eq!(secret.text().len(), SECRET_CHARS);
        assert_eq!(SessionSecret::read(secret.text()), Some(secret.clone()));
        assert!(!format!("{secret:?}").contains(secret.text()));
        for text in ["", "a", &"a".repeat(44), &format!("{}=", "a".repeat(42)), &"é".repeat(22)] {
            assert_eq!(SessionSecret::read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_csrf_token_belongs_to_one_session() {
        let (one, two) = (SessionSecret::random().unwrap(), SessionSecret::random().unwrap());
        assert!(one.allows(&one.csrf()) && two.allows(&two.csrf()));
        assert!(!one.allows(&two.csrf()) && !one.allows("") && !one.allows(one.text()));
        assert_ne!(one.hash(), two.hash());
    }
}
