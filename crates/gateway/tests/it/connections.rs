//! Connections over real sockets: the handshake, frames, commands, tokens, limits and ends, as a client sees them.

mod commands;
mod ends;
mod feeds;
mod fixture;
mod frames;
mod limits;
mod tokens;
