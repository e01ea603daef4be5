//! The binary: command line, configuration, logs, start and drain.
//!
//! # Layout
//!
//! - [`cli`]: the command line
//! - [`command`]: one file per command, each in the same steps: open, apply, audit, print
//! - [`config`]: configuration keys, loading, validation
//! - [`roles`]: what a process does: tracker, ledger, activity, mirror, sites, gateway, site
//! - [`data_files`]: checks of the SQLite files before they are opened
//! - [`demo_data`]: users, torrents and friendships of a demo
//! - [`node`]: node name and locks of the data folder
//! - [`wiring`]: assembles the parts of a server
//! - [`take_over`]: a new process replaces the running one
//! - [`logging`]: logs to standard error
//! - [`service_manager`]: readiness notification for systemd
//! - [`output`]: text and JSON output of commands
//! - [`recorded_settings`]: the settings of the server, for commands on the same data folder
//! - [`transfer`]: backup, restore, migration to another database
//! - [`redis_cli`]: `redis-cli` command lines
//! - [`announce_url`]: announce URLs of a user
//! - [`time_argument`]: dates and durations on the command line
//! - [`first_key`]: delivers the first API key
//! - [`gateway_secret`]: the secret of gateway tokens
//! - `steady_time`: steady time across restarts
//!
//! Results go to standard output. Errors and logs go to standard error; an error is one line that names the remedy.
//! Exit codes: 0 done, 1 failed, 2 the command line was not understood.
//!
//! # Start and stop
//!
//! Stores are opened first, then ports are bound, swarms restored, and only then is anything served. A server holds a
//! `flock` per role in the data folder; a second server with one of these roles refuses to start and names
//! `--take-over`. On SIGTERM requests in flight are answered, the queue is stored, views finish their batches, and the
//! snapshot is written.
//!
//! **Take-over.** The new process opens its stores and loads the swarms while the old one serves. Then it asks over a
//! socket in the data folder and receives the listening sockets (`SCM_RIGHTS`) and the secret of UDP connection ids.
//! From that moment the old process accepts nothing; until the new one confirms that it serves, the old one continues
//! if the new one fails. Afterwards the old one answers what it has, flushes and exits, and the new one starts its
//! views.
//!
//! **Files** are checked before use: header and `PRAGMA quick_check` of each SQLite file, two seconds at most. The
//! file `databases` holds the identity of each database, so that an emptied, deleted or replaced one stops the start.
//! The activity lists have no file: they are rebuilt from the journal.
//!
//! **Settings** of the server are recorded in the data folder; commands use them. SIGHUP replaces the live settings as
//! a whole.
//!
//! **Backup, restore and migrate** are one row copy. An archive is a SQLite file with all tables and those of the
//! embedded journal. Database and journal are read in two snapshots taken while the ledger cannot commit. The target
//! is written in one transaction, read back, and compared by a sum of row hashes before the commit.
//!
//! **Readiness** follows from writes: one is tried every two seconds in journal, SQLite database and audit trail, and
//! repeated failures of queue and views count too.
//!
//! **The demo** is `serve` in the same process, with its own settings and a temporary folder, and a simulation on a
//! thread beside it that uses sockets like any client. The simulation depends on the seed, the time and the server's
//! replies only.

mod announce_url;
pub mod cli;
mod command;
mod config;
mod data_files;
pub mod demo_data;
mod first_key;
pub mod gateway_secret;
mod logging;
mod node;
mod output;
mod recorded_settings;
mod redis_cli;
mod roles;
mod service_manager;
mod steady_time;
mod take_over;
mod time_argument;
mod transfer;
mod wiring;

use std::process::ExitCode;

use anyhow::Context;

/// So that a busy view does not delay the journal.
const RUNTIME_THREADS: usize = 2;

pub fn run(cli: cli::Cli) -> ExitCode {
    // Announces have their own threads; these are for the journal and its views.
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(command::dispatch(cli)));
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", one_line(&error));
        ExitCode::FAILURE
    })
}

/// An error and its causes on one line, without causes that the error already contains.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(|cause| cause.to_string().replace('\n', " ")) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_and_its_causes_are_one_line_without_repetition() {
        let cause = anyhow::anyhow!("disk full\nvery");
        assert_eq!(one_line(&cause.context("cannot write x")), "cannot write x: disk full very");
        let cause = anyhow::anyhow!("disk full");
        assert_eq!(
            one_line(&cause.context("cannot write x: disk full; make room")),
            "cannot write x: disk full; make room"
        );
    }
}
