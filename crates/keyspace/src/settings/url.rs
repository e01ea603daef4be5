//! Parses the address of Redis.

use domain::percent;

use super::{DEFAULT_PORT, DEFAULT_SENTINEL_PORT, Mode, Node, RedisSettings, Secret, TlsFiles};
use crate::error::RedisError;

const SCHEMES: &str = "redis://host:6379, rediss://host:6379 (TLS), redis+sentinel://host:26379,host:26379/master-name \
                       or redis+cluster://host:6379,host:6379";

/// A client discovers the rest of a cluster by itself.
const NODES_MAX: usize = 64;

pub(super) fn parse(url: &str) -> Result<RedisSettings, RedisError> {
    let (scheme, rest) = url.trim().split_once("://").ok_or_else(|| invalid("it has no ://"))?;
    let (mode, is_tls) = match scheme {
        "redis" => (Mode::Single, false),
        "rediss" => (Mode::Single, true),
        "redis+sentinel" => (Mode::Sentinel, false),
        "rediss+sentinel" => (Mode::Sentinel, true),
        "redis+cluster" => (Mode::Cluster, false),
        "rediss+cluster" => (Mode::Cluster, true),
        _ => return Err(invalid("unknown scheme")),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    let mut settings = RedisSettings::new(mode, nodes_of(hosts, mode)?);
    settings.tls = is_tls.then(TlsFiles::default);
    if let Some(login) = login {
        read_login(&mut settings, login)?;
    }
    read_path(&mut settings, path)?;
    read_query(&mut settings, query)?;
    Ok(settings)
}

/// Does not repeat the address, which may contain a password.
fn invalid(what: &str) -> RedisError {
    RedisError::settings(format!("invalid address of Redis, {what}: write {SCHEMES}"))
}

fn nodes_of(hosts: &str, mode: Mode) -> Result<Vec<Node>, RedisError> {
    let default_port = if mode == Mode::Sentinel { DEFAULT_SENTINEL_PORT } else { DEFAULT_PORT };
    let nodes = hosts.split(',').map(|host| node_of(host, default_port)).collect::<Result<Vec<_>, _>>()?;
    match (mode, nodes.len()) {
        (Mode::Single, 2..) => Err(invalid("several servers need redis+sentinel or redis+cluster")),
        (_, count) if count > NODES_MAX => Err(invalid("more than 64 servers; a few of them are enough")),
        _ => Ok(nodes),
    }
}

fn node_of(text: &str, default_port: u16) -> Result<Node, RedisError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(invalid("an IPv6 address must be in brackets, such as [::1]:6379"));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(invalid("a host is missing"));
    }
    let port = match port {
        Some(port) => port.parse().map_err(|_| invalid("a port is not a number from 1 to 65535"))?,
        None => default_port,
    };
    Ok(Node { host: host.to_owned(), port })
}

fn read_login(settings: &mut RedisSettings, login: &str) -> Result<(), RedisError> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    settings.credentials.user = Some(decode(user)?).filter(|user| !user.is_empty());
    settings.credentials.password = password.map(decode).transpose()?.map(Secret::new);
    if settings.credentials.password.is_none() && settings.credentials.user.is_some() {
        return Err(invalid(
            "a user without a password: write user:password@ (or :password@ without a user)",
        ));
    }
    Ok(())
}

fn read_path(settings: &mut RedisSettings, path: &str) -> Result<(), RedisError> {
    let path = path.trim_end_matches('/');
    let db = match settings.mode {
        Mode::Single => path,
        Mode::Cluster if path.is_empty() => path,
        Mode::Cluster => {
            return Err(invalid("a cluster has no numbered databases: leave out what follows the hosts"));
        }
        Mode::Sentinel => {
            let (name, db) = path.split_once('/').unwrap_or((path, ""));
            if name.is_empty() {
                return Err(invalid("the master name is missing"));
            }
            settings.master_name = decode(name)?;
            db
        }
    };
    if !db.is_empty() {
        settings.db = db.parse().map_err(|_| invalid("what follows the host is not a database number"))?;
    }
    Ok(())
}

fn read_query(settings: &mut RedisSettings, query: &str) -> Result<(), RedisError> {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value)?;
        match (name, &mut settings.tls) {
            ("ca", Some(tls)) => tls.ca = Some(value.into()),
            ("cert", Some(tls)) => tls.cert = Some(value.into()),
            ("key", Some(tls)) => tls.key = Some(value.into()),
            ("ca" | "cert" | "key", None) => {
                return Err(invalid("ca, cert and key require rediss"));
            }
            ("sentinel_user", _) => settings.sentinel_credentials.user = Some(value),
            ("sentinel_password", _) => settings.sentinel_credentials.password = Some(Secret::new(value)),
            _ => {
                return Err(invalid(
                    "query parameters are ca, cert, key, sentinel_user and sentinel_password",
                ));
            }
        }
    }
    match &settings.tls {
        Some(tls) if tls.cert.is_some() != tls.key.is_some() => {
            Err(invalid("cert and key require each other"))
        }
        _ => Ok(()),
    }
}

/// Decodes percent-encoding.
fn decode(text: &str) -> Result<String, RedisError> {
    let mut bytes = vec![0; text.len()];
    let decoded = percent::decode(text.as_bytes(), &mut bytes)
        .map_err(|_| invalid("a % is not followed by two hexadecimal digits (write % as %25)"))?;
    String::from_utf8(decoded.to_vec()).map_err(|_| invalid("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_each_mode_are_parsed() {
        let single = parse("redis://alice:p%40ss@cache:7000/4").unwrap();
        assert_eq!((single.mode, single.db, single.nodes[0].port), (Mode::Single, 4, 7000));
        assert_eq!(single.credentials.user.as_deref(), Some("alice"));
        assert_eq!(single.credentials.password, Some(Secret::new("p@ss")));

        let sentinel = parse("redis+sentinel://:pw@a,b:5000/mymaster/2?sentinel_password=x").unwrap();
        assert_eq!(sentinel.to_string(), "redis+sentinel://a:26379,b:5000/mymaster/2");
        assert_eq!(sentinel.sentinel_credentials.password, Some(Secret::new("x")));

        let cluster = parse("rediss+cluster://[::1]:7001,b?ca=/etc/ca.pem").unwrap();
        assert_eq!(cluster.to_string(), "rediss+cluster://[::1]:7001,b:6379");
        assert_eq!(cluster.tls.unwrap().ca.unwrap().to_str(), Some("/etc/ca.pem"));
    }

    #[test]
    fn errors_name_the_remedy_and_no_password() {
        assert!(!format!("{:?}", parse("redis://u:geheim@h").unwrap()).contains("geheim"));
        for url in [
            "localhost:6379",
            "http://x",
            "redis://",
            "redis://u:geheim@h:99999",
            "redis://u:geheim@a,b",
            "redis://u:geheim@a/notanumber",
            "redis+sentinel://u:geheim@a",
            "redis+cluster://u:geheim@a/3",
            "redis://u:geheim@a?ca=x",
            "rediss://u:geheim@a?cert=x",
            "redis://u:geheim%zz@a",
            "redis://onlyuser@a",
            "redis://::1",
        ] {
            let text = parse(url).unwrap_err().to_string();
            assert!(text.contains("write") && !text.contains("geheim"), "{url}: {text}");
        }
    }

    proptest! {
        #[test]
        fn no_address_makes_parsing_panic(rest in ".*") {
            let _ = parse(&format!("redis+sentinel://{rest}"));
            let _ = parse(&rest);
        }
    }
}
