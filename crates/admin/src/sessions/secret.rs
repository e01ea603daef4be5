//! The secret of a session, in an `HttpOnly` cookie, and its CSRF token.
//!
//! The secret is 256 random bits. The CSRF token, which scripts send with each change, is a hash of it: it belongs to one
//! session, is valid in every process, and does not disclose the secret.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::hex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::AdminError;

const SECRET_BYTES: usize = 32;
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
    pub(super) fn random() -> Result<SessionSecret, AdminError> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(AdminError::Random)?;
        Ok(SessionSecret(BASE64_URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// None if the text does not have the format of a secret.
    pub fn read(text: &str) -> Option<SessionSecret> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == SECRET_BYTES).then(|| SessionSecret(text.to_owned()))
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
        BASE64_URL_SAFE_NO_PAD.encode(hasher.finalize())
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
        hex::encode(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_round_trips_and_is_not_shown_by_debug() {
        let secret = SessionSecret::random().unwrap();
        assert_eq!(secret.text().len(), 43);
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
