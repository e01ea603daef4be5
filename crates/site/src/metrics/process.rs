//! Memory, CPU time, files and threads of this process, from `/proc/self`.
//!
//! The names are the standard ones of Prometheus client libraries. On other systems than Linux they are missing.

use std::fs;

use super::{Page, Source};

/// USER_HZ of Linux.
const TICKS_PER_S: f64 = 100.0;

pub struct ProcessMetrics {
    version: &'static str,
    started_at_s: Option<f64>,
}

impl ProcessMetrics {
    pub fn new(version: &'static str) -> ProcessMetrics {
        ProcessMetrics { version, started_at_s: started_at_s() }
    }
}

impl Source for ProcessMetrics {
    fn encode(&self, page: &mut Page) {
        page.gauge("rollcall_build_info", "Always 1, with the version as label.")
            .with(&[("version", self.version)], 1_u64);
        if let Some(started_at_s) = self.started_at_s {
            page.gauge("process_start_time_seconds", "Start time of the process, in unix seconds.")
                .is(started_at_s);
        }
        if let Some(stat) = Stat::read() {
            page.counter("process_cpu_seconds_total", "CPU time of the process.").is(stat.cpu_s);
            page.gauge("process_threads", "Threads of the process.").is(stat.threads);
            page.gauge("process_virtual_memory_bytes", "Virtual memory of the process.")
                .is(stat.virtual_bytes);
        }
        if let Some(resident) = field_kib("/proc/self/status", "VmRSS:") {
            page.gauge("process_resident_memory_bytes", "Resident memory of the process.").is(resident);
        }
        if let Some(limit) = memory_limit_bytes() {
            page.gauge(
                "rollcall_process_memory_limit_bytes",
                "Memory limit of the control group, else the memory of the machine.",
            )
            .is(limit);
        }
        if let Some(open) = open_files() {
            page.gauge("process_open_fds", "Open files and sockets.").is(open);
        }
        if let Some(max) = open_files_max() {
            page.gauge("process_max_fds", "Maximum number of open files and sockets.").is(max);
        }
    }
}

struct Stat {
    cpu_s: f64,
    threads: u64,
    virtual_bytes: u64,
    started_ticks: f64,
}

impl Stat {
    fn read() -> Option<Stat> {
        Stat::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Stat> {
        // Field 2 is the program name in parentheses, and may contain parentheses. The next one is field 3 of proc(5).
        let (_, behind_name) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            cpu_s: (field(14)? + field(15)?) as f64 / TICKS_PER_S,
            threads: field(20)?,
            virtual_bytes: field(23)?,
            started_ticks: field(22)? as f64,
        })
    }
}

fn started_at_s() -> Option<f64> {
    let machine = fs::read_to_string("/proc/stat").ok()?;
    let booted_at =
        machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<f64>().ok()?;
    Some(booted_at + Stat::read()?.started_ticks / TICKS_PER_S)
}

/// A line such as `VmRSS:  1234 kB`, in bytes.
fn field_kib(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The limit of the control group (version 2), else the machine's memory.
fn memory_limit_bytes() -> Option<u64> {
    let machine = field_kib("/proc/meminfo", "MemTotal:");
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let path = format!("/sys/fs/cgroup{}/memory.max", group.trim_end_matches('/'));
    let limit = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match (limit, machine) {
        (Some(limit), Some(machine)) => Some(limit.min(machine)),
        (limit, machine) => limit.or(machine),
    }
}

/// Newer kernels report the number as the size of the folder; on others the files are counted.
fn open_files() -> Option<u64> {
    match fs::metadata("/proc/self/fd").ok()?.len() {
        0 => fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
        count => Some(count),
    }
}

fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_name_may_contain_parentheses() {
        let text = "7 (a) b) c) S 1 7 7 0 -1 4194304 100 0 0 0 250 150 0 0 20 0 9 0 12345 4096000 200 18";
        let stat = Stat::parse(text).expect("a line of the kernel");
        assert_eq!((stat.cpu_s, stat.threads), (4.0, 9));
        assert_eq!((stat.started_ticks, stat.virtual_bytes), (12345.0, 4_096_000));
        assert!(Stat::parse("7 (short) S 1").is_none());
    }
}
