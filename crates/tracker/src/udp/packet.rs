//! One packet → the bytes of its answer. Nothing here waits: a reply that has to wait for storage is sent by whoever
//! stores, and a packet whose passkey has to be asked about is set aside and answered by whoever found out.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use access::Refusal;
use access::verification::{OnAnswer, RequestOutcome};
use domain::clock::Stopwatch;
use domain::{InfoHash, Passkey};
use swarm::{Families, PeerLists};
use wire::ScrapeEntry;
use wire::udp::{self, AnnounceRequest, ScrapeRequest, TransactionId};

use super::ConnectionIds;
use super::repeated_errors::RepeatedErrors;
use crate::halt::Halt;
use crate::limits::Sender;
use crate::pipeline::{Accepted, Request, Tracker};
use crate::rejection::Rejection;
use crate::traffic::OnStored;

/// Room for peers in a packet that crosses any network whole: IPv6's least MTU less the headers.
const REPLY_BYTES_MAX: usize = 1232;
const ANNOUNCE_HEAD_BYTES: usize = 20;

/// What a stranger may be told: with the head of an error, no more than a `connect` reply.
const STALE_ID: &str = "stale id";

/// Answers packets, one at a time.
pub(super) struct Answerer<'t> {
    tracker: &'t Arc<Tracker>,
    ids: ConnectionIds,
    lists: PeerLists,
    /// Over which replies are sent that had to wait.
    socket: Arc<UdpSocket>,
    attempt: Attempt,
    errors: RepeatedErrors,
}

/// Which time it is that a packet is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    First,
    /// Somebody was asked about its passkey meanwhile. It counts as one packet, and nobody is asked again.
    AfterAsking,
}

/// A place for a packet that was set aside; given back however it ends.
struct AsidePlace(Arc<Tracker>);

impl Drop for AsidePlace {
    fn drop(&mut self) {
        self.0.packets_aside().give_back();
    }
}

impl<'t> Answerer<'t> {
    pub(super) fn new(tracker: &'t Arc<Tracker>, ids: ConnectionIds, socket: Arc<UdpSocket>) -> Self {
        let (lists, errors) = (PeerLists::default(), RepeatedErrors::new());
        Answerer { tracker, ids, lists, socket, attempt: Attempt::First, errors }
    }

    /// Appends the reply to a packet; leaves it empty where silence is the answer.
    pub(super) fn answer(&mut self, packet: &[u8], from: SocketAddr, reply: &mut Vec<u8>) {
        let ip = from.ip().to_canonical();
        match udp::parse_request(packet) {
            Ok(udp::Request::Connect { transaction }) => self.connect(transaction, ip, reply),
            Ok(udp::Request::Announce(request)) => {
                if self.is_genuine(request.connection, request.transaction, ip, reply) {
                    let answering = Stopwatch::start();
                    let outcome = match self.announce(&request, from, reply) {
                        Err(Halt::Ask(passkey)) if self.attempt == Attempt::First => {
                            return self.set_aside(packet, from, passkey);
                        }
                        outcome => outcome.map_err(Halt::into_rejection),
                    };
                    self.conclude(outcome, (packet, from), request.transaction, reply);
                    self.tracker.counters().answers_udp.record(answering.elapsed());
                }
            }
            Ok(udp::Request::Scrape(request)) => {
                if self.is_genuine(request.connection, request.transaction, ip, reply) {
                    let answering = Stopwatch::start();
                    let outcome = self.scrape(&request, ip, reply);
                    self.conclude(outcome, (packet, from), request.transaction, reply);
                    self.tracker.counters().answers_udp.record(answering.elapsed());
                }
            }
            Err(error) => {
                if let (Some(connection), Some(transaction)) = (error.connection(), error.transaction()) {
                    if self.is_genuine(connection, transaction, ip, reply) {
                        let outcome = self.tracker.check_flood(ip, Sender::Proven).and(Err(error.into()));
                        self.conclude(outcome, (packet, from), transaction, reply);
                    }
                } else {
                    self.tracker.counters().refused.count(error.label());
                }
            }
        }
    }

    /// Always answered: it costs no more than looking away, the reply is no longer than the request, and a limit would
    /// let whoever forges an address lock its owner out.
    fn connect(&self, transaction: TransactionId, ip: IpAddr, reply: &mut Vec<u8>) {
        udp::write_connect_reply(reply, transaction, self.ids.give(ip, self.tracker.now()));
    }

    /// Whether the sender is where it says; if not, a reply no longer than a `connect` reply tells it to connect.
    fn is_genuine(
        &self,
        connection: udp::ConnectionId,
        transaction: TransactionId,
        ip: IpAddr,
        reply: &mut Vec<u8>,
    ) -> bool {
        let genuine = self.ids.is_genuine(connection, ip, self.tracker.now());
        if !genuine {
            self.tracker.counters().refused.count("stale_connection_id");
            if self.tracker.check_flood(ip, Sender::Claimed).is_ok() {
                udp::write_error(reply, transaction, STALE_ID);
            }
        }
        genuine
    }

