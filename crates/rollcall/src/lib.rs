//! The binary: command line, configuration, logs, start and drain.
//!
//! # Layout
//!
//! - [`cli`]: what can be written on the command line
//! - [`command`]: one file per command, each in the same steps: open, apply, print
//! - [`config`]: what an operator can set
//! - [`roles`]: what one process does of the whole
//! - [`data_files`]: the SQLite files, looked at before they are used
//! - [`node`]: this process among others
//! - [`backends`]: where everything is kept
//! - [`background`], [`directory`]: what runs behind the tracker
//! - [`replica_side`]: swarms that are brought back at the start and kept like those of other nodes
//! - [`take_over`]: a new process takes the place of the one that runs
//! - [`logging`]: what the server says about itself
//! - [`service_manager`]: tells systemd when the server is ready
//! - [`output`]: what commands print
//! - [`readiness`]: what `/readyz` asks
//! - [`recorded_settings`]: what the server was started with, for commands on the same data folder
//! - [`transfer`]: backups, and moving to a database of another kind
//! - [`redis_cli`]: how an operator types `redis-cli`
//! - [`announce_url`]: what a user puts into a client
//! - [`when`]: moments as operators write them
//! - [`vouching`]: who vouches for strangers
//! - [`gateway_secret`]: with what the tokens of people are signed
//! - [`site_keys_side`]: the database and the site's own keys, which say who may announce, and the copies in Redis
//! - [`mirror_side`]: the tracker's layout in Redis
//! - [`site_side`], [`gateway_side`]: the site beside the tracker, and the people who connect through it
//! - [`tracker_settings`], [`site_settings`], [`gateway_settings`]: the configuration as these parts want it
//!
//! Results go to standard output. Errors and logs go to standard error; an error is one line that says what to do.
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
//! `activity.db` follows from the journal and is recreated.
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
//! **The demo** is `serve` in the same process, with settings of its own and a temporary folder, and a simulation on a
//! thread beside it that uses sockets like any client. What it does follows from the seed, the time and the server's
//! answers.

mod announce_url;
pub mod cli;
mod command;
mod config;
mod data_files;
mod first_key;
pub mod gateway_secret;
mod logging;
mod moment;
mod node;
mod output;
mod recorded_settings;
mod redis_cli;
mod roles;
mod service_manager;
mod steady_time;
mod take_over;
mod transfer;
mod wiring;

use std::process::ExitCode;

use anyhow::Context;

/// Enough that a view that is busy does not hold up the journal.
const RUNTIME_THREADS: usize = 2;

/// Runs a command to its end.
pub fn run(cli: cli::Cli) -> ExitCode {
    // Announces have threads of their own; these are for the journal and its views.
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

/// An error and its causes on one line; a cause that the error has already told is left out.
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
    fn errors_are_told_on_one_line_and_only_once() {
        let cause = anyhow::anyhow!("disk full\nvery");
        assert_eq!(one_line(&cause.context("cannot write x")), "cannot write x: disk full very");
        let cause = anyhow::anyhow!("disk full");
        assert_eq!(
            one_line(&cause.context("cannot write x: disk full; make room")),
            "cannot write x: disk full; make room"
        );
    }
}
