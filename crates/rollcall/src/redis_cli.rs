//! `redis-cli` command lines for the configured Redis, printed by doctor and sandbox.
//!
//! They contain no password: `redis-cli` reads it from `REDISCLI_AUTH`.

use std::fmt;

use keyspace::{Mode, RedisSettings};

/// The command without its Redis arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisCli {
    command: String,
    address: String,
    needs_password: bool,
}

impl RedisCli {
    /// For the first configured server; on a cluster it follows redirects. With sentinels the shell looks up the
    /// master.
    pub fn of(settings: &RedisSettings) -> Self {
        let (host, port) = match settings.nodes.first() {
            Some(node) => (node.host.clone(), node.port.to_string()),
            None => ("127.0.0.1".to_owned(), "6379".to_owned()),
        };
        let address = format!("{host}:{port}");
        let (host, port) = match settings.mode {
            Mode::Sentinel => master_by(&host, &port, &quoted(&settings.master_name)),
            Mode::Single | Mode::Cluster => (host, port),
        };
        let mut command = format!("redis-cli -h {host} -p {port}");
        if settings.mode == Mode::Cluster {
            command.push_str(" -c");
        }
        if settings.db != 0 {
            command.push_str(&format!(" -n {}", settings.db));
        }
        if let Some(user) = &settings.credentials.user {
            command.push_str(&format!(" --user {}", quoted(user)));
        }
        if let Some(tls) = &settings.tls {
            command.push_str(" --tls");
            let files = [("--cacert", &tls.ca), ("--cert", &tls.cert), ("--key", &tls.key)];
            for (flag, path) in files {
                if let Some(path) = path {
                    command.push_str(&format!(" {flag} {}", quoted(&path.display().to_string())));
                }
            }
        }
        RedisCli { command, address, needs_password: settings.credentials.password.is_some() }
    }

    /// `HOST:PORT` of the first configured server.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn needs_password(&self) -> bool {
        self.needs_password
    }
}

impl fmt::Display for RedisCli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)
    }
}

fn master_by(host: &str, port: &str, name: &str) -> (String, String) {
    let ask = |line: u32| {
        format!("$(redis-cli -h {host} -p {port} SENTINEL GET-MASTER-ADDR-BY-NAME {name} | sed -n {line}p)")
    };
    (ask(1), ask(2))
}

/// Quoted for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cli(url: &str) -> String {
        RedisCli::of(&RedisSettings::from_url(url).unwrap()).to_string()
    }

    #[test]
    fn each_mode_has_its_command_without_a_password() {
        assert_eq!(cli("redis://10.0.0.5"), "redis-cli -h 10.0.0.5 -p 6379");
        assert_eq!(cli("redis://me:geheim@a:1/3"), "redis-cli -h a -p 1 -n 3 --user me");
        assert_eq!(cli("redis+cluster://:geheim@a:1,b:2"), "redis-cli -h a -p 1 -c");
        assert_eq!(
            cli("rediss://a:1?ca=/etc/my ca.pem"),
            "redis-cli -h a -p 1 --tls --cacert '/etc/my ca.pem'"
        );
        assert!(cli("redis+sentinel://a:5,b:6/mine").contains("SENTINEL GET-MASTER-ADDR-BY-NAME mine"));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("/var/lib/rollcall"), "/var/lib/rollcall");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
