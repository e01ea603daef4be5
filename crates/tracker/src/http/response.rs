//! Status lines and headers around bencoded bodies.

use wire::http::{Failure, RetryIn};

pub(super) const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 69\r\n\r\nd14:failure reason20:too many connections8:intervali60e8:retry ini1ee";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    HeadTooLarge,
    VersionNotSupported,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed\r\nAllow: GET",
            Status::RequestTimeout => "408 Request Timeout",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Implied by HTTP/1.1.
    KeepAlive,
    /// Stated for HTTP/1.0.
    KeepAliveHeader,
    Close,
}

pub(super) fn write(out: &mut Vec<u8>, status: Status, after: After, body: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.line().as_bytes());
    out.extend_from_slice(match after {
        After::KeepAlive => b"\r\nContent-Type: text/plain\r\nContent-Length: ".as_slice(),
        After::KeepAliveHeader => {
            b"\r\nConnection: keep-alive\r\nContent-Type: text/plain\r\nContent-Length: "
        }
        After::Close => b"\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ",
    });
    wire::bencode::push_decimal(out, body.len() as u64);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}

/// Appends a failure that ends the connection: what follows on it cannot be understood.
pub(super) fn write_final_failure(out: &mut Vec<u8>, status: Status, reason: &str) {
    let mut body = Vec::with_capacity(reason.len() + 40);
    Failure { reason, retry_in: None::<RetryIn> }.write(&mut body);
    write(out, status, After::Close, &body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_to_too_many_connections_states_its_length() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{} bytes", body.len());
        let failure = wire::bencode::parse(body.as_bytes()).unwrap();
        assert_eq!(failure.get(b"failure reason").unwrap().as_str(), Some("too many connections"));
    }
}
