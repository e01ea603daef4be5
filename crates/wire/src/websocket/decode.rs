//! Decoding of client frames, in chunks of any size.

use std::borrow::Cow;

use super::{
    BINARY, CLOSE, CONTINUATION, CONTROL_BYTES_MAX, FIN, MASKED, PING, PONG, RESERVED, TEXT, is_sendable,
};

/// The longest header: two bytes, a length of eight, a mask of four.
const HEAD_BYTES_MAX: usize = 14;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    Text(Cow<'a, str>),
    Binary(Cow<'a, [u8]>),
    Ping(Cow<'a, [u8]>),
    Pong(Cow<'a, [u8]>),
    /// A close frame, perhaps with a code. Nothing may follow.
    Close(Option<u16>),
}

/// Protocol violations by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A bit is set that only an extension may set.
    #[error("reserved bit set")]
    ReservedBit,
    #[error("unknown opcode")]
    UnknownKind,
    #[error("client frame without a mask")]
    NotMasked,
    /// A control frame that is too long or fragmented.
    #[error("control frame too long or fragmented")]
    BadControl,
    /// A length with its highest bit set, or in more bytes than needed.
    #[error("payload length not in its shortest form")]
    BadLength,
    /// A continuation without a message, or a new message within another.
    #[error("fragments out of order")]
    BadOrder,
    /// A close frame with half a code, or an invalid one.
    #[error("invalid close code")]
    BadCloseCode,
    #[error("a frame after the close frame")]
    AfterClose,
    #[error("text message is not UTF-8")]
    NotUtf8,
    #[error("message too long")]
    TooLong,
}

impl Violation {
    /// The code to close the connection with.
    pub const fn close_code(self) -> u16 {
        match self {
            Violation::NotUtf8 => 1007,
            Violation::TooLong => 1009,
            _ => 1002,
        }
    }

    /// Label for a counter.
    pub const fn label(self) -> &'static str {
        match self {
            Violation::ReservedBit => "reserved_bit",
            Violation::UnknownKind => "unknown_kind",
            Violation::NotMasked => "not_masked",
            Violation::BadControl => "bad_control",
            Violation::BadLength => "bad_length",
            Violation::BadOrder => "bad_order",
            Violation::BadCloseCode => "bad_close_code",
            Violation::AfterClose => "after_close",
            Violation::NotUtf8 => "not_utf8",
            Violation::TooLong => "too_long",
        }
    }
}

#[derive(Debug)]
pub struct Decoder {
    message_bytes_max: usize,
    /// An incomplete header.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: u8,
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// Received part of a message in several chunks.
    message: Vec<u8>,
    /// How much of it has been checked as UTF-8.
    checked_bytes: usize,
    /// Type of the current message.
    within: Option<Data>,
    /// Received part of a control frame in several chunks.
    control: Vec<u8>,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Text,
    Binary,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    is_last: bool,
    mask: [u8; 4],
    /// Position in the mask.
    mask_place: u8,
    remaining: usize,
    /// No payload has been read yet.
    is_untouched: bool,
}

impl Frame {
    fn is_control(self) -> bool {
        self.opcode & 0x8 != 0
    }

    /// Unmasks the next bytes of the payload.
    fn unmask(&mut self, bytes: &mut [u8]) {
        let mut mask = self.mask;
        mask.rotate_left(usize::from(self.mask_place));
        let (words, rest) = bytes.as_chunks_mut::<4>();
        let key = u32::from_ne_bytes(mask);
        for word in words {
            *word = (u32::from_ne_bytes(*word) ^ key).to_ne_bytes();
        }
        rest.iter_mut().zip(mask).for_each(|(byte, key)| *byte ^= key);
        self.mask_place = ((usize::from(self.mask_place) + bytes.len()) % 4) as u8;
        self.remaining -= bytes.len();
        self.is_untouched &= bytes.is_empty();
    }
}

impl Decoder {
    /// Accepts messages up to this length.
    pub fn new(message_bytes_max: usize) -> Decoder {
        Decoder {
            message_bytes_max,
            head: [0; HEAD_BYTES_MAX],
            head_bytes: 0,
            frame: None,
            message: Vec::new(),
            checked_bytes: 0,
            within: None,
            control: Vec::new(),
            is_closed: false,
        }
    }

    /// Whether a message or frame is incomplete.
    pub fn is_within(&self) -> bool {
        self.head_bytes > 0 || self.frame.is_some() || self.within.is_some()
    }

    /// Consumes `bytes` from the front, until an event is complete or nothing is left. To be called until there is
    /// neither an event nor input. After a violation the decoder must not be used.
    pub fn read<'a>(&mut self, bytes: &mut &'a mut [u8]) -> Result<Option<Event<'a>>, Violation> {
        loop {
            if self.is_closed && !bytes.is_empty() {
                return Err(Violation::AfterClose);
            }
            let frame = match self.frame.take() {
                Some(frame) => frame,
                None => match self.read_head(bytes)? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            if let Some(event) = self.read_payload(frame, bytes)? {
                return Ok(Some(event));
            }
            if bytes.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Reads the header until it is complete.
    fn read_head(&mut self, bytes: &mut &mut [u8]) -> Result<Option<Frame>, Violation> {
        loop {
            let have = usize::from(self.head_bytes);
            let need = head_length(&self.head[..have]);
            if have == need {
                self.head_bytes = 0;
                return Ok(Some(self.parse_head(need)?));
            }
            let count = (need - have).min(bytes.len());
            if count == 0 {
                return Ok(None);
            }
            let taken = take(bytes, count);
            self.head[have..have + count].copy_from_slice(taken);
            self.head_bytes = (have + count) as u8;
            // Violations are reported as soon as they are visible.
            if have < 2 && have + count >= 2 {
                self.check_start()?;
            }
        }
    }

    /// Checks the first two bytes of a header.
    fn check_start(&self) -> Result<(), Violation> {
        let [first, second, ..] = self.head;
        let (opcode, is_last, short_length) = (first & 0x0f, first & FIN != 0, second & 0x7f);
        if first & RESERVED != 0 {
            return Err(Violation::ReservedBit);
        }
        match opcode {
            CONTINUATION if self.within.is_none() => return Err(Violation::BadOrder),
            TEXT | BINARY if self.within.is_some() => return Err(Violation::BadOrder),
            CONTINUATION | TEXT | BINARY => {}
            CLOSE | PING | PONG if !is_last || usize::from(short_length) > CONTROL_BYTES_MAX => {
                return Err(Violation::BadControl);
            }
            CLOSE | PING | PONG => {}
            _ => return Err(Violation::UnknownKind),
        }
        if second & MASKED == 0 { Err(Violation::NotMasked) } else { Ok(()) }
    }

    fn parse_head(&mut self, length: usize) -> Result<Frame, Violation> {
        let (opcode, is_last) = (self.head[0] & 0x0f, self.head[0] & FIN != 0);
        let (sized, mask) = self.head[2..length].split_at(length - 6);
        let payload_bytes = match (self.head[1] & 0x7f, sized) {
            (126 | 127, sized) => u64::from_be_bytes(widened(sized)),
            (short, _) => u64::from(short),
        };
        let shortest = match self.head[1] & 0x7f {
            126 => 126,
            127 => 65_536,
            _ => 0,
        };
        if payload_bytes < shortest || payload_bytes >> 63 != 0 {
            return Err(Violation::BadLength);
        }
        let remaining = usize::try_from(payload_bytes).map_err(|_| Violation::TooLong)?;
        let is_control = opcode & 0x8 != 0;
        if !is_control && remaining > self.message_bytes_max - self.message.len() {
            return Err(Violation::TooLong);
        }
        match opcode {
            TEXT => self.within = Some(Data::Text),
            BINARY => self.within = Some(Data::Binary),
            _ => {}
        }
        let mask = [mask[0], mask[1], mask[2], mask[3]];
        Ok(Frame { opcode, is_last, mask, mask_place: 0, remaining, is_untouched: true })
    }

    /// Reads bytes of the payload; returns an event if it is complete.
    fn read_payload<'a>(
        &mut self,
        mut frame: Frame,
        bytes: &mut &'a mut [u8],
    ) -> Result<Option<Event<'a>>, Violation> {
        let count = frame.remaining.min(bytes.len());
        let is_in_one_piece = frame.is_untouched && count == frame.remaining;
        let payload = take(bytes, count);
        frame.unmask(payload);
        if frame.is_control() {
            return self.keep_control(frame, payload, is_in_one_piece);
        }
        let is_whole = frame.remaining == 0 && frame.is_last;
        if is_in_one_piece && is_whole && frame.opcode != CONTINUATION {
            let kind = self.within.take();
            return whole(kind, Cow::Borrowed(payload)).map(Some);
        }
        self.message.extend_from_slice(payload);
        self.check_text()?;
        if frame.remaining > 0 {
            self.frame = Some(frame);
            return Ok(None);
        }
        if !frame.is_last {
            return Ok(None);
        }
        self.checked_bytes = 0;
        let (kind, message) = (self.within.take(), std::mem::take(&mut self.message));
        whole(kind, Cow::Owned(message)).map(Some)
    }

    fn keep_control<'a>(
        &mut self,
        frame: Frame,
        payload: &'a [u8],
        is_in_one_piece: bool,
    ) -> Result<Option<Event<'a>>, Violation> {
        if is_in_one_piece {
            return self.control_event(frame.opcode, Cow::Borrowed(payload)).map(Some);
        }
        self.control.extend_from_slice(payload);
        if frame.remaining > 0 {
            self.frame = Some(frame);
            return Ok(None);
        }
        let payload = std::mem::take(&mut self.control);
        self.control_event(frame.opcode, Cow::Owned(payload)).map(Some)
    }

    fn control_event<'a>(&mut self, opcode: u8, payload: Cow<'a, [u8]>) -> Result<Event<'a>, Violation> {
        match opcode {
            PING => Ok(Event::Ping(payload)),
            PONG => Ok(Event::Pong(payload)),
            _ => {
                self.is_closed = true;
                closing(&payload).map(Event::Close)
            }
        }
    }

    /// Reports invalid UTF-8 as soon as it arrives, also across fragments.
    fn check_text(&mut self) -> Result<(), Violation> {
        if self.within != Some(Data::Text) {
            return Ok(());
        }
        match std::str::from_utf8(&self.message[self.checked_bytes..]) {
            Ok(_) => self.checked_bytes = self.message.len(),
            // An incomplete character.
            Err(error) if error.error_len().is_none() => self.checked_bytes += error.valid_up_to(),
            Err(_) => return Err(Violation::NotUtf8),
        }
        Ok(())
    }
}

