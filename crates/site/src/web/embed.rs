//! Files of the built dashboard that are embedded in the binary. Used by the build script and by tests.
//!
//! A file `x` may have the compressed forms `x.br` and `x.gz`. Source maps and hidden files are left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct DistFile {
    pub plain: PathBuf,
    pub brotli: Option<PathBuf>,
    pub gzip: Option<PathBuf>,
}

/// All files below a folder, by relative path. Empty if the folder does not exist.
pub fn find(dist: &Path) -> io::Result<BTreeMap<String, DistFile>> {
    let mut paths = BTreeMap::new();
    collect(dist, "", &mut paths)?;
    let form = |path: &str, ending: &str| paths.get(&format!("{path}{ending}")).cloned();
    let is_of_another = |path: &str| {
        let whole = path.strip_suffix(".br").or_else(|| path.strip_suffix(".gz"));
        whole.is_some_and(|whole| paths.contains_key(whole))
    };
    let plain = paths.iter().filter(|(path, _)| !is_of_another(path));
    Ok(plain
        .map(|(path, file)| {
            let found = DistFile { plain: file.clone(), brotli: form(path, ".br"), gzip: form(path, ".gz") };
            (path.clone(), found)
        })
        .collect())
}

fn collect(folder: &Path, before: &str, paths: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        // A web build has only UTF-8 names.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || name.contains(".map") {
            continue;
        }
        let path = format!("{before}{name}");
        match entry.file_type()?.is_dir() {
            true => collect(&entry.path(), &format!("{path}/"), paths)?,
            false => {
                paths.insert(path, fs::canonicalize(entry.path())?);
            }
        }
    }
    Ok(())
}

/// Rust source of a slice of `WebFile`, sorted by path.
pub fn table(found: &BTreeMap<String, DistFile>) -> String {
    let bytes = |path: &PathBuf| format!("include_bytes!({:?})", path.display().to_string());
    let maybe = |path: &Option<PathBuf>| match path {
        Some(path) => format!("Some({})", bytes(path)),
        None => "None".to_owned(),
    };
    let mut text = String::from("&[\n");
    for (path, file) in found {
        let (plain, brotli, gzip) = (bytes(&file.plain), maybe(&file.brotli), maybe(&file.gzip));
        let _ = writeln!(
            text,
            "    WebFile {{ path: {path:?}, plain: {plain}, brotli: {brotli}, gzip: {gzip} }},"
        );
    }
    text.push_str("]\n");
    text
}
