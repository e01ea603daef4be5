//! `rollcall openapi`: what the API can do. ReadinessInputs no server, no settings and no data.

use crate::output::Output;

/// Prints the description: in lines, or with `--json` in one.
pub fn run(output: Output) -> anyhow::Result<()> {
    let description = site::app::description();
    let json = description.to_json();
    let lines = format!("{}\n", serde_json::to_string_pretty(json)?);
    Ok(output.show(json, &lines)?)
}
