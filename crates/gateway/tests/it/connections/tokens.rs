//! Tokens: valid ones, and every kind of invalid one.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use domain::clock::SystemClock;
use domain::{Seconds, UserId};
use gateway::Tokens;
use gateway::settings::{Secret, TokenSettings};
use gateway::token::{Rejected, TokenError};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};
use serde_json::{Value, json};

use crate::connections::fixture::{Fixture, SECRET, now, token, token_until};

fn signed(algorithm: Algorithm, key: &EncodingKey, kid: Option<&str>, claims: &Value) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).unwrap()
}

fn by_secret(secret: &str, claims: &Value) -> String {
    signed(Algorithm::HS256, &EncodingKey::from_secret(secret.as_bytes()), None, claims)
}

fn tokens(settings: TokenSettings) -> Result<Tokens, TokenError> {
    Tokens::load(settings, Arc::new(SystemClock))
}

fn in_an_hour() -> u32 {
    (now() + Seconds(3600)).0
}

fn with_secret() -> TokenSettings {
    TokenSettings { hmac_secret: Some(Secret::new(SECRET)), ..TokenSettings::default() }
}

/// A token without a signature.
fn unsigned(claims: &Value) -> String {
    // {"alg":"none"} and {"alg":"None","typ":"JWT"} in base64, and the claims of a token that was signed.
    let signed = by_secret(SECRET, claims);
    let payload = signed.split('.').nth(1).unwrap();
    format!("eyJhbGciOiJub25lIn0.{payload}.")
}

#[tokio::test]
async fn forged_tokens_are_refused_for_good_and_expired_ones_are_to_be_renewed() {
    let fixture = Fixture::start().await;
    let good = json!({"sub": "1", "exp": in_an_hour()});
    let signed = by_secret(SECRET, &good);
    let (head, signature) = signed.rsplit_once('.').unwrap();
    let tampered = format!("{head}.{}", signature.chars().rev().collect::<String>());
    let forged = [
        String::new(),
        "x".to_owned(),
        "a.b.c".to_owned(),
        tampered,
        unsigned(&good),
        by_secret("another secret of more than enough letters", &good),
        by_secret(SECRET, &json!({"exp": in_an_hour()})),
        by_secret(SECRET, &json!({"sub": 1, "exp": in_an_hour()})),
        by_secret(SECRET, &json!({"sub": "0", "exp": in_an_hour()})),
        by_secret(SECRET, &json!({"sub": "01", "exp": in_an_hour()})),
        by_secret(SECRET, &json!({"sub": "-1", "exp": in_an_hour()})),
        by_secret(SECRET, &json!({"sub": "99999999999999999999", "exp": in_an_hour()})),
        by_secret(SECRET, &json!({"sub": "1", "exp": in_an_hour(), "nbf": now().0 + 60})),
        by_secret(SECRET, &json!({"sub": "1", "exp": "tomorrow"})),
        by_secret(SECRET, &json!({"sub": "1", "exp": -1})),
        by_secret(SECRET, &json!({"sub": "1", "exp": in_an_hour(), "info": "x".repeat(2000)})),
        token_until(1, now() + Seconds(60), Some("room:a")),
        signed_with_384(&good),
    ];
    for token in forged {
        let mut client = fixture.open().await;
        client.send(&json!({"id": 1, "connect": {"token": token}})).await;
        assert_eq!(client.closed().await, (3500, "invalid token".to_owned()), "{token}");
    }
    let mut client = fixture.open().await;
    client.send(&json!({"id": 1, "connect": {"token": token_until(1, now() - Seconds(60), None)}})).await;
    let reply = client.next().await;
    assert_eq!(reply["error"], json!({"code": 109, "message": "token expired"}));
    client.send(&json!({"id": 2, "connect": {"token": token(1)}})).await;
    assert!(client.next().await["connect"].is_object());
}

fn signed_with_384(claims: &Value) -> String {
    signed(Algorithm::HS384, &EncodingKey::from_secret(SECRET.as_bytes()), None, claims)
}

