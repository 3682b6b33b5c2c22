//! The cells of the README's comparison that are about other SDKs, each read off the package that is compared. Cells about
//! this crate name their own tests there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::environment::installed;

/// A published SDK for which the suite has the sources.
struct Sdk {
    name: &'static str,
    /// All code that it ships.
    code: String,
    /// Its manifest or metadata.
    manifest: String,
}

/// In the order of the README's columns.
fn others() -> [Sdk; 4] {
    let modules = installed("node/node_modules/@deepseek-ai");
    let npm = |name: &str| (read(&modules.join(name).join("lib"), "js"), modules.join(name).join("package.json"));
    let ((client, manifest), (protocol, _)) = (npm("dsh-sdk-client"), npm("dsh-sdk-protocol"));
    let python = python_packages();
    let [first, second] = ["deepseek-harness-sdk", "deepseek-harness-sdk-rs"].map(crate_of);
    let manifest_of = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    [
        Sdk { name: "TypeScript", code: client + &protocol, manifest: fs::read_to_string(manifest).unwrap() },
        Sdk {
            name: "Python",
            code: read(&python.join("deepseek_harness"), "py"),
            manifest: fs::read_to_string(python.join("deepseek_harness_sdk-0.2.1rc2.dist-info/METADATA")).unwrap(),
        },
        Sdk { name: "deepseek-harness-sdk", code: read(&first.join("src"), "rs"), manifest: manifest_of(&first) },
        Sdk { name: "deepseek-harness-sdk-rs", code: read(&second.join("src"), "rs"), manifest: manifest_of(&second) },
    ]
}

fn python_packages() -> PathBuf {
    let lib = installed("py/lib");
    fs::read_dir(lib).unwrap().map(|entry| entry.unwrap().path().join("site-packages")).next().unwrap()
}

/// Where cargo has the sources of a published crate; it fetches them if need be.
fn crate_of(name: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/clients/Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--features", "peers", "--manifest-path"]).arg(manifest);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let package = metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == name).unwrap();
    Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

/// All files with this extension, without programs of their own (`bin`).
fn read(folder: &Path, extension: &str) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("bin") {
            text += &read(&path, extension);
        } else if path.extension().is_some_and(|ours| ours == extension) {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    assert!(!text.is_empty() || !folder.ends_with("src"), "{}", folder.display());
    text
}

impl Sdk {
    #[track_caller]
    fn has(&self, text: &str) {
        assert!(self.code.contains(text) || self.manifest.contains(text), "{} has no {text}", self.name);
    }

    #[track_caller]
    fn has_none_of(&self, texts: &[&str]) {
        for text in texts {
            assert!(!self.code.contains(text) && !self.manifest.contains(text), "{} has {text}", self.name);
        }
    }
}

#[test]
fn what_moves_the_bytes() {
    let [node, python, first, second] = others();
    node.has("child_process");
    python.has("Thread(");
    python.has("Requires-Dist: pydantic");
    for rust in [first, second] {
        rust.has("[dependencies.tokio]");
        rust.has("tokio::spawn");
        rust.has_none_of(&["no_std"]);
    }
}

#[test]
fn async_or_not() {
    let [node, python, first, second] = others();
    node.has("async ");
    python.has_none_of(&["async def", "asyncio"]);
    first.has("pub async fn");
    second.has("pub async fn");
}

/// Whether there is code for it, or code that could not be there.
#[test]
fn windows() {
    let [node, python, first, second] = others();
    node.has("\"win32\"");
    python.has_none_of(&["import fcntl", "import pwd", "import resource", "os.fork", "os.killpg"]);
    first.has("#[cfg(unix)]");
    second.has("(\"windows\", \"x86_64\")");
}

#[test]
fn how_old() {
    let [node, python, first, second] = others();
    node.has("\"version\": \"0.0.1-rc.1\"");
    python.has("\nVersion: 0.2.1rc2");
    first.has("version = \"0.2.3\"");
    second.has("version = \"0.2.1-rc.2\"");
}

/// None of them keeps sessions for an agent, though the npm protocol package has the frames for both ends.
#[test]
fn no_server() {
    for sdk in others() {
        sdk.has_none_of(&["class SdkServer", "class HarnessServer", "struct Server ", "struct Server{", "fn serve("]);
    }
}

/// A line that is no frame is skipped: nothing for the caller to see or to count.
#[test]
fn odd_lines_are_skipped() {
    let [node, python, first, second] = others();
    node.has("JSON.parse(line);\n\t\t} catch {\n\t\t\treturn;");
    python.has("except json.JSONDecodeError:\n                    continue");
    first.has("ignoring malformed JSON-RPC line from peer");
    second.has("let Ok(message) = serde_json::from_str::<Value>(&line) else {\n                    continue;");
}

/// Only the process that they have started is signalled, not what that has started.
#[test]
fn no_process_group() {
    for sdk in others() {
        sdk.has_none_of(&["start_new_session", "killpg", "process_group", "setsid", "setpgid", "detached: true"]);
        let ends = ["proc.kill()", "child.kill(\"SIGKILL\")", "kill_on_drop(true)"];
        assert!(ends.iter().any(|end| sdk.code.contains(end)), "{} ends no process", sdk.name);
    }
}
