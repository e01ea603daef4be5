//! One request head → the bytes of its answer. Nothing here waits; a [`Receipt`] says what the connection has to wait
//! for before it sends the answer.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use domain::Passkey;
use domain::clock::Stopwatch;
use httparse::{EMPTY_HEADER, Header, Status as Parsed};
use swarm::{Families, PeerLists};
use tokio::sync::oneshot;
use wire::ScrapeEntry;
use wire::http::{AnnounceQuery, AnnounceReply, Failure, Route, ScrapeQuery, Target, parse_target};

use super::proxy::{self, ForwardedError};
use super::request_line::{LineParsed, RequestLine};
use super::response::{self, After, Status};
use crate::halt::Halt;
use crate::limits::Sender;
use crate::pipeline::{Accepted, Request, Tracker};
use crate::rejection::Rejection;
use crate::traffic::Unwritten;

/// What a client sends itself.
const HEADERS_USUAL: usize = 16;
/// CDNs add many; the head as a whole is bounded too.
const HEADERS_MAX: usize = 100;

/// Says whether an announce was stored, before which its answer may not be sent.
pub(super) type Receipt = oneshot::Receiver<bool>;

/// How far a buffer with requests was understood.
pub(super) enum Progress {
    /// A request of this many bytes was answered.
    Answered { consumed: usize, after: After, receipt: Option<Receipt> },
    /// Nothing was answered: verification has to be asked about this passkey of the client at this address, and then the
    /// request is answered anew.
    Ask(Passkey, IpAddr),
    /// More bytes are needed.
    Incomplete,
    /// The bytes, or those behind them, cannot be understood; the connection has been given its last words.
    Refused,
}

/// Buffers of one thread, used anew for every request.
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

/// Which time it is that a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    /// Somebody was asked about its passkey meanwhile. It counts as one request, and nobody is asked again.
    AfterAsking,
}

/// Whose request it is, who answers it, and for which time.
#[derive(Clone, Copy)]
pub(super) struct Setting<'s> {
    pub(super) from: SocketAddr,
    pub(super) tracker: &'s Tracker,
    pub(super) attempt: Attempt,
    /// Whether the connection is closed once everything that has arrived on it is answered.
    pub(super) is_last: bool,
}

/// What of a head decides about the connection.
struct Manner {
    after: After,
    has_body: bool,
}

/// A request without its body, which nobody here wants.
struct Head<'h> {
    line: RequestLine<'h>,
    headers: &'h [Header<'h>],
    has_body: bool,
}

/// Answers the first request in `bytes`, if it is there whole; the answer is appended to `out`.
pub(super) fn answer_first(bytes: &[u8], setting: Setting<'_>, out: &mut Vec<u8>) -> Progress {
    let tracker = setting.tracker;
    let line = match RequestLine::parse(bytes) {
        LineParsed::Complete(line) => line,
        LineParsed::Partial => return Progress::Incomplete,
        LineParsed::Invalid(reason) => return refuse_unreadable(Status::BadRequest, reason, tracker, out),
        LineParsed::OtherVersion => {
            let reason = "only HTTP/1.0 and HTTP/1.1 are spoken here";
            return refuse_unreadable(Status::VersionNotSupported, reason, tracker, out);
        }
    };
    let mut few = [EMPTY_HEADER; HEADERS_USUAL];
    match httparse::parse_headers(&bytes[line.length..], &mut few) {
        Err(httparse::Error::TooManyHeaders) => {
            let mut many = [EMPTY_HEADER; HEADERS_MAX];
            let parsed = httparse::parse_headers(&bytes[line.length..], &mut many);
            answer_parsed(line, parsed, bytes.len(), setting, out)
        }
        parsed => answer_parsed(line, parsed, bytes.len(), setting, out),
    }
}

fn answer_parsed<'h>(
    line: RequestLine<'h>,
    parsed: httparse::Result<(usize, &'h [Header<'h>])>,
    arrived: usize,
    setting: Setting<'_>,
    out: &mut Vec<u8>,
) -> Progress {
    let tracker = setting.tracker;
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
    let Manner { mut after, has_body } = manner_of(&line, headers);
    if setting.is_last && consumed == arrived {
        after = After::Close;
    }
    let head = Head { line, headers, has_body };
    let answering = Stopwatch::start();
    SCRATCH.with_borrow_mut(|scratch| {
        let (status, after) = match answer(&head, setting, scratch) {
            Ok(()) => (Status::Ok, after),
            Err(Stop::Ask(passkey, client)) => return Progress::Ask(passkey, client),
            Err(Stop::Problem(problem)) => {
                (problem.status(), if problem.ends_connection() { After::Close } else { after })
            }
        };
        response::write(out, status, after, &scratch.body);
        let receipt = scratch.receipt.take();
        tracker.counters().answers_http.record(answering.elapsed());
        // Nobody reads bodies here, so what follows is no request.
        if has_body { Progress::Refused } else { Progress::Answered { consumed, after, receipt } }
    })
}

