//! WebSocket frames (RFC 6455), the server's side: bytes from clients to messages, and messages to bytes.
//!
//! # Layout
//!
//! - [`Decoder`]: what a client sends, fed in pieces of any size
//! - `encode`: what a server sends, and its answer to the handshake
//!
//! # Guarantees
//!
//! - Every breach of the RFC is a [`Violation`] that knows its close code; nothing is let pass.
//! - A message is never longer than its bound, and what is refused is refused before it is kept.
//! - A message that comes whole in one frame and one piece is unmasked where it is and lent out: nothing is allocated.
//!   An idle decoder holds no memory besides itself.
//!
//! # Deliberately absent
//!
//! Extensions (compression would cost every connection a window of memory), the client's side, and I/O.

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
