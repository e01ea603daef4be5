//! What goes to the client.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};
use wire::websocket::write_close;

use super::{Phase, Session, Step};
use crate::outbox::{Waits, write_goodbye};
use crate::protocol::CloseCode;

/// What is being written, and by when it must be.
pub(super) struct Writing {
    bytes: Vec<u8>,
    written: usize,
    /// Set while the client does not read.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Session {
    /// Goes on with what is being written, or begins with what waits.
    pub(super) fn write(&mut self, context: &mut Context<'_>) -> Step {
        if self.writing.is_some() {
            return self.go_on_writing(context);
        }
        match self.phase {
            Phase::Open => self.write_waiting(context),
            Phase::Closing { code, is_said: false } => {
                self.phase = Phase::Closing { code, is_said: true };
                let mut bytes = Vec::new();
                self.outbox.take(&mut bytes, false);
                write_goodbye(&mut bytes, code);
                self.begin_writing(bytes)
            }
            Phase::Leaving { code, is_said: false } => {
                self.phase = Phase::Leaving { code, is_said: true };
                let mut bytes = Vec::new();
                // A goodbye without a code is answered in kind.
                write_close(&mut bytes, code.unwrap_or(0), "");
                self.begin_writing(bytes)
            }
            Phase::Leaving { is_said: true, .. } => {
                // The server is the first to hang up; whether the client still listens does not matter.
                if self.socket.poll_shutdown(context).is_pending() {
                    return Step::Idle;
                }
                self.phase = Phase::Over;
                Step::Again
            }
            Phase::Closing { is_said: true, .. } if self.is_deaf => {
                // Its own goodbye would not be understood: the end of the connection is the answer that is awaited.
                if self.socket.poll_shutdown(context).is_pending() {
                    return Step::Idle;
                }
                self.phase = Phase::Draining;
                Step::Again
            }
            Phase::Closing { is_said: true, .. } | Phase::Draining | Phase::Over => Step::Idle,
        }
    }

    fn begin_writing(&mut self, bytes: Vec<u8>) -> Step {
        self.writing = Some(Box::new(Writing { bytes, written: 0, deadline: None }));
        Step::Again
    }

    fn go_on_writing(&mut self, context: &mut Context<'_>) -> Step {
        let Some(writing) = &mut self.writing else { return Step::Idle };
        let written = match writing.bytes.get(writing.written..) {
            Some(rest) if !rest.is_empty() => self.socket.poll_write(context, rest),
            _ => self.socket.poll_flush(context).map_ok(|()| 0),
        };
        match written {
            Poll::Ready(Ok(0)) if writing.written == writing.bytes.len() => self.writing = None,
            Poll::Ready(Ok(0) | Err(_)) => self.lose(),
            Poll::Ready(Ok(count)) => {
                self.shared.counters.sessions.bytes_written.add(count as u64);
                writing.written += count;
                writing.deadline = None;
            }
            Poll::Pending => return self.await_reader(context),
        }
        Step::Again
    }

    /// The client does not read: only the end, and a probe that does not get through, matter now.
    fn await_reader(&mut self, context: &mut Context<'_>) -> Step {
        let patience = self.shared.settings.write_timeout;
        let Some(writing) = &mut self.writing else { return Step::Idle };
        let deadline = writing.deadline.get_or_insert_with(|| Box::pin(sleep(patience)));
        let is_over = deadline.as_mut().poll(context).is_ready();
        if self.phase != Phase::Open {
            return Step::Idle;
        }
        if is_over {
            self.close(CloseCode::Slow);
            return Step::Again;
        }
        let waits = self.outbox.look(context, true);
        self.heed(waits)
    }

    /// Tells the hub of a probe that did not get through; ends the connection if it is to end.
    fn heed(&mut self, waits: Waits) -> Step {
        if waits.probe_failed
            && let Some(conn) = self.conn
        {
            self.shared.hub.probe_failed(conn);
        }
        match waits.close {
            Some(code) => {
                self.close(code);
                Step::Again
            }
            None => Step::Idle,
        }
    }

    fn write_waiting(&mut self, context: &mut Context<'_>) -> Step {
        let waits = self.outbox.look(context, false);
        let with_changes = waits.changes && self.are_changes_due(waits.urgent, context);
        if waits.close.is_some() || !(waits.now || with_changes) {
            return self.heed(waits);
        }
        let mut bytes = Vec::new();
        let taken = self.outbox.take(&mut bytes, with_changes);
        if taken.feed {
            self.fed_at = Some(Instant::now());
        }
        if with_changes && !taken.more {
            self.flush = None;
        }
        if taken.ping {
            // Of two that are not answered the first one counts: an answer that is late is late.
            self.pinged_at.get_or_insert_with(Instant::now);
        }
        self.begin_writing(bytes)
    }

    /// Whether changes are to be written now. What is urgent waits only for the end of the time in which the feed was
    /// last written to, what is not for the end of one that begins with it.
    fn are_changes_due(&mut self, urgent: bool, context: &mut Context<'_>) -> bool {
        let batch = self.shared.settings.batch;
        let fed_until = self.fed_at.map(|moment| moment + batch);
        let is_fed = fed_until.is_some_and(|moment| moment > Instant::now());
        if batch == Duration::ZERO || (urgent && !is_fed) {
            return true;
        }
        let until = fed_until.filter(|_| urgent);
        let flush = self.flush.get_or_insert_with(|| Box::pin(sleep(batch)));
        if let Some(until) = until
            && until < flush.deadline()
        {
            *flush = Box::pin(sleep_until(until));
        }
        flush.as_mut().poll(context).is_ready()
    }
}
