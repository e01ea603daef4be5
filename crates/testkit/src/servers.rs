//! Real Redis, PostgreSQL and MariaDB servers.
//!
//! # Layout
//!
//! - [`redis`], [`redis_cluster`], [`redis_sentinel`]: Redis alone, in a cluster, and with a guard that fails over
//! - [`postgres`], [`mariadb`]: SQL servers, with a fresh database for each test that asks
//! - `daemon`: a server's process and folder; `watchdog`: what ends both when the test process dies; `template`: data
//!   folders that are made once and copied; `account`: who runs a server that refuses to run as root
//!
//! # Guarantees
//!
//! - A server listens on a free loopback port, keeps its data in a folder of its own, and ends with its owner: when it
//!   is dropped, when the test panics, and when the whole test process is killed.
//! - `kill` is SIGKILL, and waits until the process is gone. `restart` brings the server back on the same port with
//!   the same data, and returns when it answers.
//! - Databases write as production would: nothing is lost by a kill that they have confirmed.

mod account;
mod daemon;
pub mod mariadb;
pub mod postgres;
pub mod redis;
pub mod redis_cluster;
pub mod redis_sentinel;
mod template;
mod watchdog;

pub use mariadb::MariaDbServer;
pub use postgres::PostgresServer;
pub use redis::{Fsync, RedisBuilder, RedisServer};
pub use redis_cluster::RedisCluster;
pub use redis_sentinel::RedisSentinel;