/// Appends the last words to a connection whose head is longer than allowed.
pub(super) fn refuse_too_large(tracker: &Tracker, out: &mut Vec<u8>) {
    tracker.counters().refused.count("head_too_large");
    let head_bytes_max = tracker.live().limits.header_bytes_max;
    let reason = format!("the request head is longer than {head_bytes_max} bytes");
    response::write_final_failure(out, Status::HeadTooLarge, &reason);
}

/// Appends the answer to an announce that could not be stored in time.
pub(super) fn refuse_unstored(tracker: &Tracker, after: After, out: &mut Vec<u8>) {
    let rejection = Rejection::NotStoredInTime;
    tracker.counters().refused.count(rejection.label());
    let mut body = Vec::new();
    Failure { reason: &rejection.to_string(), retry_in: rejection.retry_in() }.write(&mut body);
    response::write(out, Status::Ok, after, &body);
}

fn refuse_unreadable(status: Status, reason: &str, tracker: &Tracker, out: &mut Vec<u8>) -> Progress {
    tracker.counters().refused.count("bad_http");
    response::write_final_failure(out, status, reason);
    Progress::Refused
}

fn manner_of(line: &RequestLine<'_>, headers: &[Header<'_>]) -> Manner {
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
                after = After::KeepAliveAloud;
            }
        } else if header.name.eq_ignore_ascii_case("content-length") {
            has_body |= header.value.trim_ascii() != b"0";
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            has_body = true;
        }
    }
    Manner { after: if has_body { After::Close } else { after }, has_body }
}

/// Writes the body of the answer, whichever it is.
fn answer(head: &Head<'_>, setting: Setting<'_>, scratch: &mut Scratch) -> Result<(), Stop> {
    scratch.body.clear();
    let outcome = answer_request(head, setting, scratch);
    if let Err(Stop::Problem(problem)) = &outcome {
        setting.tracker.counters().refused.count(problem.label());
        scratch.body.clear();
        // Whoever sends HEAD would take a body for the next answer.
        if head.line.method != b"HEAD" {
            let (reason, retry_in) = (problem.to_string(), problem.retry_in());
            Failure { reason: &reason, retry_in }.write(&mut scratch.body);
        }
    }
    outcome
}

/// Why a request that is HTTP is not answered with what it asked for.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("only GET is understood here")]
    Method,
    #[error("a request here has no body")]
    Body,
    #[error(transparent)]
    Forwarded(#[from] ForwardedError),
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

/// Why a request is not answered with what it asked for, or not yet.
enum Stop {
    Problem(Problem),
    Ask(Passkey, IpAddr),
}

impl<P: Into<Problem>> From<P> for Stop {
    fn from(problem: P) -> Self {
        Stop::Problem(problem.into())
    }
}

impl Stop {
    fn of(halt: Halt, attempt: Attempt, client: proxy::Client) -> Self {
        match (halt, attempt) {
            (Halt::Ask(passkey), Attempt::First) => Stop::Ask(passkey, client.ip),
            (halt, _) => halt.into_rejection().into(),
        }
    }
}

impl Problem {
    fn label(&self) -> &'static str {
        match self {
            Problem::Method => "method",
            Problem::Body => "body",
            Problem::Forwarded(_) => "bad_forwarded_address",
            Problem::Rejected(rejection) => rejection.label(),
        }
    }

    fn retry_in(&self) -> Option<wire::http::RetryIn> {
        match self {
            Problem::Method | Problem::Body | Problem::Forwarded(_) => None,
            Problem::Rejected(rejection) => rejection.retry_in(),
        }
    }

    /// Whether what follows on the connection may not be what it seems.
    fn ends_connection(&self) -> bool {
        matches!(self, Problem::Method | Problem::Body)
    }

    /// A refusal of the tracker's own is a success of HTTP: clients show its reason only then.
    fn status(&self) -> Status {
        match self {
            Problem::Method => Status::MethodNotAllowed,
            Problem::Body | Problem::Forwarded(_) => Status::BadRequest,
            Problem::Rejected(Rejection::Query(wire::http::QueryError::UnknownPath)) => Status::NotFound,
            Problem::Rejected(_) => Status::Ok,
        }
    }
}

