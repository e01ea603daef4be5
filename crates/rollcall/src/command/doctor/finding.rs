//! What a check found.

use std::fmt;

use serde_json::{Value as Json, json};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It could not be checked.
    Unknown,
    /// It works, but something will go wrong one day.
    Warning,
    /// It does not work, or what was accounted for can be lost.
    Problem,
}

impl Severity {
    /// The word that is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Unknown => "unknown",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub found: String,
    /// The command or the setting that mends it; nothing where all is well.
    pub mend: Option<String>,
}

/// What one check found.
#[derive(Clone, Debug)]
pub struct Findings {
    check: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    /// Nothing yet.
    pub fn of(check: &'static str) -> Self {
        Findings { check, found: Vec::new() }
    }

    /// As it should be.
    pub fn ok(&mut self, found: impl Into<String>) {
        self.found.push(Finding { severity: Severity::Ok, found: found.into(), mend: None });
    }

    /// It could not be checked.
    pub fn unknown(&mut self, found: impl Into<String>, mend: impl Into<String>) {
        let (found, mend) = (found.into(), Some(mend.into()));
        self.found.push(Finding { severity: Severity::Unknown, found, mend });
    }

    /// It works, but something will go wrong one day.
    pub fn warning(&mut self, found: impl Into<String>, mend: impl Into<String>) {
        let (found, mend) = (found.into(), Some(mend.into()));
        self.found.push(Finding { severity: Severity::Warning, found, mend });
    }

    /// It does not work, or what was accounted for can be lost.
    pub fn problem(&mut self, found: impl Into<String>, mend: impl Into<String>) {
        let (found, mend) = (found.into(), Some(mend.into()));
        self.found.push(Finding { severity: Severity::Problem, found, mend });
    }

    /// Likewise, with_severity by the caller.
    pub fn with_severity(&mut self, severity: Severity, found: impl Into<String>, mend: impl Into<String>) {
        match severity {
            Severity::Ok => self.ok(found),
            Severity::Unknown => self.unknown(found, mend),
            Severity::Warning => self.warning(found, mend),
            Severity::Problem => self.problem(found, mend),
        }
    }

    /// Takes over what another part of the same check found.
    pub fn extend(&mut self, other: Findings) {
        self.found.extend(other.found);
    }

    /// What was found.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter()
    }
}

/// All that was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    checks: Vec<Findings>,
}

impl Report {
    /// Adds what a check found.
    pub fn add(&mut self, findings: Findings) {
        self.checks.push(findings);
    }

    /// Whether something does not work.
    pub fn has_problems(&self) -> bool {
        self.count(Severity::Problem) > 0
    }

    fn count(&self, severity: Severity) -> usize {
        self.checks.iter().flat_map(Findings::iter).filter(|finding| finding.severity == severity).count()
    }

    /// For scripts.
    pub fn to_json(&self) -> Json {
        let of_check = |findings: &Findings| {
            let check = findings.check;
            let to_json = move |finding: &Finding| json!({ "check": check, "severity": finding.severity.name(), "found": finding.found, "mend": finding.mend });
            findings.iter().map(to_json).collect::<Vec<Json>>()
        };
        json!({
            "healthy": !self.has_problems(),
            "problems": self.count(Severity::Problem),
            "warnings": self.count(Severity::Warning),
            "findings": self.checks.iter().flat_map(of_check).collect::<Vec<Json>>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.checks.iter().map(|findings| findings.check.len()).max().unwrap_or(0);
        for findings in &self.checks {
            for finding in findings.iter() {
                writeln!(f, "{:<7}  {:<width$}  {}", finding.severity.name(), findings.check, finding.found)?;
                if let Some(mend) = &finding.mend {
                    writeln!(f, "{:<7}  {:<width$}  -> {mend}", "", "")?;
                }
            }
        }
        let (problems, warnings) = (self.count(Severity::Problem), self.count(Severity::Warning));
        writeln!(f, "\nproblems: {problems}, warnings: {warnings}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_the_grade_the_check_and_the_way_out() {
        let mut findings = Findings::of("redis");
        findings.ok("version 7.0.15");
        findings.problem("keys are evicted", "CONFIG SET maxmemory-policy noeviction");
        let mut report = Report::default();
        report.add(findings);
        assert!(report.has_problems());
        assert_eq!(
            report.to_string(),
            "ok       redis  version 7.0.15\n\
             problem  redis  keys are evicted\n\
             \x20               -> CONFIG SET maxmemory-policy noeviction\n\
             \nproblems: 1, warnings: 0\n"
        );
        let json = report.to_json();
        assert_eq!((json["healthy"].as_bool(), json["problems"].as_u64()), (Some(false), Some(1)));
        assert_eq!(json["findings"][0]["mend"], Json::Null);
    }
}
