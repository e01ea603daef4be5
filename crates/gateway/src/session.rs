//! One connection: reads frames, passes commands to the handler, writes the outbox.
//!
//! # Guarantees
//!
//! - One reader. The end of the connection is noticed at once (P5), also while a command is running.
//! - A connection without `connect` in time, that does not read, or whose token expired is closed, each with its own
//!   code.
//! - Commands of a connection run one after the other. Messages received meanwhile wait here, up to the maximum
//!   length of one message; beyond that they wait in the kernel. Heartbeats, pings, pongs and close frames do not
//!   wait.
//! - The hub is notified of the end exactly once, also when the task is dropped.
//! - An idle session holds nothing but itself: no buffer, and a timer only for the expiry of the token.
//!
//! # Deliberately absent
//!
//! Rules of presence, ping intervals and timeouts: the hub decides, through the outbox.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use domain::UnixTime;
use domain::clock::{Clock, Stopwatch};
use presence::CloseKind;
use tokio::time::{Instant, Sleep, sleep};
use tracing::debug;
use wire::websocket::Decoder;

use crate::accept::SessionPermit;
use crate::counters::{Ending, GatewayCounters};
use crate::hub::{ConnRef, Hub};
use crate::outbox::Outbox;
use crate::protocol::CloseCode;
use crate::settings::{ConnectionSettings, RoomAccess};
use crate::token::Tokens;
use net::Socket;

mod command_handler;
mod connect_data;
mod rate_limit;
mod read;
mod write;

use command_handler::{CommandHandler, ConnectedClient};
use rate_limit::CommandRateLimit;
use write::Writing;

/// Time limit of the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct SessionShared {
    pub(crate) hub: Arc<Hub>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) settings: ConnectionSettings,
    pub(crate) room_access: RoomAccess,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Time base of the rate limit.
    pub(crate) started: Stopwatch,
}

type Serving = Pin<Box<dyn Future<Output = (CommandHandler, Option<CloseCode>)> + Send>>;

/// One connection. It is done when the connection has ended.
pub(crate) struct Session {
    socket: Socket,
    shared: Arc<SessionShared>,
    outbox: Arc<Outbox>,
    decoder: Decoder,
    /// Set from the reply to `connect` until the hub was notified of the end.
    conn: Option<ConnRef>,
    expires_at: Option<UnixTime>,
    /// State for the command handler; taken while a command runs.
    client_state: Option<Box<ConnectedClient>>,
    /// Shared with the command handler.
    rate_limit: Arc<CommandRateLimit>,
    /// A message that is being answered.
    serving: Option<Serving>,
    unserved: String,
    writing: Option<Box<Writing>>,
    /// When changes that wait are written.
    flush: Option<Pin<Box<Sleep>>>,
    /// When `connect`, a new token or the peer's close frame is due.
    deadline: Option<Pin<Box<Sleep>>>,
    /// When the present window of the feed began, and how often the feed was written to in it.
    feed_window_start: Option<Instant>,
    feed_writes: u8,
    /// When the first ping was written that is not answered yet.
    pinged_at: Option<Instant>,
    phase: Phase,
    /// After a protocol violation input is discarded.
    ignores_input: bool,
    /// Given back when the session ends.
    _permit: SessionPermit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Closed by the server: its close frame is to be written, or the client's is awaited.
    Closing {
        code: CloseCode,
        is_sent: bool,
    },
    /// The client sent a close frame; ours is to be written, or was.
    Leaving {
        code: Option<u16>,
        is_sent: bool,
    },
    /// We closed and shut down the socket. Input is read and discarded: closing with unread bytes would reset the
    /// connection and lose our close frame.
    Draining,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Progress was made: poll again.
    Again,
    /// Nothing to do until the task is woken.
    Idle,
}

impl Session {
    /// `beginning` holds bytes that the HTTP server has read already.
    pub(crate) fn new(
        (socket, mut beginning): (Socket, Vec<u8>),
        outbox: Arc<Outbox>,
        shared: Arc<SessionShared>,
        permit: SessionPermit,
    ) -> Session {
        if let Err(reason) = socket.keep_alive() {
            debug!(%reason, "cannot set TCP keepalive");
        }
        let deadline = Some(Box::pin(sleep(shared.settings.connect_timeout)));
        let mut session = Session {
            socket,
            outbox,
            decoder: Decoder::new(shared.settings.message_bytes_max),
            shared,
            conn: None,
            expires_at: None,
            client_state: None,
            rate_limit: Arc::default(),
            serving: None,
            unserved: String::new(),
            writing: None,
            flush: None,
            deadline,
            feed_window_start: None,
            feed_writes: 0,
            pinged_at: None,
            phase: Phase::Open,
            ignores_input: false,
            _permit: permit,
        };
        session.handle_bytes(&mut beginning);
        session
    }

