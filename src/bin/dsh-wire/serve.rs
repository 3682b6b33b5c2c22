//! `dsh-wire serve`: the embedded runtime on stdin and stdout.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use dsh_wire::stdio::turns::Turns;
use dsh_wire::stdio::{ServeOptions, Served, serve_stdio};
use signal_hook::consts::SIGHUP;

use crate::agent::{Host, Script, end_commands};

/// Be a runtime on stdin and stdout, with an offline agent that does what prompts say
///
/// It stands in for the official runtime in tests of programs that drive one. Sessions are kept in DSH_HOME, and can be
/// resumed; where that is not set, they are not kept. The one provider is deepseek-official: any other is refused with "no
/// adapter registered for provider".
#[derive(ClapArgs)]
#[command(after_help = EXAMPLE, after_long_help = DIRECTIVES)]
pub(crate) struct Args {
    /// Accepted, since the official clients ask for one, and ignored
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Rules that choose the answers, tried before the directives (see below)
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Count ids and times instead of taking them from chance and from the clock
    ///
    /// Two runs with the same requests send the same frames, session by session: an event of number n has the time of
    /// 2024-01-01 and n milliseconds.
    #[arg(long)]
    deterministic: bool,
    /// Run no commands: what prompts ask for with @bash, @tools or the tool bash fails
    ///
    /// Without this, whoever can send a prompt can run commands here, as the user who started the runtime.
    #[arg(long)]
    no_shell: bool,
    /// Let no more than so many turns run at once
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

const EXAMPLE: &str = "\
Example:
  dsh-wire run \"@bash date\" -- dsh-wire serve --deterministic

The directives of prompts and the script file are described by --help.";

const DIRECTIVES: &str = "\
Example:
  dsh-wire run \"@bash date\" -- dsh-wire serve --deterministic

Directives:
  A prompt that starts with one of these is answered as it says. Any other is echoed as \"echo: PROMPT\", and one of more
  than 10000 characters by its length only.

  Several, separated by \" && \", are taken one a step. Only an answer with a tool call has a next step: what stands behind
  one that ends the turn is never taken, as the second of \"@say a && @say b\".

    @say TEXT                TEXT
    @think THOUGHT | TEXT    thinking, then TEXT
    @long N                  N characters
    @unicode                 Chinese, emoji, line separators, NUL
    @maxtokens [TEXT]        TEXT, cut at the limit of tokens
    @slow SECONDS [TEXT]     waits before the answer
    @drip SECONDS [TEXT]     waits between its pieces
    @bash COMMAND            runs a command on this machine (see --no-shell), then a final text
    @tools N COMMAND         the same N times in one message
    @tool NAME JSON          calls any tool
    @agent PROMPT            starts a sub-agent with that prompt
    @agents N PROMPT         starts N of them
                             ($AGENT in the arguments of a tool is the id of the last one)
    @error STATUS [TIMES]    the model call fails with this HTTP status, always or so often
    @sseerror, @cut, @garbage, @empty
                             the model call breaks off, or brings nothing
    @flood N [BYTES]         N events of type dsh-wire/flood
    @ask METHOD [JSON]       makes a request to the client, and answers what it answered
    @stderr TEXT             writes a line to stderr
    @panic                   the agent panics; the turn ends with an error
    @die [CODE]              the process exits at once
    @kill                    the process is killed

Script file:
  A JSON list of rules; the first one that matches a prompt answers it, one reply a step:

    [{\"match\": \"regular expression\", \"replies\": [REPLY, ...]}, ...]

  A REPLY is an object, every member of which is optional:

    \"thinking\", \"text\"          texts
    \"tools\"                     [{\"name\": \"bash\", \"input\": {\"command\": \"ls\"}}]
    \"status\", \"times\"           an HTTP error, at most so often
    \"stop_reason\"               \"max_tokens\"
    \"delay\", \"delta_delay\"      seconds before the answer, and between its pieces
    \"deltas\"                    the number of pieces
    \"usage\"                     {\"input_tokens\": 10, \"output_tokens\": 3}
    \"fault\"                     \"cut\", \"garbage\", \"sseerror\" or \"empty\"
    \"flood\"                     {\"events\": 1000, \"bytes\": 100}
    \"ask\"                       {\"method\": \"m\", \"params\": {}, \"within\": 10}
    \"stderr\", \"die\", \"kill\", \"panic\"
                                as the directives

Exit codes:
  0    after shutdown, at the end of the input, and after SIGTERM
  1    the client has closed the output, or has not read it 5 seconds after the end of the input; or the input could not
       be read
  2    wrong usage, or a script that cannot be used
  130  after SIGINT
  SIGHUP ends it in order too, and then kills it, as it does the official runtime.";

/// Serves until the client asks for the end, or is gone. Nothing but frames goes to stdout.
pub(crate) fn serve(args: &Args) -> ExitCode {
    let script = match args.script.as_deref().map(Script::read).transpose() {
        Ok(script) => script.unwrap_or_default(),
        Err(error) => {
            tell(&error);
            return ExitCode::from(2);
        }
    };
    let home = std::env::var_os("DSH_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let mut turns = Turns::new(Host::new(home, script, !args.no_shell));
    if let Some(threads) = args.threads {
        turns = turns.at_once(threads);
    }
    let mut options = ServeOptions::default();
    options.deterministic = args.deterministic;
    options.max_tokens_as_success = std::env::var_os("DSH_MAX_TOKENS_AS_SUCCESS").is_none_or(|value| value != "false");
    let served = serve_stdio(turns, options);
    // An end that does not wait, as after a second signal, leaves no command behind either.
    end_commands();
    match served {
        Ok(served) => {
            match &served {
                Served::OutputClosed(_) | Served::InputFailed(_) | Served::CutShort { .. } => tell(&served),
                // Where it cannot be done, the exit code says the same.
                Served::Signal(SIGHUP) => _ = signal_hook::low_level::emulate_default_handler(SIGHUP),
                _ => {}
            }
            ExitCode::from(served.exit_code())
        }
        Err(error) => {
            tell(&format_args!("cannot serve on stdin and stdout: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Says what went wrong, where anybody can hear it: a client that has died has taken stderr with it.
fn tell(error: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "error: {error}");
}
