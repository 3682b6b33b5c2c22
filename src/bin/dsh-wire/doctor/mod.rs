//! `dsh-wire doctor`: is there a runtime, does it start, does it speak the protocol, and what is to be done where not.

mod handshake;
mod home;
mod program;
mod report;

use std::ffi::OsStr;
use std::time::Duration;

use dsh_wire::stdio::HarnessClient;
use serde_json::json;

use crate::console::Console;
use crate::failure::Failure;
use crate::runtime::{Route, Runtime, RuntimeArgs};
use report::{Finding, Report};

/// Find a runtime, start it, shake hands, and say what is wrong and what to do
///
/// Without a program behind `--` it takes the one that DSH_RUNTIME_BIN names, or else `dsh` on PATH. No prompt is sent,
/// so no model is asked. Of the environment it tells names, never values. The exit code is that of the last check that
/// failed; a warning is no failure.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh-wire doctor
  dsh-wire doctor -- dsh-wire serve
  dsh-wire doctor --json -- dsh --profile sdk | jq 'select(.state == \"fault\")'")]
pub(crate) struct Args {
    /// Print one JSON object for each check, then one with the result
    #[arg(long)]
    json: bool,

    /// The profile of a runtime that was found
    #[arg(long, value_name = "NAME", default_value = "sdk", conflicts_with = "runtime")]
    profile: String,

    #[command(flatten)]
    route: Route,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

/// How long it may take, where nothing else is said. The official runtime needs 1 to 3 s for the handshake.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn doctor(args: &Args, console: &Console) -> Result<(), Failure> {
    let mut report = Report::new(args.json, console);
    examine(args, console, &mut report)?;
    report.finish()
}

/// Goes on as long as the next check can tell anything.
fn examine(args: &Args, console: &Console, report: &mut Report) -> Result<(), Failure> {
    console.interrupts.catch()?;
    let found = program::find(args)?;
    let launch = found.launch.clone();
    let version = found.version(args, console)?;
    report.add(found.finding(version.as_deref()))?;
    if report.has_faults() {
        return Ok(());
    }
    report.add(environment(&args.runtime))?;
    report.add(home::finding(&args.runtime))?;
    // Of others it is not known what they need.
    let is_official = version.is_some() && args.route.provider() == home::OFFICIAL_PROVIDER;
    if is_official {
        report.add(home::key(&args.runtime))?;
    }
    let client = match HarnessClient::spawn(&launch) {
        Ok(client) => client,
        Err(error) => return report.add(program::not_started(&launch, &error)),
    };
    let mut runtime = Runtime::new(&args.runtime, console, client, false);
    let outcome = handshake::check(args, &mut runtime, report);
    let end = runtime.end();
    let client = runtime.harness.client();
    let stray = handshake::stray_lines(&client.counters(), client.last_dropped());
    // And with it its status line.
    drop(runtime);
    if let Some(finding) = stray {
        report.add(finding)?;
    }
    match outcome? {
        Some(fault) => report.add(fault.quote(&end.stderr.text())),
        None => report.add(handshake::end(&end)),
    }
}

/// The variables that a runtime looks at, of those that it gets.
fn environment(args: &RuntimeArgs) -> Finding {
    let names = args.environment().variables();
    let names: Vec<_> =
        names.iter().filter(|name| concerns_runtimes(name)).map(|name| name.to_string_lossy()).collect();
    let text = match names.is_empty() {
        true => "no variable that concerns a runtime is set".into(),
        false => format!("set: {}", names.join(", ")),
    };
    Finding::well("environment", text).with("names", json!(names))
}

fn concerns_runtimes(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let named = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS"];
    name.starts_with("DSH_") || name.starts_with("DEEPSEEK_") || named.contains(&&*name)
}
