//! An HTTP client that sends exactly the bytes it is given.
//!
//! It adds no headers, follows no redirects, and reuses a connection only when the caller does.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a reply may take before the test has failed.
const TIMEOUT: Duration = Duration::from_secs(20);

/// One connection: plain, or over anything else that carries bytes, such as TLS.
pub struct RawHttp<S: Read = TcpStream> {
    reader: BufReader<S>,
    server: SocketAddr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// The first line, such as `HTTP/1.1 200 OK`.
    pub status_line: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// As many bytes as `content-length` says; without one, all until the connection ends.
    pub body: Vec<u8>,
}

impl HttpReply {
    pub fn status(&self) -> u16 {
        let code = self.status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        code.unwrap_or_else(|| panic!("no status in {:?}", self.status_line))
    }

    /// The value of a header, named in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

impl RawHttp {
    #[track_caller]
    pub fn connect(server: SocketAddr) -> Self {
        Self::try_connect(server).unwrap_or_else(|error| panic!("cannot connect to {server}: {error}"))
    }

    pub fn try_connect(server: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
        set_timeouts(&stream)?;
        Ok(Self::over(stream, server))
    }

    /// The address the server sees.
    pub fn local_addr(&self) -> SocketAddr {
        self.reader.get_ref().local_addr().expect("a connected socket has an address")
    }

    /// Shuts down the sending side.
    pub fn finish_sending(&mut self) {
        // The server may have closed first.
        let _ = self.reader.get_ref().shutdown(std::net::Shutdown::Write);
    }
}

impl<S: Read + Write> RawHttp<S> {
    /// Uses a stream that is already connected.
    pub fn over(stream: S, server: SocketAddr) -> Self {
        RawHttp { reader: BufReader::new(stream), server }
    }

    pub fn stream(&self) -> &S {
        self.reader.get_ref()
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("the connection is open for writing");
    }

    /// Sends these bytes, unless the server has closed the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)?;
        self.reader.get_mut().flush()
    }

    #[track_caller]
    pub fn read_reply(&mut self) -> HttpReply {
        self.try_read_reply().unwrap_or_else(|error| panic!("no reply from {}: {error}", self.server))
    }

    /// Reads one reply, unless the connection ends first.
    pub fn try_read_reply(&mut self) -> std::io::Result<HttpReply> {
        let status_line = self.read_line()?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("{line:?} is no header"));
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = HttpReply { status_line, headers, body: Vec::new() };
        match reply.header("content-length") {
            Some(length) => {
                reply.body = vec![0; length.parse().expect("a length is a number")];
                self.reader.read_exact(&mut reply.body)?;
            }
            None => {
                self.reader.read_to_end(&mut reply.body)?;
            }
        }
        Ok(reply)
    }

    fn read_line(&mut self) -> std::io::Result<String> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        let text = line.strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Asks for a target as a plain HTTP/1.1 client does, and reads the reply.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> HttpReply {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.server);
        self.send(request.as_bytes());
        self.read_reply()
    }

    /// Waits until the server closes the connection, and returns what it sent until then.
    pub fn read_to_close(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.reader.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{} did not close the connection: {error}", self.server),
        }
        rest
    }
}

/// Sets generous timeouts.
pub fn set_timeouts(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)
}

/// Asks for a target over a connection of its own.
#[track_caller]
pub fn get(server: SocketAddr, target: &str) -> HttpReply {
    RawHttp::connect(server).get(target)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn pipelined_replies_are_told_apart_by_their_length() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = listener.local_addr().expect("it is bound");
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").expect("it listens");
            stream.write_all(b"HTTP/1.1 404 No\r\nX-Y:  z \r\n\r\nthe rest").expect("it listens");
        });
        let mut client = RawHttp::connect(server);
        let first = client.read_reply();
        assert_eq!((first.status(), first.body.as_slice()), (200, &b"one"[..]));
        let second = client.read_reply();
        assert_eq!(
            (second.status(), second.header("x-y"), second.body.as_slice()),
            (404, Some("z"), &b"the rest"[..])
        );
        assert_eq!(client.read_to_close(), b"");
        serving.join().expect("the server is done");
    }
}
