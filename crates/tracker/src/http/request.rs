//! One request head → the bytes of its reply. Nothing here blocks; a [`Receipt`] tells the connection what to wait
//! for before it sends the reply.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use domain::Passkey;
use domain::clock::Stopwatch;
use httparse::{EMPTY_HEADER, Header, Status as Parsed};
use net::proxy::{self, ForwardedError};
use swarm::PeerLists;
use wire::ScrapeEntry;
use wire::http::{
    AnnounceReply, Failure, QueryError, Received, Route, ScrapeQuery, Target, parse_announce, parse_target,
};

use super::receipts::{self, Receipt};
use super::response::{self, After, Status};
use crate::limits::Sender;
use crate::pipeline::{Attempt, Tracker};
use crate::refusal::Refusal;
use crate::traffic::UnrecordedEvent;

/// Enough for a client without proxies.
const HEADERS_USUAL: usize = 16;
/// CDNs add many; the length of the head is bounded too.
const HEADERS_MAX: usize = 100;

/// Result of parsing and answering the first request of a buffer.
pub(super) enum Progress {
    Answered {
        consumed: usize,
        after: After,
        receipt: Option<Receipt>,
    },
    /// Nothing was answered: the passkey of the client at this address must be verified first, then the request is
    /// processed again.
    NeedsVerification(Passkey, IpAddr),
    Incomplete,
    /// The bytes are not a valid request, or a body follows. The error reply is written; the connection must be
    /// closed.
    Refused,
}

/// Buffers of one thread, reused for every request.
#[derive(Default)]
struct Scratch {
    body: Vec<u8>,
    lists: PeerLists,
    scraped: Vec<ScrapeEntry>,
    receipt: Option<Receipt>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[derive(Clone, Copy)]
pub(super) struct RequestContext<'s> {
    pub(super) from: SocketAddr,
    pub(super) tracker: &'s Tracker,
    pub(super) attempt: Attempt,
    /// Close the connection after the last request in the buffer.
    pub(super) is_last: bool,
}

struct ConnectionOptions {
    after: After,
    has_body: bool,
}

/// Bodies are not read.
struct Head<'h> {
    line: RequestLine<'h>,
    headers: &'h [Header<'h>],
    has_body: bool,
}

/// The reply is appended to `out`.
pub(super) fn answer_first(bytes: &[u8], context: RequestContext<'_>, out: &mut Vec<u8>) -> Progress {
    let tracker = context.tracker;
    let line = match RequestLine::parse(bytes) {
        LineParsed::Complete(line) => line,
        LineParsed::Partial => return Progress::Incomplete,
        LineParsed::Invalid(reason) => return refuse_unreadable(Status::BadRequest, reason, tracker, out),
        LineParsed::OtherVersion => {
            let reason = "only HTTP/1.0 and HTTP/1.1 are supported";
            return refuse_unreadable(Status::VersionNotSupported, reason, tracker, out);
        }
    };
    let mut few = [EMPTY_HEADER; HEADERS_USUAL];
    match httparse::parse_headers(&bytes[line.length..], &mut few) {
        Err(httparse::Error::TooManyHeaders) => {
            let mut many = [EMPTY_HEADER; HEADERS_MAX];
            let parsed = httparse::parse_headers(&bytes[line.length..], &mut many);
            answer_parsed(line, parsed, bytes.len(), context, out)
        }
        parsed => answer_parsed(line, parsed, bytes.len(), context, out),
    }
}

