//! One packet → the bytes of its reply. Nothing here blocks: a reply that waits for storage is sent by the flusher,
//! and a packet with an unknown passkey is set aside and answered by the verifier.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use access::verification::{OnAnswer, RequestOutcome};
use domain::clock::Stopwatch;
use domain::{InfoHash, Passkey};
use swarm::PeerLists;
use wire::ScrapeEntry;
use wire::udp::{self, AnnounceRequest, ScrapeRequest, TransactionId};

use super::ConnectionIds;
use super::repeated_errors::RepeatedErrors;
use crate::limits::Sender;
use crate::pipeline::{Attempt, Tracker};
use crate::refusal::Refusal;
use crate::traffic::OnStored;

/// Fits into IPv6's minimum MTU with headers, so that no reply is fragmented.
const REPLY_BYTES_MAX: usize = 1232;
const ANNOUNCE_HEAD_BYTES: usize = 20;

/// With the head of an error, no longer than a `connect` reply.
const STALE_ID: &str = "stale id";

pub(super) struct Answerer<'t> {
    tracker: &'t Arc<Tracker>,
    ids: ConnectionIds,
    lists: PeerLists,
    /// For replies that had to wait.
    socket: Arc<UdpSocket>,
    attempt: Attempt,
    errors: RepeatedErrors,
}

/// A permit of [`crate::waiting_packets`], released on drop.
struct WaitingPacketPermit(Arc<Tracker>);

impl Drop for WaitingPacketPermit {
    fn drop(&mut self) {
        self.0.waiting_packets().release();
    }
}

impl<'t> Answerer<'t> {
    pub(super) fn new(tracker: &'t Arc<Tracker>, ids: ConnectionIds, socket: Arc<UdpSocket>) -> Self {
        let (lists, errors) = (PeerLists::default(), RepeatedErrors::new());
        Answerer { tracker, ids, lists, socket, attempt: Attempt::First, errors }
    }

    /// Appends the reply to `reply`; leaves it empty if none is to be sent.
    pub(super) fn answer(&mut self, packet: &[u8], from: SocketAddr, reply: &mut Vec<u8>) {
        let ip = from.ip().to_canonical();
        match udp::parse_request(packet) {
            Ok(udp::Request::Connect { transaction }) => self.connect(transaction, ip, reply),
            Ok(udp::Request::Announce(request)) => {
                if self.has_valid_connection(request.connection, request.transaction, ip, reply) {
                    let answering = Stopwatch::start();
                    let outcome = self.announce(&request, from, reply);
                    if self.attempt == Attempt::First
                        && outcome.as_ref().is_err_and(Refusal::needs_verification)
                        && let Ok(Some(passkey)) = request.passkey()
                    {
                        return self.set_aside(packet, from, passkey);
                    }
                    self.finish(outcome, (packet, from), request.transaction, reply);
                    self.tracker.counters().answers_udp.record(answering.elapsed());
                }
            }
            Ok(udp::Request::Scrape(request)) => {
                if self.has_valid_connection(request.connection, request.transaction, ip, reply) {
                    let answering = Stopwatch::start();
                    let outcome = self.scrape(&request, ip, reply);
                    self.finish(outcome, (packet, from), request.transaction, reply);
                    self.tracker.counters().answers_udp.record(answering.elapsed());
                }
            }
            Err(error) => {
                if let (Some(connection), Some(transaction)) = (error.connection(), error.transaction()) {
                    if self.has_valid_connection(connection, transaction, ip, reply) {
                        let outcome = self.tracker.check_flood(ip, Sender::Verified).and(Err(error.into()));
                        self.finish(outcome, (packet, from), transaction, reply);
                    }
                } else {
                    self.tracker.counters().refused.count(error.label());
                }
            }
        }
    }

    /// Has no limit: answering costs no more than dropping, the reply is no longer than the request, and a limit
    /// would let forged senders lock out the owner of an address.
    fn connect(&self, transaction: TransactionId, ip: IpAddr, reply: &mut Vec<u8>) {
        udp::write_connect_reply(reply, transaction, self.ids.issue(ip, self.tracker.now()));
    }

    /// Whether the connection id is valid; if not, writes an error no longer than a `connect` reply.
    fn has_valid_connection(
        &self,
        connection: udp::ConnectionId,
        transaction: TransactionId,
        ip: IpAddr,
        reply: &mut Vec<u8>,
    ) -> bool {
        let is_valid = self.ids.is_valid(connection, ip, self.tracker.now());
        if !is_valid {
            self.tracker.counters().refused.count("stale_connection_id");
            if self.tracker.check_flood(ip, Sender::Unverified).is_ok() {
                udp::write_error(reply, transaction, STALE_ID);
            }
        }
        is_valid
    }

