//! Bencode (BEP 3): a strict reader that borrows, and a writer that appends.
//!
//! The reader checks a whole text once, in linear time and without recursion, and then returns [`Value`]s that are
//! spans of it: nothing is copied, and the raw bytes of any value (such as an info dictionary to be hashed) are
//! available.
//!
//! Strict means: one value and nothing after it, no leading zeros, no `-0`, dictionary keys in strictly ascending
//! order. So a text has one meaning, and a parsed value can be written back to the same bytes.

mod reader;
mod writer;

pub use reader::{BencodeError, Entries, Items, MAX_DEPTH, Token, Tokens, Value, parse};
pub use writer::{push_bytes, push_decimal, push_integer};
