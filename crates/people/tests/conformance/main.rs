//! What the database of people keeps, refuses and tells, on each of the three databases.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod circles;
mod fixture;
mod follow;
mod friends;
mod history;
mod privacy;
mod remembered;
