//! Writes to the client.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};
use wire::websocket::write_close;

use super::{Phase, Session, Step};
use crate::outbox::{OutboxState, write_close_frame};
use crate::protocol::CloseCode;

/// Urgent changes are written at once, up to this many messages in one `batch_ms`.
const URGENT_WRITES_MAX: u8 = 8;

pub(super) struct Writing {
    bytes: Vec<u8>,
    written: usize,
    /// Set while the client does not read.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Session {
    /// Continues the current write, or begins with the outbox.
    pub(super) fn write(&mut self, context: &mut Context<'_>) -> Step {
        if self.writing.is_some() {
            return self.continue_writing(context);
        }
        match self.phase {
            Phase::Open => self.write_waiting(context),
            Phase::Closing { code, is_sent: false } => {
                self.phase = Phase::Closing { code, is_sent: true };
                let mut bytes = Vec::new();
                self.outbox.take(&mut bytes, false);
                write_close_frame(&mut bytes, code);
                self.begin_writing(bytes)
            }
            Phase::Leaving { code, is_sent: false } => {
                self.phase = Phase::Leaving { code, is_sent: true };
                let mut bytes = Vec::new();
                // A close frame without a code is answered with one.
                write_close(&mut bytes, code.unwrap_or(0), "");
                self.begin_writing(bytes)
            }
            Phase::Leaving { is_sent: true, .. } => {
                // The server closes first, whether or not the client still reads.
                if self.socket.poll_shutdown(context).is_pending() {
                    return Step::Idle;
                }
                self.phase = Phase::Over;
                Step::Again
            }
            Phase::Closing { is_sent: true, .. } if self.ignores_input => {
                // The client's close frame cannot be parsed after this: wait for the end of the connection.
                if self.socket.poll_shutdown(context).is_pending() {
                    return Step::Idle;
                }
                self.phase = Phase::Draining;
                Step::Again
            }
            Phase::Closing { is_sent: true, .. } | Phase::Draining | Phase::Over => Step::Idle,
        }
    }

    fn begin_writing(&mut self, bytes: Vec<u8>) -> Step {
        self.writing = Some(Box::new(Writing { bytes, written: 0, deadline: None }));
        Step::Again
    }

    fn continue_writing(&mut self, context: &mut Context<'_>) -> Step {
        let Some(writing) = &mut self.writing else { return Step::Idle };
        let written = match writing.bytes.get(writing.written..) {
            Some(rest) if !rest.is_empty() => self.socket.poll_write(context, rest),
            _ => self.socket.poll_flush(context).map_ok(|()| 0),
        };
        match written {
            Poll::Ready(Ok(0)) if writing.written == writing.bytes.len() => self.writing = None,
            Poll::Ready(Ok(0) | Err(_)) => self.connection_lost(),
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
        let waits = self.outbox.poll_state(context, true);
        self.handle_outbox_state(waits)
    }

    /// Reports a failed probe to the hub, and closes the connection if the outbox says so.
    fn handle_outbox_state(&mut self, waits: OutboxState) -> Step {
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
        let waits = self.outbox.poll_state(context, false);
        let with_changes = waits.changes && self.are_changes_due(waits.urgent, context);
        if waits.close.is_some() || !(waits.now || with_changes) {
            return self.handle_outbox_state(waits);
        }
        let mut bytes = Vec::new();
        let taken = self.outbox.take(&mut bytes, with_changes);
        if taken.feed {
            self.count_feed_write();
        }
        if with_changes && !taken.more {
            self.flush = None;
        }
        if taken.ping {
            // The delay counts from the first unanswered ping.
            self.pinged_at.get_or_insert_with(Instant::now);
        }
        self.begin_writing(bytes)
    }

    /// Counts a feed write in the current window.
    fn count_feed_write(&mut self) {
        if self.feed_window_end().is_none() {
            (self.feed_window_start, self.feed_writes) = (Some(Instant::now()), 0);
        }
        self.feed_writes = self.feed_writes.saturating_add(1);
    }

    /// When the present window of the feed ends; none if nothing was written within the last `batch_ms`.
    fn feed_window_end(&self) -> Option<Instant> {
        let until = self.feed_window_start? + self.shared.settings.batch;
        Some(until).filter(|until| *until > Instant::now())
    }

    /// Whether changes are written now. Urgent changes wait only if there were many writes in the current window
    /// (many users reconnect at once), and then until its end; other changes wait until the end of a window that
    /// begins with them.
    fn are_changes_due(&mut self, urgent: bool, context: &mut Context<'_>) -> bool {
        let batch = self.shared.settings.batch;
        let feed_window_end = self.feed_window_end().filter(|_| urgent);
        let is_at_once = urgent && (feed_window_end.is_none() || self.feed_writes < URGENT_WRITES_MAX);
        if batch == Duration::ZERO || is_at_once {
            return true;
        }
        let flush = self.flush.get_or_insert_with(|| Box::pin(sleep(batch)));
        if let Some(until) = feed_window_end
            && until < flush.deadline()
        {
            *flush = Box::pin(sleep_until(until));
        }
        flush.as_mut().poll(context).is_ready()
    }
}