    /// Does everything that can be done now.
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let steps =
                [self.watch_deadline(context), self.serve(context), self.write(context), self.read(context)];
            if self.phase == Phase::Over {
                return Poll::Ready(());
            }
            if steps == [Step::Idle; 4] {
                return Poll::Pending;
            }
        }
    }

    fn watch_deadline(&mut self, context: &mut Context<'_>) -> Step {
        let is_over =
            self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(context).is_ready());
        if !is_over {
            return Step::Idle;
        }
        self.deadline = None;
        match self.phase {
            // `connect` is still running: the server's fault, so the client may reconnect.
            Phase::Open if self.conn_ref().is_none() && self.serving.is_some() => {
                self.close(CloseCode::ServerError)
            }
            Phase::Open if self.conn_ref().is_none() => self.close(CloseCode::Stale),
            // Checked again: the clock may have been set.
            Phase::Open if self.is_expired() => self.close(CloseCode::Expired),
            Phase::Open => self.await_expiry(),
            Phase::Closing { .. } | Phase::Leaving { .. } | Phase::Draining | Phase::Over => {
                // Sends TLS close_notify.
                let _ = self.socket.poll_shutdown(context);
                self.phase = Phase::Over;
            }
        }
        Step::Again
    }

    /// A message may contain `connect` and more commands: the outbox has the user before all of them are done.
    fn conn_ref(&self) -> Option<ConnRef> {
        self.conn.or_else(|| self.outbox.conn())
    }

    fn is_expired(&self) -> bool {
        self.expires_at
            .is_some_and(|moment| moment + self.shared.settings.expiry_grace <= self.shared.clock.now())
    }

    /// Sets the deadline to the expiry of the token.
    fn await_expiry(&mut self) {
        self.deadline = self.expires_at.map(|moment| {
            let left = (moment + self.shared.settings.expiry_grace).since(self.shared.clock.now());
            Box::pin(sleep(Duration::from_secs(u64::from(left.0.max(1)))))
        });
    }

    /// Continues with the running message, or begins with the next.
    fn serve(&mut self, context: &mut Context<'_>) -> Step {
        if self.phase != Phase::Open {
            return Step::Idle;
        }
        let Some(serving) = &mut self.serving else {
            if self.unserved.is_empty() {
                return Step::Idle;
            }
            let text = std::mem::take(&mut self.unserved);
            let handler = CommandHandler {
                shared: Arc::clone(&self.shared),
                outbox: Arc::clone(&self.outbox),
                client_state: self.client_state.take(),
                rate_limit: Arc::clone(&self.rate_limit),
            };
            self.serving = Some(Box::pin(handler.serve(text)));
            return Step::Again;
        };
        match serving.as_mut().poll(context) {
            Poll::Pending => Step::Idle,
            Poll::Ready((handler, ended)) => {
                self.serving = None;
                self.take_back(handler);
                if let Some(code) = ended {
                    self.close(code);
                }
                Step::Again
            }
        }
    }

    /// Takes over the state after a message was handled.
    fn take_back(&mut self, handler: CommandHandler) {
        self.client_state = handler.client_state;
        let Some(client_state) = &self.client_state else { return };
        let is_new = self.conn.replace(client_state.conn).is_none();
        if is_new || self.expires_at != client_state.expires_at {
            self.expires_at = client_state.expires_at;
            self.await_expiry();
        }
    }

    /// Closes the connection with a close frame.
    fn close(&mut self, code: CloseCode) {
        if self.phase != Phase::Open {
            return;
        }
        let how = match code {
            CloseCode::Normal | CloseCode::ForceNoReconnect => CloseKind::Clean,
            _ => CloseKind::Dropped,
        };
        self.outbox.close(code);
        self.end(code.ending(), how);
        self.phase = Phase::Closing { code, is_sent: false };
    }

    fn leave(&mut self, code: Option<u16>) {
        match self.phase {
            Phase::Open => {
                self.outbox.close(CloseCode::Normal);
                self.end(Ending::Clean, CloseKind::Clean);
                self.phase = Phase::Leaving { code, is_sent: false };
            }
            // Closed by both at once: our reason is sent.
            Phase::Closing { code, is_sent: false } => {
                self.phase = Phase::Leaving { code: Some(code.code()), is_sent: false };
            }
            // The reply to our close frame.
            Phase::Closing { is_sent: true, .. } | Phase::Leaving { .. } | Phase::Draining | Phase::Over => {
                self.phase = Phase::Over
            }
        }
    }

    fn connection_lost(&mut self) {
        if self.phase == Phase::Open {
            self.outbox.close(CloseCode::Normal);
            self.end(Ending::Dropped, CloseKind::Dropped);
        }
        self.phase = Phase::Over;
    }

    /// Notifies the hub, and frees what is no longer needed.
    fn end(&mut self, ending: Ending, how: CloseKind) {
        self.shared.counters.sessions.ended.count(ending);
        self.deadline = Some(Box::pin(sleep(CLOSE_TIMEOUT)));
        self.flush = None;
        self.unserved = String::new();
        let serving = self.serving.take();
        let Some(conn) = self.conn_ref() else { return };
        self.conn = None;
        self.shared.hub.closed(conn, how);
        if let Some(serving) = serving {
            // A running command is finished, also without a client.
            tokio::spawn(serving);
        }
    }
}

impl Future for Session {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.advance(context)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.phase == Phase::Open {
            self.outbox.close(CloseCode::Normal);
            self.shared.counters.sessions.ended.count(Ending::Dropped);
            if let Some(conn) = self.conn_ref() {
                self.shared.hub.closed(conn, CloseKind::Dropped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_session_is_small() {
        // With the outbox and the task header, this is the memory of a connection; the budget is four KiB.
        let (session, outbox) = (size_of::<Session>(), size_of::<Outbox>());
        assert!(session <= 512, "a session takes {session} bytes");
        assert!(outbox <= 256, "an outbox takes {outbox} bytes");
    }
}
