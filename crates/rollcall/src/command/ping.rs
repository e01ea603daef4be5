//! `rollcall ping`: checks that the running server responds. For health checks of containers, which have no other
//! client.
//!
//! Requests `/healthz` from the site. Without a site, or with HTTPS, sends any HTTP request to an announce listener;
//! without one, only connects.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::CommandContext;
use super::sandbox::reachable_address;
use crate::config::Config;

/// Of the connection, and of each read and write.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Enough of the status line.
const FIRST_LINE_BYTES: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// `/healthz` must return 200.
    Health,
    /// Any HTTP response.
    AnyHttp,
    /// A connection is enough.
    Connect,
}

/// Exit code 0 if the server responds, 1 if not.
pub fn run(context: &CommandContext) -> anyhow::Result<ExitCode> {
    let (address, probe) = probe_target(&context.config)
        .context("the server has no TCP listener to connect to: set site.addr")?;
    let outcome = send_probe(address, probe);
    let reason = outcome.as_ref().err().map(crate::one_line);
    let text = match &reason {
        None => format!("{address} is alive\n"),
        Some(reason) => format!("{address} is not alive: {reason}\n"),
    };
    context.output.show(
        &json!({ "alive": reason.is_none(), "address": address.to_string(), "reason": reason }),
        &text,
    )?;
    Ok(if reason.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn probe_target(config: &Config) -> Option<(SocketAddr, Probe)> {
    let (site, tracker) = (&config.site, &config.tracker);
    let is_tls = site.tls_cert_file.is_some();
    let first_port = |list: &[SocketAddr], probe| {
        let address = list.iter().find(|address| address.port() != 0)?;
        Some((reachable_address(*address), probe))
    };
    None.or_else(|| first_port(&site.addr, Probe::Health).filter(|_| !is_tls))
        .or_else(|| first_port(&tracker.http_addr, Probe::AnyHttp))
        .or_else(|| first_port(&site.addr, Probe::Connect))
        .or_else(|| first_port(&tracker.https_addr, Probe::Connect))
}

fn send_probe(address: SocketAddr, probe: Probe) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).context("cannot connect")?;
    if probe == Probe::Connect {
        return Ok(());
    }
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).context("cannot send the request")?;
    let mut line = [0; FIRST_LINE_BYTES];
    let mut filled = 0;
    while filled < line.len() {
        match stream.read(&mut line[filled..]).context("no response")? {
            0 => break,
            count => filled += count,
        }
    }
    let line = String::from_utf8_lossy(&line[..filled]);
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match (probe, status) {
        (Probe::Health, Some("200")) | (Probe::AnyHttp, Some(_)) => Ok(()),
        (_, Some(status)) => anyhow::bail!("status {status}"),
        (_, None) => anyhow::bail!("the response is not HTTP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_probed_first_then_any_listener() {
        let mut config = Config::default();
        let target =
            |config: &Config| probe_target(config).map(|(address, what)| (address.to_string(), what));
        assert_eq!(target(&config), Some(("127.0.0.1:8080".to_owned(), Probe::Health)));
        config.site.addr = vec!["0.0.0.0:80".parse().unwrap()];
        assert_eq!(target(&config), Some(("127.0.0.1:80".to_owned(), Probe::Health)));
        config.site.tls_cert_file = Some("x.pem".into());
        assert_eq!(target(&config), Some(("127.0.0.1:6969".to_owned(), Probe::AnyHttp)));
        config.tracker.http_addr.clear();
        assert_eq!(target(&config), Some(("127.0.0.1:80".to_owned(), Probe::Connect)));
        config.site.addr.clear();
        assert_eq!(target(&config), None);
    }
}
