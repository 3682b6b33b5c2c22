//! The official clients through `dsh-wire tap`, and what it has recorded in the place of the runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

use dsh_wire::recording::{Direction, Entry, Reader};

use crate::clients::{passes, script};
use crate::environment::{Model, Place, Which, installed, suite};

const DSH_WIRE: &str = env!("CARGO_BIN_EXE_dsh-wire");

/// The command line of a runtime, for a script.
fn command(which: Which) -> String {
    match which {
        Which::Official => format!("'{}'", installed("runtime").display()),
        Which::Ours => format!("'{DSH_WIRE}' serve"),
    }
}

/// A script that is a runtime behind a tap. Clients start several; each gets a log of its own.
fn tapped(place: &Place, which: Which) -> PathBuf {
    let log = place.home().join("log");
    script(place, "tapped", &format!("'{DSH_WIRE}' tap --log '{}'-$$ -- {} \"$@\"", log.display(), command(which)))
}

fn python(script: &Path) -> Command {
    let mut python = Command::new(installed("py/bin/python"));
    python.arg(suite().join("py_run.py")).arg("--server").arg(script);
    python
}

#[test]
fn python_sdk_through_the_tap_on_ours() {
    let place = Place::new();
    passes(&mut python(&tapped(&place, Which::Ours)));
}

#[test]
fn python_sdk_through_the_tap_on_the_official_runtime() {
    let place = Place::new();
    passes(&mut python(&tapped(&place, Which::Official)));
}

#[test]
fn npm_clients_through_the_tap() {
    for which in [Which::Ours, Which::Official] {
        let place = Place::new();
        let mut node = Command::new("node");
        node.arg(suite().join("ts_run.mjs")).arg("--server").arg(tapped(&place, which));
        passes(node.arg("--modules").arg(installed("node")));
    }
}

/// The same conversation twice: with a runtime behind a tap, and with the recording.
#[track_caller]
fn replays(which: Which, client: impl Fn() -> Command) {
    let (place, model) = (Place::new(), Model::start());
    let log = place.home().join("log");
    let run = |server: &Path| {
        let mut command = client();
        command.arg("--server").arg(server).arg("--home").arg(place.home()).arg("--cwd").arg(place.workspace());
        let output = command.args(["--model-url", model.url()]).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
        report
    };
    let tap = format!("'{DSH_WIRE}' tap --log '{}' -- {} \"$@\"", log.display(), command(which));
    let recorded = run(&script(&place, "recorded", &tap));
    assert!(recorded.lines().count() >= 9, "{recorded}");
    let entries: Vec<Entry> = Reader::new(std::fs::File::open(&log).unwrap()).map(Result::unwrap).collect();
    assert!(entries.iter().filter(|entry| entry.direction == Direction::ServerToClient).count() > 50);
    for options in ["", "--timing"] {
        // Its exit code is lost in the clients, so it is left in a file.
        let verdict = place.home().join("verdict");
        let replay =
            format!("sh -c \"'{DSH_WIRE}' replay {options} '{}'; echo \\$? > '{}'\"", log.display(), verdict.display());
        assert_eq!(run(&script(&place, "replayed", &replay)), recorded, "{which:?} {options}");
        assert_eq!(std::fs::read_to_string(verdict).unwrap(), "0\n", "the client has kept to the recording");
    }
}

#[test]
fn a_recording_of_the_python_sdk_gives_the_same_result() {
    for which in [Which::Ours, Which::Official] {
        replays(which, || {
            let mut python = Command::new(installed("py/bin/python"));
            python.arg(suite().join("checks/tapped.py"));
            python
        });
    }
}

#[test]
fn a_recording_of_the_npm_client_gives_the_same_result() {
    for which in [Which::Ours, Which::Official] {
        replays(which, || {
            let mut node = Command::new("node");
            node.arg(suite().join("checks/tapped.mjs")).arg("--modules").arg(installed("node"));
            node
        });
    }
}
