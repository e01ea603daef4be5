//! Whether the site's database is as a profile needs it: columns, engine, time zone, grants, and the schema of our own tables.
//!
//! Nothing is changed: every statement runs, over no rows, in a transaction that is rolled back. So the database itself checks
//! names, types and grants.

use std::collections::BTreeSet;

use database::{Database, Kind, Relation, SqlError, Statement, Value};

use crate::error::SitesError;
use crate::profile::{Profile, Write, row_of};
use crate::writer::{TABLE_NAMES, set_time_zone};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub found: String,
    pub remedy: String,
    /// Otherwise a warning, with which the writer works.
    pub is_problem: bool,
}

const COLUMNS: Statement = Statement::each(
    "SELECT name FROM pragma_table_info(?)",
    "SELECT column_name::TEXT FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = ?",
    "SELECT CAST(column_name AS CHAR) FROM information_schema.columns
     WHERE table_schema = database() AND table_name = ?",
);

const ENGINE: &str = "SELECT CAST(engine AS CHAR) FROM information_schema.tables
     WHERE table_schema = database() AND table_name = ?";

const SCHEMA: Statement = Statement::each(
    "SELECT 1",
    "SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?",
    "SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?",
);

const OWN_TABLES: &str =
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name {in}";

/// Everything that does not fit, problems first. Fails if the database cannot be asked.
pub async fn check(site: &Database, profile: &Profile) -> Result<Vec<Finding>, SitesError> {
    let mut findings = Vec::new();
    let wanted = profile.database.kind();
    if site.kind() != wanted {
        findings.push(problem(
            format!("the profile {} is for {wanted}, and this is {}", profile.name, site.kind()),
            "choose another profile, or another address".to_owned(),
        ));
        return Ok(findings);
    }
    let asked = SitesError::statement("checking the tables");
    for (table, columns) in &profile.columns {
        tables(site, table, columns, &mut findings).await.map_err(&asked)?;
    }
    // Their texts would only repeat what is missing.
    if findings.is_empty() {
        statements(site, profile, &mut findings).await.map_err(&asked)?;
    }
    if !profile.reads_only() {
        own_schema(site, profile, &mut findings).await.map_err(&asked)?;
    }
    findings.sort_by_key(|finding| !finding.is_problem);
    Ok(findings)
}

fn problem(found: String, remedy: String) -> Finding {
    Finding { found, remedy, is_problem: true }
}

async fn tables(
    site: &Database,
    table: &str,
    columns: &str,
    findings: &mut Vec<Finding>,
) -> Result<(), SqlError> {
    let present: Vec<String> = site.query(COLUMNS, &[table.into()]).await?;
    let is_mysql = site.kind() == Kind::MySql;
    // MariaDB and MySQL compare names of columns without case.
    let folded = |name: &str| if is_mysql { name.to_lowercase() } else { name.to_owned() };
    let present: BTreeSet<String> = present.iter().map(|name| folded(name)).collect();
    if present.is_empty() {
        findings.push(problem(
            format!("there is no table {table}, or this user may not see it"),
            format!("GRANT SELECT ON {table}, or change the profile: rollcall site profile print"),
        ));
        return Ok(());
    }
    let missing: Vec<&str> =
        columns.split_whitespace().filter(|column| !present.contains(&folded(column))).collect();
    if !missing.is_empty() {
        findings.push(problem(
            format!("the table {table} has no column {}", missing.join(", ")),
            "this version of the site needs another profile: rollcall site profile print, and change the copy".to_owned(),
        ));
    }
    if is_mysql {
        let engine: Option<Option<String>> = site.query_one(ENGINE, &[table.into()]).await?;
        if let Some(Some(engine)) = engine.filter(|engine| engine.as_deref() != Some("InnoDB")) {
            findings.push(problem(
                format!("the table {table} has the engine {engine}, which has no transactions: amounts could count twice"),
                format!("ALTER TABLE {table} ENGINE = InnoDB"),
            ));
        }
    }
    Ok(())
}

/// Runs every statement over no rows.
async fn statements(site: &Database, profile: &Profile, findings: &mut Vec<Finding>) -> Result<(), SqlError> {
    let mut transaction = site.begin().await?;
    if let Err(error) = set_time_zone(&mut transaction, profile).await {
        if error.is_retryable() {
            return Err(error);
        }
        findings.push(problem(
            format!("the database does not know the time zone {}: {error}", profile.time_zone),
            "write an offset such as +08:00 in a copy of the profile, or load the time zones (mariadb-tzinfo-to-sql)".to_owned(),
        ));
        return Ok(());
    }
    drop(transaction);
    let mut reads =
        vec![("read.users", row_of(&profile.read.users)), ("read.torrents", row_of(&profile.read.torrents))];
    let parameters = [Value::Integer(0)];
    let unpaged = [("read.clients", &profile.read.clients), ("read.discounts", &profile.read.discounts)];
    reads.extend(unpaged.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    for (name, text) in reads {
        let values = if text.contains('?') { &parameters[..] } else { &[] };
        let mut transaction = site.begin().await?;
        report(name, transaction.query::<database::Row>(&text, values).await.map(drop), findings)?;
    }
    for write in Write::ALL {
        let Some(text) = write.text(&profile.write) else { continue };
        let mut transaction = site.begin().await?;
        let nothing = Value::Relation(Relation::new(write.columns(), []));
        let ran = transaction.execute(text, &[nothing]).await.map(drop);
        report(&format!("write.{}", write.name()), ran, findings)?;
    }
    Ok(())
}

fn report(name: &str, ran: Result<(), SqlError>, findings: &mut Vec<Finding>) -> Result<(), SqlError> {
    match ran {
        Err(error) if error.is_retryable() => Err(error),
        Err(error) => {
            findings.push(problem(
                format!("{name} fails: {error}"),
                "grant what is missing, or change a copy of the profile: rollcall site profile print"
                    .to_owned(),
            ));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

async fn own_schema(site: &Database, profile: &Profile, findings: &mut Vec<Finding>) -> Result<(), SqlError> {
    let schema = &profile.marks_schema;
    let count: Option<i64> = site.query_one(SCHEMA, &[schema.into()]).await?;
    let create = match site.kind() {
        Kind::Postgres => format!("CREATE SCHEMA {schema} AUTHORIZATION the user of sites.database_url"),
        Kind::MySql | Kind::Sqlite => {
            format!("CREATE DATABASE {schema}; GRANT ALL ON {schema}.* TO the user of sites.database_url")
        }
    };
    if count.unwrap_or(0) == 0 {
        findings.push(problem(
            format!("there is no schema {schema}, where rollcall notes what it has written, or this user may not see it"),
            create,
        ));
        return Ok(());
    }
    let tables: Option<i64> = site.query_one(OWN_TABLES, &[schema.into(), Value::texts(TABLE_NAMES)]).await?;
    if tables.unwrap_or(0) < TABLE_NAMES.len() as i64 {
        findings.push(Finding {
            found: format!(
                "the tables of rollcall in the schema {schema} are created when the role sites starts"
            ),
            remedy: format!("if that fails: {create}"),
            is_problem: false,
        });
    }
    Ok(())
}
