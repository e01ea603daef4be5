//! `rollcall backup`, `rollcall restore` and `rollcall migrate`.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use database::{Database, redacted};
use serde_json::{Value as Json, json};

use super::CommandContext;
use crate::data_files::{self, DataFiles};
use crate::node;
use crate::output::Fields;
use crate::transfer::archive::{self, OpenArchive, TempFile};
use crate::transfer::{self, CopyTotals};

/// The server may run.
pub async fn backup(context: &CommandContext, file: &Path) -> anyhow::Result<()> {
    let database = open_present(&context.config.database_url(&context.data)).await?;
    let journal = journal_of(context)?;
    let totals = archive::write(&database, journal.as_deref(), file).await?;
    database.close().await;
    let shown = file.display().to_string();
    let mut json = json_of(&totals);
    json["file"] = shown.clone().into();
    let text =
        format!("{}\nRestore it with: rollcall restore {shown}\n", fields_of(&totals).with("file", &shown));
    Ok(context.output.show(&json, &text)?)
}

/// No server may run.
pub async fn restore(context: &CommandContext, file: &Path) -> anyhow::Result<()> {
    refuse_while_served(context)?;
    node::create_private_folder(&context.data)?;
    let opened = OpenArchive::open(file, &context.data).await?;
    let url = context.config.database_url(&context.data);
    let journal = journal_of(context)?;
    let totals = write_into(&opened, &url, journal.as_deref()).await?;
    forget(context, &url, journal.as_deref())?;
    let has_journal = journal.is_some() && opened.has_journal();
    opened.close().await;
    let mut json = json_of(&totals);
    json["database"] = redacted(&url).into();
    json["journal"] = has_journal.into();
    Ok(context.output.show(&json, &fields_of(&totals).with("database", redacted(&url)))?)
}

/// No server may run.
pub async fn migrate(context: &CommandContext, to: &str) -> anyhow::Result<()> {
    let from = context.config.database_url(&context.data);
    ensure!(from != to, "{} is the current database", redacted(to));
    refuse_while_served(context)?;
    let source = open_present(&from).await?;
    let temp_file = TempFile::beside(&context.data, "migrate");
    archive::fill(&source, None, &temp_file).await?;
    source.close().await;
    let opened = OpenArchive::from_temp_file(temp_file).await?;
    let totals = write_into(&opened, to, None).await?;
    forget(context, to, None)?;
    opened.close().await;
    let mut json = json_of(&totals);
    json["from"] = redacted(&from).into();
    json["to"] = redacted(to).into();
    let text = format!(
        "{}\nAll rows were read back and match. {} is unchanged. To use the new database, set database.url in the \
         configuration, and start the server.\n",
        fields_of(&totals).with("from", redacted(&from)).with("to", redacted(to)),
        redacted(&from),
    );
    Ok(context.output.show(&json, &text)?)
}

/// Fails if the configured database is empty while the data folder has one with users.
pub async fn refuse_empty_beside_populated(
    database: &Database,
    url: &str,
    data: &Path,
) -> anyhow::Result<()> {
    let default = data.join("rollcall.db");
    let is_default = data_files::sqlite_path(url).is_some_and(|path| path == default);
    if is_default || data_files::is_new(&default) || !transfer::is_empty(database).await? {
        return Ok(());
    }
    let file = open_present(&format!("sqlite:{}", default.display())).await?;
    let is_populated = !transfer::is_empty(&file).await?;
    file.close().await;
    if is_populated {
        let (shown, file) = (database.shown(), default.display());
        bail!(
            "{shown} is empty, but {file} in the data folder has users, torrents or accounts: migrate them with \
             \"rollcall migrate --data {data} --to URL\", or a backup with \"rollcall restore\"; to start empty, move {file} away",
            data = data.display()
        );
    }
    Ok(())
}

fn refuse_while_served(context: &CommandContext) -> anyhow::Result<()> {
    if node::is_taken(&context.data) {
        bail!("a server runs on {}: stop it first", context.data.display());
    }
    Ok(())
}

/// Fails if the database does not exist.
async fn open_present(url: &str) -> anyhow::Result<Database> {
    if let Some(path) = data_files::sqlite_path(url)
        && data_files::is_new(&path)
    {
        bail!("there is no database {}: check --data and database.url", path.display());
    }
    Ok(Database::open(url).await?)
}

/// On failure, a file created for it is removed.
async fn write_into(opened: &OpenArchive, url: &str, journal: Option<&Path>) -> anyhow::Result<CopyTotals> {
    let made = |path: Option<PathBuf>| path.filter(|path| data_files::is_new(path));
    let new_files = [made(data_files::sqlite_path(url)), made(journal.map(Path::to_owned))];
    let writing = async {
        let database = Database::open(url).await?;
        let totals = opened.restore(&database, journal).await;
        database.close().await;
        totals
    };
    let outcome = writing.await;
    if outcome.is_err() {
        for path in new_files.into_iter().flatten() {
            for suffix in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
            }
        }
    }
    outcome
}

/// The next start accepts these files as those of the data folder.
fn forget(context: &CommandContext, url: &str, journal: Option<&Path>) -> anyhow::Result<()> {
    let files: Vec<PathBuf> =
        data_files::sqlite_path(url).into_iter().chain(journal.map(Path::to_owned)).collect();
    DataFiles::remove_identities(&context.data, &files)
}

/// None if the journal is in Redis.
fn journal_of(context: &CommandContext) -> anyhow::Result<Option<PathBuf>> {
    Ok(context.config.redis_settings()?.is_none().then(|| context.data.join("journal.db")))
}

fn json_of(totals: &CopyTotals) -> Json {
    json!({
        "rows": totals.rows,
        "users": totals.users,
        "torrents": totals.torrents,
        "uploaded": totals.uploaded.to_string(),
        "downloaded": totals.downloaded.to_string(),
    })
}

fn fields_of(totals: &CopyTotals) -> Fields {
    Fields::default()
        .with("rows", totals.rows)
        .with("users", totals.users)
        .with("torrents", totals.torrents)
        .with("uploaded", crate::output::bytes(totals.uploaded))
        .with("downloaded", crate::output::bytes(totals.downloaded))
}
