//! Connections over real sockets: the handshake, frames, commands, tokens, limits and ends, as a client sees them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commands;
mod ends;
mod feeds;
mod fixture;
mod frames;
mod limits;
mod tokens;
