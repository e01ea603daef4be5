//! Checks of the SQLite files before they are opened.
//!
//! - A damaged file, or one that is not a database, stops the start, with a remedy.
//! - A database that was emptied, removed or replaced since the last start also stops it: an empty one would start as
//!   a tracker without users. Each file has an identity (SQLite's `application_id`), and the file `databases` in the
//!   data folder lists the identities.
//!
//! At most [`CHECK_BUDGET`] per file, so that a large one does not delay the start.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use database::integrity::{self, Integrity};
use database::{Kind, SqliteDatabase, SqliteOptions, check_sqlite};
use tracing::{debug, info, warn};

use crate::config::Config;

/// Time limit per file.
const CHECK_BUDGET: Duration = Duration::from_secs(2);
const IDENTITIES_FILE: &str = "databases";
const FORMER_ACTIVITY_FILE: &str = "activity.db";

/// The files that cannot be rebuilt.
#[derive(Debug)]
pub struct DataFiles {
    data: PathBuf,
    files: Vec<PathBuf>,
}

impl DataFiles {
    /// To be called before any of them is opened.
    pub async fn check(config: &Config, data: &Path) -> anyhow::Result<DataFiles> {
        let is_embedded = config.redis_settings()?.is_none();
        let database = sqlite_path(&config.database_url(data));
        let journal = is_embedded.then(|| data.join("journal.db"));
        let checked =
            DataFiles { data: data.to_owned(), files: database.into_iter().chain(journal).collect() };
        let known = checked.known_identities()?;
        for path in &checked.files {
            let soundness = check_sqlite(path, CHECK_BUDGET).await?;
            if let Some(identity) = known.get(&checked.name_of(path)) {
                checked.compare(path, soundness, *identity).await?;
            }
            debug!(path = %path.display(), ?soundness, "file checked");
        }
        if is_embedded {
            remove_activity_file(data)?;
        }
        Ok(checked)
    }

    /// Removes the identities of files that were restored or created by a migration.
    pub fn remove_identities(data: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
        let all = DataFiles { data: data.to_owned(), files: files.to_vec() };
        let mut identities = all.known_identities()?;
        let before = identities.len();
        identities.retain(|name, _| !files.iter().any(|path| all.name_of(path) == *name));
        match identities.len() == before {
            true => Ok(()),
            false => all.write_identities(&identities),
        }
    }

    /// Records the identities. To be called once all files are open. Errors are logged: the next start records them.
    pub async fn record(&self) {
        if let Err(error) = self.try_record().await {
            let reason = crate::one_line(&error);
            warn!(
                reason,
                "cannot write the identities of the databases; an emptied one would not be detected"
            );
        }
    }

    async fn compare(&self, path: &Path, soundness: Integrity, expected: i32) -> anyhow::Result<()> {
        let (shown, remembered) = (path.display(), self.data.join(IDENTITIES_FILE));
        let remembered = remembered.display();
        if soundness == Integrity::Empty {
            bail!(
                "{shown} is missing or empty, but this data folder was used with it: restore a backup (rollcall restore); or, to start with an \
                 empty one, delete {remembered} and start again"
            );
        }
        if integrity::identity(path).await? != expected {
            bail!(
                "{shown} is not the database that this data folder was used with: put that one back; or, \
                 if this is the one to use, delete {remembered} and start again"
            );
        }
        Ok(())
    }

    async fn try_record(&self) -> anyhow::Result<()> {
        let mut identities = self.known_identities()?;
        let before = identities.clone();
        for path in &self.files {
            let options = SqliteOptions { connections_max: 1, ..SqliteOptions::default() };
            let database = SqliteDatabase::open(path, options).await?;
            let identity = match integrity::identity(path).await? {
                0 => integrity::ensure_identity(&database, fresh_identity()?).await?,
                identity => identity,
            };
            database.close().await;
            identities.insert(self.name_of(path), identity);
        }
        match identities == before {
            true => Ok(()),
            false => self.write_identities(&identities),
        }
    }

    /// Relative to the data folder, which may be moved.
    fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.data).unwrap_or(path).display().to_string()
    }

    fn known_identities(&self) -> anyhow::Result<BTreeMap<String, i32>> {
        let path = self.data.join(IDENTITIES_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let line = |line: &str| {
            let (identity, name) = line.split_once(' ')?;
            Some((name.to_owned(), u32::from_str_radix(identity, 16).ok()?.cast_signed()))
        };
        Ok(text.lines().filter_map(line).collect())
    }

    /// Written under another name first, so that the file is complete or absent.
    fn write_identities(&self, identities: &BTreeMap<String, i32>) -> anyhow::Result<()> {
        let path = self.data.join(IDENTITIES_FILE);
        let unfinished = self.data.join(format!("{IDENTITIES_FILE}.{}", std::process::id()));
        let lines =
            identities.iter().map(|(name, identity)| format!("{:08x} {name}\n", identity.cast_unsigned()));
        let text: String = lines.collect();
        let write = || {
            let mut file = fs::File::options();
            let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        write().with_context(|| {
            let _ = fs::remove_file(&unfinished);
            format!("cannot write {}", path.display())
        })
    }
}

/// Whether the file is missing or empty.
pub fn is_new(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |file| file.len() == 0)
}

/// None for other databases.
pub fn sqlite_path(url: &str) -> Option<PathBuf> {
    (Kind::of(url) == Some(Kind::Sqlite)).then(|| {
        let rest = url.strip_prefix("sqlite:").unwrap_or(url);
        PathBuf::from(rest.strip_prefix("//").unwrap_or(rest))
    })
}

fn fresh_identity() -> anyhow::Result<i32> {
    let random = getrandom::u32().context("cannot read random numbers from the system")?;
    // Zero means that a file has no identity.
    Ok(random.max(1).cast_signed())
}

/// Earlier versions kept the activity lists in a file. They are rebuilt from the journal.
fn remove_activity_file(data: &Path) -> anyhow::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let path = data.join(format!("{FORMER_ACTIVITY_FILE}{suffix}"));
        match fs::remove_file(&path) {
            Ok(()) => {
                info!(path = %path.display(), "removed a file of an earlier version; activity lists are in memory now");
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot remove {}", path.display())),
        }
    }
    Ok(())
}
