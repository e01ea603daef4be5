//! Data folders that are created once and copied: creating one takes a second or more on a busy machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the template `name` to `destination`, and makes it with `make` where there is none yet.
///
/// Templates lie in cargo's target folder, so that `cargo clean` removes them too. A program outside of any makes
/// everything anew. Owners and modes are kept.
pub(crate) fn copy(name: &str, destination: &Path, make: impl FnOnce(&Path)) {
    let template = templates_folder().map(|templates_folder| templates_folder.join(name));
    match template {
        Some(template) if template.exists() => copy_folder(&template, destination),
        Some(template) => {
            make(destination);
            keep(destination, &template);
        }
        None => make(destination),
    }
}

/// Several processes may store the same template at once: the first wins, and none sees a partial one.
fn keep(made: &Path, template: &Path) {
    let half_done =
        template.with_extension(format!("half-done-{}-{}", std::process::id(), fastrand::u32(..)));
    let templates_folder = template.parent().expect("a template lies in a folder");
    std::fs::create_dir_all(templates_folder).expect("the folder of the compiled tests can be written");
    copy_folder(made, &half_done);
    if std::fs::rename(&half_done, template).is_err() {
        let _ = std::fs::remove_dir_all(&half_done);
    }
}

/// In the folder that cargo has marked as its own: `…/target`, for a test in `…/target/debug/deps` and for a program
/// in `…/target/release`.
fn templates_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().expect("a program knows where it is");
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map(|target| target.join("server-templates"))
}

fn copy_folder(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("there is cp");
    assert!(status.success(), "cannot copy {} to {}", from.display(), to.display());
}
