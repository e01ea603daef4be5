//! Relations between keys; single keys are checked when parsed.

use std::net::SocketAddr;

use super::Config;
use crate::gateway_secret::SECRET_CHARS_MIN;

pub struct Conflict {
    /// `section.key`.
    pub keys: Vec<&'static str>,
    /// Names the keys, their values and the remedy.
    pub problem: String,
}

pub fn find_conflict(config: &Config) -> Option<Conflict> {
    let tracker = &config.tracker;
    let limits = &config.limits;
    None.or_else(|| {
        at_most(
            ("tracker.min_announce_interval_s", tracker.min_announce_interval_s),
            ("tracker.announce_interval_s", tracker.announce_interval_s),
        )
    })
    .or_else(|| {
        at_most(
            ("limits.connections_per_address_max", limits.connections_per_address_max),
            ("limits.connections_max", limits.connections_max),
        )
    })
    .or_else(|| user_burst_covers_rate(config))
    .or_else(|| addresses_are_distinct(config))
    .or_else(|| https_has_its_files(config))
    .or_else(|| site_files_go_together(config))
    .or_else(|| nothing_secret_is_sent_in_the_clear(config))
    .or_else(|| proxies_are_named(config))
    .or_else(|| streams_are_distinct(config))
    .or_else(|| groups_are_distinct(config))
    .or_else(|| verify_call_has_a_key(config))
    .or_else(|| pings_come_before_they_are_missed(config))
    .or_else(|| background_is_away_before_it_is_gone(config))
    .or_else(|| webhooks_are_signed(config))
    .or_else(|| tokens_cannot_be_guessed(config))
    .or_else(|| site_tables_have_an_address(config))
}

/// Without a key, the endpoint would disclose passkeys to anyone.
fn verify_call_has_a_key(config: &Config) -> Option<Conflict> {
    let access = &config.access;
    let has_key = access.verify_api_key.reveal().or(config.site.tracker_api_key.reveal()).is_some();
    (access.verify_url.as_str().is_some() && !has_key).then(|| Conflict {
        keys: vec!["access.verify_url", "access.verify_api_key"],
        problem:
            "access.verify_url needs a key: set access.verify_api_key to the one that the site expects, \
                  or site.tracker_api_key (TRACKER_API_KEY)"
                .to_owned(),
    })
}

/// Otherwise every device would always be overdue.
fn pings_come_before_they_are_missed(config: &Config) -> Option<Conflict> {
    let (ping_s, heartbeat_s) = (config.presence.ping_s, config.presence.heartbeat_s);
    (ping_s >= heartbeat_s).then(|| Conflict {
        keys: vec!["presence.ping_s", "presence.heartbeat_s"],
        problem: format!(
            "presence.ping_s = {ping_s} must be less than presence.heartbeat_s = {heartbeat_s}: devices send heartbeats when \
             they answer pings"
        ),
    })
}

fn background_is_away_before_it_is_gone(config: &Config) -> Option<Conflict> {
    let presence = &config.presence;
    at_most(
        ("presence.background_away_s", presence.background_away_s),
        ("presence.background_gone_s", presence.background_gone_s),
    )
}

/// Otherwise anyone who finds the endpoint could send events to it.
fn webhooks_are_signed(config: &Config) -> Option<Conflict> {
    let gateway = &config.gateway;
    (gateway.webhook_url.as_str().is_some() && gateway.webhook_secret.reveal().is_none()).then(|| Conflict {
        keys: vec!["gateway.webhook_url", "gateway.webhook_secret"],
        problem:
            "gateway.webhook_url needs gateway.webhook_secret: webhooks are signed with it, and the site \
                  verifies the signature"
                .to_owned(),
    })
}

/// The holder of one token can try secrets offline.
fn tokens_cannot_be_guessed(config: &Config) -> Option<Conflict> {
    let chars = config.gateway.token_hmac_secret.reveal()?.chars().count();
    (chars < SECRET_CHARS_MIN).then(|| Conflict {
        keys: vec!["gateway.token_hmac_secret"],
        problem: format!(
            "gateway.token_hmac_secret has {chars} characters; it could be guessed and used to connect as any user: generate one of at \
             least {SECRET_CHARS_MIN} with openssl rand -hex 32, and set it on the site too"
        ),
    })
}

fn streams_are_distinct(config: &Config) -> Option<Conflict> {
    let journal = &config.journal;
    let keys = [
        ("journal.stream_key", &journal.stream_key),
        ("journal.dlq_key", &journal.dlq_key),
        ("journal.failed_key", &journal.failed_key),
    ];
    for (position, (key, name)) in keys.iter().enumerate() {
        if let Some((earlier, _)) = keys[..position].iter().find(|(_, earlier)| earlier == name) {
            let problem = format!("{earlier} and {key} are both {}: change one", name.as_str());
            return Some(Conflict { keys: vec![earlier, key], problem });
        }
    }
    None
}

fn groups_are_distinct(config: &Config) -> Option<Conflict> {
    let group = config.ledger.group.as_str();
    [views::activity::GROUP, views::redis_mirror::GROUP, sites::view::GROUP].contains(&group).then(|| {
        Conflict {
            keys: vec!["ledger.group"],
            problem: format!(
                "ledger.group is {group}, which is the group of another view: choose another name"
            ),
        }
    })
}

