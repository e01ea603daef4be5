//! WebSocket frames (RFC 6455), server side: decoding of client frames, encoding of server frames.
//!
//! # Layout
//!
//! - [`Decoder`]: decodes what a client sends, in chunks of any size
//! - `encode`: encodes what a server sends, and its reply to the handshake
//!
//! # Guarantees
//!
//! - Every violation of the RFC is a [`Violation`] with its close code.
//! - A message is never longer than its bound, and a longer one is refused before it is stored.
//! - A message in one frame and one chunk is unmasked in place and borrowed: nothing is allocated. An idle decoder owns
//!   no heap memory.
//!
//! # Deliberately absent
//!
//! Extensions (compression would cost every connection a window of memory), the client side, and I/O.

mod decode;
mod encode;

pub use decode::{Decoder, Event, Violation};
pub use encode::{accept_key, write_close, write_ping, write_pong, write_text, write_text_head};

/// The longest payload of a control frame.
pub const CONTROL_BYTES_MAX: usize = 125;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
/// The last frame of its message.
const FIN: u8 = 0x80;
/// Bits that only an extension may set.
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

/// Whether a close code may be sent over the wire (RFC 6455, 7.4, and the registry it refers to).
fn is_sendable(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
