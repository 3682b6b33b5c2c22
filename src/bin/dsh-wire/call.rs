//! `dsh-wire call`: one request, and its result as it is on the wire.

use std::io::Write;

use dsh_wire::json::{Json, JsonBuf};

use crate::argument;
use crate::console::Console;
use crate::failure::Failure;
use crate::runtime::{Route, Runtime, RuntimeArgs};

/// Send one request and print the result's JSON text
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh-wire call --initialize session/working-directory/get '{\"sessionId\":\"s\"}'
  dsh-wire call initialize - -- dsh --profile sdk < params.json")]
pub(crate) struct Args {
    /// The method
    method: String,

    /// The params, as JSON; `-` reads them, 16 MiB at most, from stdin; nothing sends none
    params: Option<String>,

    /// Do the handshake before
    #[arg(long)]
    initialize: bool,

    #[command(flatten)]
    route: Route,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

pub(crate) fn call(args: &Args, console: &Console) -> Result<(), Failure> {
    let params = match &args.params {
        Some(text) => argument::text(text, console.time)?,
        // No params are sent as such.
        None => Json::NULL.get().into(),
    };
    let params = Json::new(&params).map_err(|error| Failure::usage(format!("the params cannot be sent: {error}")))?;
    let mut runtime = Runtime::start(&args.runtime, console, false)?;
    let outcome = exchange(args, params, &mut runtime);
    runtime.close(&outcome);
    outcome
}

fn exchange(args: &Args, params: Json<'_>, runtime: &mut Runtime) -> Result<(), Failure> {
    if args.initialize {
        runtime.initialize(&args.route)?;
    }
    runtime.status.set("waiting for the answer");
    let result: JsonBuf = runtime.call(&args.method, &params)?;
    let mut out = runtime.console.stdout();
    let written = runtime.status.out_of_the_way(|| writeln!(out, "{}", result.as_json()).map(|()| true));
    written.map_err(|error| runtime.console.output_failure(error))
}
