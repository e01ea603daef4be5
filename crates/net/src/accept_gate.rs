//! Pauses, resumes and stops the listeners of a running server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use domain::clock::Stopwatch;
use tokio::sync::watch;

const PAUSE_POLL: Duration = Duration::from_millis(1);
/// Time for all listeners to pause. A UDP thread checks the phase ten times a second.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What happens to the sockets of a server that shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMode {
    /// Closed, after everything that has arrived in them is answered.
    Drain,
    /// Another process serves the same sockets; what is queued in them is left to it.
    HandOver,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Serve,
    /// Accept and receive nothing; resumed by [`Phase::Serve`].
    Paused,
    ShuttingDown(ShutdownMode),
}

/// The current phase, for threads that do not wait on the watch channel, and the number of paused listeners.
#[derive(Debug, Default)]
pub struct ListenerState {
    code: AtomicU8,
    paused: AtomicUsize,
}

impl ListenerState {
    fn give(&self, phase: Phase) {
        let code = match phase {
            Phase::Serve => 0,
            Phase::Paused => 1,
            Phase::ShuttingDown(ShutdownMode::Drain) => 2,
            Phase::ShuttingDown(ShutdownMode::HandOver) => 3,
        };
        self.code.store(code, Ordering::Release);
    }

    pub fn phase(&self) -> Phase {
        match self.code.load(Ordering::Acquire) {
            0 => Phase::Serve,
            1 => Phase::Paused,
            2 => Phase::ShuttingDown(ShutdownMode::Drain),
            _ => Phase::ShuttingDown(ShutdownMode::HandOver),
        }
    }

    /// Blocks the calling thread until the phase changes.
    pub fn wait_while_paused(&self) {
        let _still = self.mark_paused();
        while self.phase() == Phase::Paused {
            thread::sleep(PAUSE_POLL);
        }
    }

    /// While the guard lives, its holder takes nothing from its sockets.
    pub fn mark_paused(&self) -> PausedListener<'_> {
        self.paused.fetch_add(1, Ordering::AcqRel);
        PausedListener(self)
    }
}

pub struct PausedListener<'o>(&'o ListenerState);

impl Drop for PausedListener<'_> {
    fn drop(&mut self) {
        self.0.paused.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Stops and resumes accepting from the sockets. While closed, connections and packets queue in the sockets; open
/// connections are still served.
#[derive(Clone, Debug)]
pub struct AcceptGate {
    listener_state: Arc<ListenerState>,
    phase_sender: watch::Sender<Phase>,
    listeners: usize,
}

impl AcceptGate {
    /// Open, for so many listeners.
    pub fn new(listeners: usize) -> AcceptGate {
        AcceptGate { listener_state: Arc::default(), phase_sender: watch::Sender::default(), listeners }
    }

    /// For threads.
    pub fn listener_state(&self) -> &Arc<ListenerState> {
        &self.listener_state
    }

    /// For tasks.
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.phase_sender.subscribe()
    }

    /// Returns once no listener accepts any more; false after a timeout, or if a shutdown began. Blocks the thread
    /// for about a tenth of a second. Must be opened again unless the server stops.
    pub fn close(&self) -> bool {
        self.change(|phase| (phase == Phase::Serve).then_some(Phase::Paused));
        let closing = Stopwatch::start();
        while self.listener_state.paused.load(Ordering::Acquire) < self.listeners {
            if closing.elapsed() > PAUSE_TIMEOUT || self.listener_state.phase() != Phase::Paused {
                return false;
            }
            thread::sleep(PAUSE_POLL);
        }
        self.listener_state.phase() == Phase::Paused
    }

    /// Has no effect once a shutdown began.
    pub fn open(&self) {
        self.change(|phase| (phase == Phase::Paused).then_some(Phase::Serve));
    }

    pub fn shut_down(&self, mode: ShutdownMode) {
        self.change(|_| Some(Phase::ShuttingDown(mode)));
    }

    /// Updates atomic and watch channel together, under the channel's lock.
    fn change(&self, next: impl FnOnce(Phase) -> Option<Phase>) {
        self.phase_sender.send_if_modified(|phase| {
            let Some(next) = next(*phase) else { return false };
            *phase = next;
            self.listener_state.give(next);
            true
        });
    }
}
