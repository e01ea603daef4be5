//! Events of our own trackers in packed form, about 90 bytes each: as they wait in the queue, and as the embedded
//! journal stores them.
//!
//! # Form
//!
//! What hardly ever differs from one event to the next stands once, in the [`Context`]. An event is:
//!
//! - 16 bits ([`mod@flag`]): event, cause, and which of the other parts are there
//! - eight lengths of 4 bits: bytes of `du`, `dd`, `left`, `up`, `down`, `user`, `torrent`, `dt`; zero has none
//! - passkey (preceded by its number of digits, unless they are 32), infohash, peer id, port, address
//! - the lower half of `ts`; run, client, key, `steady`, intervals: if they are there
//! - the eight numbers, then `nu`
//!
//! All numbers are little-endian. The client half of `sid` is left out where it can be derived again. Must never
//! change: another form gets another [`Kind`](crate::block::Kind).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::{
    AnnounceEvent, Cause, ClientId, ClientKey, InfoHash, NodeId, Passkey, PeerId, RunId, Seconds, SessionId,
    TorrentId, TrafficEvent, UnixTime, UserId,
};

mod flag {
    /// Two bits: the event.
    pub(super) const EVENT: u16 = 0b11;
    pub(super) const CAUSE_SHIFT: u16 = 2;
    /// Two bits: the cause.
    pub(super) const CAUSE: u16 = 0b11 << CAUSE_SHIFT;
    pub(super) const IPV6: u16 = 1 << 4;
    pub(super) const PASSKEY: u16 = 1 << 5;
    /// The passkey has 32 digits.
    pub(super) const USUAL_DIGITS: u16 = 1 << 6;
    pub(super) const TORRENT: u16 = 1 << 7;
    pub(super) const LEFT: u16 = 1 << 8;
    pub(super) const KEY: u16 = 1 << 9;
    /// `sid`, `up` and `down` are there.
    pub(super) const SESSION: u16 = 1 << 10;
    /// The client of the session is not the one that follows from user, torrent and key.
    pub(super) const CLIENT: u16 = 1 << 11;
    /// Steady time differs from wall time.
    pub(super) const STEADY: u16 = 1 << 12;
    /// The intervals differ from those of the context.
    pub(super) const INTERVALS: u16 = 1 << 13;
    pub(super) const UNCREDITED: u16 = 1 << 14;
    pub(super) const ALL: u16 = (1 << 15) - 1;
}

/// Longer than any event.
const EVENT_BYTES_MAX: usize = 256;
const USUAL_DIGITS: u8 = 32;

/// What the events of a list have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) node: NodeId,
    pub(crate) interval: Seconds,
    pub(crate) min_interval: Seconds,
    /// `ts` without its lower 16 bits.
    pub(crate) at: UnixTime,
}

impl Context {
    pub(crate) const BYTES: usize = 20;
    /// Of entries that are not packed.
    pub(crate) const NONE: Context =
        Context { node: NodeId(0), interval: Seconds(0), min_interval: Seconds(0), at: UnixTime(0) };

    fn of(event: &TrafficEvent) -> Context {
        let TrafficEvent { node, interval, min_interval, at, .. } = *event;
        Context { node, interval, min_interval, at: UnixTime(at.0 & !0xffff) }
    }

    /// Whether an event can be packed with this context.
    fn fits(&self, event: &TrafficEvent) -> bool {
        self.node == event.node && self.at.0 == event.at.0 & !0xffff
    }

