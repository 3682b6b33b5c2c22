//! The runtime that a command speaks to: what is started, how long it may take, and how it is ended.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use dsh_wire::client::{Rung, RungReport};
use dsh_wire::stdio::{
    self, CallOptions, CloseReport, DeepSeekHarness, Environment, Error, ErrorKind, HarnessClient, Launch, Stderr,
};
use dsh_wire::wire::{Decode, Initialize, InitializeParams, InitializeResult, Method};
use serde::Serialize;

use crate::console::Console;
use crate::failure::{Exit, Failure};
use crate::status::StatusLine;
use crate::terminal::Visible;

/// Which runtime, and on what terms.
#[derive(clap::Args)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct RuntimeArgs {
    /// Give up after this time (doctor: 30 s, else never); reading the input and writing the output count, the end of the
    /// runtime does not, which takes up to 9 s where it is stubborn
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Where the runtime's stderr goes: to ours, or kept for the report of a failure
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = StderrTo::Tail)]
    stderr: StderrTo,

    #[command(flatten)]
    environment: EnvironmentArgs,

    /// Tell on stderr what is started, how it ends, and what came
    #[arg(short, long)]
    verbose: bool,

    /// The program to start and its arguments. If left out, `doctor` looks for one, and all others take the embedded
    /// runtime
    #[arg(last = true, value_name = "RUNTIME")]
    runtime: Vec<OsString>,
}

/// What a runtime gets of our environment.
#[derive(clap::Args)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct EnvironmentArgs {
    /// Give the runtime an empty environment, but for --env and --pass-env
    #[arg(long)]
    env_clean: bool,

    /// Set a variable for the runtime
    #[arg(long, value_name = "KEY=VALUE", value_parser = clap::value_parser!(OsString))]
    env: Vec<OsString>,

    /// Pass on a variable of ours, where the environment is empty
    #[arg(long, value_name = "KEY", requires = "env_clean")]
    pass_env: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StderrTo {
    Inherit,
    Tail,
}

/// Where sessions work and which model answers.
#[derive(clap::Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct Route {
    /// The directory that sessions work in; the current one if left out
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// The model's provider
    #[arg(long, value_name = "NAME", default_value = "deepseek-official")]
    provider: String,

    /// The model
    #[arg(long, value_name = "NAME", default_value = "deepseek-v4-flash")]
    model: String,

    /// How many tokens one model call may write
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SAFE_INTEGER))]
    max_tokens: Option<u64>,

    /// How hard the model thinks: low, high, max
    #[arg(long, value_name = "EFFORT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reasoning_effort: Option<String>,
}

/// The largest integer that JavaScript's numbers hold with all below it.
pub(crate) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) => Ok(timeout),
        // More than can be counted is for ever.
        Err(_) if seconds > 0.0 => Ok(Duration::MAX),
        Err(error) => Err(error.to_string()),
    }
}

impl Route {
    pub(crate) fn provider(&self) -> &str {
        &self.provider
    }

    /// The handshake's params.
    pub(crate) fn params(&self) -> Result<InitializeParams, Failure> {
        let cwd = std::path::absolute(self.cwd.as_deref().unwrap_or(".".as_ref()))
            .map_err(|error| Failure::usage(format!("cannot tell the directory to work in: {error}")))?;
        let cwd = cwd.to_str().ok_or_else(|| {
            Failure::usage(format!("the directory {cwd:?} is not UTF-8, and the protocol has no other names"))
        })?;
        let mut params = InitializeParams::new(cwd, &*self.provider, &*self.model);
        params.reasoning_effort = self.reasoning_effort.as_deref().map(Into::into);
        params.max_tokens = self.max_tokens;
        Ok(params)
    }
}

impl RuntimeArgs {
    /// The runtime, as it was asked for.
    fn named(&self) -> String {
        match self.runtime.join(" ".as_ref()) {
            command if command.is_empty() => "the embedded runtime".into(),
            command => command.to_string_lossy().into_owned(),
        }
    }

    fn launch(&self) -> Result<Launch, Failure> {
        self.equip(launch(&self.runtime)?)
    }

    /// The program behind `--`, if there is one.
    pub(crate) fn given(&self) -> Option<Launch> {
        given(&self.runtime)
    }

