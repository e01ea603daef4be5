//! A site written by somebody else: the document "tracker integration" line by line, with nothing but `curl`, `redis-cli`
//! and a shell, against two processes that know each other only by Redis and by verify calls over HTTPS.
//!
//! One process is the site (API, verify endpoint, accounts, lists), the other the tracker; each has a database of its own
//! and is told everything by its environment. Sentences of the document stand, translated, above what they are tested
//! by.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod cluster;
mod configuration;
mod dead_letters;
mod environment;
mod outage;
mod verify;
mod whitelist;
