//! A runtime's process: its exit, its group, its stderr.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Child as StdChild;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

use super::launch::{Launch, SpawnError, Stderr};
use super::pump::Pump;
use super::tail::Tail;
use super::{SpawnFault, group, journal, pidfd};

const STDERR: Token = Token(Pump::FREE_TOKEN.0);
const EXIT: Token = Token(Pump::FREE_TOKEN.0 + 1);

/// What is read of stderr at a time.
const PIECE: usize = 16 << 10;

/// How often the process is looked at where its exit cannot be waited for.
const LOOK: Duration = Duration::from_millis(20);

/// What those that a process leaves behind in its group get between SIGTERM and SIGKILL.
const GROUP: Duration = Duration::from_millis(250);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// It is gone, and something else in this program has taken its status: `SIGCHLD` is ignored, for one.
    Unknown,
}

impl Exit {
    fn new(status: &WaitIdStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(number) => match name(number) {
                Some(name) => write!(f, "was killed by signal {number} ({name})"),
                None => write!(f, "was killed by signal {number}"),
            },
            Self::Unknown => f.write_str("is gone, with unknown status"),
        }
    }
}

/// The name of a signal that processes die of.
fn name(number: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 14] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
    ];
    NAMES.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| *name)
}

/// A process that we have started. It is a zombie at least until [`reap`](Self::reap), so that its id and that of its
/// group belong to nobody else while we may signal them.
#[derive(Debug)]
pub(super) struct Child {
    inner: StdChild,
    pid: Pid,
    /// It leads a group that is ended with it.
    own_group: bool,
    /// Readable once it has exited.
    pidfd: Option<OwnedFd>,
    exit: Option<Exit>,
    /// Its status has been taken: its id may be another's by now.
    reaped: bool,
    /// `None` once it has ended, or where it is not ours to read.
    stderr: Option<File>,
    stderr_ready: bool,
    tail: Tail,
    sink: Stderr,
}

/// The ends of a child's pipes that carry frames: write to the first, read from the second. Both do not block.
pub(super) type Pipes = (OwnedFd, OwnedFd);

