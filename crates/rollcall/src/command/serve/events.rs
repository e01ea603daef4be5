//! Events that a running server reacts to: signals, the predecessor's end, the data folder, a take-over.

use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::take_over::{HandedOver, Offer, Predecessor};

/// Interval of attempts to lock the data folder.
const FOLDER_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum ServerEvent {
    /// SIGHUP.
    Reload,
    /// SIGTERM or Ctrl-C.
    Stop,
    /// Once: the predecessor (`after_another`) has ended, or there was none.
    PredecessorEnded { after_another: bool },
    /// Repeated until [`Events::has_folder`].
    TryDataFolder,
    /// Another process has taken over.
    HandedOver(HandedOver),
}

pub(super) struct Events {
    signals: Signals,
    predecessor: Option<Predecessor>,
    is_only_process: bool,
    /// Ticks from the predecessor's end until this process holds the data folder.
    folder: Option<Interval>,
    /// Set once this process holds the data folder.
    pub(super) offer: Option<Offer>,
}

impl Events {
    pub(super) fn new(signals: Signals, predecessor: Option<Predecessor>) -> Self {
        Events { signals, predecessor, is_only_process: false, folder: None, offer: None }
    }

    pub(super) fn has_folder(&mut self, offer: Option<Offer>) {
        self.folder = None;
        self.offer = offer;
    }

    pub(super) async fn next(&mut self) -> ServerEvent {
        let alone = async {
            match (&mut self.predecessor, self.is_only_process) {
                (_, true) => std::future::pending().await,
                (Some(predecessor), false) => predecessor.ended().await,
                (None, false) => {}
            }
        };
        let folder = async {
            match &mut self.folder {
                Some(folder) => drop(folder.tick().await),
                None => std::future::pending().await,
            }
        };
        let handed_over = async {
            match &mut self.offer {
                Some(offer) => offer.taken().await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            event = self.signals.next() => event,
            () = alone => ServerEvent::PredecessorEnded { after_another: false },
            () = folder => ServerEvent::TryDataFolder,
            handed_over = handed_over => ServerEvent::HandedOver(handed_over),
        };
        match event {
            ServerEvent::PredecessorEnded { .. } => self.predecessor_ended(),
            event => event,
        }
    }

    fn predecessor_ended(&mut self) -> ServerEvent {
        self.is_only_process = true;
        let mut folder = interval(FOLDER_INTERVAL);
        folder.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.folder = Some(folder);
        ServerEvent::PredecessorEnded { after_another: self.predecessor.take().is_some() }
    }
}

/// Of the system, or of the program that embeds this server. Signals are not lost while no one waits.
pub(super) enum Signals {
    System { terminate: Signal, interrupt: Signal, hang_up: Signal },
    Embedded(watch::Receiver<bool>),
}

impl Signals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Signals::System {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    pub(super) fn embedded(stop: watch::Receiver<bool>) -> Self {
        Signals::Embedded(stop)
    }

    async fn next(&mut self) -> ServerEvent {
        match self {
            Signals::System { terminate, interrupt, hang_up } => tokio::select! {
                _ = terminate.recv() => ServerEvent::Stop,
                _ = interrupt.recv() => ServerEvent::Stop,
                _ = hang_up.recv() => ServerEvent::Reload,
            },
            Signals::Embedded(_) => {
                self.stop().await;
                ServerEvent::Stop
            }
        }
    }

    /// Waits for a stop request.
    pub(super) async fn stop(&mut self) {
        match self {
            Signals::System { terminate, interrupt, .. } => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            // A dropped sender is a stop request.
            Signals::Embedded(stop) => drop(stop.wait_for(|stop| *stop).await),
        }
    }

    pub(super) async fn is_stop(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.stop() => true,
            () = std::future::ready(()) => false,
        }
    }
}