    fn finish(
        &mut self,
        outcome: Result<(), Refusal>,
        (packet, from): (&[u8], SocketAddr),
        transaction: TransactionId,
        reply: &mut Vec<u8>,
    ) {
        use access::Refusal::{CannotCheck, NotVerified};
        let Err(refusal) = outcome else { return };
        self.tracker.counters().refused.count(refusal.label());
        reply.clear();
        // Without a reply a client retries soon; after an error it waits for the next announce.
        if matches!(refusal, Refusal::Flood | Refusal::Access(CannotCheck | NotVerified)) {
            return;
        }
        if self.errors.may_send(from, packet, self.tracker.now()) {
            udp::write_error(reply, transaction, &refusal.to_string());
        } else {
            self.tracker.counters().errors_suppressed.increment();
        }
    }

    fn announce(
        &mut self,
        request: &AnnounceRequest<'_>,
        from: SocketAddr,
        reply: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let ip = from.ip().to_canonical();
        if self.attempt == Attempt::First {
            self.tracker.check_flood(ip, Sender::Verified)?;
        }
        let mut announce = request.announce(ip, self.tracker.now());
        announce.passkey = Some(request.passkey()?.ok_or(Refusal::NoPasskeyOverUdp)?);
        let bytes_per_peer = if ip.is_ipv6() { 18 } else { 6 };
        let room = ((REPLY_BYTES_MAX - ANNOUNCE_HEAD_BYTES) / bytes_per_peer) as u32;
        let wanted = announce.numwant.unwrap_or(self.tracker.live().numwant_default as u32);
        announce.numwant = Some(wanted.min(room));
        let accepted = self.tracker.announce(&announce, &mut self.lists)?;
        self.tracker.counters().announces_udp.count(announce.event);
        let peers = if ip.is_ipv6() { &self.lists.v6 } else { &self.lists.v4 };
        udp::write_announce_reply(
            reply,
            request.transaction,
            accepted.interval,
            accepted.counts.leechers,
            accepted.counts.seeders,
            peers,
        );
        if let Some(unrecorded) = accepted.unrecorded {
            let on_stored = unrecorded.is_awaited().then(|| self.send_later(std::mem::take(reply), from));
            unrecorded.record(on_stored);
        }
        Ok(())
    }

    /// Sends the reply once the event is stored. If it is not, no reply is sent, and the client retries.
    fn send_later(&self, reply: Vec<u8>, to: SocketAddr) -> OnStored {
        let socket = Arc::clone(&self.socket);
        let (waiting, waits) = (Stopwatch::start(), Arc::clone(&self.tracker.counters().journal_waits));
        Box::new(move |is_stored| {
            if is_stored {
                waits.record(waiting.elapsed());
                // Best effort: clients retry.
                let _ = socket.send_to(&reply, to);
            }
        })
    }

    /// Keeps a packet until its passkey is verified, then answers it. If it cannot be kept, it is dropped, and the
    /// client retries.
    fn set_aside(&self, packet: &[u8], from: SocketAddr, passkey: Passkey) {
        let counters = self.tracker.counters();
        if !self.tracker.waiting_packets().try_acquire() {
            return counters.packets_not_set_aside.increment();
        }
        let permit = WaitingPacketPermit(Arc::clone(self.tracker));
        let (packet, ids, socket) = (packet.to_vec(), self.ids, Arc::clone(&self.socket));
        let on_verified: OnAnswer = Box::new(move || {
            let lists = PeerLists::default();
            let (tracker, attempt) = (&permit.0, Attempt::AfterVerification);
            let (over, errors) = (Arc::clone(&socket), RepeatedErrors::new());
            let mut answerer = Answerer { tracker, ids, lists, socket: over, attempt, errors };
            let mut reply = Vec::new();
            answerer.answer(&packet, from, &mut reply);
            tracker.hand_over();
            // Best effort: clients retry.
            if !reply.is_empty() && socket.send_to(&reply, from).is_err() {
                tracker.counters().replies_unsent.increment();
            }
        });
        match self.tracker.verify_passkey(passkey, from.ip().to_canonical(), on_verified) {
            RequestOutcome::Queued => counters.packets_set_aside.increment(),
            RequestOutcome::Dropped => counters.packets_not_set_aside.increment(),
        }
    }

    fn scrape(&self, request: &ScrapeRequest<'_>, ip: IpAddr, reply: &mut Vec<u8>) -> Result<(), Refusal> {
        self.tracker.check_flood(ip, Sender::Verified)?;
        self.tracker.admit_scrape_from(ip)?;
        let entries = request.info_hashes().map(|info_hash| self.scrape_or_zeros(info_hash));
        udp::write_scrape_reply(reply, request.transaction, entries);
        Ok(())
    }

    /// The reply has an entry for every requested hash, including unknown ones.
    fn scrape_or_zeros(&self, info_hash: InfoHash) -> ScrapeEntry {
        let zeros = ScrapeEntry { info_hash, complete: 0, downloaded: 0, incomplete: 0 };
        self.tracker.scrape(info_hash).unwrap_or(zeros)
    }
}
