//! Servers that only reply: the limit that a real server is measured against.
//!
//! The announce servers find the end of a request and send a fixed reply of the given size. They parse nothing and
//! allocate nothing per request. The WebSocket server echoes. All end by themselves after a while, in case the process
//! that started them has ended.

pub mod http;
pub mod udp;
pub mod websocket;

/// Longest lifetime of a baseline server.
pub const LIFETIME_S_DEFAULT: u64 = 1800;
