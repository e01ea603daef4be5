//! Checks that required servers are installed. Nothing is skipped: a missing server is an error that names its package.

use std::path::{Path, PathBuf};

use crate::error::BenchError;

/// Fails unless Redis is installed.
pub fn need_redis() -> Result<(), BenchError> {
    need("redis-server", "redis-server", &[])?;
    need("redis-cli", "redis-tools", &[])
}

/// Fails unless PostgreSQL is installed.
pub fn need_postgres() -> Result<(), BenchError> {
    need("initdb", "postgresql", &folders_below("/usr/lib/postgresql"))
}

/// Fails unless MariaDB is installed.
pub fn need_mariadb() -> Result<(), BenchError> {
    need("mariadbd", "mariadb-server", &["/usr/sbin".into(), "/usr/bin".into()])
}

/// Debian installs the programs of each PostgreSQL version in its own folder.
fn folders_below(place: &str) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(place).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).collect()
}

fn need(program: &'static str, package: &'static str, places: &[PathBuf]) -> Result<(), BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_in = |folder: &Path| folder.join(program).is_file();
    let is_there = places.iter().any(|folder| is_in(folder))
        || std::env::split_paths(&path).any(|folder| is_in(&folder));
    if is_there { Ok(()) } else { Err(BenchError::NotInstalled { program, package }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let error = need("no-such-server", "a-package", &[]).unwrap_err().to_string();
        assert!(error.contains("no-such-server") && error.contains("apt-get install a-package"), "{error}");
        need("sh", "dash", &[]).unwrap();
    }
}
