//! `rollcall openapi`

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use crate::commands::Site;

#[test]
fn the_description_is_printed_without_a_server_and_the_dashboard_is_made_from_the_same() {
    let site = Site::new();
    let text = site.text(&["openapi"]);
    let document: Json = serde_json::from_str(&text).unwrap();
    let line = site.text(&["openapi", "--json"]);
    assert_eq!(line.lines().count(), 1, "in lines, or in one");
    assert_eq!(document, serde_json::from_str::<Json>(&line).unwrap());
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/session"]["post"].is_object());
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/openapi.json");
    let committed = std::fs::read_to_string(committed).unwrap();
    let committed: Json = serde_json::from_str(&committed).unwrap();
    assert!(
        committed == document,
        "web/openapi.json is out of date: run rollcall openapi > web/openapi.json"
    );
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let document: Json = serde_json::from_str(&Site::new().text(&["openapi"])).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let operations: Vec<&Json> = paths.flat_map(|path| path.as_object().unwrap().values()).collect();
    let ids: BTreeSet<&str> =
        operations.iter().map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), operations.len());
    assert!(operations.len() > 50);
}
