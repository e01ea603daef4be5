//! The gate alone: admissions, refusals, and concurrent readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use access::{ClientPrefix, ClientRules, Gate, Refusal};

use crate::fixture::{NOW, info_hash, passkey, peer_id, torrent_id, user_id};

fn gate_with_one_of_each() -> Gate {
    let gate = Gate::default();
    gate.put_user(user_id(7), passkey(7), true);
    gate.put_torrent(torrent_id(3), info_hash(3), Some(info_hash(33)), true);
    gate
}

fn prefix(text: &str) -> ClientPrefix {
    text.parse().unwrap()
}

#[test]
fn t2_everything_unknown_is_refused_by_name() {
    let gate = gate_with_one_of_each();
    let client = peer_id("-TR3000-");
    let admission = gate.admit(&passkey(7), &info_hash(3), &client, NOW).unwrap();
    assert_eq!((admission.user, admission.torrent), (user_id(7), torrent_id(3)));
    assert_eq!(gate.admit(&passkey(8), &info_hash(3), &client, NOW), Err(Refusal::UnknownPasskey));
    assert_eq!(gate.admit(&passkey(7), &info_hash(4), &client, NOW), Err(Refusal::UnknownTorrent));
    gate.set_clients(ClientRules::new([(prefix("-qB"), true)]));
    assert_eq!(gate.admit(&passkey(7), &info_hash(3), &client, NOW), Err(Refusal::ClientNotAllowed));
}

#[test]
fn t2_every_refusal_has_its_own_text_and_label() {
    let texts: std::collections::HashSet<String> = Refusal::ALL.iter().map(ToString::to_string).collect();
    let labels: std::collections::HashSet<&str> =
        Refusal::ALL.iter().map(|refusal| refusal.label()).collect();
    assert_eq!((texts.len(), labels.len()), (8, 8));
    assert!(texts.iter().all(|text| text.contains(": ") && text.len() < 120));
}

/// A gate with a Redis source.
fn with_redis_source() -> (Gate, Arc<Gate>) {
    let site = Arc::new(Gate::default());
    (gate_with_one_of_each().with_redis_source(site.clone()), site)
}

#[test]
fn m1_m3_the_database_takes_precedence_over_the_redis_source() {
    let (gate, site) = with_redis_source();
    let client = peer_id("-TR3000-");
    let torrent = |number| gate.admit(&passkey(7), &info_hash(number), &client, NOW).unwrap().torrent;
    site.put_torrent(torrent_id(9), info_hash(9), None, true);
    assert_eq!(torrent(9), torrent_id(9), "in the Redis source only");
    assert_eq!(gate.info_hash_of(torrent_id(9)), Some(info_hash(9)));
    // The same infohash under another id.
    site.put_torrent(torrent_id(30), info_hash(3), None, true);
    assert_eq!(torrent(3), torrent_id(3));
    // The same id for another torrent: each has its own accounts.
    site.put_torrent(torrent_id(3), info_hash(8), None, true);
    assert_eq!(torrent(8), torrent_id(1_000_000_000_003));
    assert_eq!(gate.info_hash_of(torrent_id(1_000_000_000_003)), Some(info_hash(8)));
    assert_eq!(gate.info_hash_of(torrent_id(3)), Some(info_hash(3)));
    let mut listed = Vec::new();
    gate.each_torrent(|id, hash| listed.push((id, *hash)));
    listed.sort();
    let expected = [(3, 3), (9, 9), (1_000_000_000_003, 8)];
    assert_eq!(listed, expected.map(|(id, hash)| (torrent_id(id), info_hash(hash))));
    // A disabled row is refused, also if there is a key.
    gate.put_torrent(torrent_id(9), info_hash(9), None, false);
    assert_eq!(gate.admit(&passkey(7), &info_hash(9), &client, NOW), Err(Refusal::TorrentDisabled));
    site.put_user(user_id(7), passkey(7), true);
    gate.put_user(user_id(7), passkey(7), false);
    assert_eq!(gate.admit_user(&passkey(7), NOW), Err(Refusal::UserDisabled));
}