impl From<wire::http::QueryError> for Problem {
    fn from(error: wire::http::QueryError) -> Self {
        Problem::Rejected(error.into())
    }
}

fn answer_request(head: &Head<'_>, setting: Setting<'_>, scratch: &mut Scratch) -> Result<(), Stop> {
    let Setting { from, tracker, attempt, .. } = setting;
    let client = {
        let live = tracker.live();
        let headers = head.headers.iter().map(|header| (header.name, header.value));
        proxy::client_address(from.ip(), headers, &live.proxies)?
    };
    if attempt == Attempt::First {
        tracker.check_flood(client.ip, Sender::Proven)?;
    }
    if head.line.method != b"GET" {
        return Err(Problem::Method.into());
    }
    if head.has_body {
        return Err(Problem::Body.into());
    }
    let target = parse_target(head.line.target)?;
    match target.route {
        Route::Announce => announce(&target, client, setting, scratch),
        Route::Scrape => scrape(&target, client, setting, scratch),
    }
}

fn announce(
    target: &Target<'_>,
    client: proxy::Client,
    Setting { tracker, attempt, .. }: Setting<'_>,
    scratch: &mut Scratch,
) -> Result<(), Stop> {
    let query = AnnounceQuery::parse(target.query)?;
    let passkey = target.path_passkey()?.or(query.passkey).ok_or(Rejection::NoPasskey)?;
    // Only a trusted proxy may say that a client is elsewhere.
    let ip = query.ip.filter(|_| client.is_trusted).map_or(client.ip, |ip| ip.to_canonical());
    let request = Request {
        passkey,
        info_hash: query.info_hash,
        peer_id: query.peer_id,
        key: query.key,
        ip,
        port: query.port,
        uploaded: query.uploaded,
        downloaded: query.downloaded,
        left: query.left,
        event: query.event,
        numwant: query.numwant,
        families: Families::Both,
    };
    let accepted = tracker.announce(&request, &mut scratch.lists);
    let Accepted { answer, unwritten } = accepted.map_err(|halt| Stop::of(halt, attempt, client))?;
    tracker.counters().announces_http.count(request.event);
    if let Some(unwritten) = unwritten {
        scratch.receipt = write_down(unwritten, tracker);
    }
    AnnounceReply {
        complete: answer.counts.seeders,
        incomplete: answer.counts.leechers,
        downloaded: answer.counts.snatches,
        interval: answer.interval,
        min_interval: answer.min_interval,
        external_ip: ip,
        peers: &scratch.lists.v4,
        peers6: &scratch.lists.v6,
        warning: answer.warning,
    }
    .write(&mut scratch.body);
    Ok(())
}

/// Writes the event down; a receipt where the answer has to wait for it.
fn write_down(unwritten: Unwritten<'_>, tracker: &Tracker) -> Option<Receipt> {
    if !unwritten.is_awaited() {
        unwritten.write(None);
        return None;
    }
    let (stored, receipt) = oneshot::channel();
    let (waiting, waits) = (Stopwatch::start(), Arc::clone(&tracker.counters().journal_waits));
    unwritten.write(Some(Box::new(move |is_stored| {
        if is_stored {
            waits.record(waiting.elapsed());
        }
        // Nobody waits any more if the client is gone.
        let _ = stored.send(is_stored);
    })));
    Some(receipt)
}

fn scrape(
    target: &Target<'_>,
    client: proxy::Client,
    Setting { tracker, attempt, .. }: Setting<'_>,
    scratch: &mut Scratch,
) -> Result<(), Stop> {
    let query = ScrapeQuery::parse(target.query)?;
    let passkey = target.path_passkey()?.or(query.passkey).ok_or(Rejection::NoPasskey)?;
    tracker.admit_scrape(&passkey).map_err(|halt| Stop::of(halt, attempt, client))?;
    scratch.scraped.clear();
    scratch.scraped.extend(query.info_hashes.iter().filter_map(|info_hash| tracker.scrape(*info_hash)));
    let min_interval = tracker.live().min_announce_interval;
    wire::http::write_scrape_reply(&mut scratch.scraped, Some(min_interval), &mut scratch.body);
    Ok(())
}