    /// Whether the arguments are those of `dsh`: nothing but a profile.
    pub(crate) fn is_started_as_dsh(&self) -> bool {
        matches!(self.runtime.as_slice(), [] | [_, _, _]) && self.runtime.get(1).is_none_or(|arg| arg == "--profile")
    }

    /// Whether what the runtime writes to stderr comes to us.
    pub(crate) fn keeps_stderr(&self) -> bool {
        self.stderr == StderrTo::Tail
    }

    pub(crate) fn environment(&self) -> &EnvironmentArgs {
        &self.environment
    }

    /// With the environment and the stderr that were asked for.
    pub(crate) fn equip(&self, launch: Launch) -> Result<Launch, Failure> {
        Ok(self.environment.equip(launch)?.stderr(match self.stderr {
            StderrTo::Inherit => Stderr::Inherit,
            StderrTo::Tail => Stderr::Tail,
        }))
    }
}

impl EnvironmentArgs {
    /// The names of the variables that a runtime gets.
    pub(crate) fn variables(&self) -> BTreeSet<OsString> {
        let passed = |name: &OsString| !self.env_clean || self.pass_env.contains(name);
        let inherited = std::env::vars_os().map(|(name, _)| name).filter(passed);
        let set = self.env.iter().filter_map(|pair| key_and_value(pair)).map(|(name, _)| name.to_owned());
        inherited.chain(set).collect()
    }

    /// The value of a variable as a runtime sees it; an empty one is none.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let set = self.env.iter().rev().filter_map(|pair| key_and_value(pair)).find(|(key, _)| *key == name);
        let passed = !self.env_clean || self.pass_env.iter().any(|passed| passed == name);
        let inherited = || std::env::var_os(name).filter(|_| passed);
        set.map(|(_, value)| value.to_owned()).or_else(inherited).filter(|value| !value.is_empty())
    }

    /// With the environment that was asked for.
    pub(crate) fn equip(&self, mut launch: Launch) -> Result<Launch, Failure> {
        if self.env_clean {
            launch = launch.environment(Environment::Only(self.pass_env.clone()));
        }
        for pair in &self.env {
            let (key, value) = key_and_value(pair).ok_or_else(|| {
                Failure::usage(format!(
                    "--env takes KEY=VALUE, and {:?} is none",
                    Visible(&pair.to_string_lossy()).to_string()
                ))
            })?;
            launch = launch.env(key, value);
        }
        Ok(launch)
    }
}

/// The program and its arguments; the embedded runtime where there are none.
pub(crate) fn launch(command: &[OsString]) -> Result<Launch, Failure> {
    if let Some(launch) = given(command) {
        return Ok(launch);
    }
    let this = std::env::current_exe()
        .map_err(|error| Failure::usage(format!("cannot tell where this program is: {error}")))?;
    Ok(Launch::new(this).arg("serve"))
}

fn given(command: &[OsString]) -> Option<Launch> {
    command.split_first().map(|(program, args)| Launch::new(program).args(args))
}

fn key_and_value(pair: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = pair.as_bytes();
    let equals = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
    Some((OsStr::from_bytes(bytes.get(..equals)?), OsStr::from_bytes(bytes.get(equals + 1..)?)))
}

/// A runtime that has been started.
pub(crate) struct Runtime {
    pub(crate) harness: DeepSeekHarness,
    pub(crate) console: Console,
    pub(crate) status: StatusLine,
    verbose: bool,
}

impl Runtime {
    /// Starts it. From now on Ctrl-C is ours to handle. With `quiet`, there is no status line.
    pub(crate) fn start(args: &RuntimeArgs, console: &Console, quiet: bool) -> Result<Self, Failure> {
        let launch = args.launch()?;
        console.interrupts.catch()?;
        let client = HarnessClient::spawn(&launch)?;
        Ok(Self::new(args, console, client, quiet))
    }

