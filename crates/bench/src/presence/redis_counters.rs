//! Counters of Redis.

use anyhow::Context as _;
use serde::Serialize;
use testkit::RedisServer;

use crate::measure::median;
use crate::run::{Figure, Run};

/// Figures of `INFO`, absolute or as differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RedisCounters {
    pub scripts: f64,
    /// Those within scripts included.
    pub commands: f64,
    /// Bytes received.
    pub bytes_in: f64,
    /// Bytes sent.
    pub bytes_out: f64,
    /// Microseconds of execution.
    pub work_us: f64,
    /// Memory of the data.
    pub memory_bytes: f64,
}

impl RedisCounters {
    /// The current values.
    pub fn of(redis: &RedisServer) -> anyhow::Result<RedisCounters> {
        let info = redis.try_cli(&["INFO", "everything"]).map_err(anyhow::Error::msg)?;
        RedisCounters::read(&info).context("figures are missing in INFO")
    }

    fn read(info: &str) -> Option<RedisCounters> {
        let figure = |name: &str| -> Option<f64> {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
        };
        let mut tally = RedisCounters {
            bytes_in: figure("total_net_input_bytes")?,
            bytes_out: figure("total_net_output_bytes")?,
            memory_bytes: figure("used_memory_dataset")?,
            ..RedisCounters::default()
        };
        for line in info.lines().filter_map(|line| line.strip_prefix("cmdstat_")) {
            let (name, figures) = line.split_once(':')?;
            // The `INFO` command itself is not counted.
            if name == "info" {
                continue;
            }
            let of = |field: &str| -> Option<f64> {
                figures
                    .split(',')
                    .find_map(|pair| pair.strip_prefix(field)?.strip_prefix('=')?.trim().parse().ok())
            };
            let calls = of("calls")?;
            tally.commands += calls;
            // A script's time includes that of its commands, which are counted separately as well.
            if name == "evalsha" || name == "eval" {
                tally.scripts += calls;
                tally.work_us += of("usec")?;
            }
        }
        Some(tally)
    }

    /// The difference to `earlier`.
    pub fn since(&self, earlier: &RedisCounters) -> RedisCounters {
        self.with(earlier, |now, before| now - before)
    }

    /// Divides by `count`.
    pub fn over(&self, count: f64) -> RedisCounters {
        self.with(self, |figure, _| figure / count.max(1e-9))
    }

    /// The median of each figure.
    pub fn median_of(all: &[RedisCounters]) -> RedisCounters {
        let middle = |figure: fn(&RedisCounters) -> f64| median(all.iter().map(figure));
        RedisCounters {
            scripts: middle(|tally| tally.scripts),
            commands: middle(|tally| tally.commands),
            bytes_in: middle(|tally| tally.bytes_in),
            bytes_out: middle(|tally| tally.bytes_out),
            work_us: middle(|tally| tally.work_us),
            memory_bytes: middle(|tally| tally.memory_bytes),
        }
    }

    fn with(&self, other: &RedisCounters, put: impl Fn(f64, f64) -> f64) -> RedisCounters {
        RedisCounters {
            scripts: put(self.scripts, other.scripts),
            commands: put(self.commands, other.commands),
            bytes_in: put(self.bytes_in, other.bytes_in),
            bytes_out: put(self.bytes_out, other.bytes_out),
            work_us: put(self.work_us, other.work_us),
            memory_bytes: put(self.memory_bytes, other.memory_bytes),
        }
    }

    pub fn add_rows(&self, run: &mut Run<'_>, what: &str) {
        let mut add = |name: &str, value: f64, note: &str| {
            run.add(&format!("{name} {what}"), Figure::of(value).noting(note));
        };
        add("Redis scripts", self.scripts, "");
        add("Redis commands", self.commands, "commands within scripts included; by INFO commandstats");
        add("Redis bytes in and out", self.bytes_in + self.bytes_out, "");
        add("Redis time in scripts", self.work_us, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_redis_tells() {
        let info = "# Stats\r\ntotal_net_input_bytes:100\r\ntotal_net_output_bytes:50\r\nused_memory_dataset:7\r\n\
                    cmdstat_info:calls=5,usec=9,usec_per_call=1.8\r\ncmdstat_hset:calls=3,usec=6,usec_per_call=2\r\n\
                    cmdstat_evalsha:calls=2,usec=40,usec_per_call=20.00,rejected_calls=0\r\n";
        let tally = RedisCounters::read(info).unwrap();
        assert_eq!((tally.commands, tally.scripts, tally.work_us), (5.0, 2.0, 40.0));
        assert_eq!((tally.bytes_in, tally.bytes_out, tally.memory_bytes), (100.0, 50.0, 7.0));
        assert_eq!(tally.since(&tally), RedisCounters::default());
        assert_eq!(RedisCounters::read("nothing"), None);
    }
}
