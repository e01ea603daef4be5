//! `rollcall demo`: a server with a simulating simulation in it, in one process.
//!
//! # Layout
//!
//! - [`folder`]: where its data is, and that nothing is left of it
//! - [`ports`]: where it listens, whatever else runs here
//! - [`settings`]: intervals short enough that things move
//! - [`fill`]: users, torrents, friendships, a key
//! - [`oddities`]: an entry that nobody understands, now and then
//! - [`message`]: what is printed
//!
//! # Guarantees
//!
//! - Nothing of an operator's own servers is touched: neither their settings nor their data folder are looked at, and a
//!   folder that holds anything but a demo is refused, as are settings that name a database or a Redis.
//! - It ends in order: the simulation first, then the server, then the folder. ServerEvent a second time, at once.

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
use simulate::{Plan, Simulation, SimulationCounters, Target, TokenIssuer};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::CommandContext;
use super::serve::{self, Embedding};
use crate::cli::GlobalArgs;
use crate::cli::demo::DemoArgs;
use crate::config::{Config, Sources};
use crate::gateway_secret;
use crate::output::Output;
use fill::Filled;
use folder::Folder;
use ports::Ports;
use startup_message::StartupMessage;

/// How long the tokens of the demo are good for.
const TOKEN_S: u32 = 7 * 86_400;

/// Settings that would let it write into somebody's own database or Redis.
const EXTERNAL_SECTIONS: [&str; 2] = ["database.", "redis."];

/// Runs it.
pub async fn run(global: GlobalArgs, args: DemoArgs) -> anyhow::Result<()> {
    let stop_requests = listen()?;
    if global.config != std::env::var_os("ROLLCALL_CONFIG").map(Into::into) {
        bail!("a demo makes its own settings and takes no --config: change single ones with --set");
    }
    if let Some(named) =
        global.set.iter().find(|set| EXTERNAL_SECTIONS.iter().any(|section| set.starts_with(section)))
    {
        bail!("a demo keeps everything in a folder of its own: leave out --set {named}");
    }
    let plan = plan_of(&args);
    // What stands in the environment is meant for other servers.
    let from_environment = std::env::var_os("ROLLCALL_DATA").map(Into::into);
    let folder = Folder::open(global.data.filter(|data| Some(data) != from_environment.as_ref()), &plan)?;
    let ports = Ports::choose(args.port, args.tracker_port)?;
    let flags = settings::of(&args, &ports).into_iter().chain(global.set).collect();
    let config = Sources::new(None, std::iter::empty(), flags).load()?;
    let output = Output::new(global.json);
    let context = || CommandContext { config: config.clone(), data: folder.path().to_owned(), output };
    let secret = gateway_secret::for_server(&config, folder.path())?
        .context("gateway.token_public_key_file: a demo needs to make tokens by itself")?;
    let tokens = tokens_of(&config, secret);
    let filled = fill::fill(&context(), &plan).await?;

    let (stop_server, stopped) = watch::channel(false);
    let (ready, is_ready) = oneshot::channel();
    let serving = serve::run_embedded(Embedding { stop: stopped, ready }, context());
    let simulating = async {
        let demo = DemoRun { args, plan, ports: &ports, filled: &filled, folder: &folder };
        let simulated = demo.run(context(), is_ready, tokens, stop_requests.clone()).await;
        // Whatever happened: without its simulation the server has nothing to do.
        let _ = stop_server.send(true);
        simulated
    };
    let mut impatient = stop_requests.clone();
    let (served, simulated) = tokio::select! {
        both = async { tokio::join!(serving, simulating) } => both,
        _ = impatient.wait_for(|times| *times > 1) => (Ok(()), Ok(None)),
    };
    folder.close()?;
    served?;
    if let Some(counters) = simulated? {
        startup_message::print_summary(&counters);
    }
    Ok(())
}

/// How often it was stop_requests to end, by Ctrl-C, SIGTERM or a terminal that was closed.
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
        members: args.people,
        pace: args.pace,
        seed: args.seed,
        misbehaviour: true,
    }
}

/// Makes tokens as a site would.
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
    filled: &'a Filled,
    folder: &'a Folder,
}

impl DemoRun<'_> {
    /// Lets the simulation live from when the server serves until it is stop_requests to end; none if the server never served.
    async fn run(
        &self,
        context: CommandContext,
        is_ready: oneshot::Receiver<()>,
        tokens: TokenIssuer,
        mut stop_requests: watch::Receiver<u32>,
    ) -> anyhow::Result<Option<SimulationCounters>> {
        let is_on = tokio::select! {
            ready = is_ready => ready.is_ok(),
            _ = stop_requests.wait_for(|times| *times > 0) => false,
        };
        if !is_on {
            return Ok(None);
        }
        let member_token = tokens(simulate::catalogue::user_id(1)).context("no token could be made")?;
        let message = StartupMessage {
            plan: &self.plan,
            ports: self.ports,
            key: &self.filled.key,
            member_token: &member_token,
            folder: self.folder,
        };
        context.output.show(&message.json(), &message)?;
        let target = Target { addresses: self.ports.places(), tokens };
        let (stop_simulation, ended) = start_simulation(self.plan, target)?;
        tokio::select! {
            () = after(self.args.for_s) => {}
            _ = stop_requests.wait_for(|times| *times > 0) => {}
            () = malformed_entries::write_periodically(&context, &self.plan) => {}
        }
        drop(stop_simulation);
        let counters = ended.await.context("the world ended early")?;
        Ok(Some(counters))
    }
}

/// Ready after so many seconds, or never.
async fn after(seconds: Option<u32>) {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds.into())).await,
        None => std::future::pending().await,
    }
}

/// A thread of its own, so that neither waits for the other. It ends when what is returned first is dropped.
fn start_simulation(
    plan: Plan,
    target: Target,
) -> anyhow::Result<(oneshot::Sender<()>, oneshot::Receiver<SimulationCounters>)> {
    let (stop, stopped) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime of the simulation")?;
    let live = move || {
        let mut simulation = Simulation::new(&plan, target);
        let counters = runtime.block_on(simulation.run_until(async { drop(stopped.await) }));
        let _ = end.send(counters);
    };
    std::thread::Builder::new().name("simulation".to_owned()).spawn(live).context("cannot start a thread")?;
    Ok((stop, ended))
}
