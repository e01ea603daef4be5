//! A Redis master, its replica, and a sentinel that makes the replica master when the master is gone.

use std::time::Duration;

use rustix::process::Signal;

use super::daemon::{Daemon, Launch, on_a_free_port};
use super::redis::{RedisBuilder, RedisServer};
use crate::wait::eventually;

const MASTER_NAME: &str = "rollcall";
/// How long a change of roles may take on a busy machine.
const FAILOVER_LIMIT: Duration = Duration::from_secs(60);

/// A master, a replica and a sentinel. Dropping it ends all three.
pub struct RedisSentinel {
    servers: Vec<RedisServer>,
    sentinel: Daemon,
    sentinel_port: u16,
}

impl RedisSentinel {
    /// Starts all three without passwords; the servers keep nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&RedisServer::builder())
    }

    /// Starts all three, the servers with these settings. The sentinel itself has no password.
    pub fn start_with(builder: &RedisBuilder) -> Self {
        let master = builder.clone().start();
        let replica = builder.clone().directive(&format!("replicaof 127.0.0.1 {}", master.port())).start();
        eventually("the replica to follow its master", FAILOVER_LIMIT, || {
            replica.cli(&["INFO", "replication"]).contains("master_link_status:up").then_some(())
        });
        let (sentinel, sentinel_port) = on_a_free_port(|port| start_sentinel(port, &master, builder));
        let group = RedisSentinel { servers: vec![master, replica], sentinel, sentinel_port };
        eventually("the sentinel to know the replica", FAILOVER_LIMIT, || {
            (group.ask(&["SENTINEL", "REPLICAS", MASTER_NAME]).contains("master-link-status\nok"))
                .then_some(())
        });
        group
    }

    /// The sentinel's port on 127.0.0.1.
    pub fn sentinel_port(&self) -> u16 {
        self.sentinel_port
    }

    /// What the sentinel calls the pair.
    pub fn master_name(&self) -> &'static str {
        MASTER_NAME
    }

    /// The port of the current master, as the sentinel reports it.
    pub fn master_port(&self) -> u16 {
        let address = self.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME]);
        address.lines().last().and_then(|port| port.parse().ok()).expect("the sentinel names the master")
    }

    pub fn master(&self) -> &RedisServer {
        let port = self.master_port();
        self.servers.iter().find(|server| server.port() == port).expect("the master is one of ours")
    }

    /// A server: 0 began as the master, 1 as its replica.
    pub fn server_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.servers[index]
    }

    /// Kills the master and waits until the other is master.
    pub fn kill_master(&mut self) {
        let old = self.master_port();
        self.servers.iter_mut().filter(|server| server.port() == old).for_each(RedisServer::kill);
        self.wait_other_than(old);
    }

    /// Lets the two change roles with both alive, and waits until they have.
    pub fn fail_over(&self) {
        let old = self.master_port();
        self.ask(&["SENTINEL", "FAILOVER", MASTER_NAME]);
        self.wait_other_than(old);
    }

    fn wait_other_than(&self, old: u16) {
        eventually("the sentinel to name another master", FAILOVER_LIMIT, || {
            (self.master_port() != old).then_some(())
        });
        eventually("the other to be master", FAILOVER_LIMIT, || {
            self.master().cli(&["INFO", "replication"]).contains("role:master").then_some(())
        });
    }

    #[track_caller]
    fn ask(&self, args: &[&str]) -> String {
        let port = self.sentinel_port.to_string();
        self.sentinel.run("redis-cli", &[&["-e", "-p", &port], args].concat())
    }
}

fn start_sentinel(port: u16, master: &RedisServer, builder: &RedisBuilder) -> Result<(Daemon, u16), String> {
    let mut daemon = Daemon::new("sentinel", None, Signal::KILL);
    let mut lines = vec![
        "bind 127.0.0.1".to_owned(),
        "protected-mode no".to_owned(),
        format!("port {port}"),
        format!("dir {}", daemon.folder().display()),
        format!("sentinel monitor {MASTER_NAME} 127.0.0.1 {} 1", master.port()),
        format!("sentinel down-after-milliseconds {MASTER_NAME} 500"),
        format!("sentinel failover-timeout {MASTER_NAME} 3000"),
    ];
    if let Some(password) = builder.shared_password() {
        lines.push(format!("sentinel auth-pass {MASTER_NAME} {password}"));
    }
    // The sentinel writes what it learns into this file.
    let path = daemon.folder().join("sentinel.conf");
    std::fs::write(&path, lines.join("\n") + "\n").expect("its folder can be written");
    let launch = Launch { program: "redis-sentinel".to_owned(), args: vec![path.into()] };
    let folder = daemon.folder().to_owned();
    daemon.try_start(&launch, |pid| {
        let mut command = std::process::Command::new("redis-cli");
        command.args(["-p", &port.to_string(), "INFO", "server"]).current_dir(&folder);
        let info = super::daemon::try_finish(command, "redis-cli").unwrap_or_default();
        info.contains(&format!("process_id:{pid}"))
    })?;
    Ok((daemon, port))
}
