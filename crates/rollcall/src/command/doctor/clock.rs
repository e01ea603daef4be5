//! The system clock: plausible, and synchronised.
//!
//! The clocks of Redis and of the database are compared by their checks.

use std::process::{Command, Stdio};

use domain::clock::{Clock, SystemClock};

use super::Target;
use super::finding::{Findings, Severity};

/// This program is newer.
const EARLIEST_S: u64 = 1_735_689_600;
/// Up to here: network latency and NTP tolerance.
pub(super) const SKEW_MS_WARNING: u64 = 2_000;
/// From here on, seeding times and expiries are visibly wrong.
pub(super) const SKEW_MS_PROBLEM: u64 = 30_000;

const REMEDY: &str = "timedatectl set-ntp true, or install chrony";

pub(super) fn check(_patient: &Target) -> Findings {
    let mut findings = Findings::of("clock");
    if SystemClock.now_ms() / 1000 < EARLIEST_S {
        findings.problem("the clock of this machine is before 2025", REMEDY);
    }
    judge_synchronisation(&mut findings, is_synchronised());
    findings
}

fn judge_synchronisation(findings: &mut Findings, is_synchronised: Option<bool>) {
    match is_synchronised {
        Some(true) => findings.ok("the clock of this machine is synchronised by NTP"),
        Some(false) => findings.warning("the clock of this machine is not synchronised", REMEDY),
        None => findings.unknown(
            "cannot determine whether the clock of this machine is synchronised (timedatectl reports nothing)",
            "in a container, check the clock of its host",
        ),
    }
}

/// None if unknown, as in most containers.
fn is_synchronised() -> Option<bool> {
    let output = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Compares another machine's clock with two readings of ours around it, in milliseconds since 1970.
pub(super) fn compare(
    findings: &mut Findings,
    whose: &str,
    theirs_ms: u64,
    (before_ms, after_ms): (u64, u64),
) {
    let skew_ms =
        if theirs_ms < before_ms { before_ms - theirs_ms } else { theirs_ms.saturating_sub(after_ms) };
    let severity = match skew_ms {
        ..SKEW_MS_WARNING => Severity::Ok,
        SKEW_MS_WARNING..SKEW_MS_PROBLEM => Severity::Warning,
        _ => Severity::Problem,
    };
    let found = match severity {
        Severity::Ok => format!("the clock of {whose} agrees with ours"),
        _ => format!("the clock of {whose} differs from ours by {:.1} s", skew_ms as f64 / 1000.0),
    };
    findings.with_severity(severity, found, format!("on both machines: {REMEDY}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_cannot_be_checked_is_not_ok() {
        for (is_synchronised, severity) in
            [(Some(true), Severity::Ok), (Some(false), Severity::Warning), (None, Severity::Unknown)]
        {
            let mut findings = Findings::of("clock");
            judge_synchronisation(&mut findings, is_synchronised);
            assert_eq!(findings.iter().next().map(|finding| finding.severity), Some(severity));
        }
    }

    #[test]
    fn clocks_are_compared_allowing_for_the_round_trip() {
        let severity = |theirs| {
            let mut findings = Findings::of("clock");
            compare(&mut findings, "Redis", theirs, (100_000, 103_000));
            findings.iter().next().unwrap().severity
        };
        assert_eq!(severity(98_500), Severity::Ok);
        assert_eq!(severity(103_000), Severity::Ok);
        assert_eq!(severity(107_000), Severity::Warning);
        assert_eq!(severity(90_000), Severity::Warning);
        assert_eq!(severity(20_000), Severity::Problem);
    }
}
