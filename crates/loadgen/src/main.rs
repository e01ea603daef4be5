//! The command line of the load generator.
fn main() {}
