//! `rollcall config …`

use serde_json::{Value as Json, json};

use super::CommandContext;
use crate::config::{Config, Difference};
use crate::output::{Output, Table};

/// `config print` prints the defaults, so that it works with an invalid configuration.
pub fn print(output: Output) -> anyhow::Result<()> {
    let defaults = Config::default();
    output.show(&defaults.to_json(), &defaults.to_annotated_toml())?;
    Ok(())
}

/// `config check` prints the differences; loading has validated the rest.
pub fn check(context: &CommandContext) -> anyhow::Result<()> {
    let differences = context.config.differences();
    context.output.show(&json_of(&differences), &text_of(&differences))?;
    Ok(())
}

fn json_of(differences: &[Difference]) -> Json {
    let changed: Vec<Json> = differences
        .iter()
        .map(|difference| {
            json!({
                "key": difference.key,
                "value": difference.value,
                "default": difference.default,
                "set_by": difference.set_by.as_ref().map(ToString::to_string),
            })
        })
        .collect();
    json!({ "valid": true, "changed": changed })
}

fn text_of(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "valid, every setting at its default\n".to_owned();
    }
    let mut table = Table::new(&["setting", "value", "default", "set by"]);
    for difference in differences {
        table.add(vec![
            difference.key.clone(),
            difference.value.to_string(),
            difference.default.to_string(),
            difference.set_by.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]);
    }
    format!("valid, these settings differ from their defaults:\n{table}")
}