#[test]
fn m2_prefixes_of_both_sources_count() {
    let (gate, site) = with_redis_source();
    let allows = |text| gate.allows_client(&peer_id(text));
    site.set_clients(ClientRules::new([(prefix("-TR"), true), (prefix("-UT"), true)]));
    assert!(allows("-TR3000-") && !allows("-qB4000-"), "other clients are refused once any prefix exists");
    gate.set_clients(ClientRules::new([
        (prefix("-qB"), true),
        (prefix("-TR2"), false),
        (prefix("-UT"), false),
    ]));
    assert!(allows("-TR3000-") && allows("-qB4000-"));
    assert!(!allows("-TR2000-"), "the longer prefix decides");
    assert!(!allows("-UT1000-"), "the database decides about the same prefix");
    site.set_clients(ClientRules::default());
    assert!(!allows("-TR3000-"));
}

#[test]
fn w1_a_passkey_in_upper_case_is_the_same_passkey() {
    let gate = Gate::default();
    gate.put_user(user_id(1), "ABCDEF0123456789".parse().unwrap(), true);
    assert_eq!(gate.admit_user(&"abcdef0123456789".parse().unwrap(), NOW), Ok(user_id(1)));
}

#[test]
fn disabled_users_and_torrents_have_their_own_refusals() {
    let gate = gate_with_one_of_each();
    let client = peer_id("-TR3000-");
    gate.put_torrent(torrent_id(3), info_hash(3), Some(info_hash(33)), false);
    assert_eq!(gate.admit(&passkey(7), &info_hash(33), &client, NOW), Err(Refusal::TorrentDisabled));
    gate.put_user(user_id(7), passkey(7), false);
    assert_eq!(gate.admit(&passkey(7), &info_hash(3), &client, NOW), Err(Refusal::UserDisabled));
    assert_eq!(gate.passkey_of(user_id(7)), Some(passkey(7)));
}

#[test]
fn a_hybrid_torrent_has_one_primary_infohash() {
    let gate = gate_with_one_of_each();
    let by_v2 = gate.admit(&passkey(7), &info_hash(33), &peer_id("-TR3000-"), NOW).unwrap();
    assert_eq!((by_v2.torrent, by_v2.info_hash), (torrent_id(3), info_hash(3)));
    assert_eq!(gate.torrent_of(&info_hash(33)), Some(torrent_id(3)));

    gate.put_torrent(torrent_id(3), info_hash(3), Some(info_hash(34)), true);
    assert_eq!(gate.torrent(&info_hash(33)), None);
    assert_eq!(gate.torrent(&info_hash(34)).unwrap().info_hash, info_hash(3));

    assert_eq!(gate.remove_torrent(torrent_id(3)), Some(info_hash(3)));
    assert_eq!((gate.torrent(&info_hash(3)), gate.torrent(&info_hash(34))), (None, None));
}

#[test]
fn the_passkey_of_a_recently_removed_user_is_available() {
    let gate = gate_with_one_of_each();
    assert!(gate.remove_user(user_id(7)));
    assert_eq!(gate.passkey_of(user_id(7)), Some(passkey(7)));
    assert_eq!(gate.admit_user(&passkey(7), NOW), Err(Refusal::UnknownPasskey));
    assert!(!gate.is_enabled(user_id(7), NOW));
    assert_eq!(gate.user_count(), 0);

    gate.put_user(user_id(8), passkey(7), true);
    assert!(!gate.is_enabled(user_id(7), NOW), "another user has the passkey now");
    gate.put_user(user_id(7), passkey(70), true);
    assert_eq!(gate.passkey_of(user_id(7)), Some(passkey(70)), "the current one takes precedence");
    assert_eq!(gate.removed_forgotten(), 0);
}

