//! `rollcall doctor`: looks at everything the server stands on, and says what is wrong and how to mend it.
//!
//! # Layout
//!
//! - [`finding`]: what a check found, how bad it is, and what mends it
//! - one file for each check; [`redis`] has several
//!
//! # Guarantees
//!
//! - It changes nothing: no file, no table and no key is made, written or brought up to date. (SQLite may fold a log that
//!   a killed server left behind into its file, as it does for every reader; what is stored stays the same.)
//! - It works while the server runs and while it does not.
//! - Every check has a deadline. What hangs is a finding, not a doctor that hangs.
//! - No password, key or passkey is printed.
//!
//! # Deliberately absent
//!
//! Mending: the operator does that, with the command or the setting that stands beside the finding.

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

/// How long one check may take.
const DEADLINE: Duration = Duration::from_secs(15);

/// What checks look at.
#[derive(Clone, Debug)]
struct Target {
    config: Config,
    data: PathBuf,
    /// Whether a server uses the data folder right now.
    is_running: bool,
}

/// Runs it. Exit code 1 if there is a problem.
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
    findings.ok(format!("{file}, valid; settings that are not at their defaults: {changed}"));
    findings
}

fn invalid_settings(error: anyhow::Error) -> Findings {
    let mut findings = Findings::of("configuration");
    findings.problem(
        crate::one_line(&error),
        "correct it, then: rollcall config check; nothing else is looked at until then",
    );
    findings
}

/// All checks at once, told in a fixed order.
async fn run_checks(target: Target, report: &mut Report) {
    let target = &target;
    let (data, limits, ports, certificates) = tokio::join!(
        run_on_thread("data folder", target, data_folder::check),
        run_on_thread("file limits", target, limits::check),
        run_on_thread("ports", target, ports::check),
        run_on_thread("certificates", target, certificates::check),
    );
    let (gateway, clock, redis, database, journal) = tokio::join!(
        run_on_thread(gateway::NAME, target, gateway::check),
        run_on_thread("clock", target, clock::check),
        with_deadline("redis", redis::check(target)),
        with_deadline("database", database::check(target)),
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
        journal,
    ];
    for findings in all {
        report.add(findings);
    }
}

/// A check that waits for others, cut off at the deadline.
async fn with_deadline(name: &'static str, check: impl Future<Output = Findings>) -> Findings {
    tokio::time::timeout(DEADLINE, check).await.unwrap_or_else(|_| timed_out(name))
}

/// A check that asks the system, which may hang (a disk that is away). On a thread of its own, since the runtime would
/// wait for its own threads at the end.
async fn run_on_thread(name: &'static str, target: &Target, check: fn(&Target) -> Findings) -> Findings {
    let (send, receive) = oneshot::channel();
    let target = target.clone();
    std::thread::spawn(move || {
        let _ = send.send(check(&target));
    });
    let panicked = || {
        let mut findings = Findings::of(name);
        findings.problem("the check itself failed", "report this as a fault of rollcall");
        findings
    };
    with_deadline(name, async { receive.await.unwrap_or_else(|_| panicked()) }).await
}

fn timed_out(name: &'static str) -> Findings {
    let mut findings = Findings::of(name);
    findings.problem(
        format!("no result within {} s: something it asks hangs", DEADLINE.as_secs()),
        "check that it runs and that no firewall swallows what is sent to it, then run rollcall doctor again",
    );
    findings
}
