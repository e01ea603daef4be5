//! rollcall
fn main() {}
