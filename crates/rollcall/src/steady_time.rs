//! Steady time across restarts ([`domain::clock`]): a file in the data folder with which a process continues the
//! steady time of its predecessor, however the wall clock was set meanwhile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::clock::{SteadyRecord, continue_steady_time};
use tokio::sync::watch;
use tracing::warn;

use crate::roles::{Role, Roles};
use crate::wiring::background::Background;

/// Contains steady time in milliseconds, the machine's uptime in milliseconds, and the boot id.
const FILE: &str = "steady-time";
/// Name until it is complete. Only one process at a time has the tracker role.
const UNFINISHED: &str = "steady-time.new";
/// Within one boot any record will do.
const RECORD_INTERVAL: Duration = Duration::from_secs(10);

/// To be called before steady time is first read.
///
/// Only with the role tracker: other processes start from the wall clock.
pub fn resume(data: &Path, roles: &Roles) {
    let recorded = fs::read_to_string(data.join(FILE)).ok().and_then(|text| parse(&text));
    if let Some(recorded) = recorded.filter(|_| roles.include(Role::Tracker)) {
        continue_steady_time(&recorded, uptime_ms(), &boot());
    }
}

/// Records steady time now, periodically and at the end.
pub fn add_recorder(data: &Path, roles: &Roles, background: &mut Background) {
    if roles.include(Role::Tracker) {
        record(data);
        background.add_task(|stopped| record_periodically(data.to_owned(), stopped));
    }
}

async fn record_periodically(data: PathBuf, mut stopped: watch::Receiver<bool>) {
    while tokio::time::timeout(RECORD_INTERVAL, stopped.wait_for(|stopped| *stopped)).await.is_err() {
        record(&data);
    }
    record(&data);
}

fn record(data: &Path) {
    if let Err(reason) = try_record(data) {
        warn!(%reason, "cannot record steady time; the next start takes it from the wall clock");
    }
}

fn try_record(data: &Path) -> io::Result<()> {
    let SteadyRecord { steady_ms, uptime_ms, boot } = SteadyRecord::now(uptime_ms(), boot());
    // Under another name first: a process that is killed meanwhile leaves the previous record.
    let unfinished = data.join(UNFINISHED);
    let written = fs::write(&unfinished, format!("{steady_ms} {uptime_ms} {boot}\n"));
    let renamed = written.and_then(|()| fs::rename(&unfinished, data.join(FILE)));
    renamed.inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

fn parse(text: &str) -> Option<SteadyRecord> {
    let mut words = text.strip_suffix('\n')?.split(' ');
    Some(SteadyRecord {
        steady_ms: words.next()?.parse().ok()?,
        uptime_ms: words.next()?.parse().ok()?,
        boot: words.next()?.to_owned(),
    })
}

/// Unlike the standard library's monotonic clock, comparable between processes. Zero if unavailable.
fn uptime_ms() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = uptime.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0_f64);
    (seconds * 1_000.0) as u64
}

/// Empty if unavailable.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_damaged_ones_are_not() {
        let data = tempfile::tempdir().unwrap();
        try_record(data.path()).unwrap();
        let text = fs::read_to_string(data.path().join(FILE)).unwrap();
        let recorded = parse(&text).unwrap();
        assert!(recorded.steady_ms > 0 && recorded.uptime_ms <= uptime_ms() && recorded.boot == boot());
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 1);
        for damaged in ["", "12", "12 13 ", &text[..text.len() - 1], "12 x boot\n"] {
            assert_eq!(parse(damaged), None, "{damaged:?}");
        }
    }
}
