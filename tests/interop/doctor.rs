//! `dsh-wire doctor` on the official runtime.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::environment::{Place, installed};

fn doctor(place: &Place, args: &[&str]) -> (Output, Vec<Value>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dsh-wire"));
    command.args(["doctor", "--json"]).args(args).current_dir(place.workspace());
    command.env("DSH_HOME", place.home()).env("DEEPSEEK_API_KEY", "k").env("DSH_TELEMETRY_MODE", "DISABLED");
    let output = command.env("DSH_RUNTIME_BIN", installed("runtime")).output().unwrap();
    let rows = String::from_utf8_lossy(&output.stdout).lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    (output, rows)
}

fn row<'r>(rows: &'r [Value], name: &str) -> &'r Value {
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"))
}

#[test]
fn the_official_runtime_is_well() {
    let (output, rows) = doctor(&Place::new(), &["--profile", "sdk-minimal"]);
    assert_eq!(output.status.code(), Some(0), "{rows:?}");
    assert_eq!(rows.last().unwrap(), &json!({"kind": "result", "exit": 0, "faults": [], "warnings": 0}), "{rows:?}");
    assert_eq!(row(&rows, "program")["version"], "0.2.1-rc.2");
    assert_eq!(row(&rows, "program")["from"], "named by DSH_RUNTIME_BIN");
    assert_eq!(row(&rows, "handshake")["server"], json!({"name": "deepseek-harness-sdk-runtime", "version": "0.0.1"}));
    assert_eq!(row(&rows, "methods")["there"].as_array().unwrap().len(), 4);
}

#[test]
fn what_is_wrong_with_it_is_told() {
    let (output, rows) = doctor(&Place::new(), &["--profile", "no-such-profile"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(row(&rows, "handshake")["stderr"][0].as_str().unwrap().contains("no-such-profile"), "{rows:?}");
    let (output, rows) = doctor(&Place::new(), &["--profile", "sdk-minimal", "--provider", "nobody"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(row(&rows, "handshake")["text"].as_str().unwrap().contains("no adapter registered"), "{rows:?}");
    // It starts without a key, and says so only when a turn ends.
    let (output, rows) = doctor(&Place::new(), &["--profile", "sdk-minimal", "--env", "DEEPSEEK_API_KEY="]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(row(&rows, "key")["state"], "warning");
}
