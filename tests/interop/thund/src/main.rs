// SPDX-License-Identifier: Apache-2.0
//! thund-peer DIR: what the crate knut-thund makes of each DIR/*.ron and DIR/*.sql, as a line of JSON each.
//!
//! `value` is the document as serde's JSON, `ron` what the crate writes, `order` its order of datasets (null: a ring),
//! `invalid` why the crate does not accept the pipeline, `error` why it does not read the document.
use knut_thund::{authoring, Pipeline};
use serde_json::{json, Value};
use std::{env, fs, path::Path};

fn read(path: &Path) -> Result<Pipeline, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    if path.extension().is_some_and(|e| e == "sql") {
        return authoring::sql::from_sql("p", &text).map_err(|e| e.to_string());
    }
    ron::from_str(&text).map_err(|e| e.to_string())
}

fn look(path: &Path) -> Value {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let pipeline = match read(path) {
        Ok(pipeline) => pipeline,
        Err(error) => return json!({"name": name, "error": error}),
    };
    json!({
        "name": name,
        "value": serde_json::to_value(&pipeline).unwrap(),
        "ron": authoring::dsl::to_ron(&pipeline).unwrap(),
        "order": pipeline.topo_order(),
        "invalid": pipeline.validate().err().map(|e| e.to_string()),
    })
}

fn main() {
    let folder = env::args().nth(1).expect("usage: thund-peer DIR");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "ron" || e == "sql")) {
        println!("{}", look(path));
    }
}
