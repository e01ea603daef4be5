//! Connections over real sockets: the handshake, frames, commands, tokens, limits and ends, as a client sees them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commands;
mod ends;
mod frames;
mod limits;
mod operators;
mod scene;
mod tokens;
