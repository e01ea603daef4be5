//! Embeds the built dashboard, `web/dist`, if it exists.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/web/embed.rs"]
mod embed;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/web/embed.rs");
    let here = env::var("CARGO_MANIFEST_DIR").map(PathBuf::from).expect("cargo sets CARGO_MANIFEST_DIR");
    let out = env::var("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR");
    let web = here.join("../../web");
    let dist = web.join("dist");
    watch(&web, &dist);
    let found = embed::find(&dist).expect("web/dist is readable");
    fs::write(out.join("web_files.rs"), embed::table(&found)).expect("OUT_DIR is writable");
}

/// Cargo reruns a build script whose watched folder is missing, so the folder is created.
fn watch(web: &Path, dist: &Path) {
    if web.is_dir() && !dist.exists() {
        let _ = fs::create_dir(dist);
    }
    if dist.is_dir() {
        println!("cargo:rerun-if-changed={}", dist.display());
    }
}
