//! `rollcall openapi`: needs no server, settings or data.

use crate::output::Output;

/// Indented; on one line with `--json`.
pub fn run(output: Output) -> anyhow::Result<()> {
    let description = site::app::description();
    let json = description.to_json();
    let lines = format!("{}\n", serde_json::to_string_pretty(json)?);
    Ok(output.show(json, &lines)?)
}
