//! The secret with which the tokens of people are signed: the configured one, or one that is made once and kept in the
//! data folder.
//!
//! # Guarantees
//!
//! - The file is whole from the moment it is there, only its owner can read it, and two servers that start at once
//!   agree on one secret.
//! - The secret is in no error and no log line.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::config::Config;

/// The file in the data folder.
pub const SECRET_FILE: &str = "gateway.secret";
/// What can be guessed by a machine is shorter.
pub const SECRET_CHARS_MIN: usize = 32;

/// Where the file is.
pub fn path_in(data: &Path) -> PathBuf {
    data.join(SECRET_FILE)
}

/// Whether the settings leave it to us to have a secret: neither a secret nor a public key is configured.
pub fn is_kept(config: &Config) -> bool {
    let gateway = &config.gateway;
    gateway.token_hmac_secret.reveal().is_none()
        && gateway.token_public_key_file.is_none()
        && gateway.token_jwks_file.is_none()
}

/// The secret for a server: made if the settings leave it to us and there is none yet. None if tokens are signed with
/// keys that only the site has.
pub fn for_server(config: &Config, data: &Path) -> anyhow::Result<Option<String>> {
    if let Some(secret) = config.gateway.token_hmac_secret.reveal() {
        return Ok(Some(secret.to_owned()));
    }
    if !is_kept(config) {
        return Ok(None);
    }
    if let Some(secret) = read(data)? {
        return Ok(Some(secret));
    }
    make(data)?;
    read(data)?.with_context(|| format!("{} vanished", path_in(data).display())).map(Some)
}

/// The secret for a command, which makes none: it might look into another folder than the server.
pub fn for_command(config: &Config, data: &Path) -> anyhow::Result<String> {
    if let Some(secret) = config.gateway.token_hmac_secret.reveal() {
        return Ok(secret.to_owned());
    }
    if !is_kept(config) {
        bail!(
            "tokens are signed with a key that only the site has (gateway.token_public_key_file, \
             gateway.token_jwks_file): let the site make them, or set gateway.token_hmac_secret as well"
        );
    }
    read(data)?.with_context(|| {
        format!(
            "there is no secret at {}: start the server once (rollcall serve), or name its data folder with --data",
            path_in(data).display()
        )
    })
}

/// The secret in the data folder, if there is one.
pub fn read(data: &Path) -> anyhow::Result<Option<String>> {
    let path = path_in(data);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let secret = text.trim();
    if secret.chars().count() < SECRET_CHARS_MIN {
        bail!(
            "{} holds no secret of {SECRET_CHARS_MIN} characters: remove it, and the next start makes another; \
             tokens made with it stop working",
            path.display()
        );
    }
    Ok(Some(secret.to_owned()))
}

fn make(data: &Path) -> anyhow::Result<()> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).context("the system gives no random numbers")?;
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    crate::node::create_private_folder(data)?;
    let (path, draft) = (path_in(data), data.join(format!("{SECRET_FILE}.{}", std::process::id())));
    let written = write_new(&draft, &secret).and_then(|()| fs::hard_link(&draft, &path));
    let _ = fs::remove_file(&draft);
    match written {
        // Another server was faster: its secret counts.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome.with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Written aside, so that nobody ever reads half of it.
fn write_new(path: &Path, secret: &str) -> std::io::Result<()> {
    let mut file: File =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let config = Config::default();
        let told = for_command(&config, &data).unwrap_err().to_string();
        assert!(told.contains("gateway.secret") && told.contains("rollcall serve"), "{told}");
        let secret = for_server(&config, &data).unwrap().unwrap();
        assert_eq!(secret.len(), 64);
        assert_eq!(for_server(&config, &data).unwrap().as_deref(), Some(secret.as_str()));
        assert_eq!(for_command(&config, &data).unwrap(), secret);
        let mode = fs::metadata(path_in(&data)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn two_that_start_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path()).unwrap();
        let first = read(folder.path()).unwrap();
        make(folder.path()).unwrap();
        assert_eq!(read(folder.path()).unwrap(), first);
    }

    #[test]
    fn a_file_without_a_secret_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path_in(folder.path()), "short\n").unwrap();
        let told = read(folder.path()).unwrap_err().to_string();
        assert!(told.contains("remove it") && !told.contains("short\n"), "{told}");
    }
}
