//! Blocks: entries of the traffic lane as the embedded journal stores them, many in one value.
//!
//! A block is a sequence of segments. A segment is its [`Kind`] (1 byte), the number of its entries and the length of
//! the rest (4 bytes each), and the rest:
//!
//! - [`Kind::Packed`]: the context, then events in [packed form](crate::packed)
//! - [`Kind::Fields`]: entries of any other producer, each as its length (4 bytes) and its [`Fields`]
//!
//! Numbers are little-endian. An entry of either kind is read with exactly the fields it was written with.

use domain::TrafficEvent;

use crate::entry::TrafficEntry;
use crate::fields::Fields;
use crate::packed::{self, Context, PackedEvents};

/// The first byte of a segment. Must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fields = 0,
    Packed = 1,
}

/// Blocks end with the segment that reaches this size.
const BLOCK_BYTES: usize = 256 << 10;
const HEAD_BYTES: usize = 9;
const LENGTH_BYTES: usize = 4;

/// A block to be stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) entries: usize,
    pub(crate) data: Vec<u8>,
}

impl Block {
    fn push(&mut self, kind: Kind, entries: usize, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.data.push(kind as u8);
        self.data.extend_from_slice(&number(entries));
        self.data.extend_from_slice(&number(length));
        for part in parts {
            self.data.extend_from_slice(part);
        }
        self.entries += entries;
    }

    fn is_full(&self) -> bool {
        self.data.len() >= BLOCK_BYTES
    }
}

fn number(number: usize) -> [u8; LENGTH_BYTES] {
    u32::try_from(number).expect("a segment in memory is shorter than 4 GiB").to_le_bytes()
}

/// The blocks of a batch of packed events.
pub(crate) fn blocks_of_events(batch: &[PackedEvents]) -> Vec<Block> {
    let mut blocks = Blocks::default();
    for events in batch {
        blocks.push_events(events);
    }
    blocks.finish()
}

/// The blocks of entries of any producer. Those that one of our trackers wrote are packed.
pub(crate) fn blocks_of_fields(entries: &[&Fields]) -> Vec<Block> {
    let mut blocks = Blocks::default();
    let mut events: Option<PackedEvents> = None;
    for fields in entries {
        match event_of(fields) {
            Some(event) if events.as_mut().is_some_and(|events| events.push(&event)) => {}
            Some(event) => {
                if let Some(complete) = events.replace(PackedEvents::of(&event)) {
                    blocks.push_events(&complete);
                }
            }
            None => {
                if let Some(complete) = events.take() {
                    blocks.push_events(&complete);
                }
                let bytes = fields.as_bytes();
                blocks.current().push(Kind::Fields, 1, &[&number(bytes.len()), bytes]);
            }
        }
    }
    if let Some(complete) = events {
        blocks.push_events(&complete);
    }
    blocks.finish()
}

/// The event with exactly these fields; none if one of our trackers cannot have written them.
fn event_of(fields: &Fields) -> Option<TrafficEvent> {
    if let Some(event) = fields.as_event() {
        return Some(*event);
    }
    let event = TrafficEntry::parse(fields).ok()?.to_event()?;
    (TrafficEntry::fields_of(&event) == *fields).then_some(event)
}

#[derive(Default)]
struct Blocks(Vec<Block>);

impl Blocks {
    /// The block that the next segment belongs to.
    fn current(&mut self) -> &mut Block {
        if self.0.last().is_none_or(Block::is_full) {
            self.0.push(Block::default());
        }
        self.0.last_mut().expect("one was pushed")
    }

    fn push_events(&mut self, events: &PackedEvents) {
        let context = events.context().to_bytes();
        self.current().push(Kind::Packed, events.len(), &[&context, events.as_bytes()]);
    }

    fn finish(self) -> Vec<Block> {
        self.0
    }
}

/// Reads the entries of a block, in order. An entry is `Err` if its bytes are not one, and then so is every one after it.
pub(crate) struct BlockReader {
    data: Vec<u8>,
    at: usize,
    segment: Option<Segment>,
}

#[derive(Clone, Copy)]
struct Segment {
    kind: Kind,
    left: usize,
    /// Of packed events.
    context: Context,
}

/// The bytes at this position are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAnEntry;

impl BlockReader {
    pub(crate) fn new(data: Vec<u8>) -> BlockReader {
        BlockReader { data, at: 0, segment: None }
    }

    /// Passes over entries.
    pub(crate) fn skip(&mut self, entries: usize) -> Result<(), NotAnEntry> {
        for _ in 0..entries {
            self.step()?;
        }
        Ok(())
    }

    pub(crate) fn read(&mut self) -> Result<Fields, NotAnEntry> {
        let (segment, start, end) = self.step()?;
        match segment.kind {
            Kind::Packed => {
                let (event, _) =
                    packed::unpack(&segment.context, &self.data[start..end]).ok_or(NotAnEntry)?;
                Ok(Fields::of_event(event))
            }
            Kind::Fields => Fields::from_bytes(self.data[start..end].to_vec()).ok_or(NotAnEntry),
        }
    }

    /// The next entry's segment and bytes.
    fn step(&mut self) -> Result<(Segment, usize, usize), NotAnEntry> {
        let mut segment = match self.segment {
            Some(segment) if segment.left > 0 => segment,
            _ => self.next_segment().ok_or(NotAnEntry)?,
        };
        let rest = &self.data[self.at..];
        let (start, length) = match segment.kind {
            Kind::Packed => (self.at, packed::length(rest).ok_or(NotAnEntry)?),
            Kind::Fields => (self.at + LENGTH_BYTES, length_at(rest).ok_or(NotAnEntry)?),
        };
        let end = start + length;
        if end > self.data.len() {
            return Err(NotAnEntry);
        }
        segment.left -= 1;
        self.at = end;
        self.segment = Some(segment);
        Ok((segment, start, end))
    }

    fn next_segment(&mut self) -> Option<Segment> {
        loop {
            let (head, _) = self.data.get(self.at..)?.split_first_chunk::<HEAD_BYTES>()?;
            let left = length_at(&head[1..])?;
            let rest = &self.data[self.at + HEAD_BYTES..];
            let (kind, context, start) = match head[0] {
                kind if kind == Kind::Packed as u8 => {
                    (Kind::Packed, Context::from_bytes(rest)?, Context::BYTES)
                }
                kind if kind == Kind::Fields as u8 => (Kind::Fields, Context::NONE, 0),
                _ => return None,
            };
            self.at += HEAD_BYTES + start;
            if left > 0 {
                return Some(Segment { kind, left, context });
            }
        }
    }
}

fn length_at(bytes: &[u8]) -> Option<usize> {
    bytes.first_chunk::<LENGTH_BYTES>().map(|length| u32::from_le_bytes(*length) as usize)
}
