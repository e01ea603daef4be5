//! `rollcall doctor`: checks everything that the server depends on, and prints a remedy for each problem.
//!
//! # Layout
//!
//! - [`finding`]: results: severity, finding, remedy
//! - one file per check; [`redis`] has several
//!
//! # Guarantees
//!
//! - It changes nothing: no file, table or key is created, written or migrated. (SQLite may merge the write-ahead log
//!   of a killed server into its file, as for every reader; the content stays the same.)
//! - It works with and without a running server.
//! - Every check has a deadline; a hanging dependency is a finding.
//! - No password, key or passkey is printed.
//!
//! # Deliberately absent
//!
//! Repairs: the operator makes them, with the command or setting printed beside the finding.

mod certificates;
mod clock;
mod data_folder;
mod database;
mod exposure;
pub mod finding;
mod gateway;
mod journal;
mod limits;
mod ports;
mod redis;
mod sites;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::cli::GlobalArgs;
use crate::config::{Config, Sources};
use crate::node;
use crate::output::Output;
use crate::recorded_settings;
use finding::{Findings, Report};

const DEADLINE: Duration = Duration::from_secs(15);

/// Input of the checks.
#[derive(Clone, Debug)]
struct Target {
    config: Config,
    data: PathBuf,
    is_running: bool,
}

/// Exit code 1 if there is a problem.
pub async fn run(global: GlobalArgs) -> anyhow::Result<ExitCode> {
    let output = Output::new(global.json);
    let mut report = Report::default();
    let data = global.data_folder();
    let sources = Sources::new(global.config, std::env::vars_os(), global.set);
    match recorded_settings::load(sources, &data) {
        Ok(config) => {
            report.add(valid_settings(&config));
            let is_running = node::is_taken(&data);
            run_checks(Target { config, data, is_running }, &mut report).await;
        }
        Err(error) => report.add(invalid_settings(error)),
    }
    output.show(&report.to_json(), &report)?;
    Ok(if report.has_problems() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn valid_settings(config: &Config) -> Findings {
    let mut findings = Findings::of("configuration");
    let file = match config.file() {
        Some(path) => path.display().to_string(),
        None => "no file".to_owned(),
    };
    let changed = config.differences().len();
    findings.ok(format!("{file}, valid; settings that differ from their defaults: {changed}"));
    findings
}

fn invalid_settings(error: anyhow::Error) -> Findings {
    let mut findings = Findings::of("configuration");
    findings.problem(
        crate::one_line(&error),
        "correct it, then: rollcall config check; nothing else is checked until then",
    );
    findings
}

/// Concurrently; reported in a fixed order.
async fn run_checks(target: Target, report: &mut Report) {
    let target = &target;
    let (data, limits, ports, certificates) = tokio::join!(
        run_on_thread("data folder", target, data_folder::check),
        run_on_thread("file limits", target, limits::check),
        run_on_thread("ports", target, ports::check),
        run_on_thread("certificates", target, certificates::check),
    );
    let (gateway, clock, redis, database, sites, journal) = tokio::join!(
        run_on_thread(gateway::NAME, target, gateway::check),
        run_on_thread("clock", target, clock::check),
        with_deadline("redis", redis::check(target)),
        with_deadline("database", database::check(target)),
        with_deadline(sites::NAME, sites::check(target)),
        with_deadline("journal", journal::check(target)),
    );
    let all = [
        data,
        limits,
        ports,
        certificates,
        exposure::check(target),
        gateway,
        clock,
        redis,
        database,
        sites,
        journal,
    ];
    for findings in all {
        report.add(findings);
    }
}

async fn with_deadline(name: &'static str, check: impl Future<Output = Findings>) -> Findings {
    tokio::time::timeout(DEADLINE, check).await.unwrap_or_else(|_| timed_out(name))
}

/// For checks that call the system, which may hang (an unreachable disk). Not on the runtime, which would wait for
/// its own threads at the end.
async fn run_on_thread(name: &'static str, target: &Target, check: fn(&Target) -> Findings) -> Findings {
    let (send, receive) = oneshot::channel();
    let target = target.clone();
    std::thread::spawn(move || {
        let _ = send.send(check(&target));
    });
    let panicked = || {
        let mut findings = Findings::of(name);
        findings.problem("the check itself failed", "report this as a bug of rollcall");
        findings
    };
    with_deadline(name, async { receive.await.unwrap_or_else(|_| panicked()) }).await
}

fn timed_out(name: &'static str) -> Findings {
    let mut findings = Findings::of(name);
    findings.problem(
        format!("no result within {} s: a dependency does not respond", DEADLINE.as_secs()),
        "check that it runs and that no firewall drops packets to it, then run rollcall doctor again",
    );
    findings
}
