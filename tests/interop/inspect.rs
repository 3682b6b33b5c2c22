//! `inspect --json` and the reference transport agree on every odd line.

use std::process::Command;

use crate::environment::{installed, suite};

#[test]
fn agrees_with_the_reference_transport() {
    let mut script = Command::new(suite().join("inspect_vs_reference"));
    script.arg("--modules").arg(installed("node/node_modules"));
    let output = script.arg("--bin").arg(env!("CARGO_BIN_EXE_dsh-wire")).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
}