fn answer_parsed<'h>(
    line: RequestLine<'h>,
    parsed: httparse::Result<(usize, &'h [Header<'h>])>,
    arrived: usize,
    context: RequestContext<'_>,
    out: &mut Vec<u8>,
) -> Progress {
    let tracker = context.tracker;
    let (header_bytes, headers) = match parsed {
        Ok(Parsed::Complete(whole)) => whole,
        Ok(Parsed::Partial) => return Progress::Incomplete,
        Err(httparse::Error::TooManyHeaders) => {
            return refuse_unreadable(Status::HeadTooLarge, "too many headers", tracker, out);
        }
        Err(_) => return refuse_unreadable(Status::BadRequest, "a header cannot be read", tracker, out),
    };
    let consumed = line.length + header_bytes;
    if consumed > tracker.live().limits.header_bytes_max {
        refuse_too_large(tracker, out);
        return Progress::Refused;
    }
    let ConnectionOptions { mut after, has_body } = connection_options(&line, headers);
    if context.is_last && consumed == arrived {
        after = After::Close;
    }
    let head = Head { line, headers, has_body };
    let answering = Stopwatch::start();
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.body.clear();
        let (status, after) = match answer(&head, context, scratch) {
            Ok(()) => (Status::Ok, after),
            Err(refusal) => {
                if context.attempt == Attempt::First
                    && refusal.needs_verification()
                    && let Some((passkey, client)) = sender_of(&head, context)
                {
                    return Progress::NeedsVerification(passkey, client);
                }
                tracker.counters().refused.count(refusal.label());
                scratch.body.clear();
                // After HEAD, a client would take a body for the next reply.
                if head.line.method != b"HEAD" {
                    write_failure(&refusal, &mut scratch.body);
                }
                (status_of(&refusal), if ends_connection(&refusal) { After::Close } else { after })
            }
        };
        response::write(out, status, after, &scratch.body);
        let receipt = scratch.receipt.take();
        tracker.counters().answers_http.record(answering.elapsed());
        // Bodies are not read, so what follows is not a request.
        if has_body { Progress::Refused } else { Progress::Answered { consumed, after, receipt } }
    })
}

/// The last reply on a connection whose request head is too long.
pub(super) fn refuse_too_large(tracker: &Tracker, out: &mut Vec<u8>) {
    tracker.counters().refused.count("head_too_large");
    let head_bytes_max = tracker.live().limits.header_bytes_max;
    let reason = format!("the request head is longer than {head_bytes_max} bytes");
    response::write_final_failure(out, Status::HeadTooLarge, &reason);
}

pub(super) fn refuse_unstored(tracker: &Tracker, after: After, out: &mut Vec<u8>) {
    let refusal = Refusal::NotStoredInTime;
    tracker.counters().refused.count(refusal.label());
    let mut body = Vec::new();
    write_failure(&refusal, &mut body);
    response::write(out, Status::Ok, after, &body);
}

fn refuse_unreadable(status: Status, reason: &str, tracker: &Tracker, out: &mut Vec<u8>) -> Progress {
    tracker.counters().refused.count("bad_http");
    response::write_final_failure(out, status, reason);
    Progress::Refused
}

fn connection_options(line: &RequestLine<'_>, headers: &[Header<'_>]) -> ConnectionOptions {
    let is_1_0 = line.is_http_1_0;
    let mut has_body = false;
    let mut after = if is_1_0 { After::Close } else { After::KeepAlive };
    for header in headers {
        if header.name.eq_ignore_ascii_case("connection") {
            let has = |word: &str| {
                header
                    .value
                    .split(|b| *b == b',')
                    .any(|w| w.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
            };
            if has("close") {
                after = After::Close;
            } else if is_1_0 && has("keep-alive") {
                after = After::KeepAliveHeader;
            }
        } else if header.name.eq_ignore_ascii_case("content-length") {
            has_body |= header.value.trim_ascii() != b"0";
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            has_body = true;
        }
    }
    ConnectionOptions { after: if has_body { After::Close } else { after }, has_body }
}

fn write_failure(refusal: &Refusal, body: &mut Vec<u8>) {
    Failure { reason: &refusal.to_string(), retry_in: refusal.retry_in() }.write(body);
}

/// Whether the bytes that follow may not be a request.
fn ends_connection(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Method | Refusal::Body)
}

/// Trackers report a failure reason with status 200: clients show it only then.
fn status_of(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::Method => Status::MethodNotAllowed,
        Refusal::Body | Refusal::Forwarded(_) => Status::BadRequest,
        Refusal::Query(QueryError::UnknownPath) => Status::NotFound,
        _ => Status::Ok,
    }
}

