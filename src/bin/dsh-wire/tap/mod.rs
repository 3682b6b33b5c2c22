//! `dsh-wire tap`: stands between a client and a runtime, passes on every byte, and records the conversation.

mod flow;
mod record;
mod signals;
mod spool;
mod view;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use dsh_wire::recording::Direction;
use dsh_wire::stdio::{Launch, SpawnFault, Stderr};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions};

use crate::failure::{Exit, Failure};
use crate::runtime::EnvironmentArgs;
use crate::terminal::Count;
use flow::{End, Flows, Life};
use record::Log;
use spool::{Recorder, Spool};

/// Stand between a client and a runtime, and record what they say
///
/// Let the client start this in place of its runtime. Every byte of stdin, stdout and stderr is passed on as it comes, and
/// so are the ends of the streams, backpressure, signals and the exit code. The log never holds the conversation up: what
/// it cannot take in time, or has no room for, is left out, and the log says how much that was.
///
/// Once the runtime has ended, what it has written is passed on, and then this ends, too. Its stdout waits for the client
/// as long as it takes, or, where a signal to this had asked the runtime to end, until the client has taken nothing for 5
/// seconds; so does its stderr in any case. Whatever the runtime has left behind is listened to until it says nothing for
/// 250 ms, and for 2 seconds at most. A signal ends the waiting, and a second one this. What was not passed on is told on
/// stderr.
///
/// The runtime gets HUP, INT, QUIT, TERM, USR1 and USR2 through this, each once, and has a process group of its own: what a
/// terminal or a client sends to a whole group reaches the runtime, and not what it has started. A stop (Ctrl-Z) is for
/// this alone: the runtime goes on until the pipes are full. A terminal's new size is not passed on, since the runtime has
/// pipes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The file to write; one that exists is written anew, unless another tap is writing it
    #[arg(long, value_name = "FILE")]
    log: PathBuf,

    /// Blank what people and models say, what tools are given and give back, and what looks like a key, in the log
    ///
    /// Only names that the protocol is made of stay. Every blanked text keeps its length in bytes.
    #[arg(long)]
    redact: bool,

    /// Show on stderr what goes by, one row a line, as `inspect` shows the log
    ///
    /// What the runtime says on stderr stands between the rows. Nothing waits for a reader of them: what finds no room is
    /// left out, and that is told. A client may keep stderr to itself: under `dsh-wire run`, give that `--stderr inherit`.
    /// Colours are for terminals only, and for none where NO_COLOR is set.
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    environment: EnvironmentArgs,

    /// The program to start and its arguments; the embedded runtime if left out
    #[arg(last = true, value_name = "RUNTIME")]
    runtime: Vec<OsString>,
}

const EXAMPLE: &str = "\
Example:
  dsh-wire run \"hello\" -- dsh-wire tap --log talk.jsonl -- dsh --profile sdk

A client that starts its runtime by a path gets a script in its place:
  #!/bin/sh
  exec dsh-wire tap --log \"$HOME/talk-$$.jsonl\" -- dsh \"$@\"

Exit codes:
  that of the runtime; it dies of the signal that the runtime died of
  2    wrong usage, a log that cannot be written, or a runtime that cannot be started";

/// How long somebody who is waited for in the end may do nothing: the reader of stderr, and the log.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn tap(args: &Args) -> Result<ExitCode, Failure> {
    let log = Log::create(&args.log, args.redact)
        .map_err(|error| Failure::usage(format!("cannot write the log '{}': {error}", args.log.display())))?;
    let launch = args.environment.equip(crate::runtime::launch(&args.runtime)?)?;
    let life = Life::new().map_err(failed("open a pipe")).map(Arc::new)?;
    let forwarding = signals::catch(Arc::clone(&life)).map_err(failed("listen for signals"))?;
    let mut ours = Standard::take().map_err(failed("take the standard streams"))?;
    let mut child = start(&launch.stderr(Stderr::Tail))?;
    let pid = Pid::from_child(&child);
    forwarding.to(pid);

    let log = Consumer::start("log", |spool| log.run(spool)).map_err(failed("start a thread"))?;
    let mut view = None;
    if args.print {
        // All that goes to stderr is the view's then: two writers would wait for each other.
        let stderr = std::mem::replace(&mut ours.stderr, null().map_err(failed("open /dev/null"))?);
        view = Some(Consumer::start("view", |spool| view::run(spool, stderr)).map_err(failed("start a thread"))?);
    }
    let spools = [Some(&log), view.as_ref()].into_iter().flatten().map(|consumer| Arc::clone(&consumer.spool));
    let recorder = Arc::new(Recorder::new(spools.collect()));
    let flows = connect(&mut child, ours, life, &recorder).map_err(failed("start a thread"))?;

    // Waited for without taking the status: until then the process id is the runtime's alone.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
    forwarding.stop();
    let status = child.wait().map_err(failed("learn how the runtime ended"))?;
    for end in flows.drain() {
        tell_end(&end);
    }
    if !log.finish() {
        tell(format_args!("the log '{}' is too slow: its end is missing", args.log.display()));
    }
    if let Some(view) = view {
        view.finish();
    }
    Ok(die_like(status))
}

