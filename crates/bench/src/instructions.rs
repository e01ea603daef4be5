//! Instruction counts of the callgrind benchmark (`benches/instructions.rs`).

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::error::BenchError;

/// Instructions of one step of the announce path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstructionCount {
    /// Step and circumstances.
    pub name: String,
    pub instructions: u64,
}

/// Reads the output of gungraun with `--output-format=json`: one object per line.
pub fn read(path: &Path) -> Result<Vec<InstructionCount>, BenchError> {
    let text = std::fs::read_to_string(path).map_err(BenchError::io(path.display().to_string()))?;
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| read_line(path, line)).collect()
}

fn read_line(path: &Path, line: &str) -> Result<InstructionCount, BenchError> {
    let unreadable = |why: String| BenchError::Unreadable { what: path.display().to_string(), why };
    let summary: Value = serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))?;
    count_of(&summary).ok_or_else(|| unreadable("a line without an instruction count".to_owned()))
}

fn count_of(summary: &Value) -> Option<InstructionCount> {
    let name =
        format!("{} {}", summary["function_name"].as_str()?, summary["id"].as_str()?).replace('_', " ");
    let callgrind = summary["profiles"].as_array()?.iter().find(|profile| profile["tool"] == "Callgrind")?;
    let values = &callgrind["data"]["total"]["metrics"]["Ir"]["values"];
    // With an earlier run, its count is given too, as `old`.
    Some(InstructionCount { name, instructions: values.get("new")?.as_u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary(values: Value) -> Value {
        json!({
            "function_name": "swarm_heartbeat",
            "id": "among_10_peers",
            "profiles": [
                { "tool": "Callgrind", "data": { "total": { "metrics": { "Ir": { "values": values } } } } }
            ],
        })
    }

    #[test]
    fn the_count_of_the_newest_run_is_taken() {
        let expected =
            InstructionCount { name: "swarm heartbeat among 10 peers".to_owned(), instructions: 5049 };
        assert_eq!(count_of(&summary(json!({ "new": 5049 }))), Some(expected.clone()));
        assert_eq!(count_of(&summary(json!({ "new": 5049, "old": 6000 }))), Some(expected));
        assert_eq!(count_of(&summary(json!({ "old": 6000 }))), None);
    }
}
