//! The command `dsh-wire`. Data goes to stdout, everything for people to stderr.

mod agent;
mod failure;
mod inspect;
mod serve;
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
    /// Be a runtime on stdin and stdout, with an offline agent that echoes
    ///
    /// Sessions are kept in DSH_HOME, where that is set.
    #[command(after_help = "\
Example:
  dsh-wire call session/prompt '{\"sessionId\":\"s\",\"contentBlocks\":[]}' -- dsh-wire serve")]
    Serve {
        /// Accepted, since the official clients ask for one, and ignored
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
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
        Command::Serve { profile: _ } => return serve::serve(),
        Command::Inspect(args) => inspect::inspect(&args),
    };
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
