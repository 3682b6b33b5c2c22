//! What a runtime needs besides itself: a directory to keep sessions in, and a key for the model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde_json::json;

use super::report::Finding;
use crate::failure::Exit;
use crate::runtime::RuntimeArgs;

/// The directory of the runtime, and how it is called: its path may be nobody's business.
fn home(args: &RuntimeArgs) -> Option<(PathBuf, &'static str)> {
    let named = args.environment().variable("DSH_HOME").map(|home| (home.into(), "the directory that DSH_HOME names"));
    named.or_else(|| {
        Some((Path::new(&args.environment().variable("HOME")?).join(".dsh"), "~/.dsh, since DSH_HOME is not set,"))
    })
}

pub(super) fn finding(args: &RuntimeArgs) -> Finding {
    const NAME: &str = "home";
    let Some((path, called)) = home(args) else {
        return Finding::warning(NAME, "neither DSH_HOME nor HOME is set")
            .advise("set DSH_HOME to a directory in which the runtime may keep its sessions");
    };
    match writable(&path) {
        Ok(exists) => {
            let will = if exists { "" } else { " once it is made" };
            Finding::well(NAME, format!("{called} can be written to{will}")).with("exists", json!(exists))
        }
        Err(error) => Finding::fault(NAME, Exit::FAILED, format!("{called} cannot be written to: {error}"))
            .advise("set DSH_HOME to a directory that this user may write to"),
    }
}

/// Whether files can be made there, and whether it exists: a runtime makes it if need be.
fn writable(path: &Path) -> io::Result<bool> {
    let mut at = path;
    loop {
        match fs::metadata(at) {
            Ok(metadata) if metadata.is_dir() => {
                access(at, Access::WRITE_OK | Access::EXEC_OK)?;
                return Ok(at == path);
            }
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match at.parent() {
                Some(parent) if parent != Path::new("") => at = parent,
                _ => at = Path::new("."),
            },
            Err(error) => return Err(error),
        }
    }
}

/// The provider of the official runtime whose key has a name that we know.
pub(super) const OFFICIAL_PROVIDER: &str = "deepseek-official";

/// Whether there is a key for that provider, as far as can be told.
pub(super) fn key(args: &RuntimeArgs) -> Finding {
    const NAME: &str = "key";
    const KEY: &str = "DEEPSEEK_API_KEY";
    if args.environment().variable(KEY).is_some() {
        return Finding::well(NAME, format!("{KEY} is set"));
    }
    let env = home(args).and_then(|(home, _)| fs::read_to_string(home.join(".env")).ok()).unwrap_or_default();
    let names =
        |line: &str| line.trim_start().trim_start_matches("export ").split('=').next().map(str::trim) == Some(KEY);
    match env.lines().any(names) {
        true => Finding::well(NAME, format!("{KEY} is in the .env of the home")),
        false => Finding::warning(NAME, format!("{KEY} is not set")).advise(format!(
            "set {KEY}, or the official runtime ends each turn with MISSING_CREDENTIAL, unless it has stored a key itself"
        )),
    }
}