fn site_tables_have_an_address(config: &Config) -> Option<Conflict> {
    let profile = config.sites.profile.as_str()?;
    let kind = config.sites.database_url.as_str().and_then(database::Kind::of);
    let is_server = matches!(kind, Some(database::Kind::Postgres | database::Kind::MySql));
    (!is_server).then(|| Conflict {
        keys: vec!["sites.profile", "sites.database_url"],
        problem: format!(
            "sites.profile is {profile}: set sites.database_url to the site's database, mysql:// or postgres://"
        ),
    })
}

fn at_most(small: (&'static str, u32), large: (&'static str, u32)) -> Option<Conflict> {
    (small.1 > large.1).then(|| Conflict {
        keys: vec![small.0, large.0],
        problem: format!(
            "{} = {} is more than {} = {}: lower the first or raise the second",
            small.0, small.1, large.0, large.1
        ),
    })
}

fn user_burst_covers_rate(config: &Config) -> Option<Conflict> {
    let limits = &config.limits;
    if limits.announce_burst_per_user == 0 {
        return None;
    }
    at_most(
        ("limits.announces_per_user_per_s", limits.announces_per_user_per_s),
        ("limits.announce_burst_per_user", limits.announce_burst_per_user),
    )
}

fn addresses_are_distinct(config: &Config) -> Option<Conflict> {
    let tracker = &config.tracker;
    let over_tcp = [
        ("tracker.http_addr", &tracker.http_addr),
        ("tracker.https_addr", &tracker.https_addr),
        ("site.addr", &config.site.addr),
    ];
    let over_udp = [("tracker.udp_addr", &tracker.udp_addr)];
    repeated_address(&over_tcp).or_else(|| repeated_address(&over_udp))
}

/// Port 0 is a new port each time, so it may be repeated.
fn repeated_address(lists: &[(&'static str, &Vec<SocketAddr>)]) -> Option<Conflict> {
    let mut seen: Vec<(&'static str, SocketAddr)> = Vec::new();
    for (key, addresses) in lists {
        for address in addresses.iter().filter(|address| address.port() != 0) {
            if let Some((earlier_key, _)) = seen.iter().find(|(_, earlier)| earlier == address) {
                let problem = if earlier_key == key {
                    format!("{key} names {address} twice: remove one")
                } else {
                    format!("{earlier_key} and {key} both name {address}: change one")
                };
                return Some(Conflict { keys: vec![earlier_key, key], problem });
            }
            seen.push((key, *address));
        }
    }
    None
}

fn https_has_its_files(config: &Config) -> Option<Conflict> {
    let tracker = &config.tracker;
    let has_both = tracker.tls_cert_file.is_some() && tracker.tls_key_file.is_some();
    let has_neither = tracker.tls_cert_file.is_none() && tracker.tls_key_file.is_none();
    let keys = vec!["tracker.https_addr", "tracker.tls_cert_file", "tracker.tls_key_file"];
    if !tracker.https_addr.is_empty() && !has_both {
        let problem = "tracker.https_addr needs tracker.tls_cert_file and tracker.tls_key_file: set both, \
                       or https_addr = \"\"";
        return Some(Conflict { keys, problem: problem.to_owned() });
    }
    (!has_both && !has_neither).then(|| Conflict {
        keys,
        problem: "tracker.tls_cert_file and tracker.tls_key_file go together: set both or neither".to_owned(),
    })
}

fn site_files_go_together(config: &Config) -> Option<Conflict> {
    let site = &config.site;
    (site.tls_cert_file.is_some() != site.tls_key_file.is_some()).then(|| Conflict {
        keys: vec!["site.tls_cert_file", "site.tls_key_file"],
        problem: "site.tls_cert_file and site.tls_key_file go together: set both or neither".to_owned(),
    })
}

/// Unencrypted passkeys and keys can be read on the network. UDP has no encryption.
fn nothing_secret_is_sent_in_the_clear(config: &Config) -> Option<Conflict> {
    let (tracker, site) = (&config.tracker, &config.site);
    let is_open = |address: &&SocketAddr| !address.ip().is_loopback();
    if let Some(address) = tracker.http_addr.iter().find(is_open).filter(|_| !tracker.allow_plaintext) {
        return Some(Conflict {
            keys: vec!["tracker.http_addr", "tracker.allow_plaintext"],
            problem: format!(
                "tracker.http_addr has {address}, where passkeys would cross the network in plain text: use \
                 tracker.https_addr with a certificate, or set tracker.allow_plaintext = true if a proxy in front \
                 terminates TLS or you accept that they can be read"
            ),
        });
    }
    let is_plain = site.tls_cert_file.is_none() && !site.allow_plaintext;
    site.addr.iter().find(is_open).filter(|_| is_plain).map(|address| Conflict {
        keys: vec!["site.addr", "site.allow_plaintext"],
        problem: format!(
            "site.addr has {address}, where API keys would cross the network in plain text: set site.tls_cert_file \
             and site.tls_key_file, or site.allow_plaintext = true if a proxy in front terminates TLS"
        ),
    })
}

fn proxies_are_named(config: &Config) -> Option<Conflict> {
    let tracker = &config.tracker;
    (tracker.proxy_protocol && tracker.trusted_proxies.is_empty()).then(|| Conflict {
        keys: vec!["tracker.proxy_protocol"],
        problem: "tracker.proxy_protocol = true needs tracker.trusted_proxies: list your proxies there, \
                  such as [\"10.0.0.0/8\"]"
            .to_owned(),
    })
}
