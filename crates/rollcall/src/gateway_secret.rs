//! The secret of gateway tokens: the configured one, or one generated once in the data folder.
//!
//! # Guarantees
//!
//! - The file is created complete, readable by its owner only; servers that start at the same time use the same
//!   secret.
//! - The secret is never in an error or a log line.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::config::Config;

/// In the data folder.
pub const SECRET_FILE: &str = "gateway.secret";
/// Shorter secrets can be found by brute force.
pub const SECRET_CHARS_MIN: usize = 32;

pub fn path_in(data: &Path) -> PathBuf {
    data.join(SECRET_FILE)
}

/// Whether neither a secret nor a public key is configured, so that the secret is in the data folder.
pub fn is_stored(config: &Config) -> bool {
    let gateway = &config.gateway;
    gateway.token_hmac_secret.reveal().is_none()
        && gateway.token_public_key_file.is_none()
        && gateway.token_jwks_file.is_none()
}

/// Generates the secret if none is configured or stored. None if tokens are signed with keys that only the site has.
pub fn for_server(config: &Config, data: &Path) -> anyhow::Result<Option<String>> {
    if let Some(secret) = config.gateway.token_hmac_secret.reveal() {
        return Ok(Some(secret.to_owned()));
    }
    if !is_stored(config) {
        return Ok(None);
    }
    if let Some(secret) = read(data)? {
        return Ok(Some(secret));
    }
    make(data)?;
    read(data)?.with_context(|| format!("{} vanished", path_in(data).display())).map(Some)
}

/// Generates none: a command may run on another folder than the server.
pub fn for_command(config: &Config, data: &Path) -> anyhow::Result<String> {
    if let Some(secret) = config.gateway.token_hmac_secret.reveal() {
        return Ok(secret.to_owned());
    }
    if !is_stored(config) {
        bail!(
            "tokens are signed with a key that only the site has (gateway.token_public_key_file, \
             gateway.token_jwks_file): let the site issue them, or also set gateway.token_hmac_secret"
        );
    }
    read(data)?.with_context(|| {
        format!(
            "there is no secret at {}: start the server once (rollcall serve), or set its data folder with --data",
            path_in(data).display()
        )
    })
}

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
            "{} holds no secret of {SECRET_CHARS_MIN} characters: remove it, and the next start generates another; \
             tokens signed with it become invalid",
            path.display()
        );
    }
    Ok(Some(secret.to_owned()))
}

fn make(data: &Path) -> anyhow::Result<()> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).context("cannot read random numbers from the system")?;
    let secret = domain::hex::encode(&random);
    crate::node::create_private_folder(data)?;
    let (path, draft) = (path_in(data), data.join(format!("{SECRET_FILE}.{}", std::process::id())));
    let written = write_new(&draft, &secret).and_then(|()| fs::hard_link(&draft, &path));
    let _ = fs::remove_file(&draft);
    match written {
        // Another server was faster: its secret is used.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome.with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Under another name first, so that no process reads half of it.
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
    fn a_secret_is_generated_once_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let config = Config::default();
        let error = for_command(&config, &data).unwrap_err().to_string();
        assert!(error.contains("gateway.secret") && error.contains("rollcall serve"), "{error}");
        let secret = for_server(&config, &data).unwrap().unwrap();
        assert_eq!(secret.len(), 64);
        assert_eq!(for_server(&config, &data).unwrap().as_deref(), Some(secret.as_str()));
        assert_eq!(for_command(&config, &data).unwrap(), secret);
        let mode = fs::metadata(path_in(&data)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn concurrent_starts_use_the_same_secret() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path()).unwrap();
        let first = read(folder.path()).unwrap();
        make(folder.path()).unwrap();
        assert_eq!(read(folder.path()).unwrap(), first);
    }

    #[test]
    fn a_file_without_a_secret_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path_in(folder.path()), "short\n").unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("remove it") && !error.contains("short\n"), "{error}");
    }
}
