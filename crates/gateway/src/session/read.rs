//! Reads from the client.

use std::task::{Context, Poll};

use wire::websocket::{Event, Violation};

use super::rate_limit::RateVerdict;
use super::{Phase, Session, Step};
use crate::protocol::{CloseCode, Frame, is_pong, lines};

/// Read buffer, on the stack.
const READ_BYTES: usize = 4096;

impl Session {
    /// Reads once, if input is accepted now.
    pub(super) fn read(&mut self, context: &mut Context<'_>) -> Step {
        let is_wanted = match self.phase {
            // Also while a command runs: a heartbeat or the end of the connection is noticed at once. Unhandled input
            // is bounded by this and one more message.
            Phase::Open => self.unserved.len() < self.shared.settings.message_bytes_max,
            Phase::Closing { is_sent, .. } => is_sent && self.writing.is_none(),
            Phase::Draining => true,
            Phase::Leaving { .. } | Phase::Over => false,
        };
        if !is_wanted {
            return Step::Idle;
        }
        let mut buffer = [0; READ_BYTES];
        match self.socket.poll_read(context, &mut buffer) {
            Poll::Pending => return Step::Idle,
            Poll::Ready(Ok(0) | Err(_)) => self.connection_lost(),
            Poll::Ready(Ok(count)) => {
                self.shared.counters.sessions.bytes_read.add(count as u64);
                self.handle_bytes(&mut buffer[..count]);
            }
        }
        Step::Again
    }

    /// Handles all complete frames.
    pub(super) fn handle_bytes(&mut self, mut bytes: &mut [u8]) {
        while !self.ignores_input {
            match self.decoder.read(&mut bytes) {
                Ok(Some(event)) => self.handle_event(event),
                Ok(None) => return,
                Err(violation) => return self.handle_violation(violation),
            }
            // Further input of a closing connection is ignored.
            if !matches!(self.phase, Phase::Open | Phase::Closing { is_sent: true, .. }) {
                return;
            }
        }
    }

    /// Further input cannot be decoded: it is read only so that our close frame arrives.
    fn handle_violation(&mut self, violation: Violation) {
        self.ignores_input = true;
        self.close(match violation.close_code() {
            1007 => CloseCode::NotText,
            1009 => CloseCode::TooLong,
            _ => CloseCode::ProtocolViolation,
        });
    }

    fn handle_event(&mut self, event: Event<'_>) {
        if let Event::Close(code) = event {
            return self.leave(code);
        }
        if self.phase != Phase::Open {
            return;
        }
        match event {
            Event::Text(text) => self.handle_message(&text),
            Event::Ping(payload) => {
                if self.is_allowed() {
                    self.outbox.reply(Frame::pong(&payload));
                }
            }
            Event::Pong(_) => {
                if self.is_allowed()
                    && let Some(conn) = self.conn
                {
                    self.shared.counters.sessions.probes_answered.increment();
                    self.shared.hub.probe_answered(conn);
                }
            }
            Event::Binary(_) => self.close(CloseCode::BadRequest),
            Event::Close(_) => {}
        }
    }

    /// Any message is a heartbeat; anything but a pong is queued for the handler.
    fn handle_message(&mut self, text: &str) {
        self.shared.counters.sessions.messages_read.increment();
        // An empty message would bypass the rate limit.
        if lines(text).next().is_none() {
            return self.close(CloseCode::BadRequest);
        }
        let is_answer = is_pong(text);
        if is_answer && !self.is_allowed() {
            return;
        }
        if let Some(conn) = self.conn {
            self.shared.hub.record_activity(conn);
        }
        if !is_answer {
            self.unserved.push_str(text);
            self.unserved.push('\n');
        } else if let Some(pinged_at) = self.pinged_at.take()
            && self.conn.is_some()
        {
            self.shared.counters.sessions.ping_answers.record(pinged_at.elapsed());
        }
    }

    /// Applies the rate limit to pings and pongs.
    fn is_allowed(&mut self) -> bool {
        match self.rate_limit.take(self.shared.started.elapsed(), self.shared.settings.commands_per_s) {
            RateVerdict::Granted => true,
            RateVerdict::Refused => false,
            RateVerdict::Abusive => {
                self.close(CloseCode::TooManyRequests);
                false
            }
        }
    }
}
