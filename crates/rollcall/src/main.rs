//! The `rollcall` program: see the library for everything it does.

use std::process::ExitCode;

use clap::Parser;

/// Peers cost memory by the million: this allocator wastes less of it, and is faster, than the system's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    rollcall::run(rollcall::cli::Cli::parse())
}
