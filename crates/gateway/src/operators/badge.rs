//! The token with which an operator connects.

use std::sync::Arc;

use domain::clock::Clock;
use domain::{Seconds, UnixTime};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};

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
pub(super) struct Badges {
    clock: Arc<dyn Clock>,
    signing: EncodingKey,
    checking: DecodingKey,
    validation: Validation,
}

impl Badges {
    /// Signed with this secret.
    pub(super) fn new(secret: &Secret, clock: Arc<dyn Clock>) -> Badges {
        let bytes = secret.reveal().as_bytes();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        // Times are checked below, by the clock of this server; `aud` and `iss` are the site's affair.
        (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
        let (signing, checking) = (EncodingKey::from_secret(bytes), DecodingKey::from_secret(bytes));
        Badges { clock, signing, checking, validation }
    }

    pub(super) fn make(&self, key: &str, is_admin: bool) -> Result<FeedToken, MintError> {
        let now = self.clock.now();
        let expires_at = now + LIFE;
        let claims = Claims {
            sub: SUBJECT.to_owned(),
            key: key.to_owned(),
            admin: is_admin,
            iat: now.0,
            exp: expires_at.0,
        };
        let token = encode(&Header::new(Algorithm::HS256), &claims, &self.signing)?;
        Ok(FeedToken { token, expires_at })
    }

    pub(super) fn read(&self, token: &str) -> Result<Operator, Rejected> {
        let read = decode::<Claims>(token, &self.checking, &self.validation);
        let claims = read.map_err(|_| Rejected::Invalid)?.claims;
        let now = self.clock.now();
        let expires_at = UnixTime(claims.exp);
        let is_named = !claims.key.is_empty() && claims.key.len() <= KEY_BYTES_MAX;
        if claims.sub != SUBJECT || !is_named || expires_at > now + LIFE + LEEWAY {
            return Err(Rejected::Invalid);
        }
        if expires_at + LEEWAY <= now {
            return Err(Rejected::Expired);
        }
        Ok(Operator { key: claims.key, is_admin: claims.admin, expires_at })
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

    fn signed(claims: &Value) -> String {
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
    }

    #[test]
    fn a_token_says_whose_key_it_was_made_for_and_runs_out() {
        let clock = Arc::new(ManualClock::at(UnixTime(1_000)));
        let badges = Badges::new(&Secret::new(SECRET), clock.clone());
        let made = badges.make("abc", true).unwrap();
        assert_eq!(made.expires_at, UnixTime(1_300));
        let expected = Operator { key: "abc".to_owned(), is_admin: true, expires_at: UnixTime(1_300) };
        assert_eq!(badges.read(&made.token), Ok(expected));
        assert!(!badges.read(&badges.make("abc", false).unwrap().token).unwrap().is_admin);
        let other = Badges::new(&Secret::new("another secret of enough letters"), clock.clone());
        assert_eq!(other.read(&made.token), Err(Rejected::Invalid));
        clock.advance(Seconds(305));
        assert_eq!(badges.read(&made.token), Err(Rejected::Expired));
    }

    #[test]
    fn what_is_not_such_a_token_is_refused_although_it_is_well_signed() {
        let clock = Arc::new(ManualClock::at(UnixTime(1_000)));
        let badges = Badges::new(&Secret::new(SECRET), clock);
        let good = json!({"sub": "operator", "key": "k", "iat": 1000, "exp": 1300});
        assert!(badges.read(&signed(&good)).is_ok());
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
            with("key", json!("k".repeat(65))),
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
