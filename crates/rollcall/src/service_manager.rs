//! Notifies the service manager (systemd, `Type=notify`) of readiness and shutdown.
//!
//! One datagram to `$NOTIFY_SOCKET`. Without it, nothing happens; errors are logged and ignored.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use tracing::warn;

pub fn notify_ready() {
    notify("READY=1\nSTATUS=answering announces\n");
}

pub fn notify_stopping() {
    notify("STOPPING=1\nSTATUS=draining\n");
}

fn notify(message: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    if let Err(reason) = send(&socket, message) {
        warn!(%reason, "cannot notify the service manager");
    }
}

/// A leading `@` means an abstract socket.
fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reaches_a_socket_with_a_file_and_one_without() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let mut received = [0; 64];

        let with_file = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1\n").unwrap();
        assert_eq!(with_file.recv(&mut received).unwrap(), 8);

        let name = format!("rollcall-test-notify-{}", std::process::id());
        let without = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1\n").unwrap();
        assert_eq!(without.recv(&mut received).unwrap(), 11);

        assert!(send(OsStr::new("/nowhere/notify"), "READY=1\n").is_err());
    }
}