#[test]
fn tokens_without_an_expiry_are_accepted_only_where_the_settings_allow_it() {
    let endless = by_secret(SECRET, &json!({"sub": "7"}));
    let for_a_room = by_secret(SECRET, &json!({"sub": "7", "channel": "room:a"}));
    let user = UserId::new(7).unwrap();
    let strict = tokens(with_secret()).unwrap();
    assert_eq!(strict.identify(&endless).unwrap_err(), Rejected::Invalid);
    assert_eq!(strict.admits(&for_a_room, user, "room:a"), Err(Rejected::Invalid));
    let lax = tokens(TokenSettings { allow_without_expiry: true, ..with_secret() }).unwrap();
    let identity = lax.identify(&endless).unwrap();
    assert_eq!((identity.user, identity.expires_at), (user, None));
    assert_eq!(lax.admits(&for_a_room, user, "room:a"), Ok(()));
}

#[test]
fn tokens_with_information_and_with_a_fraction_of_a_second_are_accepted() {
    let tokens = tokens(with_secret()).unwrap();
    let claims = json!({"sub": "7", "exp": in_an_hour(), "info": {"name": "x"}});
    let informed = tokens.identify(&by_secret(SECRET, &claims)).unwrap();
    assert_eq!(informed.info.unwrap().get(), r#"{"name":"x"}"#);
    let until = f64::from(now().0) + 60.5;
    let fraction = tokens.identify(&by_secret(SECRET, &json!({"sub": "7", "exp": until}))).unwrap();
    assert_eq!(fraction.expires_at, Some(now() + Seconds(60)));
    // Clocks differ a little.
    let just_over = by_secret(SECRET, &json!({"sub": "7", "exp": now().0 - 2, "nbf": now().0 + 2}));
    assert!(tokens.identify(&just_over).is_ok());
}

#[test]
fn where_an_audience_and_an_issuer_are_named_tokens_must_name_them() {
    let settings = TokenSettings {
        audience: Some("presence".to_owned()),
        issuer: Some("site".to_owned()),
        ..with_secret()
    };
    let tokens = tokens(settings).unwrap();
    let check = |mut claims: Value| {
        claims["exp"] = in_an_hour().into();
        tokens.identify(&by_secret(SECRET, &claims)).map(|identity| identity.user.get())
    };
    assert_eq!(check(json!({"sub": "7", "aud": "presence", "iss": "site"})), Ok(7));
    assert_eq!(check(json!({"sub": "7", "aud": ["mail", "presence"], "iss": "site"})), Ok(7));
    for wrong in [
        json!({"sub": "7"}),
        json!({"sub": "7", "aud": "presence"}),
        json!({"sub": "7", "iss": "site"}),
        json!({"sub": "7", "aud": "mail", "iss": "site"}),
        json!({"sub": "7", "aud": "presence", "iss": "other"}),
    ] {
        assert_eq!(check(wrong), Err(Rejected::Invalid));
    }
}

struct Pair {
    algorithm: Algorithm,
    private: EncodingKey,
    public_pem: String,
}

fn rsa() -> Pair {
    let pair = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let private = EncodingKey::from_rsa_pem(pair.serialize_pem().as_bytes()).unwrap();
    Pair { algorithm: Algorithm::RS256, private, public_pem: pair.public_key_pem() }
}

fn ec() -> Pair {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let private = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).unwrap();
    Pair { algorithm: Algorithm::ES256, private, public_pem: pair.public_key_pem() }
}

