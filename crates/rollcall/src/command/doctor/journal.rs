//! The journal: lag of the views, dead letters.

use std::time::Duration;

use ::journal::consumer::foreign_consumers;
use ::journal::{EntryId, GroupStatus, Journal, Lane};
use domain::clock::{Clock, SystemClock};

use super::Target;
use super::finding::Findings;
use crate::wiring::stores;
use domain::counted;

use crate::output::duration;

/// More than a busy view's lag.
const BEHIND_WARNING: Duration = Duration::from_secs(60);

/// A missing or outdated journal is not opened, because that would change it.
pub(super) async fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("journal");
    let is_on_redis = target.config.redis_settings().is_ok_and(|settings| settings.is_some());
    if !is_on_redis {
        let path = target.data.join("journal.db");
        let schema = ::journal::sqlite::schema();
        match database::inspect_sqlite(&path, &[schema]).await {
            Ok(Some(seen))
                if seen.integrity_errors.is_empty() && seen.applied == [(schema, Some(schema.newest))] => {}
            Ok(None) => {
                findings.ok(format!("{} does not exist yet: the first start creates it", path.display()));
                return findings;
            }
            // Reported by the check of the database.
            _ => return findings,
        }
    }
    let looked = async {
        let journal = stores::open_journal(&target.config, &target.data).await?.store;
        look(&mut findings, target, &*journal).await
    };
    if let Err(error) = looked.await {
        findings.problem(
            format!("cannot read the journal: {}", crate::one_line(&error)),
            "see the findings about Redis or the data folder, then run rollcall doctor again",
        );
    }
    findings
}

async fn look(findings: &mut Findings, target: &Target, journal: &dyn Journal) -> anyhow::Result<()> {
    let traffic = journal.status(Lane::Traffic).await?;
    let paused = journal.paused().await?;
    let bound = u64::from(target.config.journal.length_alarm);
    match traffic.length > bound {
        true => findings.problem(
            format!("{}, more than journal.length_alarm ({bound})", counted(traffic.length, "entry")),
            "see which view lags: rollcall journal status; an unread foreign group also keeps entries",
        ),
        false => {
            findings.ok(format!(
                "{}, {} appended in total",
                counted(traffic.length, "entry"),
                traffic.appended
            ));
        }
    }
    for group in &traffic.groups {
        check_lag(findings, target, group, journal.oldest_unacknowledged(group).await?);
    }
    let dead_after = crate::wiring::background::DEAD_AFTER;
    for group in traffic.groups.iter().filter(|group| is_ours(target, &group.name)) {
        let consumers = journal.consumers(Lane::Traffic, &group.name).await?;
        let foreign: Vec<&str> = foreign_consumers(&consumers, dead_after).collect();
        if !foreign.is_empty() {
            findings.warning(
                format!("another program consumes in the group {}: {}", group.name, foreign.join(", ")),
                "its entries are missing from the view: give it its own group",
            );
        }
    }
    for view in &paused {
        findings.warning(format!("the view {view} is paused"), format!("rollcall journal resume {view}"));
    }
    let dead = journal.status(Lane::Dead).await?.length;
    if dead > 0 {
        findings.warning(
            format!("rejected and retried: {}", counted(dead, "entry")),
            "see the reason: rollcall dlq list; after the fix: rollcall dlq replay --all",
        );
    }
    let failed = journal.status(Lane::Failed).await?.length;
    if failed > 0 {
        findings.problem(
            format!("failed, and not accounted for: {}", counted(failed, "entry")),
            "see the reason: rollcall failed list; after the fix: rollcall failed replay --all",
        );
    }
    Ok(())
}

fn is_ours(target: &Target, group: &str) -> bool {
    let config = &target.config;
    [config.ledger.group.as_str(), views::activity::GROUP, views::redis_mirror::GROUP].contains(&group)
}

fn check_lag(findings: &mut Findings, target: &Target, group: &GroupStatus, oldest: Option<EntryId>) {
    let is_ours = is_ours(target, &group.name);
    let Some(oldest) = oldest else {
        return findings.ok(format!("the group {} has no lag", group.name));
    };
    let behind_s = SystemClock.now_ms().saturating_sub(oldest.ms) / 1000;
    let lag = counted(group.lag(), "entry");
    let found = format!("the group {} is {lag} and {} behind", group.name, duration(behind_s));
    if behind_s < BEHIND_WARNING.as_secs() {
        return findings.ok(found);
    }
    let remedy = match (is_ours, target.is_running) {
        (true, true) => {
            "see the server's log, and rollcall journal status; more consumers may help: ledger.consumers"
        }
        (true, false) => "start the server, or a process with the role of this view",
        (false, _) => {
            "its reader has stopped or is slow, and prevents trimming; if it is not needed: \
                       XGROUP DESTROY"
        }
    };
    findings.warning(found, remedy);
}
