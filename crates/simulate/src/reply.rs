//! Replies to announces, over HTTP and UDP.

use std::time::Duration;

use wire::udp::CONNECT_MAGIC;

use crate::error::SimulationError;

/// BEP 15: the actions of requests and replies.
pub const ACTION_CONNECT: u32 = 0;
pub const ACTION_ANNOUNCE: u32 = 1;
pub const ACTION_ERROR: u32 = 3;
/// UDP replies have no `min interval`: this fraction of the interval is used.
const MIN_INTERVAL_DIVISOR: u32 = 6;

/// The outcome of an announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnounceOutcome {
    Accepted {
        interval: Duration,
        min_interval: Duration,
    },
    /// With the failure reason.
    Refused(String),
    /// There was no reply.
    Lost,
}

/// Where an HTTP reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpReply {
    pub body_start: usize,
    pub length: usize,
}

impl HttpReply {
    /// The reply at the beginning of `bytes`; none if it is incomplete.
    pub fn find(bytes: &[u8]) -> Result<Option<HttpReply>, SimulationError> {
        let Some(head_length) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
        let head = &bytes[..head_length];
        let body_length = content_length(head).ok_or_else(|| SimulationError::not_a_reply(head))?;
        let body_start = head_length + 4;
        let length = body_start + body_length;
        Ok((length <= bytes.len()).then_some(HttpReply { body_start, length }))
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME))?;
    std::str::from_utf8(&line[NAME.len()..]).ok()?.trim().parse().ok()
}

/// The outcome in the body of an HTTP reply.
pub fn read_body(body: &[u8]) -> Result<AnnounceOutcome, SimulationError> {
    let value = wire::bencode::parse(body).map_err(|_| SimulationError::not_a_reply(body))?;
    if let Some(reason) = value.get(b"failure reason") {
        let reason = reason.as_bytes().unwrap_or_default();
        return Ok(AnnounceOutcome::Refused(String::from_utf8_lossy(reason).into_owned()));
    }
    let seconds = |key: &[u8]| {
        let number = value.get(key)?.as_integer()?;
        Some(Duration::from_secs(u64::try_from(number).ok()?))
    };
    let interval = seconds(b"interval").ok_or_else(|| SimulationError::not_a_reply(body))?;
    let min_interval = seconds(b"min interval").unwrap_or(interval / MIN_INTERVAL_DIVISOR);
    Ok(AnnounceOutcome::Accepted { interval, min_interval })
}

/// The outcome in a UDP reply.
pub fn read_packet(packet: &[u8]) -> Result<AnnounceOutcome, SimulationError> {
    match (number_at(packet, 0), number_at(packet, 8)) {
        (Some(ACTION_ANNOUNCE), Some(seconds)) => {
            let interval = Duration::from_secs(seconds.into());
            Ok(AnnounceOutcome::Accepted { interval, min_interval: interval / MIN_INTERVAL_DIVISOR })
        }
        (Some(ACTION_ERROR), _) => {
            let reason = packet.get(8..).unwrap_or_default();
            Ok(AnnounceOutcome::Refused(String::from_utf8_lossy(reason).into_owned()))
        }
        _ => Err(SimulationError::not_a_reply(packet)),
    }
}

pub fn connect_request(transaction: u32) -> [u8; 16] {
    let mut packet = [0; 16];
    packet[..8].copy_from_slice(&CONNECT_MAGIC.to_be_bytes());
    packet[8..12].copy_from_slice(&ACTION_CONNECT.to_be_bytes());
    packet[12..].copy_from_slice(&transaction.to_be_bytes());
    packet
}

/// The connection id of a connect reply; none if it does not belong to `transaction`.
pub fn connection_id(reply: &[u8], transaction: u32) -> Option<u64> {
    let id = reply.get(8..16)?.try_into().ok()?;
    (action_and_transaction(reply)? == (ACTION_CONNECT, transaction)).then(|| u64::from_be_bytes(id))
}

/// The header of every reply.
pub fn action_and_transaction(reply: &[u8]) -> Option<(u32, u32)> {
    Some((number_at(reply, 0)?, number_at(reply, 4)?))
}

fn number_at(packet: &[u8], at: usize) -> Option<u32> {
    packet.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_understood() {
        let accepted =
            read_body(b"d8:completei1e10:incompletei0e8:intervali30e12:min intervali5e5:peers0:e").unwrap();
        let (interval, min_interval) = (Duration::from_secs(30), Duration::from_secs(5));
        assert_eq!(accepted, AnnounceOutcome::Accepted { interval, min_interval });
        assert_eq!(read_body(b"d14:failure reason2:noe").unwrap(), AnnounceOutcome::Refused("no".to_owned()));
        assert!(read_body(b"<html>").is_err());
        let packet = [0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(read_packet(&packet).unwrap(), AnnounceOutcome::Accepted { interval, min_interval });
        assert_eq!(
            read_packet(b"\0\0\0\x03\0\0\0\x09no").unwrap(),
            AnnounceOutcome::Refused("no".to_owned())
        );
        assert!(read_packet(b"\0\0").is_err());
    }

    #[test]
    fn a_reply_ends_where_its_content_length_says() {
        let one = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nd1e".as_slice();
        let expected = HttpReply { body_start: one.len() - 3, length: one.len() };
        assert_eq!(HttpReply::find(one).unwrap(), Some(expected));
        assert_eq!(HttpReply::find(&[one, one].concat()).unwrap(), Some(expected));
        for cut in 0..one.len() {
            assert_eq!(HttpReply::find(&one[..cut]).unwrap(), None, "cut at {cut}");
        }
        assert!(HttpReply::find(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n").is_err(), "of unknown length");
    }

    #[test]
    fn a_connection_id_is_taken_only_from_the_reply_to_ones_own_request() {
        let mut reply = connect_request(5);
        reply[..8].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(connection_id(&reply, 5), Some(5));
        assert_eq!(connection_id(&reply, 6), None);
        assert_eq!(connection_id(&reply[..15], 5), None);
    }
}
