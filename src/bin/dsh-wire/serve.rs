//! `dsh-wire serve`: the embedded runtime on stdin and stdout.

use std::path::PathBuf;
use std::process::ExitCode;

use dsh_wire::stdio::{ServeOptions, Served, serve_stdio};

use crate::agent::Host;

/// Serves until the client has had enough. Nothing but frames goes to stdout.
pub(crate) fn serve() -> ExitCode {
    let home = std::env::var_os("DSH_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let mut options = ServeOptions::default();
    options.max_tokens_as_success = std::env::var_os("DSH_MAX_TOKENS_AS_SUCCESS").is_none_or(|value| value != "false");
    match serve_stdio(Host::new(home), options) {
        Ok(served) => {
            if let Served::OutputClosed(error) | Served::InputFailed(error) = &served {
                eprintln!("error: {error}");
            }
            ExitCode::from(served.exit_code())
        }
        Err(error) => {
            eprintln!("error: cannot serve on stdin and stdout: {error}");
            ExitCode::FAILURE
        }
    }
}
