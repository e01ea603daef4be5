//! SIGHUP: what can change while the server runs does, and a broken configuration changes nothing.

use domain::Passkey;
use testkit::Server;

use crate::serving::{add_torrent, announce, builder, leecher, soon, wait_logged, wait_logged_again};

struct Reloading {
    server: Server,
    passkey: Passkey,
}

impl Reloading {
    /// A server whose interval stands in its configuration, where tests can change it.
    fn start() -> Self {
        let server = builder().set("tracker.announce_interval_s", 1800).set("log.level", "\"info\"").start();
        let passkey = server.add_user(1);
        add_torrent(&server, &passkey);
        let reloading = Reloading { server, passkey };
        assert_eq!(reloading.interval(), Some(1800));
        reloading
    }

    fn interval(&self) -> Option<i64> {
        announce(&self.server, &self.passkey, &leecher(1)).interval
    }

    /// Replaces a part of the configuration and sends SIGHUP.
    fn change(&self, old: &str, new: &str) {
        let path = self.server.config_path();
        let config = std::fs::read_to_string(&path).expect("the configuration can be read");
        assert!(config.contains(old), "{old} in {config}");
        std::fs::write(&path, config.replace(old, new)).expect("the configuration can be written");
        self.server.reload();
    }
}

#[test]
fn a_new_interval_is_sent_with_the_next_announce() {
    let reloading = Reloading::start();
    reloading.change("announce_interval_s = 1800", "announce_interval_s = 1200");
    soon("the new interval", || reloading.interval() == Some(1200));
    wait_logged(&reloading.server, &["configuration reloaded"]);
}

#[test]
fn an_invalid_configuration_changes_nothing_and_is_logged() {
    let reloading = Reloading::start();
    let server = &reloading.server;
    let changes = [
        ("announce_interval_s = 1800", "announce_interval_s = \"soon\"", "tracker.announce_interval_s"),
        (
            "announce_interval_s = \"soon\"",
            "anounce_interval_s = 900",
            "nearest known one is tracker.announce_in",
        ),
        ("anounce_interval_s = 900", "announce_interval_s = 100", "tracker.min_announce_interval_s = 900"),
        ("[tracker]", "[tracker", "not TOML"),
    ];
    for ((old, new, reason), count) in changes.into_iter().zip(1..) {
        reloading.change(old, new);
        let line =
            wait_logged_again(server, &["ERROR", "keeping the current settings", "config.toml"], count);
        assert!(line.contains(reason), "{reason} in {line}");
    }
    std::fs::remove_file(server.config_path()).expect("the configuration can be removed");
    server.reload();
    wait_logged(server, &["ERROR", "keeping the current settings", "config.toml", "No such file"]);
    assert_eq!(reloading.interval(), Some(1800));
    assert!(!server.log().contains("configuration reloaded"));
}

#[test]
fn keys_that_need_a_restart_are_logged_and_the_rest_applied() {
    let reloading = Reloading::start();
    let server = &reloading.server;
    let config = std::fs::read_to_string(server.config_path()).expect("it can be read");
    let at_start = config.lines().find(|line| line.starts_with("http_addr")).expect("it is set");
    let elsewhere = format!("http_addr = \"127.0.0.1:{}\"\nworkers = 3", testkit::ports::free_port());
    reloading.change(at_start, &elsewhere);
    let line = wait_logged(server, &["tracker.http_addr", "restart"]);
    assert!(line.contains("WARN"), "{line}");
    wait_logged(server, &["tracker.workers", "restart"]);
    wait_logged(server, &["configuration reloaded"]);
    // It is still so the next time, whatever else changes.
    reloading.change("announce_interval_s = 1800", "announce_interval_s = 1000");
    wait_logged_again(server, &["tracker.http_addr", "restart"], 2);
    soon("the new interval, at the old address", || reloading.interval() == Some(1000));
    // Back at the start's settings, nothing is logged.
    wait_logged_again(server, &["configuration reloaded"], 2);
    reloading.change(&elsewhere, at_start);
    wait_logged_again(server, &["configuration reloaded"], 3);
    let warnings = server.log().lines().filter(|line| line.contains("tracker.http_addr")).count();
    assert_eq!(warnings, 2);
}

#[test]
fn the_level_of_the_log_can_be_changed() {
    let reloading = Reloading::start();
    assert!(!reloading.server.log().contains("\"traffic\""));
    reloading.change("level = \"info\"", "level = \"info,traffic=debug\"");
    wait_logged(&reloading.server, &["configuration reloaded"]);
    reloading.interval();
    wait_logged(&reloading.server, &["\"target\":\"traffic\"", "\"du\":0"]);
}
