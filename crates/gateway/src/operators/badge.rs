//! The token with which an operator connects.

use std::sync::Arc;

use domain::clock::Clock;
use domain::{Seconds, UnixTime};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::mint::MintError;
use crate::settings::Secret;
use crate::token::Rejected;

/// Whose token it is: no person has this name, for theirs are numbers.
const SUBJECT: &str = "operator";
/// How long a token is good for. One that claims more is none of ours.
const LIFE: Seconds = Seconds(300);
/// Clocks differ a little.
const LEEWAY: Seconds = Seconds(5);
/// The longest name of a key that is believed.
const KEY_BYTES_MAX: usize = 64;

/// What an API key is worth to who looks on in its name.
pub struct Standing {
    /// Whether they may know who hides.
    pub is_admin: bool,
    /// What only belongs to this key, the same at every gateway: nobody else knows it.
    pub secret: [u8; 32],
}

/// What the key of this id is worth at the moment; none if it does not work, or may not look on. Asked often: it must not
/// wait.
pub type Standings = Arc<dyn Fn(&str) -> Option<Standing> + Send + Sync>;

/// An operator, as their token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The API key in whose name the token was made.
    pub key: String,
    /// Whether they may know who hides.
    pub is_admin: bool,
    /// When the token runs out.
    pub expires_at: UnixTime,
}

/// A token for an operator, to connect with.
#[derive(Clone, Debug)]
pub struct FeedToken {
    /// The token. It is a secret for as long as it is good.
    pub token: String,
    /// When it runs out.
    pub expires_at: UnixTime,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    key: String,
    #[serde(default)]
    admin: bool,
    #[serde(default)]
    iat: u32,
    exp: u32,
}

/// Makes and checks such tokens.
///
/// Each is signed with a secret of its key, so that it is good wherever that key works, as long as it does, and cannot be
/// made by who signs the tokens of people. What signs those takes part where it is a shared secret: who can read the
/// database, and no more, makes none either.
pub(super) struct Badges {
    clock: Arc<dyn Clock>,
    standings: Standings,
    shared: Option<Secret>,
    validation: Validation,
}

impl Badges {
    /// In the names of these keys.
    pub(super) fn new(standings: Standings, shared: Option<Secret>, clock: Arc<dyn Clock>) -> Badges {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        // Times are checked below, by the clock of this server; `aud` and `iss` are the site's affair.
        (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
        Badges { clock, standings, shared, validation }
    }

    /// What a key is worth at the moment.
    pub(super) fn standing(&self, key: &str) -> Option<Standing> {
        (self.standings)(key)
    }

    fn secret(&self, standing: &Standing) -> [u8; 32] {
        let shared = self.shared.as_ref().map_or("", Secret::reveal);
        Sha256::new().chain_update(standing.secret).chain_update(shared).finalize().into()
    }

    pub(super) fn make(&self, key: &str, is_admin: bool) -> Result<FeedToken, MintError> {
        let standing = self.standing(key).ok_or(MintError::NoKey)?;
        let now = self.clock.now();
        let expires_at = now + LIFE;
        let claims = Claims {
            sub: SUBJECT.to_owned(),
            key: key.to_owned(),
            admin: is_admin,
            iat: now.0,
            exp: expires_at.0,
        };
        let header = Header { kid: Some(key.to_owned()), ..Header::new(Algorithm::HS256) };
        let token = encode(&header, &claims, &EncodingKey::from_secret(&self.secret(&standing)))?;
        Ok(FeedToken { token, expires_at })
    }

    pub(super) fn read(&self, token: &str) -> Result<Operator, Rejected> {
        let named = decode_header(token).map_err(|_| Rejected::Invalid)?.kid;
        let named = named.filter(|key| !key.is_empty() && key.len() <= KEY_BYTES_MAX);
        let key = named.ok_or(Rejected::Invalid)?;
        let standing = self.standing(&key).ok_or(Rejected::Invalid)?;
        let checking = DecodingKey::from_secret(&self.secret(&standing));
        let read = decode::<Claims>(token, &checking, &self.validation);
        let claims = read.map_err(|_| Rejected::Invalid)?.claims;
        let now = self.clock.now();
        let expires_at = UnixTime(claims.exp);
        if claims.sub != SUBJECT || claims.key != key || expires_at > now + LIFE + LEEWAY {
            return Err(Rejected::Invalid);
        }
        // Whose key may do less by now gets themselves another token, which says so.
        if expires_at + LEEWAY <= now || (claims.admin && !standing.is_admin) {
            return Err(Rejected::Expired);
        }
        Ok(Operator { key, is_admin: claims.admin, expires_at })
    }
}

#[cfg(test)]
mod tests {
    use domain::UserId;
    use domain::clock::ManualClock;
    use serde_json::{Value, json};