impl Child {
    pub(super) fn spawn(launch: &Launch) -> Result<(Self, Pipes), SpawnError> {
        let mut inner = launch.command()?.spawn().map_err(|error| launch.diagnose(error))?;
        let pid = Pid::from_child(&inner);
        let (stdin, stdout, stderr) = (inner.stdin.take(), inner.stdout.take(), inner.stderr.take());
        // From here on an error drops the child, which ends it.
        let child = Self {
            inner,
            pid,
            own_group: launch.own_group,
            pidfd: pidfd::open(pid),
            exit: None,
            reaped: false,
            stderr: stderr.map(|stderr| OwnedFd::from(stderr).into()),
            stderr_ready: true,
            tail: Tail::default(),
            sink: launch.stderr.clone(),
        };
        let failed = |error: io::Error| launch.error(SpawnFault::System, Some(error));
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(failed(ErrorKind::BrokenPipe.into()));
        };
        let (stdin, stdout) = (OwnedFd::from(stdin), OwnedFd::from(stdout));
        let stderr = child.stderr.as_ref().map(File::as_fd);
        for pipe in [Some(stdin.as_fd()), Some(stdout.as_fd()), stderr].into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|errno| failed(errno.into()))?;
        }
        Ok((child, (stdin, stdout)))
    }

    /// Lets a pump's poll hear of the exit and of stderr.
    pub(super) fn register(&mut self, registry: &Registry) -> io::Result<()> {
        if let Some(stderr) = &self.stderr {
            registry.register(&mut SourceFd(&stderr.as_raw_fd()), STDERR, Interest::READABLE)?;
        }
        if let Some(pidfd) = &self.pidfd {
            registry.register(&mut SourceFd(&pidfd.as_raw_fd()), EXIT, Interest::READABLE)?;
        }
        Ok(())
    }

    /// Notes what the pump heard. Nothing is read yet.
    pub(super) fn note(&mut self, event: &Event) {
        match event.token() {
            STDERR => self.stderr_ready = true,
            EXIT => _ = self.look(),
            _ => {}
        }
    }

    /// How long a wait may last at most, so that nothing is missed that no event tells.
    pub(super) fn longest_wait(&self) -> Option<Duration> {
        if self.stderr.is_some() && self.stderr_ready {
            Some(Duration::ZERO)
        } else if self.pidfd.is_none() && self.exit.is_none() {
            Some(LOOK)
        } else {
            None
        }
    }

    /// Reads stderr, a bounded number of bytes. Says whether any came.
    pub(super) fn read_stderr(&mut self) -> bool {
        self.stderr_ready && self.read_stderr_pieces()
    }

    /// Takes much of the stack, and nearly always there is nothing to read.
    #[inline(never)]
    fn read_stderr_pieces(&mut self) -> bool {
        let mut came = false;
        for _ in 0..16 {
            let Some(stderr) = self.stderr.as_mut().filter(|_| self.stderr_ready) else { break };
            let mut piece = [0; PIECE];
            match stderr.read(&mut piece) {
                Ok(0) => self.stderr = None,
                Ok(len) => {
                    let piece = piece.get(..len).unwrap_or_default();
                    came = true;
                    self.tail.push(piece);
                    if let Stderr::Callback(callback) = &self.sink {
                        Arc::clone(callback)(piece);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.stderr_ready = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.stderr = None,
            }
        }
        came
    }

    /// Reads stderr to its end, or until nothing has come for `quiet`, but not for longer than twice that. A callback
    /// that panics over these last words gets no more of them: whoever asks is told of the end all the same.
    pub(super) fn finish_stderr(&mut self, quiet: Duration) {
        let start = Instant::now();
        loop {
            let left = (quiet * 2).saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            self.stderr_ready = true;
            let came = catch_unwind(AssertUnwindSafe(|| self.read_stderr())).unwrap_or_else(|_| {
                self.sink = Stderr::Tail;
                true
            });
            if came {
                continue;
            }
            let Some(stderr) = &self.stderr else { break };
            let quiet = Timespec::try_from(quiet.min(left)).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
            if rustix::event::poll(&mut [PollFd::new(stderr, PollFlags::IN)], Some(&quiet)) == Ok(0) {
                break;
            }
        }
    }

    pub(super) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// How it ended, if it has.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    pub(super) fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Looks whether it has exited, and leaves its status where it is.
    pub(super) fn look(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match rustix::process::waitid(WaitId::Pid(self.pid), options) {
                Ok(status) => {
                    self.exit = status.map(|status| Exit::new(&status));
                    self.exit.into_iter().for_each(journal::exited);
                }
                Err(Errno::CHILD) => {
                    self.exit = Some(Exit::Unknown);
                    self.reaped = true;
                }
                Err(_) => {}
            }
        }
        self.exit
    }

    /// Waits for its exit, and no longer than that.
    pub(super) fn wait(&mut self, limit: Duration) -> Option<Exit> {
        let start = Instant::now();
        loop {
            let left = limit.saturating_sub(start.elapsed());
            if self.look().is_some() || left.is_zero() {
                return self.exit;
            }
            match &self.pidfd {
                Some(pidfd) => {
                    let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
                    // An error is an interruption at worst; the loop looks again.
                    let _ = rustix::event::poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&left));
                }
                None => thread::sleep(left.min(LOOK)),
            }
        }
    }

    /// Signals it, and with it its group. Nothing happens where its id may belong to another.
    pub(super) fn signal(&self, signal: Signal) {
        if self.reaped {
            return;
        }
        // It fails only where nobody is left to hear it.
        let _ = match self.own_group {
            true => rustix::process::kill_process_group(self.pid, signal),
            false => rustix::process::kill_process(self.pid, signal),
        };
    }

    /// Waits a moment for its exit, then kills it and its group.
    pub(super) fn abandon(&mut self) {
        if !self.reaped {
            self.wait(Duration::from_millis(250));
            self.reap(Duration::from_secs(1));
        }
    }

    /// After its exit: lets what is left of its group end in order, for a moment. Says how many there were.
    pub(super) fn end_group(&mut self) -> usize {
        if !self.own_group || self.reaped || self.exit.is_none() {
            return 0;
        }
        let left_behind = group::living(self.pid);
        if left_behind > 0 {
            self.signal(Signal::TERM);
            let start = Instant::now();
            while start.elapsed() < GROUP && group::living(self.pid) > 0 {
                thread::sleep(LOOK / 4);
            }
        }
        left_behind
    }

    /// Takes its status after its exit, once what is left of its group has been killed. What does not die of SIGKILL
    /// within `limit` is left to the kernel.
    pub(super) fn reap(&mut self, limit: Duration) {
        if self.reaped {
            return;
        }
        if self.own_group || self.exit.is_none() {
            self.signal(Signal::KILL);
        }
        if self.wait(limit).is_some() && !self.reaped {
            let _ = self.inner.try_wait();
            self.reaped = true;
        }
    }
}

/// By now its stdin should be closed. It gets 250 ms to see that.
impl Drop for Child {
    fn drop(&mut self) {
        self.abandon();
    }
}
