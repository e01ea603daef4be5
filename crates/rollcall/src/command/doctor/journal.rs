//! The journal: how far the views are behind, and what they could not take.

use std::time::Duration;

use ::journal::consumer::foreign_of;
use ::journal::{EntryId, GroupStatus, Journal, Lane};
use domain::clock::{Clock, SystemClock};

use super::Target;
use super::finding::Findings;
use crate::wiring::stores;
use domain::counted;

use crate::output::duration;

/// A view that is this far behind is not just busy.
const BEHIND_WARNING: Duration = Duration::from_secs(60);

/// Looks at it. A journal that is not there, or not up to date, is not opened, since that would change it.
pub(super) async fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("journal");
    let is_on_redis = target.config.redis_settings().is_ok_and(|settings| settings.is_some());
    if !is_on_redis {
        let path = target.data.join("journal.db");
        let schema = ::journal::sqlite::schema();
        match database::inspect_sqlite(&path, &[schema]).await {
            Ok(Some(seen))
                if seen.complaints.is_empty() && seen.applied == [(schema, Some(schema.newest))] => {}
            Ok(None) => {
                findings.ok(format!("{} is not there yet: the first start makes it", path.display()));
                return findings;
            }
            // What is wrong with the file is told beside the database.
            _ => return findings,
        }
    }
    let looked = async {
        let journal = stores::open_journal(&target.config, &target.data).await?.store;
        look(&mut findings, target, &*journal).await
    };
    if let Err(error) = looked.await {
        findings.problem(
            format!("the journal cannot be read: {}", crate::one_line(&error)),
            "see what is said of Redis or of the data folder, then run rollcall doctor again",
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
            "see which view is behind: rollcall journal status; a foreign group that nobody reads keeps entries, too",
        ),
        false => {
            findings.ok(format!("{}, {} appended in all", counted(traffic.length, "entry"), traffic.appended));
        }
    }
    for group in &traffic.groups {
        behind(findings, target, group, journal.oldest_unfinished(group).await?);
    }
    let dead_after = Duration::from_secs(target.config.journal.dead_after_s.into());
    for group in traffic.groups.iter().filter(|group| is_ours(target, &group.name)) {
        let consumers = journal.consumers(Lane::Traffic, &group.name).await?;
        let foreign: Vec<&str> = foreign_of(&consumers, dead_after).collect();
        if !foreign.is_empty() {
            findings.warning(
                format!("another program consumes in the group {}: {}", group.name, foreign.join(", ")),
                "the entries that it takes are missing from the view: give it a group of its own",
            );
        }
    }
    for view in &paused {
        findings.warning(format!("the view {view} is paused"), format!("rollcall journal resume {view}"));
    }
    let dead = journal.status(Lane::Dead).await?.length;
    if dead > 0 {
        findings.warning(
            format!("{} could not be taken; tried again", counted(dead, "entry")),
            "see why: rollcall dlq list; after mending: rollcall dlq replay --all",
        );
    }
    let failed = journal.status(Lane::Failed).await?.length;
    if failed > 0 {
        findings.problem(
            format!("given up, and not accounted for: {}", counted(failed, "entry")),
            "see why: rollcall failed list; after mending: rollcall failed replay --all",
        );
    }
    Ok(())
}

fn is_ours(target: &Target, group: &str) -> bool {
    let config = &target.config;
    [config.ledger.group.as_str(), views::activity::GROUP, views::mirror::GROUP].contains(&group)
}

fn behind(findings: &mut Findings, target: &Target, group: &GroupStatus, oldest: Option<EntryId>) {
    let is_ours = is_ours(target, &group.name);
    let Some(oldest) = oldest else {
        return findings.ok(format!("the group {} has everything", group.name));
    };
    let behind_s = SystemClock.now_ms().saturating_sub(oldest.ms) / 1000;
    let lag = counted(group.lag(), "entry");
    let found = format!("the group {} is {lag} and {} behind", group.name, duration(behind_s));
    if behind_s < BEHIND_WARNING.as_secs() {
        return findings.ok(found);
    }
    let mend = match (is_ours, target.is_running) {
        (true, true) => {
            "see the server's log, and rollcall journal status; more consumers may help: ledger.consumers"
        }
        (true, false) => "start the server, or a process with the role of this view",
        (false, _) => {
            "its reader is gone or slow, and keeps entries from being removed; one that is not needed: \
                       XGROUP DESTROY"
        }
    };
    findings.warning(found, mend);
}
