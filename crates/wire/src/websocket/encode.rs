//! Server frames: unmasked, one message each.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};

use super::{CLOSE, CONTROL_BYTES_MAX, FIN, PING, PONG, TEXT, is_sendable};

const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`. None if the key is not sixteen bytes in base64.
pub fn accept_key(key: &[u8]) -> Option<String> {
    // The buffer is that of 24 digits. A longer key does not fit.
    if BASE64_STANDARD.decode_slice(key, &mut [0; 18]) != Ok(16) {
        return None;
    }
    let digest = Sha1::new().chain_update(key).chain_update(ACCEPT_SALT).finalize();
    Some(BASE64_STANDARD.encode(digest))
}

/// Appends the header of a text message with a payload of this length.
pub fn write_text_head(out: &mut Vec<u8>, length: usize) {
    write_head(out, TEXT, length);
}

pub fn write_text(out: &mut Vec<u8>, text: &str) {
    write_head(out, TEXT, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a ping. A longer payload is cut.
pub fn write_ping(out: &mut Vec<u8>, payload: &[u8]) {
    write_control(out, PING, payload);
}

pub fn write_pong(out: &mut Vec<u8>, payload: &[u8]) {
    write_control(out, PONG, payload);
}

/// Appends a close frame. An invalid code is left out; a longer reason is cut.
pub fn write_close(out: &mut Vec<u8>, code: u16, reason: &str) {
    if !is_sendable(code) {
        return write_control(out, CLOSE, &[]);
    }
    let mut payload = [0; CONTROL_BYTES_MAX];
    payload[..2].copy_from_slice(&code.to_be_bytes());
    let reason = &reason[..reason.floor_char_boundary(CONTROL_BYTES_MAX - 2)];
    payload[2..2 + reason.len()].copy_from_slice(reason.as_bytes());
    write_control(out, CLOSE, &payload[..2 + reason.len()]);
}

fn write_control(out: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    let payload = &payload[..payload.len().min(CONTROL_BYTES_MAX)];
    write_head(out, opcode, payload.len());
    out.extend_from_slice(payload);
}

fn write_head(out: &mut Vec<u8>, opcode: u8, length: usize) {
    out.push(FIN | opcode);
    if let Ok(short) = u8::try_from(length)
        && short < 126
    {
        out.push(short);
    } else if let Ok(medium) = u16::try_from(length) {
        out.push(126);
        out.extend_from_slice(&medium.to_be_bytes());
    } else {
        out.push(127);
        out.extend_from_slice(&(length as u64).to_be_bytes());
    }
}
