//! The first line of a request.
//!
//! Our own parser, because clients put unescaped infohash bytes into the target, which are not text in any encoding.

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestLine<'l> {
    pub(super) method: &'l [u8],
    pub(super) target: &'l [u8],
    pub(super) is_http_1_0: bool,
    /// Offset of the headers.
    pub(super) length: usize,
}

impl std::fmt::Debug for RequestLine<'_> {
    /// Omits the target: it contains a passkey.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestLine").field("length", &self.length).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineParsed<'l> {
    Complete(RequestLine<'l>),
    Partial,
    /// Not HTTP; the reason.
    Invalid(&'static str),
    OtherVersion,
}

/// A longer word is not an HTTP method, whatever follows.
const METHOD_BYTES_MAX: usize = 16;

impl<'l> RequestLine<'l> {
    /// Skips empty lines first (RFC 9112).
    pub(super) fn parse(bytes: &'l [u8]) -> LineParsed<'l> {
        let start = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let text = &bytes[start..];
        let method_end = text.iter().take(METHOD_BYTES_MAX + 1).position(|byte| !byte.is_ascii_uppercase());
        match method_end.map(|end| (end, text[end])) {
            None if text.len() > METHOD_BYTES_MAX => {
                return LineParsed::Invalid("this is not an HTTP request");
            }
            None => return LineParsed::Partial,
            Some((1.., b' ')) => {}
            Some(_) => return LineParsed::Invalid("this is not an HTTP request"),
        }
        let Some(end) = memchr::memchr(b'\n', text) else {
            return LineParsed::Partial;
        };
        let line = text[..end].strip_suffix(b"\r").unwrap_or(&text[..end]);
        let mut spaces = memchr::memchr_iter(b' ', line);
        let (Some(first), Some(second)) = (spaces.next(), spaces.next()) else {
            return LineParsed::Invalid("the request line has no HTTP version");
        };
        let (method, target, version) = (&line[..first], &line[first + 1..second], &line[second + 1..]);
        let is_http_1_0 = match version {
            b"HTTP/1.1" => false,
            b"HTTP/1.0" => true,
            version if version.starts_with(b"HTTP/") => return LineParsed::OtherVersion,
            _ => {
                return LineParsed::Invalid("the request line has a space in its target, or no HTTP version");
            }
        };
        LineParsed::Complete(RequestLine { method, target, is_http_1_0, length: start + end + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(target: &[u8], is_http_1_0: bool, length: usize) -> LineParsed<'_> {
        LineParsed::Complete(RequestLine { method: b"GET", target, is_http_1_0, length })
    }

    #[test]
    fn lines_are_read_with_raw_bytes_in_the_target() {
        assert_eq!(
            RequestLine::parse(b"GET /a?\xff\x01 HTTP/1.1\r\nHost: x"),
            line(b"/a?\xff\x01", false, 20)
        );
        assert_eq!(RequestLine::parse(b"\r\n\r\nGET / HTTP/1.0\n"), line(b"/", true, 19));
    }

    #[test]
    fn every_prefix_is_partial() {
        let whole = b"GET /announce HTTP/1.1\r\n";
        for end in 0..whole.len() {
            assert_eq!(RequestLine::parse(&whole[..end]), LineParsed::Partial, "{end} bytes");
        }
    }

    #[test]
    fn other_protocols_are_invalid_at_the_first_bytes() {
        for bytes in [
            &b"\x16\x03\x01"[..],
            b" GET /",
            b"get / HTTP/1.1\r\n",
            &[b'A'; 17],
            b"GET /\r\n",
            b"GET / a b\r\n",
        ] {
            assert!(matches!(RequestLine::parse(bytes), LineParsed::Invalid(_)), "{bytes:?}");
        }
        assert_eq!(RequestLine::parse(b"GET / HTTP/2.0\r\n"), LineParsed::OtherVersion);
    }
}
