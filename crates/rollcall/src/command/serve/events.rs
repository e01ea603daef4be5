//! What a server is told while it serves, and by whom.

use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::take_over::{HandedOver, Offer, Predecessor};

/// How often the data folder is tried.
const FOLDER_EVERY: Duration = Duration::from_secs(1);

/// What a server that serves can be told.
#[derive(Debug)]
pub(super) enum Told {
    /// By SIGHUP.
    Reload,
    /// By SIGTERM or Ctrl-C.
    Stop,
    /// The process whose place this one took (`after_another`) has ended, or there was none. Told once.
    Alone { after_another: bool },
    /// The data folder may be free. Told again and again, until [`Events::has_folder`].
    TryFolder,
    /// Another process serves in our place.
    HandedOver(HandedOver),
}

/// Where it is told that.
pub(super) struct Events {
    signals: Signals,
    predecessor: Option<Predecessor>,
    is_alone: bool,
    /// Runs from when this process is alone until it holds the data folder.
    folder: Option<Interval>,
    /// Stands from when it holds the data folder.
    pub(super) offer: Option<Offer>,
}

impl Events {
    pub(super) fn new(signals: Signals, predecessor: Option<Predecessor>) -> Self {
        Events { signals, predecessor, is_alone: false, folder: None, offer: None }
    }

    /// The data folder is ours: this is what we offer.
    pub(super) fn has_folder(&mut self, offer: Option<Offer>) {
        self.folder = None;
        self.offer = offer;
    }

    pub(super) async fn next(&mut self) -> Told {
        let alone = async {
            match (&mut self.predecessor, self.is_alone) {
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
        let told = tokio::select! {
            told = self.signals.next() => told,
            () = alone => Told::Alone { after_another: false },
            () = folder => Told::TryFolder,
            handed_over = handed_over => Told::HandedOver(handed_over),
        };
        match told {
            Told::Alone { .. } => self.be_alone(),
            told => told,
        }
    }

    fn be_alone(&mut self) -> Told {
        self.is_alone = true;
        let mut folder = interval(FOLDER_EVERY);
        folder.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.folder = Some(folder);
        Told::Alone { after_another: self.predecessor.take().is_some() }
    }
}

/// Signals of the system, or of a host that runs this server as a part of itself. What comes while nobody asks is kept.
pub(super) enum Signals {
    System { terminate: Signal, interrupt: Signal, hang_up: Signal },
    Host(watch::Receiver<bool>),
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

    pub(super) fn of_host(stop: watch::Receiver<bool>) -> Self {
        Signals::Host(stop)
    }

    async fn next(&mut self) -> Told {
        match self {
            Signals::System { terminate, interrupt, hang_up } => tokio::select! {
                _ = terminate.recv() => Told::Stop,
                _ = interrupt.recv() => Told::Stop,
                _ = hang_up.recv() => Told::Reload,
            },
            Signals::Host(_) => {
                self.stop().await;
                Told::Stop
            }
        }
    }

    /// Waits until it is told to stop.
    pub(super) async fn stop(&mut self) {
        match self {
            Signals::System { terminate, interrupt, .. } => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            // A host that is gone wants no server either.
            Signals::Host(stop) => drop(stop.wait_for(|stop| *stop).await),
        }
    }

    /// Whether it has been told to stop.
    pub(super) async fn is_stop(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.stop() => true,
            () = std::future::ready(()) => false,
        }
    }
}
