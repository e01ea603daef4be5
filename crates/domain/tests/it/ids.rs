//! Parsing and formatting of ids.

use domain::{ClientId, ClientKey, IdError, InfoHash, Passkey, PeerId, RunId, SessionId, UserId};
use proptest::prelude::*;

#[test]
fn w1_passkeys_are_hex_and_upper_case_is_normalised() {
    let passkey: Passkey = "ABCDEF0123456789abcdef0123456789".parse().unwrap();
    assert_eq!(passkey.to_string(), "abcdef0123456789abcdef0123456789");
    for bad in ["", "abc", "abcdefg012345678", "abcdef01 ", &"a".repeat(65)] {
        assert!(bad.parse::<Passkey>().is_err(), "{bad:?}");
    }
}

#[test]
fn w1_passkeys_of_different_length_differ() {
    let short: Passkey = "abcdef00".parse().unwrap();
    let long: Passkey = "abcdef0000".parse().unwrap();
    assert_ne!(short, long);
}

#[test]
fn a_passkey_is_redacted_wherever_it_is_debugged() {
    let passkey: Passkey = "abcdef0123456789abcdef0123456789".parse().unwrap();
    assert_eq!(format!("{passkey:?}"), "abcd…");
    assert_eq!(passkey.redacted().to_string(), "abcd…");
}

#[test]
fn user_ids_are_positive_and_fit_a_signed_column() {
    assert_eq!("7".parse::<UserId>().unwrap().get(), 7);
    for bad in ["0", "-1", "+1", "", "9223372036854775808", "1.0", " 1"] {
        assert!(bad.parse::<UserId>().is_err(), "{bad:?}");
    }
}

/// Clients that support both write the same 32 bits in hexadecimal over HTTP and raw over UDP.
#[test]
fn the_key_of_an_http_announce_equals_that_of_a_udp_announce() {
    assert_eq!(ClientKey::from_http(b"1F2e3D4c"), ClientKey(0x1f2e_3d4c));
    assert_eq!(ClientKey::from_http(b""), ClientKey::NONE);
    assert!(ClientKey::from_http(b"not hex!").is_some());
    assert_ne!(ClientKey::from_http(b"not hex!"), ClientKey::from_http(b"not hex?"));
}

/// Other nodes and later versions must derive the same ids from the same input.
#[test]
fn the_derivation_of_client_ids_is_fixed() {
    let user = UserId::new(7).unwrap();
    let (hash, peer, other) = (InfoHash([1; 20]), PeerId([2; 20]), PeerId([3; 20]));
    let with_key = ClientId::derive(user, &hash, ClientKey(5), &peer);
    assert_eq!(with_key, ClientId(0x07a1_0a29_5384_56da));
    assert_eq!(with_key, ClientId::derive(user, &hash, ClientKey(5), &other), "the key outlives the peer id");
    let without_key = ClientId::derive(user, &hash, ClientKey::NONE, &peer);
    assert_eq!(without_key, ClientId(0xb849_7974_28e5_9757));
    assert_ne!(without_key, ClientId::derive(user, &hash, ClientKey::NONE, &other));
}

#[test]
fn sessions_are_written_as_client_and_run() {
    let session = SessionId { client: ClientId(0x150b_89c3_1afd_823e), run: RunId(42) };
    assert_eq!(session.to_string(), "150b89c31afd823e-0000002a");
    assert_eq!(session.to_string().parse::<SessionId>(), Ok(session));
    for text in [
        "",
        "-",
        "150b89c31afd823e",
        "150b89c31afd823e-2a",
        "+50b89c31afd823e-0000002a",
        "150b89c31afd823e-0000002a-",
    ] {
        assert_eq!(text.parse::<SessionId>(), Err(IdError::Session), "{text}");
    }
}

proptest! {
    #[test]
    fn ids_round_trip(bytes: [u8; 20], digits in "[0-9a-f]{8,64}") {
        prop_assert_eq!(InfoHash(bytes).to_string().parse::<InfoHash>().unwrap(), InfoHash(bytes));
        prop_assert_eq!(InfoHash(bytes).to_string().to_uppercase().parse::<InfoHash>().unwrap(), InfoHash(bytes));
        prop_assert_eq!(digits.parse::<Passkey>().unwrap().to_string(), digits);
    }

    #[test]
    fn no_text_makes_parsing_panic(text in ".{0,80}") {
        let _ = text.parse::<InfoHash>();
        let _ = text.parse::<PeerId>();
        let _ = text.parse::<Passkey>();
        let _ = text.parse::<UserId>();
        let _ = ClientKey::from_http(text.as_bytes());
    }
}