    /// One that has just been started.
    pub(crate) fn new(args: &RuntimeArgs, console: &Console, client: HarnessClient, quiet: bool) -> Self {
        // Where others write to the terminal at any time, a line of ours would be in their way.
        let alone = !quiet && !args.verbose && args.stderr != StderrTo::Inherit;
        let runtime = Self {
            status: StatusLine::new("starting the runtime", alone, console.stderr.clone()),
            harness: DeepSeekHarness::with_client(client),
            console: console.clone(),
            verbose: args.verbose,
        };
        runtime.tell(format_args!("started {}", args.named()));
        runtime
    }

    /// For a call that ends with the time, or with Ctrl-C.
    pub(crate) fn call_options(&self) -> CallOptions {
        let options = CallOptions::default().token(&self.console.interrupts.stop);
        match self.console.time.left() {
            Some(left) => options.timeout(left),
            None => options,
        }
    }

    /// Any call.
    pub(crate) fn call<R: for<'a> Decode<'a>>(
        &mut self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<R, Failure> {
        let options = self.call_options();
        self.harness.client().call_with(method, params, &options).map_err(|error| self.failure(error))
    }

    /// The handshake.
    pub(crate) fn initialize(&mut self, route: &Route) -> Result<(), Failure> {
        let started = Instant::now();
        let ready: InitializeResult = self.call(Initialize::NAME, &route.params()?)?;
        let info = ready.server_info.unwrap_or_default();
        let [name, version] =
            [info.name, info.version].map(|text| text.map(|text| text.to_string()).unwrap_or_default());
        self.tell(format_args!("{name} {version} is ready after {:.1?}", started.elapsed()));
        Ok(())
    }

    /// Why something failed. An interruption counts by its signal.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        match (error.kind(), self.console.interrupts.signal()) {
            (ErrorKind::Aborted(_), Some(signal)) => Failure::Failed(Exit::signal(signal), error.into()),
            // What was left of the time for this call would say little.
            (ErrorKind::TimedOut { .. }, _) => {
                let session = error.session_id().map(|id| format!(" on session {id:?}")).unwrap_or_default();
                self.console.time.failure(&format!("{}{session}", error.attempted()))
            }
            _ => error.into(),
        }
    }

    /// Ends it in order; a signal from now on ends it faster. With what became of the work, for what is still to be told.
    pub(crate) fn close<T>(mut self, outcome: &Result<T, Failure>) {
        let report = self.end();
        let dropped = self.harness.client().counters().dropped();
        if dropped > 0 {
            self.note(format_args!("lines of the runtime's output that were no frames and were dropped: {dropped}"));
        }
        let we_did = |rung: &RungReport| matches!(rung.rung, Rung::Terminate | Rung::Kill);
        let by_itself = !report.rungs.iter().any(we_did);
        // Why it is gone is told with that.
        let told = matches!(outcome, Err(Failure::Failed(Exit::GONE, _)));
        if let Some(stdio::Exit::Code(code @ 1..)) = report.exit.filter(|_| by_itself && !told) {
            self.note(format_args!("the runtime exited with code {code}"));
            for line in report.stderr.text().lines() {
                self.note(format_args!("it said: {line}"));
            }
        }
    }

    /// As [`close`](Self::close), and says how it went.
    pub(crate) fn end(&mut self) -> CloseReport {
        self.console.interrupts.stop.abort();
        self.status.set("ending the runtime");
        let report = self.harness.client().close_with(&self.console.interrupts.hurry);
        for rung in &report.rungs {
            self.tell(format_args!("{rung}"));
        }
        if let Some(exit) = report.exit {
            self.tell(format_args!("the runtime {exit}"));
        }
        let came = self.harness.client().counters();
        self.tell(format_args!("{} notifications and {} responses came", came.notifications, came.responses));
        if came.unmatched > 0 {
            self.tell(format_args!("responses that no call waited for: {}", came.unmatched));
        }
        if came.refused > 0 {
            self.tell(format_args!("requests of the runtime that were refused: {}", came.refused));
        }
        report
    }

    /// For those who want to know.
    fn tell(&self, what: fmt::Arguments<'_>) {
        if self.verbose {
            self.note(what);
        }
    }

    /// A word on stderr that is no error.
    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let what = format!("note: {}\n", Visible(&what.to_string()));
        // Where stderr is closed there is nobody to tell.
        let _ = self.status.out_of_the_way(|| self.console.stderr.clone().write_all(what.as_bytes()).map(|()| true));
    }
}