/// The passkey to verify, and the address of its client.
fn sender_of(head: &Head<'_>, context: RequestContext<'_>) -> Option<(Passkey, IpAddr)> {
    let passkey = parse_target(head.line.target).ok()?.any_passkey().ok()??;
    Some((passkey, client_of(head, context).ok()?.ip))
}

fn client_of(
    head: &Head<'_>,
    RequestContext { from, tracker, .. }: RequestContext<'_>,
) -> Result<proxy::Client, ForwardedError> {
    let headers = head.headers.iter().map(|header| (header.name, header.value));
    proxy::client_address(from.ip(), headers, &tracker.live().proxies)
}

fn answer(head: &Head<'_>, context: RequestContext<'_>, scratch: &mut Scratch) -> Result<(), Refusal> {
    let RequestContext { tracker, attempt, .. } = context;
    let client = client_of(head, context)?;
    let now = tracker.now();
    if attempt == Attempt::First {
        tracker.check_flood(client.ip, Sender::Verified, now)?;
    }
    if head.line.method != b"GET" {
        return Err(Refusal::Method);
    }
    if head.has_body {
        return Err(Refusal::Body);
    }
    let target = parse_target(head.line.target)?;
    match target.route {
        Route::Announce => {
            let received = Received { ip: client.ip, trusts_ip: client.is_trusted, now };
            announce(&target, received, tracker, scratch)
        }
        Route::Scrape => scrape(&target, tracker, scratch),
    }
}

fn announce(
    target: &Target<'_>,
    received: Received,
    tracker: &Tracker,
    scratch: &mut Scratch,
) -> Result<(), Refusal> {
    let announce = parse_announce(target, received)?;
    let accepted = tracker.announce(&announce, &mut scratch.lists)?;
    tracker.counters().announces_http.count(announce.event);
    if let Some(unrecorded) = accepted.unrecorded {
        scratch.receipt = record(unrecorded, tracker);
    }
    AnnounceReply {
        complete: accepted.counts.seeders,
        incomplete: accepted.counts.leechers,
        downloaded: accepted.counts.snatches,
        interval: accepted.interval,
        min_interval: accepted.min_interval,
        external_ip: announce.ip,
        peers: &scratch.lists.v4,
        peers6: &scratch.lists.v6,
        warning: accepted.warning,
    }
    .write(&mut scratch.body);
    Ok(())
}

/// Returns a receipt if the reply must wait.
fn record(unrecorded: UnrecordedEvent<'_>, tracker: &Tracker) -> Option<Receipt> {
    if !unrecorded.is_awaited() {
        unrecorded.record(None);
        return None;
    }
    let (on_stored, receipt) = receipts::await_storage(Arc::clone(&tracker.counters().journal_waits));
    unrecorded.record(Some(on_stored));
    Some(receipt)
}

fn scrape(target: &Target<'_>, tracker: &Tracker, scratch: &mut Scratch) -> Result<(), Refusal> {
    let query = ScrapeQuery::parse(target.query)?;
    tracker.admit_scrape(target.path_passkey()?.or(query.passkey))?;
    scratch.scraped.clear();
    scratch.scraped.extend(query.info_hashes.iter().filter_map(|info_hash| tracker.scrape(*info_hash)));
    let min_interval = tracker.live().min_announce_interval;
    wire::http::write_scrape_reply(&mut scratch.scraped, Some(min_interval), &mut scratch.body);
    Ok(())
}

/// The first line of a request. Our own parser, because clients put unescaped infohash bytes into the target, which are
/// not text in any encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RequestLine<'l> {
    method: &'l [u8],
    target: &'l [u8],
    is_http_1_0: bool,
    /// Offset of the headers.
    length: usize,
}

impl std::fmt::Debug for RequestLine<'_> {
    /// Omits the target: it contains a passkey.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestLine").field("length", &self.length).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineParsed<'l> {
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
    fn parse(bytes: &'l [u8]) -> LineParsed<'l> {
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
