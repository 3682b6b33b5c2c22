//! What the suite runs: the official runtime, our command, the scripted model.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder of this suite.
pub(crate) fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop")
}

/// A file or folder that `tests/interop/setup` has left.
#[track_caller]
pub(crate) fn installed(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/interop").join(name);
    assert!(path.exists(), "{} is missing: run tests/interop/run, which installs it", path.display());
    path
}

/// The scripted model on loopback; ended when dropped.
pub(crate) struct Model {
    process: Child,
    url: String,
}

impl Model {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(installed("py/bin/python"))
            .arg(suite().join("fake_messages.py"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, url: format!("http://127.0.0.1:{}", port.trim()) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder of its own with a DSH_HOME and a workspace; removed when dropped.
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("dsh-wire-interop-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().canonicalize().unwrap().join(name);
        for folder in ["home", "workspace"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Which runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Official,
    Ours,
}

/// The command that starts a runtime in this profile, with the environment that the official clients give it.
pub(crate) fn runtime(profile: &str, which: Which, model: &Model, place: &Place) -> Command {
    let mut command = match which {
        Which::Official => Command::new(installed("runtime")),
        Which::Ours => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_dsh-wire"));
            command.arg("serve");
            command
        }
    };
    command.args(["--profile", profile]).current_dir(place.workspace());
    for (name, value) in environment(model, place) {
        command.env(name, value);
    }
    command
}

/// The variables that a runtime gets besides the inherited ones.
pub(crate) fn environment(model: &Model, place: &Place) -> Vec<(&'static str, String)> {
    vec![
        ("DSH_HOME", place.home().display().to_string()),
        ("DEEPSEEK_BASE_URL", model.url().to_owned()),
        ("DEEPSEEK_API_KEY", "k".to_owned()),
        ("DSH_TELEMETRY_MODE", "DISABLED".to_owned()),
        // The tools of the profile `sdk` need a sandbox otherwise, which a build machine may not have.
        ("DSH_PERMISSION_MODE", "danger-full-access".to_owned()),
    ]
}
