//! Servers that do nothing but answer: the limit that a real server is measured against.
//!
//! Those for announces find where a request ends and send a fixed reply of the given size. They parse nothing, know
//! nobody and allocate nothing per request. The one for WebSockets sends back what it is sent. All end by themselves
//! after a while, should whoever started them be gone.

pub mod http;
pub mod udp;
pub mod websocket;

/// How long a do-nothing server lives at most.
pub const LIFETIME_S_DEFAULT: u64 = 1800;
