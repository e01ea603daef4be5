//! Bencoded replies, keys in ascending order. Each is appended to a buffer that the caller reuses.

use std::net::IpAddr;

use domain::Seconds;

use crate::ScrapeEntry;
use crate::bencode::{push_bytes, push_decimal, push_integer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnounceReply<'a> {
    /// Seeders.
    pub complete: u32,
    /// Leechers.
    pub incomplete: u32,
    /// Completions.
    pub downloaded: u32,
    pub interval: Seconds,
    pub min_interval: Seconds,
    /// The client's address as seen by the tracker (BEP 24).
    pub external_ip: IpAddr,
    /// IPv4 peers, six bytes each (BEP 23). Sent even if there are none.
    pub peers: &'a [u8],
    /// IPv6 peers, eighteen bytes each (BEP 7). Sent if there are any.
    pub peers6: &'a [u8],
    /// Shown to the user.
    pub warning: Option<&'a str>,
}

impl AnnounceReply<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        let octets = &mut [0; 16];
        out.extend_from_slice(b"d8:completei");
        push_decimal(out, self.complete.into());
        out.extend_from_slice(b"e10:downloadedi");
        push_decimal(out, self.downloaded.into());
        out.extend_from_slice(b"e11:external ip");
        push_bytes(out, ip_octets(self.external_ip, octets));
        out.extend_from_slice(b"10:incompletei");
        push_decimal(out, self.incomplete.into());
        out.extend_from_slice(b"e8:intervali");
        push_decimal(out, self.interval.0.into());
        out.extend_from_slice(b"e12:min intervali");
        push_decimal(out, self.min_interval.0.into());
        out.extend_from_slice(b"e5:peers");
        push_bytes(out, self.peers);
        if !self.peers6.is_empty() {
            out.extend_from_slice(b"6:peers6");
            push_bytes(out, self.peers6);
        }
        if let Some(warning) = self.warning {
            out.extend_from_slice(b"15:warning message");
            push_bytes(out, warning.as_bytes());
        }
        out.push(b'e');
    }
}

fn ip_octets(ip: IpAddr, buffer: &mut [u8; 16]) -> &[u8] {
    match ip {
        IpAddr::V4(v4) => {
            buffer[..4].copy_from_slice(&v4.octets());
            &buffer[..4]
        }
        IpAddr::V6(v6) => {
            *buffer = v6.octets();
            buffer
        }
    }
}

/// When a refused client may retry (BEP 31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryIn {
    Minutes(u32),
    Never,
}

/// The reply to a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// Shown to the user.
    pub reason: &'a str,
    /// None leaves it to the client.
    pub retry_in: Option<RetryIn>,
}

impl Failure<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"d14:failure reason");
        push_bytes(out, self.reason.as_bytes());
        // Clients without BEP 31 use the interval, and half an hour without one.
        if let Some(RetryIn::Minutes(minutes)) = self.retry_in {
            out.extend_from_slice(b"8:interval");
            push_integer(out, u64::from(minutes) * 60);
        }
        if let Some(retry_in) = self.retry_in {
            out.extend_from_slice(b"8:retry in");
            match retry_in {
                RetryIn::Minutes(minutes) => push_integer(out, minutes.into()),
                RetryIn::Never => push_bytes(out, b"never"),
            }
        }
        out.push(b'e');
    }
}

/// Appends the reply to a scrape (BEP 48). The entries are sorted, as bencode requires; a repeated hash is written
/// once.
pub fn write_scrape_reply(
    entries: &mut [ScrapeEntry],
    min_request_interval: Option<Seconds>,
    out: &mut Vec<u8>,
) {
    entries.sort_unstable_by_key(|entry| entry.info_hash);
    out.extend_from_slice(b"d5:filesd");
    let mut last = None;
    for entry in entries.iter() {
        if last == Some(entry.info_hash) {
            continue;
        }
        last = Some(entry.info_hash);
        push_bytes(out, &entry.info_hash.0);
        out.extend_from_slice(b"d8:completei");
        push_decimal(out, entry.complete.into());
        out.extend_from_slice(b"e10:downloadedi");
        push_decimal(out, entry.downloaded.into());
        out.extend_from_slice(b"e10:incompletei");
        push_decimal(out, entry.incomplete.into());
        out.extend_from_slice(b"ee");
    }
    out.push(b'e');
    if let Some(interval) = min_request_interval {
        out.extend_from_slice(b"5:flagsd20:min_request_interval");
        push_integer(out, interval.0.into());
        out.push(b'e');
    }
    out.push(b'e');
}
