//! `dsh-wire replay`: a recording as a runtime on stdin and stdout.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use dsh_wire::recording::{Direction, Reader};
use dsh_wire::replay::{Matching, Script, Spoken, Timing};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::failure::{Exit, Failure};
use crate::terminal::Count;

/// Be a runtime on stdin and stdout that answers what was recorded
///
/// A recording is what `dsh-wire tap` writes. Ids of requests and sessions are those of the client that is there now. What
/// the recording does not have is refused and told on stderr.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh-wire run \"hello\" -- dsh-wire tap --log talk.jsonl -- dsh --profile sdk   # once
  dsh-wire run \"hello\" -- dsh-wire replay talk.jsonl

Exit codes:
  0    the client has kept to the recording
  2    wrong usage, or a recording that cannot be read
  5    it has departed from it")]
pub(crate) struct Args {
    /// The recording
    file: PathBuf,

    /// Match by method and order, whatever the params; this is so unless told otherwise
    #[arg(long, conflicts_with = "loose")]
    strict: bool,

    /// Match by method and params, in any order
    #[arg(long)]
    loose: bool,

    /// Answer as late as the runtime did; at once if left out
    #[arg(long)]
    timing: bool,

    /// Accepted, since the official clients ask for one, and ignored
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// What is read at a time.
const PIECE: usize = 64 << 10;

pub(crate) fn replay(args: &Args) -> Result<(), Failure> {
    let mut script = load(args)?;
    if script.lost() > 0 {
        tell(format_args!("the recording misses {}", Count(script.lost(), "byte")));
    }
    let input = read_stdin().map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
    let (start, mut told) = (Instant::now(), 0);
    loop {
        let now = start.elapsed();
        while let Some(line) = script.next_line(now) {
            // A client that has closed its end is at its end.
            if speak(&line).is_err() {
                script.end_input();
                return verdict(&script, &mut told);
            }
        }
        tell_news(&script, &mut told);
        if script.has_ended() {
            script.end_input();
            return verdict(&script, &mut told);
        }
        let next = script.next_at().map(|at| at.saturating_sub(start.elapsed()));
        match (receive(&input, next), next) {
            (Ok(bytes), _) => script.push(&bytes, start.elapsed()),
            (Err(RecvTimeoutError::Timeout), _) => {}
            // Who has asked all may still want to hear all.
            (Err(RecvTimeoutError::Disconnected), Some(next)) => {
                if has_hung_up(next) {
                    script.end_input();
                    return verdict(&script, &mut told);
                }
            }
            (Err(RecvTimeoutError::Disconnected), None) => {
                script.end_input();
                return verdict(&script, &mut told);
            }
        }
    }
}

fn load(args: &Args) -> Result<Script, Failure> {
    let path = args.file.display();
    let file = File::open(&args.file).map_err(|error| Failure::usage(format!("cannot open '{path}': {error}")))?;
    let mut entries = Vec::new();
    for entry in Reader::new(file) {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) if error.is_cut_off() => tell(format_args!("{error}: it is left out")),
            Err(error) => return Err(Failure::usage(format!("cannot replay '{path}': {error}"))),
        }
    }
    let matching = if args.loose { Matching::Loose } else { Matching::Strict };
    let timing = if args.timing { Timing::Kept } else { Timing::Dropped };
    Ok(Script::new(entries, matching, timing))
}

/// On a thread, so that a client that writes much before it reads is read all the same.
fn read_stdin() -> io::Result<Receiver<Vec<u8>>> {
    let (came, input) = mpsc::channel();
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut buf = vec![0; PIECE];
        loop {
            match stdin.read(&mut buf) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(len) => {
                    if came.send(buf.get(..len).unwrap_or_default().to_vec()).is_err() {
                        return;
                    }
                }
            }
        }
    })?;
    Ok(input)
}

fn receive(input: &Receiver<Vec<u8>>, wait: Option<Duration>) -> Result<Vec<u8>, RecvTimeoutError> {
    match wait {
        Some(wait) => input.recv_timeout(wait),
        None => input.recv().map_err(RecvTimeoutError::from),
    }
}

/// Waits so long, or until nobody can read our stdout any more; returns whether that is so.
fn has_hung_up(wait: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::empty())];
    // Where it cannot be waited for, the write will tell.
    let timeout = Timespec::try_from(wait).ok();
    matches!(rustix::event::poll(&mut fds, timeout.as_ref()), Ok(1))
}

fn speak(line: &Spoken) -> io::Result<()> {
    if line.direction == Direction::Stderr {
        // Where nobody hears it, the conversation goes on.
        let _ = io::stderr().lock().write_all(&line.bytes);
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line.bytes)?;
    stdout.flush()
}

fn tell_news(script: &Script, told: &mut usize) {
    for departure in script.departures().iter().skip(*told) {
        tell(format_args!("{departure}"));
        *told += 1;
    }
}

fn verdict(script: &Script, told: &mut usize) -> Result<(), Failure> {
    tell_news(script, told);
    match script.departures().len() {
        0 => Ok(()),
        1 => Err(departed("once")),
        count => Err(departed(&format!("{count} times"))),
    }
}

fn departed(how_often: &str) -> Failure {
    Failure::Failed(Exit::PROTOCOL, format!("the client departed from the recording {how_often}").into())
}

fn tell(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "dsh-wire replay: {}", crate::terminal::Visible(&what.to_string()));
}
