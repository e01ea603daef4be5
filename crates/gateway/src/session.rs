//! One connection: reads frames, has commands answered, writes what the outbox gives.
//!
//! # Guarantees
//!
//! - One reader. An end of the connection is noticed at once (P5), also while a command is being answered.
//! - A connection that has not said who it is in time, that does not read what is written to it, or whose token ran
//!   out is closed, each with its own code.
//! - Commands of a connection are answered one after the other. What a client sends meanwhile is read and waits here,
//!   up to a message's worth; beyond that it waits with the system. Heartbeats, pings, pongs and goodbyes do not wait.
//! - The hub hears of the end exactly once, however it comes, also when the task is dropped.
//! - When nothing happens, nothing is held but the session itself: no buffer, and a timer only for the token's end.
//!
//! # Deliberately absent
//!
//! Any rule about who is there, how often to ping and when to give up: the hub says so through the outbox.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use domain::UnixTime;
use domain::clock::{Clock, Stopwatch};
use presence::Goodbye;
use tokio::time::{Instant, Sleep, sleep};
use tracing::debug;
use wire::websocket::Decoder;

use crate::counters::{Ending, GatewayCounters};
use crate::door::Place;
use crate::hub::{ConnRef, Hub};
use crate::operators::Operators;
use crate::outbox::Outbox;
use crate::protocol::CloseCode;
use crate::settings::{ConnectionSettings, RoomAccess};
use crate::token::Tokens;

mod allowance;
mod desk;
mod hello;
mod reading;
mod socket;
mod writing;

use allowance::Allowance;
use desk::{Desk, Member};
pub use socket::Socket;
use writing::Writing;

/// How long the last words of a connection may take.
const LINGER: Duration = Duration::from_secs(2);

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) hub: Arc<Hub>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) operators: Arc<Operators>,
    pub(crate) settings: ConnectionSettings,
    pub(crate) room_access: RoomAccess,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) clock: Arc<dyn Clock>,
    /// For what is measured within the process.
    pub(crate) started: Stopwatch,
}

type Serving = Pin<Box<dyn Future<Output = (Desk, Option<CloseCode>)> + Send>>;

/// One connection. It is done when the connection has ended.
pub(crate) struct Session {
    socket: Socket,
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    decoder: Decoder,
    /// Who it is, once they have said so, and until the hub knows that they have gone.
    conn: Option<ConnRef>,
    expires_at: Option<UnixTime>,
    /// The same, for who answers commands; taken while one is being answered.
    member: Option<Box<Member>>,
    /// Shared with who answers commands.
    allowance: Arc<Allowance>,
    /// A message that is being answered.
    serving: Option<Serving>,
    /// Messages that came meanwhile.
    unserved: String,
    writing: Option<Box<Writing>>,
    /// When changes that wait are written.
    flush: Option<Pin<Box<Sleep>>>,
    /// When the first command, another token or the last word is due.
    deadline: Option<Pin<Box<Sleep>>>,
    /// When the feed was last written to.
    fed_at: Option<Instant>,
    /// When the first ping was written that is not answered yet.
    pinged_at: Option<Instant>,
    phase: Phase,
    /// What it sends is no longer understood.
    is_deaf: bool,
    /// Given back when the session ends.
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// We end it: the goodbye is still to be written, or it was and the client's is awaited.
    Closing {
        code: CloseCode,
        is_said: bool,
    },
    /// The client said goodbye: the answer is still to be written, or it was.
    Leaving {
        code: Option<u16>,
        is_said: bool,
    },
    /// We ended it and hung up. What the client still sends is read and thrown away: to close over unread bytes would
    /// take the goodbye back.
    Draining,
    Over,
}

/// How a step of the session went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Something was done: look again.
    Again,
    /// Nothing to do until the task is woken.
    Idle,
}

