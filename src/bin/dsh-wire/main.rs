//! The command `dsh-wire`. Data goes to stdout, everything for people to stderr.

extern crate alloc;

mod agent;
mod argument;
mod call;
mod console;
mod doctor;
mod documents;
mod failure;
#[path = "../../stdio/ignored.rs"]
mod ignored;
mod image;
mod inspect;
mod interrupt;
mod output;
mod replay;
mod run;
mod runtime;
mod serve;
mod status;
mod tap;
mod terminal;
mod time;
mod timeline;
mod view;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};

use console::Console;

/// The DeepSeek Harness SDK wire protocol on the command line
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Call(call::Args),
    Serve(serve::Args),
    Inspect(inspect::Args),
    Tap(tap::Args),
    Replay(replay::Args),
    Timeline(timeline::Args),
    Doctor(doctor::Args),
    Completions(documents::CompletionsArgs),
    Man(documents::ManArgs),
}

impl Command {
    fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Run(args) => args.runtime.timeout,
            Self::Call(args) => args.runtime.timeout,
            Self::Doctor(args) => Some(args.runtime.timeout.unwrap_or(doctor::TIMEOUT)),
            _ => None,
        }
    }
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the runtime answered with an error, the turn ended in one, or the output could not be written
  2    wrong usage, an input that cannot be read, or a runtime that cannot be started
  3    the runtime is gone
  4    timed out
  5    the runtime broke the protocol, or the client of a replay departed from the recording
  130  interrupted; 143 by SIGTERM, 129 by SIGHUP";

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let console = Console::start(command.timeout());
    let outcome = match command {
        Command::Run(args) => run::run(&args, &console),
        Command::Call(args) => call::call(&args, &console),
        Command::Serve(args) => return serve::serve(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Tap(args) => return tap::tap(&args).unwrap_or_else(|failure| console.conclude(Err(failure))),
        Command::Timeline(args) => timeline::timeline(&args),
        Command::Doctor(args) => doctor::doctor(&args, &console),
        Command::Completions(args) => documents::completions(&args, Cli::command()),
        Command::Man(args) => documents::man(&args, Cli::command()),
    };
    console.conclude(outcome)
}
