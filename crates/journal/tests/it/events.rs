//! Events as a tracker records them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::{
    AnnounceEvent, Cause, ClientId, ClientKey, InfoHash, NodeId, PeerId, RunId, Seconds, SessionId,
    TorrentId, TrafficEvent, UnixTime, UserId,
};

/// An ordinary event. Its `du` is the number.
pub fn event(number: u64) -> TrafficEvent {
    let (user, info_hash) = (UserId::new(1).unwrap(), InfoHash([1; 20]));
    let (key, peer_id) = (ClientKey(0x0bad_cafe), PeerId(*b"-TR4060-abcdefghijkl"));
    TrafficEvent {
        passkey: Some("0123456789abcdef0123456789abcdef".parse().unwrap()),
        user,
        torrent: TorrentId::new(1),
        info_hash,
        peer_id,
        port: 6881,
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        uploaded_delta: number,
        downloaded_delta: 0,
        left: Some(0),
        event: AnnounceEvent::None,
        at: UnixTime(1_800_000_000),
        steady: UnixTime(1_800_000_000),
        since_last: Seconds(1_800),
        interval: Seconds(1_800),
        min_interval: Seconds(900),
        node: NodeId(0x6b49_d200_1234_5678),
        session: SessionId {
            client: ClientId::derive(user, &info_hash, key, &peer_id),
            run: RunId(0x8000_0001),
        },
        uploaded_total: 1 << 40 | number,
        downloaded_total: 0,
        cause: Cause::Announce,
        key,
        uncredited_upload: 0,
    }
}

/// Events of many kinds, the same for the same number.
pub fn varied_event(number: u64) -> TrafficEvent {
    let event = event(number);
    match number % 12 {
        0 => TrafficEvent { passkey: None, torrent: None, cause: Cause::Timeout, ..event },
        1 => TrafficEvent { passkey: "abcdef012".parse().ok(), ..event },
        2 => TrafficEvent { ip: IpAddr::V6(Ipv6Addr::LOCALHOST), event: AnnounceEvent::Completed, ..event },
        3 => TrafficEvent { steady: UnixTime(7), event: AnnounceEvent::Started, left: None, ..event },
        4 => TrafficEvent { session: SessionId { client: ClientId(7), ..event.session }, ..event },
        5 => TrafficEvent { session: SessionId { run: RunId::NONE, ..event.session }, ..event },
        6 => TrafficEvent { interval: Seconds(300), key: ClientKey::NONE, ..event },
        7 => TrafficEvent { uncredited_upload: u64::MAX, event: AnnounceEvent::Stopped, ..event },
        8 => TrafficEvent { node: NodeId(1), ..event },
        9 => TrafficEvent { at: UnixTime(1_800_070_000), steady: UnixTime(1_800_070_000), ..event },
        10 => TrafficEvent { downloaded_delta: u64::MAX, left: Some(1 << 50), ..event },
        _ => event,
    }
}
