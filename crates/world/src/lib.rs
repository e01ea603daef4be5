//! A living world: peers that announce and people who come and go, against a running server, over real sockets.
//!
//! The demo (`rollcall demo`) runs on it, and so do tests that want a server with life in it.
//!
//! # Layout
//!
//! - [`plan`]: how large, how fast, from which seed, against whom
//! - [`register`]: the users, torrents, clients and friendships of a world, into the database
//! - [`names`], [`clients`]: what things are called, and which BitTorrent clients there are
//! - [`cast`]: everybody, and whose turn is next; `peer`, `flow` and `person` decide what they do
//! - [`announce`], `line`: what a peer says, and how it travels
//! - [`frames`], `device`: a person's device on its WebSocket
//! - [`run`]: the one task that lets them all live
//! - [`truth`]: what was moved in the end
//!
//! # Guarantees
//!
//! - What everybody does follows from the seed and from what the server answers; time and answers come in as arguments, so
//!   a world can be played through without a server.
//! - Bytes add up: nobody uploads what nobody downloaded, and nobody is faster than their line.
//! - Clients come back when the server told them to, and repeat what was not answered, with totals that only grow.
//! - [`World::truth`] is what a ledger must show, to the byte, once the world has stopped and nothing was lost on the way.
//!
//! # Deliberately absent
//!
//! Content: no piece is ever moved. Load for its own sake and tens of thousands of people: `loadgen` makes those.

pub mod announce;
pub mod cast;
pub mod clients;
mod device;
mod error;
mod flow;
pub mod frames;
mod line;
pub mod names;
mod peer;
mod person;
pub mod plan;
pub mod register;
pub mod run;
pub mod truth;

pub use error::WorldError;
pub use plan::{Places, Plan, Surroundings, Tokens};
pub use run::{Tally, World};
pub use truth::{Moved, Truth};
