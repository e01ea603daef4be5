use std::process::ExitCode;

use clap::Parser;

/// Less memory per peer, and faster, than the system's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    rollcall::run(rollcall::cli::Cli::parse())
}
