//! `rollcall demo …`

use clap::Args;

pub const HELP: &str = "\
Everything runs in this process, on loopback, with data in a temporary folder that is removed at the end. Ctrl-C stops
it. Peers and users are simulated: no content is transferred, and nothing leaves this machine. If a port is taken,
another one is used and printed. With --data DIR the data is kept there, and the next demo continues with it. The
environment of your servers (ROLLCALL_…) is ignored; --set is used, except for database and redis.

Examples:
  rollcall demo
  rollcall demo --members 200 --peers 10000 --pace 2
  rollcall demo --for 60 --json";

#[derive(Clone, Copy, Debug, Args)]
pub struct DemoArgs {
    /// Port of the site; another one if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub port: u16,
    /// Port for announces, HTTP and UDP; another one if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 6969)]
    pub tracker_port: u16,
    /// Simulated members, with one to three devices each
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=5_000))]
    pub members: u32,
    /// Torrents
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub torrents: u32,
    /// BitTorrent clients that announce them
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(0..=50_000))]
    pub peers: u32,
    /// Speed of the simulation, from 0.1 to 20
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = pace)]
    pub pace: f64,
    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Stop after this many seconds; at Ctrl-C if omitted
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub for_s: Option<u32>,
}

fn pace(text: &str) -> Result<f64, String> {
    let pace: f64 = text.parse().map_err(|_| "expected a number such as 1 or 2.5".to_owned())?;
    match (0.1..=20.0).contains(&pace) {
        true => Ok(pace),
        false => Err("expected a number from 0.1 to 20".to_owned()),
    }
}
