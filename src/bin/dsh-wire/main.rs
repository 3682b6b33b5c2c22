//! The command `dsh-wire`. Data goes to stdout, everything for people to stderr.

mod failure;
mod inspect;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The DeepSeek Harness SDK wire protocol on the command line
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Inspect(inspect::Args),
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the runtime answered with an error, the turn ended in one, or the output could not be written
  2    wrong usage, or an input that cannot be read
  3    the runtime is gone
  4    timed out
  5    the runtime broke the protocol
  130  interrupted";

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Inspect(args) => inspect::inspect(&args),
    };
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
