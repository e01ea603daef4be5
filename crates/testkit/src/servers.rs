//! Real Redis, PostgreSQL and MariaDB servers.
//!
//! # Layout
//!
//! - [`redis`], [`redis_cluster`], [`redis_sentinel`]: Redis alone, in a cluster, and with a sentinel
//! - [`postgres`], [`mariadb`]: SQL servers, with a fresh database for each test
//! - `daemon`: a server's process and folder; `watchdog`: ends both when the test process dies; `template`: data
//!   folders that are created once and copied; `account`: the account of a server that refuses to run as root
//!
//! # Guarantees
//!
//! - A server listens on a free loopback port, keeps its data in its own folder, and ends with its owner: when it is
//!   dropped, when the test panics, and when the whole test process is killed.
//! - `kill` is SIGKILL, and waits until the process has ended. `restart` starts the server on the same port with the same
//!   data, and returns when it answers.
//! - Databases write as production would: confirmed writes survive a kill.

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
