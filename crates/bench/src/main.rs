//! The command line of `rollcall-bench`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use bench::against::PeerSpec;
use bench::report::with_figures;
use bench::table::BENCHMARKS;
use bench::{Options, Sizes, baseline, process};
use clap::{Args, Parser, Subcommand};

// The tracker's allocator, so that bytes per peer are those of the tracker.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Benchmarks over HTTP, UDP and WebSocket and of the journal and its views, reported as ratios to a limit of the same
/// run.
#[derive(Parser)]
#[command(name = "rollcall-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the measurements and print a table
    Bench(BenchArgs),
    /// Echo WebSocket messages
    BaselineWebsocket(EchoArgs),
}

/// Drawn by scripts/plot-bench.py from the same run.
const ALL_IN_PICTURE: &str = "![Processor time of an announce, part by part](pictures/all-in.svg)\n";

#[derive(Args)]
struct BenchArgs {
    /// Write all measurements to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into this Markdown page, between its markers
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Three short rounds and fewer announces: a smoke test
    #[arg(long)]
    quick: bool,
    /// Length of a round
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Rounds against each server
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=100))]
    rounds: Option<u32>,
    /// HTTP connections
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    /// HTTP requests in flight on each connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    pipeline: u16,
    #[arg(long, value_name = "NAME", help = only_help())]
    only: Option<String>,
    /// The server's binary; the one beside this program by default
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Instruction counts for the table, as gungraun prints them with --output-format=json
    #[arg(long, value_name = "FILE")]
    instructions: Option<PathBuf>,
    /// Also measure another tracker by the same load. COMMAND is run by `exec` in a shell and serves {port} of 127.0.0.1
    /// over TCP, UDP or both; {data} is a folder with torrents.txt, passkeys.txt and rollcall.db
    #[arg(long, value_name = "NAME=COMMAND")]
    against: Vec<PeerSpec>,
}

#[derive(Args)]
struct EchoArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    /// How long to serve
    #[arg(long, value_name = "N", default_value_t = baseline::LIFETIME_S_DEFAULT)]
    lifetime_s: u64,
}

fn main() -> anyhow::Result<()> {
    process::raise_file_limit();
    match Cli::parse().command {
        Command::Bench(args) => run_bench(args),
        Command::BaselineWebsocket(args) => {
            Ok(baseline::websocket::serve(args.listen, Duration::from_secs(args.lifetime_s))?)
        }
    }
}

fn only_help() -> String {
    let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
    format!("Run only benchmarks whose name contains this: {}", names.join(", "))
}

fn run_bench(args: BenchArgs) -> anyhow::Result<()> {
    let this_program = std::env::current_exe().context("finding this program")?;
    let beside_this = this_program.with_file_name("rollcall");
    let mut sizes = if args.quick { Sizes::QUICK } else { Sizes::FULL };
    sizes.round = args.seconds.map_or(sizes.round, Duration::from_secs);
    sizes.rounds = args.rounds.unwrap_or(sizes.rounds);
    let report = bench::run(&Options {
        binary: Some(args.server.unwrap_or(beside_this)),
        against: args.against,
        this_program,
        sizes,
        connections: usize::from(args.connections),
        pipeline: usize::from(args.pipeline),
        only: args.only,
        instructions: args.instructions,
    })?;
    if let Some(path) = &args.json {
        let json = serde_json::to_vec_pretty(&report)?;
        std::fs::write(path, json).with_context(|| format!("writing {}", path.display()))?;
    }
    if let Some(path) = &args.page {
        let length = if args.quick { "A quick run: rough figures." } else { "A full run." };
        let figures = format!("{length} {}\n{ALL_IN_PICTURE}", report.to_markdown());
        let old = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        std::fs::write(path, with_figures(&old, &figures)?)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    write!(out, "\n{}", report.to_table())?;
    Ok(())
}
