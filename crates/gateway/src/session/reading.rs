//! What comes from the client.

use std::task::{Context, Poll};

use wire::websocket::{Event, Violation};

use super::allowance::Verdict;
use super::{Phase, Session, Step};
use crate::protocol::{CloseCode, Frame, is_pong, lines};

/// What is read at a time, on the stack.
const READ_BYTES: usize = 4096;

impl Session {
    /// Reads once, if anything is wanted of the client now.
    pub(super) fn read(&mut self, context: &mut Context<'_>) -> Step {
        let is_wanted = match self.phase {
            // Also while a command waits for its answer: that the client is alive, or gone, is noticed at once. What
            // was read by then is bounded by this and one more message.
            Phase::Open => self.unserved.len() < self.shared.settings.message_bytes_max,
            Phase::Closing { is_said, .. } => is_said && self.writing.is_none(),
            Phase::Draining => true,
            Phase::Leaving { .. } | Phase::Over => false,
        };
        if !is_wanted {
            return Step::Idle;
        }
        let mut buffer = [0; READ_BYTES];
        match self.socket.poll_read(context, &mut buffer) {
            Poll::Pending => return Step::Idle,
            Poll::Ready(Ok(0) | Err(_)) => self.lose(),
            Poll::Ready(Ok(count)) => {
                self.shared.counters.sessions.bytes_read.add(count as u64);
                self.take_in(&mut buffer[..count]);
            }
        }
        Step::Again
    }

    /// Acts on everything that is whole.
    pub(super) fn take_in(&mut self, mut bytes: &mut [u8]) {
        while !self.is_deaf {
            match self.decoder.read(&mut bytes) {
                Ok(Some(event)) => self.take_event(event),
                Ok(None) => return,
                Err(violation) => return self.break_rules(violation),
            }
            // What else was sent does not matter to a connection that is about to end.
            if !matches!(self.phase, Phase::Open | Phase::Closing { is_said: true, .. }) {
                return;
            }
        }
    }

    /// Nothing that follows can be understood: it is only read so that the goodbye arrives.
    fn break_rules(&mut self, violation: Violation) {
        self.is_deaf = true;
        self.close(match violation.close_code() {
            1007 => CloseCode::NotText,
            1009 => CloseCode::TooLong,
            _ => CloseCode::ProtocolViolation,
        });
    }

    fn take_event(&mut self, event: Event<'_>) {
        if let Event::Close(code) = event {
            return self.leave(code);
        }
        if self.phase != Phase::Open {
            return;
        }
        match event {
            Event::Text(text) => self.take_message(&text),
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

    /// Any message is a heartbeat; one that is more than that is answered, in its turn.
    fn take_message(&mut self, text: &str) {
        self.shared.counters.sessions.messages_read.increment();
        // It would cost its sender nothing.
        if lines(text).next().is_none() {
            return self.close(CloseCode::BadRequest);
        }
        let is_answer = is_pong(text);
        if is_answer && !self.is_allowed() {
            return;
        }
        match self.conn {
            Some(conn) => self.shared.hub.heard(conn),
            None => self.outbox.operator_heard(),
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

    /// Whether what needs no command may still be acted on.
    fn is_allowed(&mut self) -> bool {
        match self.allowance.take(self.shared.started.elapsed(), self.shared.settings.commands_per_s) {
            Verdict::Granted => true,
            Verdict::Refused => false,
            Verdict::Enough => {
                self.close(CloseCode::TooManyRequests);
                false
            }
        }
    }
}
