//! Shared helpers of the tests of swarms.

use std::net::IpAddr;

use domain::{AnnounceEvent, ClientKey, InfoHash, PeerId, RateCeiling, RunId, Seconds, UnixTime, UserId};
use swarm::{Announce, Departure, Families, Outcome, PeerLists, Rules, SlotLimits, Swarms};

pub const START: UnixTime = UnixTime(1_700_000_000);
pub const TORRENT: InfoHash = InfoHash([7; 20]);
pub const RULES: Rules = Rules {
    silence_max: Seconds(2400),
    min_interval: Seconds(900),
    clients_per_user_max: 5,
    ceiling: RateCeiling::DEFAULT,
    peer_ids_per_hour_max: 30,
    credit_upload_without_leechers: true,
};

pub fn user(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

pub fn peer_id(number: u64) -> PeerId {
    let mut bytes = *b"-TT0001-------------";
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    PeerId(bytes)
}

/// A leecher's heartbeat over IPv4; tests change what they are about.
pub fn announce_of(number: u64, now: UnixTime) -> Announce {
    let [_, _, _, _, _, b, c, d] = number.to_be_bytes();
    Announce {
        info_hash: TORRENT,
        user: user(number),
        peer_id: peer_id(number),
        key: ClientKey::NONE,
        ip: IpAddr::from([10, b, c, d]),
        port: 6881,
        uploaded: 0,
        downloaded: 0,
        left: Some(1000),
        event: AnnounceEvent::None,
        wanted: 50,
        families: Families::Both,
        slots: SlotLimits::default(),
        now,
    }
}

pub fn swarms() -> Swarms {
    Swarms::new(START, 1, RunId(1))
}

pub fn take(swarms: &Swarms, announce: &Announce) -> Outcome {
    take_with_peers(swarms, announce).0
}

pub fn take_with_peers(swarms: &Swarms, announce: &Announce) -> (Outcome, PeerLists) {
    let mut lists = PeerLists::default();
    let outcome = swarms.announce(announce, &RULES, &mut lists).expect("the announce is fine");
    (outcome, lists)
}

pub fn expire(swarms: &Swarms, now: UnixTime) -> Vec<Departure> {
    let mut departed = Vec::new();
    swarms.expire(now, &RULES, |departure| departed.push(departure));
    departed
}
