//! Accepts connections; errors are counted and logged once a minute.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use domain::LogThrottle;
use domain::clock::{Clock, SystemClock};
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

use crate::proxy::unmapped;
use crate::refused::Refused;

/// At the limit of open files every attempt fails.
const PAUSE: Duration = Duration::from_millis(50);

/// Throttles the log lines of all listeners of one server.
#[derive(Debug)]
pub struct AcceptErrors {
    listener: &'static str,
    log: LogThrottle,
}

impl AcceptErrors {
    /// `listener` is named in the log line.
    pub const fn of(listener: &'static str) -> AcceptErrors {
        AcceptErrors { listener, log: LogThrottle::new() }
    }

    /// Counted as `accept_failed`. The clock is the machine's: what it throttles is a log line of this process.
    fn record(&self, reason: &io::Error, refused: &Refused) {
        refused.count("accept_failed");
        if let Some(left_out) = self.log.admit(SystemClock.steady()) {
            warn!(listener = self.listener, %reason, failures = left_out + 1, "accept failed; logged once a minute");
        }
    }
}

/// The next connection, and the client's address. Retries after errors. Cancel-safe.
pub async fn accept(
    socket: &TcpListener,
    errors: &AcceptErrors,
    refused: &Refused,
) -> (TcpStream, SocketAddr) {
    loop {
        match socket.accept().await {
            Ok((stream, from)) => return (stream, unmapped(from)),
            // The client disconnected before it was accepted.
            Err(reason) if reason.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(reason) => {
                errors.record(&reason, refused);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