impl Session {
    /// A connection that has just become a WebSocket. What was read of it by then is taken as its beginning.
    pub(crate) fn new(
        (socket, mut beginning): (Socket, Vec<u8>),
        outbox: Arc<Outbox>,
        shared: Arc<Shared>,
        place: Place,
    ) -> Session {
        if let Err(reason) = socket.keep_alive() {
            debug!(%reason, "keepalive cannot be set on a connection");
        }
        let deadline = Some(Box::pin(sleep(shared.settings.connect_timeout)));
        let mut session = Session {
            socket,
            outbox,
            decoder: Decoder::new(shared.settings.message_bytes_max),
            shared,
            conn: None,
            expires_at: None,
            member: None,
            allowance: Arc::default(),
            serving: None,
            unserved: String::new(),
            writing: None,
            flush: None,
            deadline,
            fed_at: None,
            pinged_at: None,
            phase: Phase::Open,
            is_deaf: false,
            place,
        };
        session.take_in(&mut beginning);
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
            // Who has said who they are and still waits for an answer may come back; it was not their fault.
            Phase::Open if !self.is_known() && self.serving.is_some() => self.close(CloseCode::ServerError),
            Phase::Open if !self.is_known() => self.close(CloseCode::Stale),
            // The clock is asked again: it may have been set since.
            Phase::Open if self.is_expired() => self.close(CloseCode::Expired),
            Phase::Open => self.await_expiry(),
            Phase::Closing { .. } | Phase::Leaving { .. } | Phase::Draining | Phase::Over => {
                // Over TLS even the end is said, to whoever still listens.
                let _ = self.socket.poll_shutdown(context);
                self.phase = Phase::Over;
            }
        }
        Step::Again
    }

    /// Who it is. A message may bring `connect` and more: then the outbox knows before all of it is answered.
    fn who(&self) -> Option<ConnRef> {
        self.conn.or_else(|| self.outbox.conn())
    }

    /// Whether they have said who they are, a person or an operator.
    fn is_known(&self) -> bool {
        self.who().is_some() || self.outbox.is_operators()
    }

    fn is_expired(&self) -> bool {
        self.expires_at
            .is_some_and(|moment| moment + self.shared.settings.expiry_grace <= self.shared.clock.now())
    }

    /// Sets the deadline to when the connection ends unless there is a newer token.
    fn await_expiry(&mut self) {
        self.deadline = self.expires_at.map(|moment| {
            let left = (moment + self.shared.settings.expiry_grace).since(self.shared.clock.now());
            Box::pin(sleep(Duration::from_secs(u64::from(left.0.max(1)))))
        });
    }

    /// Goes on with the message that is being answered, or begins with the next.
    fn serve(&mut self, context: &mut Context<'_>) -> Step {
        if self.phase != Phase::Open {
            return Step::Idle;
        }
        let Some(serving) = &mut self.serving else {
            if self.unserved.is_empty() {
                return Step::Idle;
            }
            let text = std::mem::take(&mut self.unserved);
            let desk = Desk {
                shared: Arc::clone(&self.shared),
                outbox: Arc::clone(&self.outbox),
                member: self.member.take(),
                allowance: Arc::clone(&self.allowance),
            };
            self.serving = Some(Box::pin(desk.serve(text)));
            return Step::Again;
        };
        match serving.as_mut().poll(context) {
            Poll::Pending => Step::Idle,
            Poll::Ready((desk, ended)) => {
                self.serving = None;
                self.take_back(desk);
                if let Some(code) = ended {
                    self.close(code);
                }
                Step::Again
            }
        }
    }

    /// Learns what changed while a message was answered.
    fn take_back(&mut self, desk: Desk) {
        self.member = desk.member;
        let Some(member) = &self.member else { return };
        let is_new = self.conn.is_none();
        self.conn = member.person();
        if self.conn.is_none() {
            self.place.leave_to_people();
        }
        if (is_new && self.conn.is_some()) || self.expires_at != member.expires_at {
            self.expires_at = member.expires_at;
            self.await_expiry();
        }
    }

    /// Ends the connection for this reason, with a goodbye.
    fn close(&mut self, code: CloseCode) {
        if self.phase != Phase::Open {
            return;
        }
        let how = match code {
            CloseCode::Normal | CloseCode::ForceNoReconnect => Goodbye::Clean,
            _ => Goodbye::Dropped,
        };
        self.outbox.close(code);
        self.end(code.ending(), how);
        self.phase = Phase::Closing { code, is_said: false };
    }

    /// The client said goodbye.
    fn leave(&mut self, code: Option<u16>) {
        match self.phase {
            Phase::Open => {
                self.outbox.close(CloseCode::Normal);
                self.end(Ending::Clean, Goodbye::Clean);
                self.phase = Phase::Leaving { code, is_said: false };
            }
            // Both at the same time: they are told why we would have.
            Phase::Closing { code, is_said: false } => {
                self.phase = Phase::Leaving { code: Some(code.code()), is_said: false };
            }
            // The answer to ours.
            Phase::Closing { is_said: true, .. } | Phase::Leaving { .. } | Phase::Draining | Phase::Over => {
                self.phase = Phase::Over
            }
        }
    }

    /// The connection broke.
    fn lose(&mut self) {
        if self.phase == Phase::Open {
            self.outbox.close(CloseCode::Normal);
            self.end(Ending::Dropped, Goodbye::Dropped);
        }
        self.phase = Phase::Over;
    }

    /// Tells the hub, and lets go of everything that is no longer needed.
    fn end(&mut self, ending: Ending, how: Goodbye) {
        self.count_end(ending);
        self.deadline = Some(Box::pin(sleep(LINGER)));
        self.flush = None;
        self.unserved = String::new();
        let serving = self.serving.take();
        let Some(conn) = self.who() else { return };
        self.conn = None;
        self.shared.hub.closed(conn, how);
        if let Some(serving) = serving {
            // What was begun is done, whether or not somebody waits for the answer.
            tokio::spawn(serving);
        }
    }
}

impl Session {
    /// Ends of operators' connections are nobody's going.
    fn count_end(&self, ending: Ending) {
        if !self.outbox.is_operators() {
            self.shared.counters.sessions.ended.count(ending);
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
            self.count_end(Ending::Dropped);
            if let Some(conn) = self.who() {
                self.shared.hub.closed(conn, Goodbye::Dropped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_session_is_small() {
        // With the outbox and the task's own words this is what a connection costs here; the budget is four KiB in all.
        let (session, outbox) = (size_of::<Session>(), size_of::<Outbox>());
        assert!(session <= 512, "a session takes {session} bytes");
        assert!(outbox <= 256, "an outbox takes {outbox} bytes");
    }
}
