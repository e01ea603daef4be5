//! The tables of an existing site: columns, engine, time zone, grants, and the schema of our own tables there.

use database::Database;
use sites::Profile;

use super::Target;
use super::finding::Findings;

pub(super) const NAME: &str = "site tables";

pub(super) async fn check(target: &Target) -> Findings {
    let mut findings = Findings::of(NAME);
    let Some((name, url)) = target.config.site_tables() else {
        findings.ok("no profile: users and torrents are those of rollcall's own database");
        return findings;
    };
    match check_tables(name, url).await {
        Ok((profile, found)) => {
            for finding in &found {
                match finding.is_problem {
                    true => findings.problem(&finding.found, &finding.remedy),
                    false => findings.warning(&finding.found, &finding.remedy),
                }
            }
            if !found.iter().any(|finding| finding.is_problem) {
                let shown = database::redacted(url);
                findings.ok(format!(
                    "{shown} is as the profile {} (version {}) needs it",
                    profile.name, profile.version
                ));
            }
        }
        Err(error) => findings.problem(
            crate::one_line(&error),
            "correct sites.profile or sites.database_url; then run rollcall doctor again",
        ),
    }
    findings
}

async fn check_tables(name: &str, url: &str) -> anyhow::Result<(Profile, Vec<sites::check::Finding>)> {
    let profile = Profile::load(name)?;
    let database = Database::open(url).await?;
    let found = sites::check(&database, &profile).await;
    database.close().await;
    Ok((profile, found?))
}
