//! `rollcall backup`, `rollcall restore` and `rollcall migrate`: everything that the database holds, in a file, out of it,
//! or in another database.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use database::{Database, redacted};
use serde_json::{Value as Json, json};

use super::Desk;
use crate::data_files::{self, DataFiles};
use crate::node;
use crate::output::Fields;
use crate::transfer::archive::{self, Opened, Scratch};
use crate::transfer::{self, Moved};

/// Makes a backup. The server may run.
pub async fn backup(desk: &Desk, file: &Path) -> anyhow::Result<()> {
    let database = open_present(&desk.config.database_url(&desk.data)).await?;
    let journal = journal_of(desk)?;
    let moved = archive::write(&database, journal.as_deref(), file).await?;
    database.close().await;
    let shown = file.display().to_string();
    let mut json = json_of(&moved);
    json["file"] = shown.clone().into();
    let text =
        format!("{}\nRestore it with: rollcall restore {shown}\n", fields_of(&moved).with("file", &shown));
    Ok(desk.output.show(&json, &text)?)
}

/// Brings a backup back. No server may run.
pub async fn restore(desk: &Desk, file: &Path) -> anyhow::Result<()> {
    refuse_while_served(desk)?;
    node::create_private_folder(&desk.data)?;
    let opened = Opened::open(file, &desk.data).await?;
    let url = desk.config.database_url(&desk.data);
    let journal = journal_of(desk)?;
    let moved = write_into(&opened, &url, journal.as_deref()).await?;
    forget(desk, &url, journal.as_deref())?;
    let has_journal = journal.is_some() && opened.has_journal();
    opened.close().await;
    let mut json = json_of(&moved);
    json["database"] = redacted(&url).into();
    json["journal"] = has_journal.into();
    Ok(desk.output.show(&json, &fields_of(&moved).with("database", redacted(&url)))?)
}

/// Copies everything into another database. No server may run.
pub async fn migrate(desk: &Desk, to: &str) -> anyhow::Result<()> {
    let from = desk.config.database_url(&desk.data);
    ensure!(from != to, "{} is the database that is in use", redacted(to));
    refuse_while_served(desk)?;
    let source = open_present(&from).await?;
    let scratch = Scratch::beside(&desk.data, "migrate");
    archive::fill(&source, None, &scratch).await?;
    source.close().await;
    let opened = Opened::from_scratch(scratch).await?;
    let moved = write_into(&opened, to, None).await?;
    forget(desk, to, None)?;
    opened.close().await;
    let mut json = json_of(&moved);
    json["from"] = redacted(&from).into();
    json["to"] = redacted(to).into();
    let text = format!(
        "{}\nAll rows were read again and are the same. {} stays as it is. To use the new database, set database.url in the \
         configuration, and start the server.\n",
        fields_of(&moved).with("from", redacted(&from)).with("to", redacted(to)),
        redacted(&from),
    );
    Ok(desk.output.show(&json, &text)?)
}

/// Fails if the server would begin with an empty database while the data folder has one with users in it.
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
            "{shown} is empty, but {file} in the data folder has users, torrents or accounts: bring them over with \
             \"rollcall migrate --data {data} --to URL\", or a backup with \"rollcall restore\"; to begin empty, move {file} away",
            data = data.display()
        );
    }
    Ok(())
}

fn refuse_while_served(desk: &Desk) -> anyhow::Result<()> {
    if node::is_taken(&desk.data) {
        bail!("a server runs on {}: stop it first", desk.data.display());
    }
    Ok(())
}

/// Opens a database that is there.
async fn open_present(url: &str) -> anyhow::Result<Database> {
    if let Some(path) = data_files::sqlite_path(url)
        && data_files::is_new(&path)
    {
        bail!("there is no database {}: check --data and database.url", path.display());
    }
    Ok(Database::open(url).await?)
}

/// Restores into the database. Where that fails, a file that was made for it is removed.
async fn write_into(opened: &Opened, url: &str, journal: Option<&Path>) -> anyhow::Result<Moved> {
    let made = |path: Option<PathBuf>| path.filter(|path| data_files::is_new(path));
    let new_files = [made(data_files::sqlite_path(url)), made(journal.map(Path::to_owned))];
    let writing = async {
        let database = Database::open(url).await?;
        let moved = opened.restore(&database, journal).await;
        database.close().await;
        moved
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

/// The next start takes these files for those of the data folder.
fn forget(desk: &Desk, url: &str, journal: Option<&Path>) -> anyhow::Result<()> {
    let files: Vec<PathBuf> =
        data_files::sqlite_path(url).into_iter().chain(journal.map(Path::to_owned)).collect();
    DataFiles::forget(&desk.data, &files)
}

/// The embedded journal; none where the journal is in Redis.
fn journal_of(desk: &Desk) -> anyhow::Result<Option<PathBuf>> {
    Ok(desk.config.redis_settings()?.is_none().then(|| desk.data.join("journal.db")))
}

fn json_of(moved: &Moved) -> Json {
    json!({
        "rows": moved.rows,
        "users": moved.users,
        "torrents": moved.torrents,
        "uploaded": moved.uploaded.to_string(),
        "downloaded": moved.downloaded.to_string(),
    })
}

fn fields_of(moved: &Moved) -> Fields {
    Fields::default()
        .with("rows", moved.rows)
        .with("users", moved.users)
        .with("torrents", moved.torrents)
        .with("uploaded", crate::output::bytes(moved.uploaded))
        .with("downloaded", crate::output::bytes(moved.downloaded))
}
