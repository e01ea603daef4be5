//! The configured keys, each with its one algorithm.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;

use super::claims::Claims;
use super::{Rejected, TokenError};
use crate::settings::TokenSettings;

/// Keys in one set, at the most.
const SET_KEYS_MAX: usize = 100;

/// The keys that are configured.
pub(super) struct Keys(Vec<Key>);

struct Key {
    /// Its name, in a set.
    name: Option<String>,
    /// One of a JWKS, where a token names its key.
    is_of_set: bool,
    algorithm: Algorithm,
    key: DecodingKey,
    validation: Validation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    length: u64,
    changed_at: Option<SystemTime>,
    #[cfg(unix)]
    place: u64,
}

impl FileState {
    pub(super) fn of(path: &Path) -> Option<FileState> {
        let about = fs::metadata(path).ok()?;
        Some(FileState {
            length: about.len(),
            changed_at: about.modified().ok(),
            #[cfg(unix)]
            place: std::os::unix::fs::MetadataExt::ino(&about),
        })
    }
}

impl Keys {
    /// Reads everything that is configured; all of it must be usable.
    pub(super) fn read(settings: &TokenSettings) -> Result<Keys, TokenError> {
        let new = |name, is_of_set, algorithm, key| Key {
            name,
            is_of_set,
            algorithm,
            key,
            validation: validation(algorithm, settings),
        };
        let mut keys = Vec::new();
        if let Some(secret) = &settings.hmac_secret {
            let key = DecodingKey::from_secret(secret.reveal().as_bytes());
            keys.push(new(None, false, Algorithm::HS256, key));
        }
        if let Some(path) = &settings.public_key_file {
            let (algorithm, key) = public_key(path)?;
            keys.push(new(None, false, algorithm, key));
        }
        if let Some(path) = &settings.jwks_file {
            keys.extend(
                key_set(path)?.into_iter().map(|(name, algorithm, key)| new(name, true, algorithm, key)),
            );
        }
        if keys.is_empty() { Err(TokenError::NoKey) } else { Ok(Keys(keys)) }
    }

    /// The claims, if one of the keys has signed the token. Times are not checked here.
    pub(super) fn decode(&self, token: &str) -> Result<Claims, Rejected> {
        let header = decode_header(token).map_err(|_| Rejected::Invalid)?;
        let mut fitting = self.0.iter().filter(|key| key.fits(&header, self.is_only_of_set(key)));
        fitting
            .find_map(|key| decode::<Claims>(token, &key.key, &key.validation).ok())
            .map(|token| token.claims)
            .ok_or(Rejected::Invalid)
    }

    fn is_only_of_set(&self, key: &Key) -> bool {
        key.is_of_set && self.0.iter().filter(|other| other.is_of_set).count() == 1
    }
}

impl Key {
    /// Whether a token with this header can be signed by this key. In a JWKS the token names its key, unless there is
    /// only one.
    fn fits(&self, header: &Header, is_only: bool) -> bool {
        let is_named = match (&header.kid, &self.name) {
            _ if !self.is_of_set => true,
            (Some(wanted), Some(name)) => wanted == name,
            (Some(_), None) => false,
            (None, _) => is_only,
        };
        is_named && header.alg == self.algorithm
    }
}

/// Checks besides the signature. Times are checked by the caller, with this server's clock.
fn validation(algorithm: Algorithm, settings: &TokenSettings) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_nbf) = (false, false);
    validation.validate_aud = settings.audience.is_some();
    if let Some(audience) = &settings.audience {
        validation.set_audience(&[audience]);
        validation.required_spec_claims.insert("aud".to_owned());
    }
    if let Some(issuer) = &settings.issuer {
        validation.set_issuer(&[issuer]);
        validation.required_spec_claims.insert("iss".to_owned());
    }
    validation
}

fn contents(path: &Path) -> Result<String, TokenError> {
    fs::read_to_string(path).map_err(|reason| TokenError::Unreadable { path: path.to_owned(), reason })
}

fn public_key(path: &Path) -> Result<(Algorithm, DecodingKey), TokenError> {
    let unusable = |reason| TokenError::Unusable { path: path.to_owned(), reason };
    let pem = contents(path)?;
    if pem.contains("PRIVATE KEY") {
        return Err(unusable(
            "this is a private key: keep it with the site that signs, and configure the public key here",
        ));
    }
    if let Ok(key) = DecodingKey::from_rsa_pem(pem.as_bytes()) {
        return Ok((Algorithm::RS256, key));
    }
    match DecodingKey::from_ec_pem(pem.as_bytes()) {
        Ok(key) => Ok((Algorithm::ES256, key)),
        Err(_) => Err(unusable("not a public key of RSA, or of the curve P-256, as PEM")),
    }
}

type Named = (Option<String>, Algorithm, DecodingKey);

/// Keys of unknown types are skipped.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

fn key_set(path: &Path) -> Result<Vec<Named>, TokenError> {
    let unusable = |reason| TokenError::Unusable { path: path.to_owned(), reason };
    let set: KeySet =
        serde_json::from_str(&contents(path)?).map_err(|_| unusable("not a set of keys (JWKS)"))?;
    if set.keys.len() > SET_KEYS_MAX {
        return Err(unusable("more than 100 keys"));
    }
    let keys: Vec<Named> = set.keys.into_iter().filter_map(of_set).collect();
    if keys.is_empty() {
        return Err(unusable("no public key for RS256, or for ES256, that is meant for signatures"));
    }
    Ok(keys)
}

/// A key of a JWKS; none if its type or use does not fit.
fn of_set(written: serde_json::Value) -> Option<Named> {
    let jwk: Jwk = serde_json::from_value(written).ok()?;
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        // A secret has no place in a set of public keys.
        _ => return None,
    };
    let common = &jwk.common;
    let is_meant = common.key_algorithm.is_none_or(|meant| meant == named)
        && common.public_key_use.as_ref().is_none_or(|meant| *meant == PublicKeyUse::Signature);
    let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| is_meant)?;
    Some((common.key_id.clone(), algorithm, key))
}
