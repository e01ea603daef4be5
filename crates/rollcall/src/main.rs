//! The `rollcall` program: see the library for everything it does.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    rollcall::run(rollcall::cli::Cli::parse())
}
