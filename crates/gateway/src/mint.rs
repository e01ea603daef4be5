//! Signs tokens, as a site does for its members: for manual tests by operators, and for tests.
//!
//! Only with a shared secret (HS256): private keys stay with the site.

use domain::{UnixTime, UserId};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;

#[derive(Clone, Debug)]
pub struct TokenClaims<'a> {
    pub user: UserId,
    pub issued_at: UnixTime,
    pub expires_at: UnixTime,
    /// The claim `aud`; empty for none.
    pub audience: &'a str,
    /// The claim `iss`; empty for none.
    pub issuer: &'a str,
    /// The room that it admits to; none for a connect token.
    pub channel: Option<&'a str>,
}

#[derive(Serialize)]
struct ClaimsJson<'a> {
    sub: String,
    iat: u32,
    exp: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    aud: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    iss: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
}

#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// It could not be signed.
    #[error("the token cannot be signed: {0}")]
    Unsigned(#[from] jsonwebtoken::errors::Error),
}

pub fn mint(secret: &str, claims: &TokenClaims<'_>) -> Result<String, MintError> {
    let written = ClaimsJson {
        sub: claims.user.to_string(),
        iat: claims.issued_at.0,
        exp: claims.expires_at.0,
        aud: claims.audience,
        iss: claims.issuer,
        channel: claims.channel,
    };
    let key = EncodingKey::from_secret(secret.as_bytes());
    Ok(jsonwebtoken::encode(&Header::new(Algorithm::HS256), &written, &key)?)
}