fn tell_end(end: &End) {
    let stream = if end.direction == Direction::Stderr { "stderr" } else { "stdout" };
    if end.unread > 0 {
        let bytes = Count(end.unread, "byte");
        tell(format_args!("the last {bytes} of the runtime's {stream} were not passed on, and went to the log only"));
    }
    if end.open {
        tell(format_args!(
            "something that the runtime has left behind holds its {stream}: what it says from now on goes nowhere"
        ));
    }
}

fn start(launch: &Launch) -> Result<Child, Failure> {
    let child = match launch.clone().dies_with_parent(true).spawn() {
        // It hears of our death by the end of its input, then.
        Err(error) if error.fault() == SpawnFault::NoSetpriv => launch.spawn(),
        outcome => outcome,
    };
    child.map_err(Failure::usage)
}

/// Our standard streams.
struct Standard {
    stdin: File,
    stdout: File,
    stderr: File,
}

impl Standard {
    /// Takes stdin and stdout away, so that whoever is at the other end sees when they are closed.
    fn take() -> io::Result<Self> {
        let take = |fd| rustix::io::fcntl_dupfd_cloexec(fd, 3).map(File::from);
        let taken = Self {
            stdin: take(rustix::stdio::stdin())?,
            stdout: take(rustix::stdio::stdout())?,
            stderr: take(rustix::stdio::stderr())?,
        };
        let null = null()?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(taken)
    }
}

fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

/// Starts all flows.
fn connect(child: &mut Child, ours: Standard, life: Arc<Life>, recorder: &Arc<Recorder>) -> io::Result<Flows> {
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the runtime has no pipes"));
    };
    let flows = Flows::new(life);
    flows.start(ours.stdin, stdin, Direction::ClientToServer, recorder)?;
    flows.start(stdout, ours.stdout, Direction::ServerToClient, recorder)?;
    flows.start(stderr, ours.stderr, Direction::Stderr, recorder)?;
    Ok(flows)
}

/// A thread that takes what went by out of a spool.
struct Consumer {
    spool: Arc<Spool>,
    /// Hears nothing, and that the thread has ended.
    ended: Receiver<()>,
}

impl Consumer {
    fn start(name: &str, run: impl FnOnce(&Spool) + Send + 'static) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let spool = Arc::new(Spool::default());
        let theirs = Arc::clone(&spool);
        std::thread::Builder::new().name(name.into()).spawn(move || {
            let _end = end;
            run(&theirs);
        })?;
        Ok(Self { spool, ended })
    }

    /// Waits until it has taken all, as long as it takes anything. Returns whether it has.
    fn finish(&self) -> bool {
        self.spool.finish();
        let mut before = self.spool.progress();
        loop {
            if self.ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Disconnected) {
                return true;
            }
            let now = self.spool.progress();
            if std::mem::replace(&mut before, now) == now {
                return false;
            }
        }
    }
}

/// Ends us as the runtime has ended.
fn die_like(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // One core is enough.
        let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return ExitCode::from(u8::try_from(signal).map_or(1, |number| 128 | number));
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// A word on stderr, where the runtime's stderr goes, too; none where it would have to wait for a reader.
fn tell(what: std::fmt::Arguments<'_>) {
    let stderr = rustix::stdio::stderr();
    let mut fds = [PollFd::from_borrowed_fd(stderr, PollFlags::OUT)];
    if matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(1)) {
        let _ = rustix::io::write(stderr, format!("dsh-wire tap: {what}\n").as_bytes());
    }
}

fn failed<E: std::fmt::Display>(attempt: &str) -> impl FnOnce(E) -> Failure + '_ {
    move |error| Failure::Failed(Exit::FAILED, format!("cannot {attempt}: {error}").into())
}
