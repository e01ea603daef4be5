//! Bencode (BEP 3): a strict reader that borrows, and a writer that appends.
//!
//! The reader checks a whole text once, in linear time and without recursion, and then hands out [`Value`]s that are
//! spans of it: nothing is copied, and the raw bytes of any value (an info dictionary to be hashed) are at hand.
//!
//! Strict means: one value and nothing behind it, no leading zeros, no `-0`, dictionary keys in ascending order and
//! none twice. So a text has one meaning, and what was read can be written back to the same bytes.

mod reader;
mod writer;

pub use reader::{BencodeError, Entries, Items, MAX_DEPTH, Token, Tokens, Value, parse};
pub use writer::{push_bytes, push_decimal, push_integer};
