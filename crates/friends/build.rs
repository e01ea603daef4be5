//! Rebuilds the crate when a migration is added: `sqlx::migrate!` alone does not notice a new file.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