#[test]
fn the_id_of_a_recently_removed_torrent_is_available() {
    let gate = Gate::default();
    gate.put_torrent(torrent_id(3), info_hash(3), Some(info_hash(33)), true);
    assert!(!gate.is_torrent_removed(torrent_id(3), &info_hash(3)));
    gate.remove_torrent(torrent_id(3));
    for name in [info_hash(3), info_hash(33)] {
        assert_eq!(gate.torrent_of(&name), None);
        assert_eq!(gate.present_or_removed_torrent_of(&name), Some(torrent_id(3)));
        assert!(gate.is_torrent_removed(torrent_id(3), &name));
    }
    assert_eq!(gate.present_or_removed_torrent_of(&info_hash(4)), None);
    assert!(!gate.is_torrent_removed(torrent_id(4), &info_hash(4)), "the removal is unknown");
    // Uploaded again, with another id.
    gate.put_torrent(torrent_id(9), info_hash(3), None, true);
    assert_eq!(gate.present_or_removed_torrent_of(&info_hash(3)), Some(torrent_id(9)));
    assert!(gate.is_torrent_removed(torrent_id(3), &info_hash(3)));
    assert!(!gate.is_torrent_removed(torrent_id(9), &info_hash(3)));
}

#[test]
fn a_rotated_passkey_stops_working_and_the_user_stays() {
    let gate = gate_with_one_of_each();
    assert!(gate.put_user(user_id(7), passkey(70), true));
    assert_eq!(gate.admit_user(&passkey(7), NOW), Err(Refusal::UnknownPasskey));
    assert_eq!(gate.admit_user(&passkey(70), NOW), Ok(user_id(7)));
    assert_eq!(gate.passkey_of(user_id(7)), Some(passkey(70)));
    assert!(!gate.put_user(user_id(7), passkey(70), true), "nothing changed");
}

#[test]
fn a_passkey_that_moved_to_another_user_belongs_to_the_newer_one_in_any_order() {
    for new_owner_first in [true, false] {
        let gate = gate_with_one_of_each();
        gate.put_user(user_id(8), passkey(8), true);
        let give = || gate.put_user(user_id(8), passkey(7), true);
        let part = || gate.put_user(user_id(7), passkey(77), true);
        if new_owner_first {
            give();
            part();
        } else {
            part();
            give();
        }
        assert_eq!(gate.admit_user(&passkey(7), NOW), Ok(user_id(8)));
        assert_eq!(gate.admit_user(&passkey(77), NOW), Ok(user_id(7)));
        assert_eq!(gate.admit_user(&passkey(8), NOW), Err(Refusal::UnknownPasskey));
        gate.remove_user(user_id(7));
        assert_eq!(gate.admit_user(&passkey(7), NOW), Ok(user_id(8)));
    }
}

#[test]
fn an_infohash_that_moved_to_another_torrent_outlives_the_first() {
    let gate = gate_with_one_of_each();
    gate.put_torrent(torrent_id(4), info_hash(3), None, true);
    gate.remove_torrent(torrent_id(3));
    assert_eq!(gate.torrent_of(&info_hash(3)), Some(torrent_id(4)));
    assert_eq!(gate.torrent_of(&info_hash(33)), None);
}

#[test]
fn readers_always_find_a_user_and_torrent_that_keep_changing() {
    let gate = Arc::new(gate_with_one_of_each());
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (gate, done) = (gate.clone(), done.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    gate.admit(&passkey(7), &info_hash(3), &peer_id("-TR3000-"), NOW).unwrap();
                    assert!(gate.passkey_of(user_id(7)).is_some());
                }
            })
        })
        .collect();
    for number in 100..5_000 {
        gate.put_torrent(torrent_id(3), info_hash(3), Some(info_hash(number)), true);
        gate.put_user(user_id(number), passkey(number), true);
        gate.put_user(user_id(7), passkey(7), true);
        gate.set_clients(ClientRules::new([(prefix("-TR"), true), (prefix("-qB"), number % 2 == 0)]));
        gate.remove_user(user_id(number));
    }
    done.store(true, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert_eq!((gate.user_count(), gate.torrent_count(), gate.client_count()), (1, 1, 2));
}
