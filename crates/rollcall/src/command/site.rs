//! `rollcall site …`

use std::process::ExitCode;

use anyhow::Context;
use database::Database;
use serde_json::{Value as Json, json};
use sites::Profile;
use sites::profile::{names, text_of};

use super::CommandContext;
use crate::cli::{ProfileCommand, SiteCommand};
use crate::output::Table;

pub async fn run(context: &CommandContext, command: SiteCommand) -> anyhow::Result<ExitCode> {
    let SiteCommand::Profile(command) = command;
    match command {
        ProfileCommand::List => list(context)?,
        ProfileCommand::Print { profile } => {
            let text = text_of(&profile)?;
            context.output.show(&json!({ "profile": profile, "toml": text }), &text)?;
        }
        ProfileCommand::Check { profile } => return check(context, profile).await,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &CommandContext) -> anyhow::Result<()> {
    let mut table = Table::new(&["profile", "version", "for"]);
    let mut listed: Vec<Json> = Vec::new();
    for name in names() {
        let profile = Profile::load(name)?;
        listed.push(json!({ "profile": name, "version": profile.version, "about": profile.about }));
        table.add(vec![name.to_owned(), profile.version.to_string(), profile.about]);
    }
    Ok(context.output.show(&json!({ "profiles": listed }), &table)?)
}

/// Exit code 1 if there is a problem.
async fn check(context: &CommandContext, name: Option<String>) -> anyhow::Result<ExitCode> {
    let sites = &context.config.sites;
    let configured = || sites.profile.as_str().map(str::to_owned);
    let name = name.or_else(configured).context("name a profile, or set sites.profile")?;
    let profile = Profile::load(&name)?;
    let Some(url) = sites.database_url.as_str() else {
        let text = format!("{name} is a valid profile; set sites.database_url to check the tables\n");
        context.output.show(&json!({ "profile": name, "valid": true, "findings": Json::Null }), &text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let database = Database::open(url).await?;
    let found = sites::check(&database, &profile).await?;
    database.close().await;
    let is_fit = !found.iter().any(|finding| finding.is_problem);
    let mut text = match is_fit {
        true => format!("{name} is a valid profile, and the tables are as it needs them\n"),
        false => format!("{name} is a valid profile, but the tables are not as it needs them:\n"),
    };
    let mut listed: Vec<Json> = Vec::new();
    for finding in found {
        let severity = if finding.is_problem { "problem" } else { "warning" };
        text.push_str(&format!("{severity:<7}  {}\n         -> {}\n", finding.found, finding.remedy));
        listed.push(json!({ "severity": severity, "found": finding.found, "remedy": finding.remedy }));
    }
    context
        .output
        .show(&json!({ "profile": name, "valid": true, "fits": is_fit, "findings": listed }), &text)?;
    Ok(if is_fit { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