    use super::*;
    use crate::mint::{TokenClaims, mint};

    const SECRET: &str = "a secret of more than enough letters";

    /// Keys of which only those with these names work.
    fn keys(names: &'static [(&'static str, bool)]) -> Standings {
        Arc::new(|asked| {
            let (name, is_admin) = names.iter().find(|(name, _)| *name == asked)?;
            Some(Standing { is_admin: *is_admin, secret: Sha256::digest(name).into() })
        })
    }

    fn badges(names: &'static [(&'static str, bool)], clock: &Arc<ManualClock>) -> Badges {
        Badges::new(keys(names), Some(Secret::new(SECRET)), clock.clone())
    }

    #[test]
    fn a_token_says_whose_key_it_was_made_for_and_runs_out() {
        let clock = Arc::new(ManualClock::at(UnixTime(1_000)));
        let badges = badges(&[("abc", true)], &clock);
        let made = badges.make("abc", true).unwrap();
        assert_eq!(made.expires_at, UnixTime(1_300));
        let expected = Operator { key: "abc".to_owned(), is_admin: true, expires_at: UnixTime(1_300) };
        assert_eq!(badges.read(&made.token), Ok(expected));
        assert!(!badges.read(&badges.make("abc", false).unwrap().token).unwrap().is_admin);
        assert!(matches!(badges.make("abd", false), Err(MintError::NoKey)));
        clock.advance(Seconds(305));
        assert_eq!(badges.read(&made.token), Err(Rejected::Expired));
    }

    #[test]
    fn a_token_is_worth_what_its_key_is_worth_at_every_gateway() {
        let clock = Arc::new(ManualClock::at(UnixTime(1_000)));
        let here = badges(&[("abc", true), ("abd", true)], &clock);
        let made = here.make("abc", true).unwrap().token;
        assert!(badges(&[("abc", true)], &clock).read(&made).is_ok());
        assert_eq!(badges(&[("abd", true)], &clock).read(&made), Err(Rejected::Invalid), "revoked");
        let demoted = badges(&[("abc", false)], &clock);
        assert_eq!(demoted.read(&made), Err(Rejected::Expired), "they get another, for less");
        assert!(demoted.read(&here.make("abc", false).unwrap().token).is_ok());
        let elsewhere = Badges::new(keys(&[("abc", true)]), Some(Secret::new("another")), clock.clone());
        assert_eq!(elsewhere.read(&made), Err(Rejected::Invalid));
        // Without a shared secret the key's own is enough for all to agree.
        let [one, other] = [0; 2].map(|_| Badges::new(keys(&[("abc", true)]), None, clock.clone()));
        assert!(other.read(&one.make("abc", true).unwrap().token).is_ok());
    }

    #[test]
    fn what_is_not_such_a_token_is_refused_although_it_is_well_signed() {
        let clock = Arc::new(ManualClock::at(UnixTime(1_000)));
        let badges = badges(&[("k", true), ("l", true)], &clock);
        let secret = badges.secret(&badges.standing("k").unwrap());
        let signed_as = |name: Option<&str>, claims: &Value, secret: &[u8]| {
            let header = Header { kid: name.map(str::to_owned), ..Header::new(Algorithm::HS256) };
            encode(&header, claims, &EncodingKey::from_secret(secret)).unwrap()
        };
        let signed = |claims: &Value| signed_as(Some("k"), claims, &secret);
        let good = json!({"sub": "operator", "key": "k", "iat": 1000, "exp": 1300});
        assert!(badges.read(&signed(&good)).is_ok());
        // Who signs the tokens of people can sign none of these.
        for token in [
            signed_as(Some("k"), &good, SECRET.as_bytes()),
            signed_as(None, &good, &secret),
            signed_as(Some("l"), &good, &secret),
            signed_as(Some(""), &good, &secret),
        ] {
            assert_eq!(badges.read(&token), Err(Rejected::Invalid));
        }
        let without = |name: &str| {
            let mut claims = good.clone();
            claims.as_object_mut().unwrap().remove(name);
            claims
        };
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            claims
        };
        for claims in [
            without("sub"),
            without("key"),
            without("exp"),
            with("sub", json!("7")),
            with("sub", json!("Operator")),
            with("key", json!("")),
            with("key", json!("l")),
            with("exp", json!(1_000_000)),
        ] {
            assert_eq!(badges.read(&signed(&claims)), Err(Rejected::Invalid), "{claims}");
        }
        let person = TokenClaims {
            user: UserId::new(7).unwrap(),
            issued_at: UnixTime(1_000),
            expires_at: UnixTime(1_100),
            audience: "",
            issuer: "",
            channel: None,
        };
        assert_eq!(badges.read(&mint(SECRET, &person).unwrap()), Err(Rejected::Invalid));
    }
}
