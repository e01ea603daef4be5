//! `rollcall demo`: a server with simulated peers and users, in one process.
//!
//! # Layout
//!
//! - [`folder`]: its data folder, temporary by default
//! - [`ports`]: free ports
//! - [`settings`]: short intervals
//! - [`fill`]: users, torrents, friendships, a key
//! - [`malformed_entries`]: dead letters
//! - [`startup_message`]: printed output
//!
//! # Guarantees
//!
//! - The operator's own servers are not affected: their settings and data folders are not read, and a folder with
//!   other content is refused, as are settings of database or Redis.
//! - Stops in order: simulation, server, folder. A second signal stops it immediately.

mod fill;
mod folder;
mod malformed_entries;
mod ports;
mod settings;
mod startup_message;

use std::time::Duration;

use anyhow::{Context, bail};
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use gateway::mint::{TokenClaims, mint};
use simulate::{Plan, Simulation, SimulationCounters, SimulationError, Target, TokenIssuer};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::CommandContext;
use super::serve::{self, Embedding};
use crate::cli::GlobalArgs;
use crate::cli::demo::DemoArgs;
use crate::config::{Config, Sources};
use crate::gateway_secret;
use crate::output::Output;
use fill::DemoData;
use folder::Folder;
use ports::Ports;
use startup_message::StartupMessage;

/// Lifetime of tokens.
const TOKEN_S: u32 = 7 * 86_400;

/// Sections that could point to an external database or Redis.
const EXTERNAL_SECTIONS: [&str; 2] = ["database.", "redis."];

pub async fn run(global: GlobalArgs, args: DemoArgs) -> anyhow::Result<()> {
    let stop_requests = listen()?;
    if global.config != std::env::var_os("ROLLCALL_CONFIG").map(Into::into) {
        bail!("a demo has its own settings and no --config: change single ones with --set");
    }
    if let Some(named) =
        global.set.iter().find(|set| EXTERNAL_SECTIONS.iter().any(|section| set.starts_with(section)))
    {
        bail!("a demo uses its own data folder only: omit --set {named}");
    }
    let plan = plan_of(&args);
    // The environment is meant for other servers.
    let from_environment = std::env::var_os("ROLLCALL_DATA").map(Into::into);
    let folder = Folder::open(global.data.filter(|data| Some(data) != from_environment.as_ref()), &plan)?;
    let ports = Ports::choose(args.port, args.tracker_port)?;
    let flags = settings::of(&args, &ports).into_iter().chain(global.set).collect();
    let config = Sources::new(None, std::iter::empty(), flags).load()?;
    let output = Output::new(global.json);
    let context = || CommandContext { config: config.clone(), data: folder.path().to_owned(), output };
    let secret = gateway_secret::for_server(&config, folder.path())?
        .context("gateway.token_public_key_file: a demo must issue tokens itself")?;
    let tokens = tokens_of(&config, secret);
    let filled = fill::fill(&context(), &plan).await?;

    let (stop_server, stopped) = watch::channel(false);
    let (ready, is_ready) = oneshot::channel();
    let serving = serve::run_embedded(Embedding { stop: stopped, ready }, context());
    let simulating = async {
        let demo = DemoRun { args, plan, ports: &ports, filled: &filled, folder: &folder };
        let simulated = demo.run(context(), is_ready, tokens, stop_requests.clone()).await;
        // In any case, the server stops with the simulation.
        let _ = stop_server.send(true);
        simulated
    };
    let mut second_request = stop_requests.clone();
    let (served, simulated) = tokio::select! {
        both = async { tokio::join!(serving, simulating) } => both,
        _ = second_request.wait_for(|times| *times > 1) => (Ok(()), Ok(None)),
    };
    folder.close()?;
    served?;
    if let Some(counters) = simulated? {
        startup_message::print_summary(&counters);
    }
    Ok(())
}

/// Counts stop requests: Ctrl-C, SIGTERM, SIGHUP.
fn listen() -> anyhow::Result<watch::Receiver<u32>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for signals")?;
    let (times, stop_requests) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {}
            }
            times.send_modify(|times| *times += 1);
        }
    });
    Ok(stop_requests)
}

fn plan_of(args: &DemoArgs) -> Plan {
    Plan {
        torrents: args.torrents,
        peers: args.peers,
        members: args.members,
        pace: args.pace,
        seed: args.seed,
        misbehaviour: true,
    }
}

/// As the site would issue them.
fn tokens_of(config: &Config, secret: String) -> TokenIssuer {
    let audience = config.gateway.token_audience.as_str().unwrap_or_default().to_owned();
    let issuer = config.gateway.token_issuer.as_str().unwrap_or_default().to_owned();
    std::sync::Arc::new(move |user: UserId| {
        let issued_at = SystemClock.now();
        let expires_at = domain::UnixTime(issued_at.0.saturating_add(TOKEN_S));
        let claims =
            TokenClaims { user, issued_at, expires_at, audience: &audience, issuer: &issuer, channel: None };
        mint(&secret, &claims).ok()
    })
}

struct DemoRun<'a> {
    args: DemoArgs,
    plan: Plan,
    ports: &'a Ports,
    filled: &'a DemoData,
    folder: &'a Folder,
}

impl DemoRun<'_> {
    /// Runs the simulation from when the server serves until a stop request; none if the server never served.
    async fn run(
        &self,
        context: CommandContext,
        is_ready: oneshot::Receiver<()>,
        tokens: TokenIssuer,
        mut stop_requests: watch::Receiver<u32>,
    ) -> anyhow::Result<Option<SimulationCounters>> {
        let is_serving = tokio::select! {
            ready = is_ready => ready.is_ok(),
            _ = stop_requests.wait_for(|times| *times > 0) => false,
        };
        if !is_serving {
            return Ok(None);
        }
        let member_token = tokens(simulate::catalogue::user_id(1)).context("cannot create a token")?;
        let message = StartupMessage {
            plan: &self.plan,
            ports: self.ports,
            key: &self.filled.key,
            member_token: &member_token,
            folder: self.folder,
        };
        context.output.show(&message.json(), &message)?;
        let target = Target { addresses: self.ports.server_addresses(), tokens };
        let (stop_simulation, ended) = start_simulation(self.plan, target)?;
        tokio::select! {
            () = after(self.args.for_s) => {}
            _ = stop_requests.wait_for(|times| *times > 0) => {}
            () = malformed_entries::write_periodically(&context, &self.plan) => {}
        }
        drop(stop_simulation);
        let counters = ended.await.context("the simulation ended early")??;
        Ok(Some(counters))
    }
}

/// Never without a limit.
async fn after(seconds: Option<u32>) {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds.into())).await,
        None => std::future::pending().await,
    }
}

type SimulationEnd = oneshot::Receiver<Result<SimulationCounters, SimulationError>>;

/// On its own thread, so that server and simulation do not delay each other. It stops when the sender is dropped.
fn start_simulation(plan: Plan, target: Target) -> anyhow::Result<(oneshot::Sender<()>, SimulationEnd)> {
    let (stop, stopped) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime of the simulation")?;
    let simulate = move || {
        let mut simulation = Simulation::new(&plan, target);
        let counters = runtime.block_on(simulation.run_until(async { drop(stopped.await) }));
        let _ = end.send(counters);
    };
    std::thread::Builder::new()
        .name("simulation".to_owned())
        .spawn(simulate)
        .context("cannot start a thread")?;
    Ok((stop, ended))
}