    fn conclude(
        &mut self,
        outcome: Result<(), Rejection>,
        (packet, from): (&[u8], SocketAddr),
        transaction: TransactionId,
        reply: &mut Vec<u8>,
    ) {
        let Err(rejection) = outcome else { return };
        self.tracker.counters().refused.count(rejection.label());
        reply.clear();
        // A client that hears nothing asks again soon; one that is told of an error waits for the next announce.
        if matches!(rejection, Rejection::Flood | Rejection::Access(Refusal::CannotCheck)) {
            return;
        }
        if self.errors.may_tell(from, packet, self.tracker.now()) {
            udp::write_error(reply, transaction, &rejection.to_string());
        } else {
            self.tracker.counters().errors_untold.increment();
        }
    }

    fn announce(
        &mut self,
        request: &AnnounceRequest<'_>,
        from: SocketAddr,
        reply: &mut Vec<u8>,
    ) -> Result<(), Halt> {
        let ip = from.ip().to_canonical();
        if self.attempt == Attempt::First {
            self.tracker.check_flood(ip, Sender::Proven)?;
        }
        let (families, bytes_per_peer) = if ip.is_ipv6() { (Families::V6, 18) } else { (Families::V4, 6) };
        let room = ((REPLY_BYTES_MAX - ANNOUNCE_HEAD_BYTES) / bytes_per_peer) as u32;
        let wanted = request.numwant.unwrap_or(self.tracker.live().numwant_default as u32);
        let Accepted { answer, unwritten } = self.tracker.announce(
            &Request {
                passkey: request.passkey()?.ok_or(Rejection::NoPasskeyOverUdp)?,
                info_hash: request.info_hash,
                peer_id: request.peer_id,
                key: request.key,
                ip,
                port: request.port,
                uploaded: request.uploaded,
                downloaded: request.downloaded,
                left: Some(request.left),
                event: request.event,
                numwant: Some(wanted.min(room)),
                families,
            },
            &mut self.lists,
        )?;
        self.tracker.counters().announces_udp.count(request.event);
        let peers = if ip.is_ipv6() { &self.lists.v6 } else { &self.lists.v4 };
        let counts = answer.counts;
        udp::write_announce_reply(
            reply,
            request.transaction,
            answer.interval,
            counts.leechers,
            counts.seeders,
            peers,
        );
        if let Some(unwritten) = unwritten {
            let on_stored = unwritten.is_awaited().then(|| self.send_later(std::mem::take(reply), from));
            unwritten.write(on_stored);
        }
        Ok(())
    }

    /// Sends a reply once the event is stored. One that never is gets no answer: clients ask again.
    fn send_later(&self, reply: Vec<u8>, to: SocketAddr) -> OnStored {
        let socket = Arc::clone(&self.socket);
        let (waiting, waits) = (Stopwatch::start(), Arc::clone(&self.tracker.counters().journal_waits));
        Box::new(move |is_stored| {
            if is_stored {
                waits.record(waiting.elapsed());
                // As with every reply: clients that do not get it ask again.
                let _ = socket.send_to(&reply, to);
            }
        })
    }

    /// Keeps a packet until somebody was asked about its passkey, and answers it then. Where that cannot be, silence is
    /// the answer: clients ask again.
    fn set_aside(&self, packet: &[u8], from: SocketAddr, passkey: Passkey) {
        let counters = self.tracker.counters();
        if !self.tracker.packets_aside().take_place() {
            return counters.packets_not_set_aside.increment();
        }
        let place = AsidePlace(Arc::clone(self.tracker));
        let (packet, ids, socket) = (packet.to_vec(), self.ids, Arc::clone(&self.socket));
        let on_answer: OnAnswer = Box::new(move || {
            let lists = PeerLists::default();
            let (tracker, attempt) = (&place.0, Attempt::AfterAsking);
            let (over, errors) = (Arc::clone(&socket), RepeatedErrors::new());
            let mut answerer = Answerer { tracker, ids, lists, socket: over, attempt, errors };
            let mut reply = Vec::new();
            answerer.answer(&packet, from, &mut reply);
            // As with every reply: clients that do not get it ask again.
            if !reply.is_empty() && socket.send_to(&reply, from).is_err() {
                tracker.counters().replies_unsent.increment();
            }
        });
        match self.tracker.ask(passkey, from.ip().to_canonical(), on_answer) {
            RequestOutcome::Queued => counters.packets_set_aside.increment(),
            RequestOutcome::Dropped => counters.packets_not_set_aside.increment(),
        }
    }

    fn scrape(&self, request: &ScrapeRequest<'_>, ip: IpAddr, reply: &mut Vec<u8>) -> Result<(), Rejection> {
        self.tracker.check_flood(ip, Sender::Proven)?;
        self.tracker.admit_scrape_from(ip)?;
        let entries = request.info_hashes().map(|info_hash| self.scrape_or_zeros(info_hash));
        udp::write_scrape_reply(reply, request.transaction, entries);
        Ok(())
    }

    /// The answer has a place for every hash asked for, also for those that nobody knows.
    fn scrape_or_zeros(&self, info_hash: InfoHash) -> ScrapeEntry {
        let zeros = ScrapeEntry { info_hash, complete: 0, downloaded: 0, incomplete: 0 };
        self.tracker.scrape(info_hash).unwrap_or(zeros)
    }
}
