//! Client prefixes: text form, and the longest match.

use access::{ClientPrefix, ClientRules};
use domain::PeerId;
use proptest::prelude::*;

use crate::fixture::peer_id;

fn rules(rules: &[(&str, bool)]) -> ClientRules {
    ClientRules::new(rules.iter().map(|(prefix, allowed)| (prefix.parse().unwrap(), *allowed)))
}

#[test]
fn m2_without_prefixes_every_client_is_allowed() {
    assert!(rules(&[]).allows(&peer_id("-XX0001-")));
}

#[test]
fn m2_once_one_is_allowed_all_others_are_refused() {
    let rules = rules(&[("-TR", true)]);
    assert!(rules.allows(&peer_id("-TR4050-")));
    assert!(!rules.allows(&peer_id("-qB4500-")));
}

#[test]
fn m2_forbidden_prefixes_alone_refuse_no_other_client() {
    let rules = rules(&[("-XL", false)]);
    assert!(!rules.allows(&peer_id("-XL0012-")));
    assert!(rules.allows(&peer_id("-TR4050-")));
}

#[test]
fn m2_the_longest_prefix_decides() {
    let rules = rules(&[("-TR", true), ("-TR2", false), ("-TR294", true)]);
    assert!(rules.allows(&peer_id("-TR4050-")));
    assert!(!rules.allows(&peer_id("-TR2840-")));
    assert!(rules.allows(&peer_id("-TR2940-")));
    assert!(!rules.allows(&peer_id("-TR2990-")), "sorts after -TR294 and matches -TR2 only");
}

#[test]
fn a_prefix_allowed_and_forbidden_in_two_spellings_is_forbidden() {
    let rules = rules(&[("hex:2d5452", false), ("-TR", true)]);
    assert_eq!(rules.len(), 1);
    assert!(!rules.allows(&peer_id("-TR4050-")));
}

#[test]
fn prefixes_are_text_or_hex() {
    let read = |text: &str| text.parse::<ClientPrefix>();
    assert_eq!(read("hex:2D5452").unwrap().to_string(), "-TR");
    assert_eq!(read("hex:2dff00").unwrap().to_string(), "hex:2dff00");
    assert_eq!(
        read("hex:6865783a").unwrap().to_string(),
        "hex:6865783a",
        "a literal hex: would be parsed as the mark"
    );
    assert_eq!(read(&"x".repeat(20)).unwrap().as_bytes().len(), 20);
    for bad in [
        "",
        "hex:",
        "hex:2",
        "hex:zz",
        "hex:+1",
        "-ü",
        "\n",
        &"x".repeat(21),
        &format!("hex:{}", "00".repeat(21)),
    ] {
        assert!(read(bad).is_err(), "{bad:?}");
    }
}

fn naive_decision(rules: &[(Vec<u8>, bool)], peer_id: &PeerId) -> bool {
    let fitting = rules.iter().filter(|(prefix, _)| peer_id.0.starts_with(prefix));
    let longest = fitting.map(|(prefix, _)| prefix.len()).max();
    match longest {
        Some(length) => rules
            .iter()
            .filter(|(prefix, _)| prefix.len() == length && peer_id.0.starts_with(prefix))
            .all(|(_, allowed)| *allowed),
        None => rules.iter().all(|(_, allowed)| !allowed),
    }
}

/// Three different bytes, so that prefixes are often prefixes of each other and of the peer ids.
fn few_bytes() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0_u8), Just(b'a'), Just(255_u8)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn m2_decisions_equal_those_of_the_naive_model(
        rules in prop::collection::vec((prop::collection::vec(few_bytes(), 1..=20), any::<bool>()), 0..40),
        short_rules in prop::collection::vec((prop::collection::vec(few_bytes(), 1..=4), any::<bool>()), 0..40),
        peers in prop::collection::vec(prop::array::uniform20(few_bytes()), 1..20),
    ) {
        let all: Vec<(Vec<u8>, bool)> = rules.into_iter().chain(short_rules).collect();
        let prepared = ClientRules::new(
            all.iter().map(|(prefix, allowed)| (ClientPrefix::from_bytes(prefix).unwrap(), *allowed)),
        );
        // Peer ids that begin with a rule, besides random ones.
        let extended = all.iter().map(|(prefix, _)| {
            let mut bytes = peers[0];
            bytes[..prefix.len()].copy_from_slice(prefix);
            bytes
        });
        for bytes in peers.iter().copied().chain(extended) {
            let peer = PeerId(bytes);
            prop_assert_eq!(prepared.allows(&peer), naive_decision(&all, &peer));
        }
    }

    #[test]
    fn prefixes_round_trip_through_text(bytes in prop::collection::vec(any::<u8>(), 1..=20)) {
        let prefix = ClientPrefix::from_bytes(&bytes).unwrap();
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
    }
}