/// Length of a header, as far as its beginning shows.
fn head_length(head: &[u8]) -> usize {
    match head.get(1).map(|second| second & 0x7f) {
        None => 2,
        Some(126) => 8,
        Some(127) => 14,
        Some(_) => 6,
    }
}

fn widened(bytes: &[u8]) -> [u8; 8] {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    wide
}

fn take<'a>(bytes: &mut &'a mut [u8], count: usize) -> &'a mut [u8] {
    let (taken, rest) = std::mem::take(bytes).split_at_mut(count);
    *bytes = rest;
    taken
}

fn whole(kind: Option<Data>, payload: Cow<'_, [u8]>) -> Result<Event<'_>, Violation> {
    if kind == Some(Data::Binary) {
        return Ok(Event::Binary(payload));
    }
    let text = match payload {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    };
    text.map(Event::Text).ok_or(Violation::NotUtf8)
}

fn closing(payload: &[u8]) -> Result<Option<u16>, Violation> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return if payload.is_empty() { Ok(None) } else { Err(Violation::BadCloseCode) };
    };
    let code = u16::from_be_bytes(*code);
    if !is_sendable(code) {
        return Err(Violation::BadCloseCode);
    }
    std::str::from_utf8(reason).map_err(|_| Violation::NotUtf8)?;
    Ok(Some(code))
}
