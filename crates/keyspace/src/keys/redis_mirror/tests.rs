use super::*;
use crate::hash_slots::slot_of;

const STATISTICS_AND_INDEXES: [RedisMirrorKey; 8] = [
    RedisMirrorKey::StatsLeechers,
    RedisMirrorKey::StatsSeeders,
    RedisMirrorKey::StatsAnnounces,
    RedisMirrorKey::StatsScrapes,
    RedisMirrorKey::StatsRequests,
    RedisMirrorKey::IndexLeechers,
    RedisMirrorKey::IndexSeeders,
    RedisMirrorKey::IndexSnatches,
];

fn torrent() -> TorrentId {
    TorrentId::new(42).unwrap()
}

const HASH: InfoHash = InfoHash([0x11; 20]);
const PEER: PeerId = PeerId([0x2d; 20]);

#[test]
fn m4_names_on_a_single_redis_match_the_requirements() {
    let names = RedisMirrorNames::new(Mode::Single);
    let (hash, peer) = (HASH.to_string(), PEER.to_string());
    assert_eq!(names.torrent(torrent(), &HASH), format!("t:t:{hash}"));
    assert_eq!(names.peer(torrent(), &PEER), format!("t:p:42:{peer}"));
    assert_eq!(names.peer_timeout(torrent(), &PEER), format!("t:ptimeout:42:{peer}"));
    assert_eq!(names.torrent_peers(torrent(), &HASH), format!("t:tpeers:{hash}"));
    assert_eq!(names.peer_torrents(&PEER), format!("t:p:{peer}:torrents"));
    let sets = names.user_sets(UserId::new(7).unwrap());
    assert_eq!(sets, ["t:u:7:active", "t:u:7:complete", "t:u:7:incomplete", "t:u:7:hnr"]);
    assert_eq!(names.global(RedisMirrorKey::StatsScrapes), "t:stats:scrapes");
    assert_eq!(names.global(RedisMirrorKey::IndexSnatches), "t:i:snatches");
    assert_eq!(names.state(torrent()), "t:m:42");
}

#[test]
fn on_a_cluster_keys_of_a_script_share_a_slot() {
    let names = RedisMirrorNames::new(Mode::Cluster);
    let slot = slot_of(b"42");
    let keys = [
        names.torrent(torrent(), &HASH),
        names.torrent_peers(torrent(), &HASH),
        names.peer(torrent(), &PEER),
        names.peer_timeout(torrent(), &PEER),
        names.state(torrent()),
    ];
    for key in keys {
        assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
    }
    let all = STATISTICS_AND_INDEXES.map(|key| names.global(key));
    for key in all.iter().map(String::as_str).chain([names.index_announces()]) {
        assert_eq!(slot_of(key.as_bytes()), slot_of(b"t"), "{key}");
    }
}

#[test]
fn m6_timeout_keys_are_parsed() {
    for mode in [Mode::Single, Mode::Cluster] {
        let names = RedisMirrorNames::new(mode);
        let key = names.peer_timeout(torrent(), &PEER);
        assert_eq!(names.parse_peer_timeout(&key), Some((torrent(), PEER)));
        for other in ["t:ptimeout:42:", "t:ptimeout::ab", "t:t:42", &format!("{key}0"), &key[1..], "ü"] {
            assert_eq!(names.parse_peer_timeout(other), None, "{other}");
        }
    }
    assert_eq!(RedisMirrorNames::new(Mode::Single).peer_timeout_pattern(), "t:ptimeout:*:*");
    assert_eq!(RedisMirrorNames::new(Mode::Cluster).peer_timeout_pattern(), "t:ptimeout:{*}:*");
}
