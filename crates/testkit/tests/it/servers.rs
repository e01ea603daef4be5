//! The servers that tests start: each answers, keeps what it confirmed through SIGKILL, and ends with its owner.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::{Fsync, MariaDbServer, PostgresServer, RedisCluster, RedisSentinel, RedisServer, eventually};

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn redis_keeps_what_it_confirmed_through_a_kill() {
    for fsync in [Fsync::Always, Fsync::EverySecond] {
        let mut redis = RedisServer::builder().append_only(fsync).start();
        assert_eq!(redis.cli(&["SET", "key", "value"]), "OK");
        let (pid, port) = (redis.pid(), redis.port());
        redis.kill();
        assert!(!is_alive(pid));
        assert!(redis.try_cli(&["GET", "key"]).is_err());
        redis.restart();
        assert_eq!(redis.port(), port);
        assert_eq!(redis.cli(&["GET", "key"]), "value");
    }
}

#[test]
fn a_dropped_server_is_gone_with_its_folder() {
    let redis = RedisServer::start();
    let (pid, folder) = (redis.pid(), redis.folder().to_owned());
    assert!(is_alive(pid) && folder.exists());
    drop(redis);
    assert!(!is_alive(pid) && !folder.exists());
}

/// Set for the second run of this program below, which starts a server and waits to be killed.
const START_AND_WAIT: &str = "TESTKIT_START_AND_WAIT";

#[test]
fn a_server_ends_with_its_test_process_even_if_that_is_killed() {
    let name = "servers::a_server_ends_with_its_test_process_even_if_that_is_killed";
    if std::env::var_os(START_AND_WAIT).is_some() {
        let redis = RedisServer::start();
        let told = format!("{} {}\n", redis.pid(), redis.folder().display());
        std::io::stdout().write_all(told.as_bytes()).unwrap();
        loop {
            std::thread::park();
        }
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(START_AND_WAIT, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (pid, folder) = lines
        .find_map(|line| {
            let (pid, folder) = line.rsplit_once(" /")?;
            Some((pid.rsplit(' ').next()?.parse::<u32>().ok()?, format!("/{folder}")))
        })
        .unwrap();
    assert!(is_alive(pid) && Path::new(&folder).exists());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the folder to be gone", Duration::from_secs(30), || {
        (!Path::new(&folder).exists()).then_some(())
    });
    // Where no init process reaps orphans, it stays as a zombie: a process without memory.
    let memory = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    assert!(memory.is_empty() || memory.starts_with("0 "), "{memory}");
}

#[test]
fn redis_with_a_password_a_user_and_a_bound_on_memory() {
    let redis = RedisServer::builder()
        .password("secret")
        .user("rollcall", "other", "~* &* +@all -flushall")
        .memory_bytes_max(2_000_000)
        .start();
    assert_eq!(redis.url(), format!("redis://rollcall:other@127.0.0.1:{}", redis.port()));
    assert_eq!(redis.cli_lines("SET a 1\nINCR a\nGET a\n"), "OK\n2\n2\n");
    assert!(redis.try_cli(&["NOSUCHCOMMAND"]).unwrap_err().contains("unknown command"));
    assert_eq!(redis.cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n2000000");
}

#[test]
fn redis_over_tls() {
    let redis = RedisServer::builder().tls().start();
    assert_eq!(redis.cli(&["PING"]), "PONG");
    assert!(redis.url().starts_with("rediss://"));
    assert!(std::fs::read_to_string(redis.authority_path()).unwrap().contains("BEGIN CERTIFICATE"));
}

#[test]
fn a_cluster_serves_every_slot_and_survives_a_kill() {
    let builder = RedisServer::builder().append_only(Fsync::EverySecond);
    let mut cluster = RedisCluster::start_with(&builder, 0);
    assert_eq!(cluster.urls().len(), 3);
    for number in 0..20 {
        assert_eq!(cluster.cli(&["SET", &format!("key{number}"), &number.to_string()]), "OK");
    }
    cluster.node_mut(1).kill();
    assert_eq!(cluster.urls().len(), 2);
    cluster.node_mut(1).restart();
    cluster.wait_ok();
    for number in 0..20 {
        assert_eq!(cluster.cli(&["GET", &format!("key{number}")]), number.to_string());
    }
}

#[test]
fn a_cluster_with_replicas_has_one_for_each_master() {
    let cluster = RedisCluster::start_with(&RedisServer::builder(), 1);
    assert_eq!(cluster.len(), 6);
    for index in 3..6 {
        assert!(cluster.node(index).cli(&["INFO", "replication"]).contains("role:slave"));
    }
}

#[test]
fn a_sentinel_names_another_master_when_the_first_is_killed() {
    let mut group = RedisSentinel::start();
    let first = group.master_port();
    group.master().cli(&["SET", "key", "value"]);
    group.master().cli(&["WAIT", "1", "5000"]);
    group.kill_master();
    assert_ne!(group.master_port(), first);
    assert_eq!(group.master().cli(&["GET", "key"]), "value");
}

#[test]
fn postgres_keeps_what_it_confirmed_through_a_kill() {
    let mut server = PostgresServer::start();
    server.psql("postgres", "CREATE TABLE notes (text TEXT)");
    server.psql("postgres", "INSERT INTO notes VALUES ('kept')");
    let pid = server.pid();
    server.kill();
    assert!(!is_alive(pid));
    server.restart();
    assert_eq!(server.psql("postgres", "SELECT text FROM notes"), "kept");
}

#[test]
fn mariadb_keeps_what_it_confirmed_through_a_kill() {
    let mut server = MariaDbServer::start();
    server.mariadb("mysql", "CREATE DATABASE notes; CREATE TABLE notes.notes (text TEXT)");
    server.mariadb("notes", "INSERT INTO notes VALUES ('kept')");
    let pid = server.pid();
    server.kill();
    assert!(!is_alive(pid));
    server.restart();
    assert_eq!(server.mariadb("notes", "SELECT text FROM notes"), "kept");
}

#[test]
fn shared_servers_give_a_database_of_its_own_to_each_who_asks() {
    assert_ne!(PostgresServer::shared().fresh_database(), PostgresServer::shared().fresh_database());
    assert_ne!(MariaDbServer::shared().fresh_database(), MariaDbServer::shared().fresh_database());
    assert_eq!(PostgresServer::shared().psql("test_1", "SELECT 1 + 1"), "2");
    assert_eq!(MariaDbServer::shared().mariadb("test_1", "SELECT 1 + 1"), "2");
}
