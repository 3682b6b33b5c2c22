//! The official clients drive `dsh-wire serve` and cannot tell.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::environment::{Place, installed, suite};

/// The clients launch `PATH --profile NAME` and Python follows links, so `serve` is reached through a script.
fn wrapper(place: &Place) -> PathBuf {
    script(place, "runtime", &format!("'{}' serve \"$@\"", env!("CARGO_BIN_EXE_dsh-wire")))
}

pub(crate) fn script(place: &Place, name: &str, command: &str) -> PathBuf {
    let path = place.home().join(name);
    let script = format!("#!/bin/sh\nexec {command}\n");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[track_caller]
pub(crate) fn passes(command: &mut Command) {
    let output = command.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    // The last line counts failures; a script that checked nothing has no "ok" line.
    assert!(report.lines().filter(|line| line.starts_with("ok")).count() >= 10, "{report}");
}

#[test]
fn python_sdk() {
    let place = Place::new();
    let script = suite().join("py_run.py");
    passes(Command::new(installed("py/bin/python")).arg(script).arg("--server").arg(wrapper(&place)));
}

#[test]
fn npm_clients() {
    let place = Place::new();
    let modules = installed("node");
    let mut node = Command::new("node");
    node.arg(suite().join("ts_run.mjs")).arg("--server").arg(wrapper(&place));
    passes(node.arg("--modules").arg(modules));
}

#[test]
fn python_sdk_further() {
    let place = Place::new();
    let script = suite().join("checks/more.py");
    passes(Command::new(installed("py/bin/python")).arg(script).arg("--server").arg(wrapper(&place)));
}

#[test]
fn npm_clients_further() {
    let place = Place::new();
    let modules = installed("node");
    let mut node = Command::new("node");
    node.arg(suite().join("checks/more.mjs")).arg("--server").arg(wrapper(&place));
    passes(node.arg("--modules").arg(modules));
}

/// The example of the README and the word counter are runtimes like any other.
#[test]
fn python_sdk_on_the_examples() {
    let place = Place::new();
    let examples = std::path::Path::new(env!("CARGO_BIN_EXE_dsh-wire")).with_file_name("examples");
    let wrap = |name: &str| script(&place, name, &format!("'{}'", examples.join(name).display()));
    let mut python = Command::new(installed("py/bin/python"));
    python.arg(suite().join("checks/small.py")).arg("--parrot").arg(wrap("parrot"));
    passes(python.arg("--counter").arg(wrap("word_counter")));
}