    pub(crate) fn to_bytes(self) -> [u8; Context::BYTES] {
        let mut out = Writer::<{ Context::BYTES }>::new();
        out.put(&self.node.0.to_le_bytes());
        out.put(&self.interval.0.to_le_bytes());
        out.put(&self.min_interval.0.to_le_bytes());
        out.put(&self.at.0.to_le_bytes());
        out.bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Context> {
        let mut read = Reader(bytes);
        Some(Context {
            node: NodeId(u64::from_le_bytes(read.array()?)),
            interval: Seconds(u32::from_le_bytes(read.array()?)),
            min_interval: Seconds(u32::from_le_bytes(read.array()?)),
            at: UnixTime(u32::from_le_bytes(read.array()?)),
        })
    }
}

/// Events with a common context, in order.
#[derive(Clone, Debug)]
pub struct PackedEvents {
    context: Context,
    count: usize,
    bytes: Vec<u8>,
}

impl PackedEvents {
    /// A list of one event.
    pub fn of(event: &TrafficEvent) -> PackedEvents {
        let mut events = PackedEvents { context: Context::of(event), count: 0, bytes: Vec::new() };
        events.append(event);
        events
    }

    /// Appends an event; false if its context is another.
    pub fn push(&mut self, event: &TrafficEvent) -> bool {
        let fits = self.context.fits(event);
        if fits {
            self.append(event);
        }
        fits
    }

