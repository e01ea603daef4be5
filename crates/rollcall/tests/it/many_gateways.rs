//! Several gateways on one Redis or Redis Cluster, as whole processes, with users on all of them, watchers, and every
//! kind of fault (P3, P4, P13, P15, P16).
//!
//! # Layout
//!
//! - `history`, `spans`, `checker`: what happened, and whether what was shown was true at every moment; pure
//! - `checker_can_fail`: tests of the checker
//! - `gateways`: the processes, their Redis and the network between them
//! - `feed`, `population`: simulated users and watchers
//! - `faults`: planned faults
//! - `random_history`: a random run and its end state
//! - `clients`, `scenarios`: a few named clients, and scripted faults
//! - `presence_keys`: how long the public keys live when gateways are killed
//! - `rolling_restart`: an upgrade of all gateways, with published SDKs connected
//! - `bench`: the benchmark runs to its end
//!
//! `ROLLCALL_SEED` repeats a run, `LOAD_SESSIONS` sets the number of users, `GATEWAYS_S` the duration (`make
//! gateways`).

mod bench;
mod checker;
mod checker_can_fail;
mod clients;
mod faults;
mod feed;
mod gateways;
mod history;
mod population;
mod presence_keys;
mod random_history;
mod rolling_restart;
mod scenarios;
mod spans;
