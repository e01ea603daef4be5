//! `rollcall ping`: asks the running server whether it is alive. For health checks of containers, where there is no
//! other program to ask with.
//!
//! The site is first_port for `/healthz`. Where there is no site, or one that speaks HTTPS, an announce listener is first_port for
//! anything over HTTP; where there is none either, it is enough that somebody accepts the connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::CommandContext;
use super::sandbox::from_here;
use crate::config::Config;

/// How long connecting, and each answer, may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The first line of an answer.
const FIRST_LINE_BYTES: usize = 15;

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// `/healthz`, which must be answered with 200.
    Health,
    /// Any answer over HTTP will do.
    AnyHttp,
    /// It is enough to connect.
    Connect,
}

/// Runs it. Exit code 0 if the server is alive, 1 if not.
pub fn run(context: &CommandContext) -> anyhow::Result<ExitCode> {
    let (address, probe) = probe_target(&context.config)
        .context("the server has no listener over TCP: there is nobody to ask; set site.addr")?;
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
        Some((from_here(*address), probe))
    };
    None.or_else(|| first_port(&site.addr, Probe::Health).filter(|_| !is_tls))
        .or_else(|| first_port(&tracker.http_addr, Probe::AnyHttp))
        .or_else(|| first_port(&site.addr, Probe::Connect))
        .or_else(|| first_port(&tracker.https_addr, Probe::Connect))
}

fn send_probe(address: SocketAddr, probe: Probe) -> anyhow::Result<()> {
    let mut stream =
        TcpStream::connect_timeout(&address, TIMEOUT).context("nobody accepts the connection")?;
    if probe == Probe::Connect {
        return Ok(());
    }
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).context("the probe cannot be sent")?;
    let mut line = [0; FIRST_LINE_BYTES];
    let mut filled = 0;
    while filled < line.len() {
        match stream.read(&mut line[filled..]).context("there is no answer")? {
            0 => break,
            count => filled += count,
        }
    }
    let line = String::from_utf8_lossy(&line[..filled]);
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match (probe, status) {
        (Probe::Health, Some("200")) | (Probe::AnyHttp, Some(_)) => Ok(()),
        (_, Some(status)) => anyhow::bail!("it answers with status {status}"),
        (_, None) => anyhow::bail!("what answers does not speak HTTP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_asked_first_and_everything_that_listens_can_be() {
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