#[test]
fn a_public_key_takes_its_own_algorithm_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let claims = json!({"sub": "7", "exp": in_an_hour()});
    let other_keys = [rsa(), ec()];
    for pair in [rsa(), ec()] {
        fs::write(&path, &pair.public_pem).unwrap();
        let settings = TokenSettings { public_key_file: Some(path.clone()), ..TokenSettings::default() };
        let tokens = tokens(settings).unwrap();
        let good = signed(pair.algorithm, &pair.private, None, &claims);
        assert_eq!(tokens.identify(&good).unwrap().user.get(), 7);
        // The public key is public: as a secret it proves nothing.
        let confused = [by_secret(&pair.public_pem, &claims), by_secret(pair.public_pem.trim(), &claims)];
        for token in confused.into_iter().chain([unsigned(&claims), by_secret(SECRET, &claims)]) {
            assert_eq!(tokens.identify(&token).unwrap_err(), Rejected::Invalid);
        }
        for other in &other_keys {
            let token = signed(other.algorithm, &other.private, None, &claims);
            assert_eq!(tokens.identify(&token).unwrap_err(), Rejected::Invalid);
        }
    }
}

fn jwk(pair: &Pair, kid: &str) -> Value {
    let jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&pair.private, pair.algorithm).unwrap();
    let mut jwk = serde_json::to_value(jwk).unwrap();
    jwk["kid"] = json!(kid);
    jwk["use"] = json!("sig");
    jwk
}

fn write(path: &Path, keys: &[Value]) {
    let text = json!({ "keys": keys }).to_string();
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

#[test]
fn a_set_of_keys_is_selected_by_kid_and_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let (old, new) = (ec(), ec());
    let claims = json!({"sub": "7", "exp": in_an_hour()});
    let secret = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "secret"});
    let strange = json!({"kty": "LATTICE", "kid": "later"});
    write(&path, &[jwk(&old, "old"), secret.clone(), strange]);
    let settings = TokenSettings { jwks_file: Some(path.clone()), ..TokenSettings::default() };
    let tokens = tokens(settings.clone()).unwrap();
    let check =
        |pair: &Pair, kid| tokens.identify(&signed(pair.algorithm, &pair.private, kid, &claims)).is_ok();
    // With one key, `kid` is not needed.
    assert!(check(&old, Some("old")) && check(&old, None));
    assert!(!check(&old, Some("other")) && !check(&new, Some("new")) && !check(&new, Some("old")));
    let by_oct = signed(Algorithm::HS256, &EncodingKey::from_secret(b"secret"), Some("secret"), &claims);
    assert_eq!(tokens.identify(&by_oct).unwrap_err(), Rejected::Invalid);
    assert!(!tokens.reload_if_changed());
    write(&path, &[jwk(&old, "old"), jwk(&new, "new")]);
    assert!(tokens.reload_if_changed());
    assert!(check(&old, Some("old")) && check(&new, Some("new")) && !check(&new, None));
    // An unusable file leaves the keys unchanged.
    for broken in ["{\"keys\":[", "{\"keys\":[]}"] {
        fs::write(&path, broken).unwrap();
        assert!(!tokens.reload_if_changed());
        assert!(check(&new, Some("new")));
    }
    fs::remove_file(&path).unwrap();
    assert!(!tokens.reload_if_changed() && check(&new, Some("new")));
    write(&path, &[jwk(&new, "new")]);
    assert!(tokens.reload_if_changed() && !check(&old, Some("old")));
    write(&path, &[secret]);
    let refused = Tokens::load(settings, Arc::new(SystemClock)).err().unwrap().to_string();
    assert!(refused.contains("keys.json") && refused.contains("RS256"), "{refused}");
}

#[test]
fn keys_that_cannot_be_used_are_named_at_the_start_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let with_file = || TokenSettings { public_key_file: Some(path.clone()), ..TokenSettings::default() };
    let error = |settings| tokens(settings).err().unwrap().to_string();
    assert!(error(TokenSettings::default()).contains("gateway.token_hmac_secret"));
    assert!(error(with_file()).contains("key.pem"));
    fs::write(&path, "not a key").unwrap();
    assert!(error(with_file()).contains("RSA"));
    let private = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap().serialize_pem();
    fs::write(&path, &private).unwrap();
    let message = error(with_file());
    assert!(message.contains("private key") && !message.contains(private.lines().nth(1).unwrap()));
    assert!(!format!("{:?}", with_secret()).contains(SECRET));
}
