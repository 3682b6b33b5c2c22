//! The command `dsh-wire`. Data goes to stdout, everything for people to stderr.

mod agent;
mod serve;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|command| command == "serve") {
        return serve::serve();
    }
    eprintln!("usage: dsh-wire serve");
    ExitCode::from(2)
}
