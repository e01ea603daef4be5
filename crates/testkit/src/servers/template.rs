//! Data folders that are made once and copied: making one takes a second or more of a busy machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the template `name` to `destination`, and makes it with `make` where there is none yet.
///
/// Templates lie beside the compiled tests, so that `cargo clean` removes them too. Owners and modes are kept.
pub(crate) fn copy(name: &str, destination: &Path, make: impl FnOnce(&Path)) {
    let template = shelf().join(name);
    if template.exists() {
        copy_folder(&template, destination);
        return;
    }
    make(destination);
    keep(destination, &template);
}

/// Several processes may keep the same template at once: the first wins, and none sees half of one.
fn keep(made: &Path, template: &Path) {
    let half_done =
        template.with_extension(format!("half-done-{}-{}", std::process::id(), fastrand::u32(..)));
    std::fs::create_dir_all(shelf()).expect("the folder of the compiled tests can be written");
    copy_folder(made, &half_done);
    if std::fs::rename(&half_done, template).is_err() {
        let _ = std::fs::remove_dir_all(&half_done);
    }
}

fn shelf() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    // …/target/debug/deps/test
    let target = test.ancestors().nth(3).expect("a test lies in a target folder");
    target.join("server-templates")
}

fn copy_folder(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("there is cp");
    assert!(status.success(), "cannot copy {} to {}", from.display(), to.display());
}
