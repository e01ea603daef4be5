//! Which files of the built dashboard become part of the program. The build script runs this; tests do as well.
//!
//! A file `x` may have `x.br` and `x.gz` beside it: the same, compressed. Maps for debuggers and hidden files stay out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file and its compressed forms.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// As it is.
    pub plain: PathBuf,
    /// The same, by Brotli.
    pub brotli: Option<PathBuf>,
    /// The same, by gzip.
    pub gzip: Option<PathBuf>,
}

/// All files in a folder and those below it, by their paths within it. A folder that is not there has none.
pub fn find(dist: &Path) -> io::Result<BTreeMap<String, Found>> {
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
            let found = Found { plain: file.clone(), brotli: form(path, ".br"), gzip: form(path, ".gz") };
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
        // Names that are not text are none of a web build's.
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

/// The table as Rust: a list of `WebFile`, by their paths.
pub fn table(found: &BTreeMap<String, Found>) -> String {
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
