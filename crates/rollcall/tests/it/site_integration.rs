//! A foreign site: the document "tracker integration" line by line, with only `curl`, `redis-cli` and a shell,
//! against two processes that share only Redis and verification calls over HTTPS.
//!
//! One process is the site (API, verify endpoint, accounts, lists), the other the tracker; each has its own
//! database and is configured by its environment. Sentences of the document are translated above their tests.

mod accounts;
mod cluster;
mod configuration;
mod dead_letters;
mod environment;
mod outage;
mod verify;
mod whitelist;
