use super::*;

fn names(mode: Mode) -> MirrorNames {
    MirrorNames::new(&MirrorTemplates::default(), mode).unwrap()
}

fn with(key: MirrorKey, text: &str, mode: Mode) -> Result<MirrorNames, String> {
    let templates = MirrorTemplates::new([(key, text.to_owned())]);
    MirrorNames::new(&templates, mode).map_err(|trouble| trouble.to_string())
}

fn torrent() -> TorrentId {
    TorrentId::new(42).unwrap()
}

const HASH: InfoHash = InfoHash([0x11; 20]);
const PEER: PeerId = PeerId([0x2d; 20]);

#[test]
fn m4_names_on_a_single_redis_are_those_of_the_requirements() {
    let names = names(Mode::Single);
    let (hash, peer) = (HASH.to_string(), PEER.to_string());
    assert_eq!(names.info_hash(&HASH), format!("t:info_hash:{hash}"));
    assert_eq!(names.whitelist("-TR4"), "t:whitelist:-TR4");
    assert_eq!(names.user(&"0123456789abcdef".parse().unwrap()), "t:user:0123456789abcdef");
    assert_eq!(names.torrent(torrent(), &HASH), format!("t:t:{hash}"));
    assert_eq!(names.peer(torrent(), &HASH, &PEER), format!("t:p:42:{peer}"));
    assert_eq!(names.peer_timeout(torrent(), &PEER), format!("t:ptimeout:42:{peer}"));
    assert_eq!(names.torrent_peers(torrent(), &HASH), format!("t:tpeers:{hash}"));
    assert_eq!(names.peer_torrents(&PEER), format!("t:p:{peer}:torrents"));
    let sets = names.user_sets(UserId::new(7).unwrap());
    assert_eq!(sets, ["t:u:7:active", "t:u:7:complete", "t:u:7:incomplete", "t:u:7:hnr"]);
    assert_eq!(names.single(MirrorKey::StatsScrapes), "t:stats:scrapes");
    assert_eq!(names.single(MirrorKey::IndexSnatches), "t:i:snatches");
    assert_eq!(names.own(torrent()), "t:m:42");
    for (position, key) in MirrorKey::ALL.into_iter().enumerate() {
        assert_eq!(key as usize, position, "the table has the order of the kinds");
    }
}

#[test]
fn on_a_cluster_what_a_script_touches_shares_a_slot() {
    let names = names(Mode::Cluster);
    let slot = slot_of(b"42");
    let keys = [
        names.torrent(torrent(), &HASH),
        names.torrent_peers(torrent(), &HASH),
        names.peer(torrent(), &HASH, &PEER),
        names.peer_timeout(torrent(), &PEER),
        names.own(torrent()),
    ];
    for key in keys {
        assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
    }
    let all = OF_ALL.map(|key| names.single(key));
    for key in all.iter().map(String::as_str).chain([names.index_announces()]) {
        assert_eq!(slot_of(key.as_bytes()), slot_of(b"t"), "{key}");
    }
}

#[test]
fn m6_an_expired_key_tells_whose_it_was() {
    for mode in [Mode::Single, Mode::Cluster] {
        let names = names(mode);
        let key = names.peer_timeout(torrent(), &PEER);
        assert_eq!(names.parse_peer_timeout(&key), Some((torrent(), PEER)));
        for other in ["t:ptimeout:42:", "t:ptimeout::ab", "t:t:42", &format!("{key}0"), &key[1..], "ü"] {
            assert_eq!(names.parse_peer_timeout(other), None, "{other}");
        }
    }
    assert_eq!(names(Mode::Single).peer_timeout_pattern(), "t:ptimeout:*:*");
    assert_eq!(names(Mode::Cluster).peer_timeout_pattern(), "t:ptimeout:{*}:*");
}

#[test]
fn m1_keys_of_the_site_tell_what_they_are_about() {
    let names = names(Mode::Single);
    assert_eq!(names.parse_subject(MirrorKey::Whitelist, "t:whitelist:-TR:4"), Some("-TR:4"));
    let key = names.info_hash(&HASH);
    assert_eq!(names.parse_subject(MirrorKey::InfoHash, &key), Some(HASH.to_string().as_str()));
    assert_eq!(names.parse_subject(MirrorKey::User, &key), None);
    assert_eq!(names.pattern(MirrorKey::InfoHash), "t:info_hash:*");
}

#[test]
fn a_sites_own_spelling_is_used_and_a_wrong_one_is_explained() {
    let own = with(MirrorKey::Torrent, "site:[t]:<infohash>", Mode::Single).unwrap();
    assert_eq!(own.torrent(torrent(), &HASH), format!("site:[t]:{HASH}"));
    assert_eq!(own.pattern(MirrorKey::Torrent), "site:\\[t\\]:*");

    let lacks = with(MirrorKey::Peer, "p:<torrent>", Mode::Single).unwrap_err();
    assert!(lacks.contains("mirror.key_peer") && lacks.contains("<peer_id>"), "{lacks}");
    let unknown = with(MirrorKey::UserActive, "u:<users>", Mode::Single).unwrap_err();
    assert!(unknown.contains("<user>"), "{unknown}");
    let misplaced = with(MirrorKey::StatsSeeders, "s:<user>", Mode::Single).unwrap_err();
    assert!(misplaced.contains("nothing"), "{misplaced}");
    assert!(with(MirrorKey::StatsSeeders, "t:stats:leechers", Mode::Single).is_err(), "taken");
    assert!(with(MirrorKey::StatsSeeders, "t:m:x", Mode::Single).is_err(), "ours");
}

#[test]
fn on_a_cluster_a_spelling_that_scatters_is_refused_with_one_that_does_not() {
    let scattered = with(MirrorKey::Torrent, "t:t:<infohash>", Mode::Cluster).unwrap_err();
    assert!(scattered.contains("{<torrent>}") && scattered.contains("mirror.key_torrent"), "{scattered}");
    assert!(with(MirrorKey::Torrent, "x:{<torrent>}:<infohash>", Mode::Cluster).is_ok());
    let scattered = with(MirrorKey::IndexSeeders, "i:seeders", Mode::Cluster).unwrap_err();
    assert!(scattered.contains("mirror.key_index_seeders") && scattered.contains("{t}"), "{scattered}");
}

#[test]
fn a_spelling_that_cannot_be_read_back_is_refused() {
    for (key, text) in [
        (MirrorKey::Whitelist, "wl:<prefix>:x"),
        (MirrorKey::PeerTimeout, "x<torrent><peer_id>"),
        (MirrorKey::User, "u:<passkey>ab"),
    ] {
        let refused = with(key, text, Mode::Single).unwrap_err();
        assert!(refused.contains("read back") && refused.contains(text), "{refused}");
    }
}
