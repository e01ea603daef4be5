//! Servers that do nothing but answer: the limit that a real server is measured against.
//!
//! They find where a request ends and send a fixed reply of the given size. They parse nothing, know nobody and
//! allocate nothing per request. Both end by themselves after a while, should whoever started them be gone.

pub mod http;
pub mod udp;

/// How long a do-nothing server lives at most.
pub const LIFETIME_S_DEFAULT: u64 = 1800;