    fn append(&mut self, event: &TrafficEvent) {
        pack(&mut self.bytes, &self.context, event);
        self.count += 1;
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Gives back unused memory.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    pub fn iter(&self) -> impl Iterator<Item = TrafficEvent> {
        let mut rest = self.bytes.as_slice();
        (0..self.count).map(move |_| {
            let (event, after) = unpack(&self.context, rest).expect("a list holds what was packed");
            rest = after;
            event
        })
    }

    pub(crate) fn context(&self) -> Context {
        self.context
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn pack(out: &mut Vec<u8>, context: &Context, event: &TrafficEvent) {
    let has_session = event.session.run != RunId::NONE;
    let is_derived = || event.session.client == derived_client(event);
    let mut flags = event_number(event.event) | cause_number(event.cause) << flag::CAUSE_SHIFT;
    let mut set = |flag: u16, is_set: bool| flags |= if is_set { flag } else { 0 };
    set(flag::IPV6, event.ip.is_ipv6());
    set(flag::PASSKEY, event.passkey.is_some());
    set(flag::USUAL_DIGITS, event.passkey.is_some_and(|passkey| passkey.digits() == USUAL_DIGITS));
    set(flag::TORRENT, event.torrent.is_some());
    set(flag::LEFT, event.left.is_some());
    set(flag::KEY, event.key.is_some());
    set(flag::SESSION, has_session);
    set(flag::CLIENT, has_session && !is_derived());
    set(flag::STEADY, event.steady != event.at);
    let has_usual_intervals =
        (event.interval, event.min_interval) == (context.interval, context.min_interval);
    set(flag::INTERVALS, !has_usual_intervals);
    set(flag::UNCREDITED, event.uncredited_upload > 0);

    let numbers = [
        event.uploaded_delta,
        event.downloaded_delta,
        event.left.unwrap_or_default(),
        if has_session { event.uploaded_total } else { 0 },
        if has_session { event.downloaded_total } else { 0 },
        event.user.get(),
        event.torrent.map_or(0, TorrentId::get),
        event.since_last.0.into(),
    ];
    let lengths = numbers.iter().rev().fold(0, |lengths: u32, number| lengths << 4 | length_of(*number));

    let mut packed = Writer::<EVENT_BYTES_MAX>::new();
    packed.put(&flags.to_le_bytes());
    packed.put(&lengths.to_le_bytes());
    if let Some(passkey) = &event.passkey {
        if passkey.digits() != USUAL_DIGITS {
            packed.put(&[passkey.digits()]);
        }
        packed.put(passkey.packed());
    }
    packed.put(&event.info_hash.0);
    packed.put(&event.peer_id.0);
    packed.put(&event.port.to_le_bytes());
    match event.ip {
        IpAddr::V4(ip) => packed.put(&ip.octets()),
        IpAddr::V6(ip) => packed.put(&ip.octets()),
    }
    packed.put(&(event.at.0 as u16).to_le_bytes());
    if has_session {
        packed.put(&event.session.run.0.to_le_bytes());
    }
    if flags & flag::CLIENT != 0 {
        packed.put(&event.session.client.0.to_le_bytes());
    }
    if flags & flag::KEY != 0 {
        packed.put(&event.key.0.to_le_bytes());
    }
    if flags & flag::STEADY != 0 {
        packed.put(&event.steady.0.to_le_bytes());
    }
    if flags & flag::INTERVALS != 0 {
        packed.put(&event.interval.0.to_le_bytes());
        packed.put(&event.min_interval.0.to_le_bytes());
    }
    for number in numbers {
        packed.put_number(number, length_of(number));
    }
    if flags & flag::UNCREDITED != 0 {
        packed.put(&event.uncredited_upload.to_le_bytes());
    }
    out.extend_from_slice(&packed.bytes[..packed.length]);
}

/// The first event, and the bytes after it; none if the bytes are not an event in packed form.
pub(crate) fn unpack<'b>(context: &Context, bytes: &'b [u8]) -> Option<(TrafficEvent, &'b [u8])> {
    let mut read = Reader(bytes);
    let flags = u16::from_le_bytes(read.array()?);
    let lengths = u32::from_le_bytes(read.array()?);
    let has = |flag: u16| flags & flag != 0;
    if flags & !flag::ALL != 0 {
        return None;
    }
    let passkey = match (has(flag::PASSKEY), has(flag::USUAL_DIGITS)) {
        (false, _) => None,
        (true, is_usual) => {
            let digits = if is_usual { USUAL_DIGITS } else { read.array::<1>()?[0] };
            Some(Passkey::from_packed(read.bytes(Passkey::packed_bytes(digits))?, digits)?)
        }
    };
    let (info_hash, peer_id) = (InfoHash(read.array()?), PeerId(read.array()?));
    let port = u16::from_le_bytes(read.array()?);
    let ip = match has(flag::IPV6) {
        true => IpAddr::V6(Ipv6Addr::from(read.array::<16>()?)),
        false => IpAddr::V4(Ipv4Addr::from(read.array::<4>()?)),
    };
    let at = UnixTime(context.at.0 | u32::from(u16::from_le_bytes(read.array()?)));
    let run = if has(flag::SESSION) { RunId(u32::from_le_bytes(read.array()?)) } else { RunId::NONE };
    let client = if has(flag::CLIENT) { Some(ClientId(u64::from_le_bytes(read.array()?))) } else { None };
    let key = if has(flag::KEY) { ClientKey(u32::from_le_bytes(read.array()?)) } else { ClientKey::NONE };
    let steady = if has(flag::STEADY) { UnixTime(u32::from_le_bytes(read.array()?)) } else { at };
    let (interval, min_interval) = match has(flag::INTERVALS) {
        true => (Seconds(u32::from_le_bytes(read.array()?)), Seconds(u32::from_le_bytes(read.array()?))),
        false => (context.interval, context.min_interval),
    };
    let mut numbers = [0; 8];
    for (position, number) in numbers.iter_mut().enumerate() {
        *number = read.number((lengths >> (4 * position)) & 0x0f)?;
    }
    let [uploaded_delta, downloaded_delta, left, uploaded_total, downloaded_total, user, torrent, dt] =
        numbers;
    let uncredited_upload = if has(flag::UNCREDITED) { u64::from_le_bytes(read.array()?) } else { 0 };
    let mut event = TrafficEvent {
        passkey,
        user: UserId::new(user)?,
        torrent: if has(flag::TORRENT) { Some(TorrentId::new(torrent)?) } else { None },
        info_hash,
        peer_id,
        port,
        ip,
        uploaded_delta,
        downloaded_delta,
        left: has(flag::LEFT).then_some(left),
        event: EVENTS[usize::from(flags & flag::EVENT)],
        at,
        steady,
        since_last: Seconds(u32::try_from(dt).ok()?),
        interval,
        min_interval,
        node: context.node,
        session: SessionId { client: ClientId(0), run },
        uploaded_total,
        downloaded_total,
        cause: *CAUSES.get(usize::from((flags & flag::CAUSE) >> flag::CAUSE_SHIFT))?,
        key,
        uncredited_upload,
    };
    if has(flag::SESSION) {
        event.session.client = client.unwrap_or_else(|| derived_client(&event));
    }
    Some((event, read.0))
}

/// The bytes of the first event, without decoding it; none if they are not all there.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let mut read = Reader(bytes);
    let flags = u16::from_le_bytes(read.array()?);
    let lengths = u32::from_le_bytes(read.array()?);
    let if_set = |flag: u16, bytes: usize| if flags & flag != 0 { bytes } else { 0 };
    let passkey = match (flags & flag::PASSKEY != 0, flags & flag::USUAL_DIGITS != 0) {
        (false, _) => 0,
        (true, true) => Passkey::packed_bytes(USUAL_DIGITS),
        (true, false) => 1 + Passkey::packed_bytes(read.array::<1>()?[0]),
    };
    let address = if flags & flag::IPV6 != 0 { 16 } else { 4 };
    let numbers: u32 = (0..8).map(|position| (lengths >> (4 * position)) & 0x0f).sum();
    let optional = if_set(flag::SESSION, 4)
        + if_set(flag::CLIENT, 8)
        + if_set(flag::KEY, 4)
        + if_set(flag::STEADY, 4)
        + if_set(flag::INTERVALS, 8)
        + if_set(flag::UNCREDITED, 8);
    let length = 6 + passkey + 20 + 20 + 2 + address + 2 + optional + numbers as usize;
    (length <= bytes.len()).then_some(length)
}

fn derived_client(event: &TrafficEvent) -> ClientId {
    ClientId::derive(event.user, &event.info_hash, event.key, &event.peer_id)
}

/// By number.
const EVENTS: [AnnounceEvent; 4] =
    [AnnounceEvent::None, AnnounceEvent::Started, AnnounceEvent::Completed, AnnounceEvent::Stopped];
const CAUSES: [Cause; 3] = [Cause::Announce, Cause::Timeout, Cause::Removal];

const fn event_number(event: AnnounceEvent) -> u16 {
    match event {
        AnnounceEvent::None => 0,
        AnnounceEvent::Started => 1,
        AnnounceEvent::Completed => 2,
        AnnounceEvent::Stopped => 3,
    }
}

const fn cause_number(cause: Cause) -> u16 {
    match cause {
        Cause::Announce => 0,
        Cause::Timeout => 1,
        Cause::Removal => 2,
    }
}

/// Bytes of a number without its leading zeros.
const fn length_of(number: u64) -> u32 {
    (u64::BITS - number.leading_zeros()).div_ceil(8)
}

/// Collects an event before it is appended to the list at once.
struct Writer<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Writer<N> {
    fn new() -> Self {
        Writer { bytes: [0; N], length: 0 }
    }

    fn put(&mut self, part: &[u8]) {
        self.bytes[self.length..self.length + part.len()].copy_from_slice(part);
        self.length += part.len();
    }

    fn put_number(&mut self, number: u64, length: u32) {
        // All eight bytes, of which the next part overwrites the unused: a copy of fixed size is faster.
        self.bytes[self.length..self.length + 8].copy_from_slice(&number.to_le_bytes());
        self.length += length as usize;
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number of up to eight bytes.
    fn number(&mut self, length: u32) -> Option<u64> {
        if length == 0 {
            return Some(0);
        }
        if length > 8 {
            return None;
        }
        match self.0.first_chunk::<8>() {
            Some(eight) => {
                self.0 = &self.0[length as usize..];
                Some(u64::from_le_bytes(*eight) & (u64::MAX >> (64 - 8 * length)))
            }
            None => {
                let mut eight = [0; 8];
                eight[..length as usize].copy_from_slice(self.bytes(length as usize)?);
                Some(u64::from_le_bytes(eight))
            }
        }
    }
}
