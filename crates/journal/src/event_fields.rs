//! The fields of an event of our trackers, as text.

use std::io::Write as _;
use std::net::IpAddr;

use domain::hex::PAIRS;
use domain::{RunId, TrafficEvent};

/// Written for an unknown `left`: larger than any torrent, and still a valid signed integer for other readers.
pub(crate) const LEFT_UNKNOWN: u64 = i64::MAX as u64;

/// Calls `field` with each name and value, in the order of J2, then ours.
pub(crate) fn for_each_field(event: &TrafficEvent, mut field: impl FnMut(&'static str, &[u8])) {
    let mut text = Text::new();
    match &event.passkey {
        Some(passkey) => {
            field("passkey", &text.hex(passkey.packed())[..usize::from(passkey.digits())]);
        }
        None => field("passkey", b""),
    }
    field("infohash", text.hex(&event.info_hash.0));
    field("peer_id", text.hex(&event.peer_id.0));
    field("port", text.decimal(event.port.into()));
    field("ip", text.ip(event.ip));
    field("af", event.address_family().as_bytes());
    field("du", text.decimal(event.uploaded_delta));
    field("dd", text.decimal(event.downloaded_delta));
    field("left", text.decimal(event.left.unwrap_or(LEFT_UNKNOWN)));
    field("event", event.event.name().as_bytes());
    field("ts", text.decimal(event.at.0.into()));
    field("dt", text.decimal(event.since_last.0.into()));
    field("interval", text.decimal(event.interval.0.into()));
    field("min_interval", text.decimal(event.min_interval.0.into()));
    field("node", text.hex(&event.node.0.to_be_bytes()));
    // The counters of a client that only another producer reported are unknown.
    if event.session.run != RunId::NONE {
        field("sid", text.session(event.session.client.0, event.session.run.0));
        field("up", text.decimal(event.uploaded_total));
        field("down", text.decimal(event.downloaded_total));
    }
    field("cause", event.cause.name().as_bytes());
    field("user", text.decimal(event.user.get()));
    if let Some(torrent) = event.torrent {
        field("torrent", text.decimal(torrent.get()));
    }
    if event.key.is_some() {
        field("key", text.hex(&event.key.0.to_be_bytes()));
    }
    if event.uncredited_upload > 0 {
        field("nu", text.decimal(event.uncredited_upload));
    }
    if event.steady != event.at {
        field("steady", text.decimal(event.steady.0.into()));
    }
}

/// Formats one value at a time, without the formatting machinery of `std`.
struct Text([u8; Text::LENGTH]);

impl Text {
    /// Of the longest value, a passkey.
    const LENGTH: usize = 64;

    fn new() -> Self {
        Text([0; Text::LENGTH])
    }

    fn hex(&mut self, bytes: &[u8]) -> &[u8] {
        for (pair, byte) in self.0.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
            *pair = PAIRS[usize::from(*byte)];
        }
        &self.0[..2 * bytes.len()]
    }

    fn session(&mut self, client: u64, run: u32) -> &[u8] {
        self.hex(&run.to_be_bytes());
        self.0.copy_within(..8, 17);
        self.hex(&client.to_be_bytes());
        self.0[16] = b'-';
        &self.0[..25]
    }

    fn decimal(&mut self, mut number: u64) -> &[u8] {
        let mut start = Text::LENGTH;
        loop {
            start -= 1;
            self.0[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return &self.0[start..];
            }
        }
    }

    fn ip(&mut self, ip: IpAddr) -> &[u8] {
        let mut rest = self.0.as_mut_slice();
        write!(rest, "{ip}").expect("an address is shorter than the buffer");
        let unused = rest.len();
        &self.0[..Text::LENGTH - unused]
    }
}
