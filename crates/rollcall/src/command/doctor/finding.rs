//! Results of checks.

use domain::named;
use std::fmt;

use serde_json::{Value as Json, json};

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        Ok = "ok",
        Unknown = "unknown",
        Warning = "warning",
        /// It does not work, or accounted data can be lost.
        Problem = "problem",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub found: String,
    /// The command or setting that fixes it; none if all is well.
    pub remedy: Option<String>,
}

/// Of one check.
#[derive(Clone, Debug)]
pub struct Findings {
    check: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    pub fn of(check: &'static str) -> Self {
        Findings { check, found: Vec::new() }
    }

    pub fn ok(&mut self, found: impl Into<String>) {
        self.found.push(Finding { severity: Severity::Ok, found: found.into(), remedy: None });
    }

    pub fn unknown(&mut self, found: impl Into<String>, remedy: impl Into<String>) {
        let (found, remedy) = (found.into(), Some(remedy.into()));
        self.found.push(Finding { severity: Severity::Unknown, found, remedy });
    }

    pub fn warning(&mut self, found: impl Into<String>, remedy: impl Into<String>) {
        let (found, remedy) = (found.into(), Some(remedy.into()));
        self.found.push(Finding { severity: Severity::Warning, found, remedy });
    }

    /// It does not work, or accounted data can be lost.
    pub fn problem(&mut self, found: impl Into<String>, remedy: impl Into<String>) {
        let (found, remedy) = (found.into(), Some(remedy.into()));
        self.found.push(Finding { severity: Severity::Problem, found, remedy });
    }

    pub fn with_severity(&mut self, severity: Severity, found: impl Into<String>, remedy: impl Into<String>) {
        match severity {
            Severity::Ok => self.ok(found),
            Severity::Unknown => self.unknown(found, remedy),
            Severity::Warning => self.warning(found, remedy),
            Severity::Problem => self.problem(found, remedy),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter()
    }
}

/// Of all checks.
#[derive(Clone, Debug, Default)]
pub struct Report {
    checks: Vec<Findings>,
}

impl Report {
    pub fn add(&mut self, findings: Findings) {
        self.checks.push(findings);
    }

    pub fn has_problems(&self) -> bool {
        self.count(Severity::Problem) > 0
    }

    fn count(&self, severity: Severity) -> usize {
        self.checks.iter().flat_map(Findings::iter).filter(|finding| finding.severity == severity).count()
    }

    pub fn to_json(&self) -> Json {
        let of_check = |findings: &Findings| {
            let check = findings.check;
            let to_json = move |finding: &Finding| json!({ "check": check, "grade": finding.severity.name(), "found": finding.found, "mend": finding.remedy });
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
                if let Some(remedy) = &finding.remedy {
                    writeln!(f, "{:<7}  {:<width$}  -> {remedy}", "", "")?;
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
    fn a_report_has_severity_check_and_remedy() {
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
