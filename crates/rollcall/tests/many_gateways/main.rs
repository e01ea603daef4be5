//! Several gateways on one Redis, or on a Redis Cluster, as whole processes: people on all of them, watchers who are shown
//! who is here, and everything that can break breaking (P3, P4, P13, P15, P16).
//!
//! # Layout
//!
//! - `history`, `spans`, `checker`: what happened, and whether what was shown was true at every moment; pure
//! - `checker_can_fail`: that the checker finds what is wrong
//! - `gateways`: the processes, their Redis and the network between them
//! - `feed`, `people`: the simulated crowd, its watchers, and what they do at random
//! - `trouble`: what breaks, and when
//! - `random_history`: a random run, and the end of it
//! - `clients`, `stories`: a few clients by name, and what happens to them when one thing goes wrong
//! - `presence_keys`: how long the public keys live when gateways are killed
//! - `rolling_restart`: an upgrade of all gateways, with published SDKs connected
//! - `bench`: the benchmark runs to its end
//!
//! `ROLLCALL_SEED` runs the same again, `LOAD_SESSIONS` with more people, `GATEWAYS_S` for longer (`make gateways`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../presence_clients/agent.rs"]
#[allow(dead_code, reason = "only the SDKs are needed here")]
mod agent;

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
