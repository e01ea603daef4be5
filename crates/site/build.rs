//! Embeds the built dashboard, `web/dist`, if it is there. Without Node there is none, and the server says how to make it.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/web/embed.rs"]
mod embed;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/web/embed.rs");
    let here = env::var("CARGO_MANIFEST_DIR").map(PathBuf::from).expect("cargo tells where the crate is");
    let out = env::var("OUT_DIR").map(PathBuf::from).expect("cargo tells where to write");
    let web = here.join("../../web");
    let dist = web.join("dist");
    notice_changes_of(&web, &dist);
    let found = embed::find(&dist).expect("web/dist can be read");
    fs::write(out.join("web_files.rs"), embed::table(&found)).expect("the folder of cargo can be written");
}

/// Cargo runs this again whenever a folder that it was told of is missing, and so would build the crate each time. An
/// empty folder costs nothing, and is noticed once it is filled.
fn notice_changes_of(web: &Path, dist: &Path) {
    if web.is_dir() && !dist.exists() {
        let _ = fs::create_dir(dist);
    }
    if dist.is_dir() {
        println!("cargo:rerun-if-changed={}", dist.display());
    }
}
