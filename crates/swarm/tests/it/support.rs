//! Shared helpers of the tests of swarms.

use std::net::IpAddr;

use domain::Families;
use domain::{AnnounceEvent, ClientKey, InfoHash, PeerId, RateCeiling, RunId, Seconds, UnixTime, UserId};
use swarm::{AnnounceError, Departure, Outcome, PeerLists, Rules, SlotLimits, Swarms, Terms};

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

/// An announce and what it is granted, side by side.
#[derive(Clone, Copy, Debug)]
pub struct Announce {
    pub info_hash: InfoHash,
    pub user: UserId,
    pub peer_id: PeerId,
    pub key: ClientKey,
    pub ip: IpAddr,
    pub port: u16,
    pub uploaded: u64,
    pub downloaded: u64,
    pub left: Option<u64>,
    pub event: AnnounceEvent,
    pub wanted: usize,
    pub families: Families,
    pub slots: SlotLimits,
    pub now: UnixTime,
}

impl Announce {
    pub fn send(
        &self,
        swarms: &Swarms,
        rules: &Rules,
        lists: &mut PeerLists,
    ) -> Result<Outcome, AnnounceError> {
        let announce = domain::Announce {
            passkey: None,
            info_hash: self.info_hash,
            peer_id: self.peer_id,
            key: self.key,
            ip: self.ip,
            port: self.port,
            uploaded: self.uploaded,
            downloaded: self.downloaded,
            left: self.left,
            event: self.event,
            numwant: None,
            families: self.families,
            now: self.now,
        };
        let terms = Terms { user: self.user, wanted: self.wanted, slots: self.slots, rules: *rules };
        swarms.announce(&announce, &terms, lists)
    }
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
    let outcome = announce.send(swarms, &RULES, &mut lists).expect("the announce is fine");
    (outcome, lists)
}

pub fn expire(swarms: &Swarms, now: UnixTime) -> Vec<Departure> {
    let mut departed = Vec::new();
    swarms.expire(now, &RULES, |departure| departed.push(departure));
    departed
}
