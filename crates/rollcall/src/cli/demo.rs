//! `rollcall demo …`

use clap::Args;

/// Behind the help of `rollcall demo`.
pub const HELP: &str = "\
Everything runs in this one process, on loopback, with data in a temporary folder that is removed in the end. Ctrl-C ends
it. The peers and people are made up: no content is moved, nothing is sent anywhere else. Where a port is taken, another
one is used, and said so. With --data DIR the data is kept there, and the same figures go on with it next time. Settings
of your own servers (ROLLCALL_… in the environment) are not looked at; --set is, but not for database and redis.

Examples:
  rollcall demo
  rollcall demo --people 200 --peers 10000 --pace 2
  rollcall demo --for 60 --json";

/// What `rollcall demo` takes.
#[derive(Clone, Copy, Debug, Args)]
pub struct DemoArgs {
    /// Where the site is; another port if this one is taken
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub port: u16,
    /// Where announces are heard, over HTTP and UDP; another port if this one is taken
    #[arg(long, value_name = "PORT", default_value_t = 6969)]
    pub tracker_port: u16,
    /// How many people come and go, on one to three devices each
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=5_000))]
    pub people: u32,
    /// How many torrents there are
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub torrents: u32,
    /// How many BitTorrent clients announce them
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(0..=50_000))]
    pub peers: u32,
    /// How fast lives pass, from 0.1 to 20
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = pace)]
    pub pace: f64,
    /// Another number, another world
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// End after so many seconds; when told to if left out
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub for_s: Option<u32>,
}

fn pace(text: &str) -> Result<f64, String> {
    let pace: f64 = text.parse().map_err(|_| "it is a number, such as 1 or 2.5".to_owned())?;
    match (0.1..=20.0).contains(&pace) {
        true => Ok(pace),
        false => Err("it is from 0.1 to 20".to_owned()),
    }
}
