//! One direction: bytes as they come, and the ends of the stream.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use dsh_wire::recording::Direction;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::spool::Recorder;

/// What a pipe holds.
const PIECE: usize = 64 << 10;

/// How long a stream may be quiet, once the runtime has exited, before nothing more is expected of whoever still holds
/// it.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// How long such a one is listened to in all.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// The threads that carry.
pub(super) struct Flows {
    /// Closed when the runtime has exited.
    alive: UnixStream,
    exited: Arc<UnixStream>,
    /// Which flow has come to its end.
    ended: Receiver<Direction>,
    end: Sender<Direction>,
}

impl Flows {
    pub(super) fn new() -> io::Result<Self> {
        let (alive, exited) = UnixStream::pair()?;
        let (end, ended) = mpsc::channel();
        Ok(Self { alive, exited: Arc::new(exited), ended, end })
    }

    /// From now on what comes from one goes to the other. When one of them ends, so does the other.
    pub(super) fn start(
        &self,
        from: impl Into<OwnedFd>,
        to: impl Into<OwnedFd>,
        direction: Direction,
        recorder: &Arc<Recorder>,
    ) -> io::Result<()> {
        let (exited, end, recorder) = (Arc::clone(&self.exited), self.end.clone(), Arc::clone(recorder));
        let flow = Flow { from: File::from(from.into()), to: File::from(to.into()), exited, direction };
        thread::Builder::new().name(direction.name().into()).spawn(move || {
            flow.carry(&recorder);
            recorder.end(direction);
            let _ = end.send(direction);
        })?;
        Ok(())
    }

    /// The runtime has exited: carries what it has written. Its stdout waits for the reader; its stderr, which clients may
    /// read late or never, is given up after `patience`. Whoever was left behind with the streams is listened to until he
    /// is quiet, and for [`LEFT_BEHIND`] at most.
    pub(super) fn drain(self, patience: Duration) {
        drop(self.alive);
        let deadline = Instant::now() + patience;
        let mut left = vec![Direction::ServerToClient, Direction::Stderr];
        while let Some(next) = left.first() {
            let ended = match next {
                Direction::Stderr => self.ended.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
                _ => self.ended.recv().ok(),
            };
            let Some(ended) = ended else { return };
            left.retain(|direction| *direction != ended);
        }
    }
}

struct Flow {
    from: File,
    to: File,
    exited: Arc<UnixStream>,
    direction: Direction,
}

/// What there is to do.
enum Turn {
    Read,
    /// The runtime has exited.
    Exited,
    /// Nobody reads any more, or nobody writes.
    Over,
}

/// What is left to do when the runtime has exited.
struct Rest {
    /// What it has written and nobody has read, in bytes.
    owed: u64,
    deadline: Instant,
}

impl Flow {
    /// Carries until either end is gone, and closes both then.
    fn carry(mut self, recorder: &Recorder) {
        let mut buf = vec![0; PIECE];
        let mut rest: Option<Rest> = None;
        loop {
            match self.wait(rest.is_some()) {
                Ok(Turn::Read) => {}
                Ok(Turn::Exited) => {
                    let owed = rustix::io::ioctl_fionread(&self.from).unwrap_or(0);
                    rest = Some(Rest { owed, deadline: Instant::now() + LEFT_BEHIND });
                    continue;
                }
                Ok(Turn::Over) | Err(_) => return,
            }
            if rest.as_ref().is_some_and(|rest| rest.owed == 0 && rest.deadline <= Instant::now()) {
                return;
            }
            let bytes = match self.from.read(&mut buf) {
                Ok(0) => return,
                Ok(len) => buf.get(..len).unwrap_or_default(),
                Err(error) if is_passing(&error) => continue,
                // A terminal that has hung up, for one.
                Err(_) => return,
            };
            if let Some(rest) = &mut rest {
                rest.owed = rest.owed.saturating_sub(bytes.len() as u64);
            }
            // Before they are passed on, so that no answer is recorded before its question. It is a copy into memory.
            recorder.push(self.direction, bytes);
            let outcome = write_all(&mut self.to, bytes);
            recorder.wake();
            if outcome.is_err() {
                return;
            }
        }
    }

    /// Waits until there is something to do. It is over when the reader of the other side has gone, too: then the writer
    /// of this side is to learn it at once, as it would without us.
    fn wait(&self, has_exited: bool) -> io::Result<Turn> {
        let mut fds = [
            PollFd::new(&self.from, PollFlags::IN),
            PollFd::new(&self.to, PollFlags::empty()),
            PollFd::new(&*self.exited, PollFlags::IN),
        ];
        let (asked, timeout) = if has_exited { (2, Some(&QUIET)) } else { (3, None) };
        let ready = loop {
            match rustix::event::poll(fds.get_mut(..asked).unwrap_or_default(), timeout) {
                Ok(ready) => break ready,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let [_, to, exited] = fds.map(|fd| fd.revents());
        Ok(if ready == 0 || to.intersects(PollFlags::ERR | PollFlags::HUP) {
            Turn::Over
        } else if !exited.is_empty() {
            Turn::Exited
        } else {
            Turn::Read
        })
    }
}

/// In whatever mode the descriptor is: others may share it, so it is left as it is.
fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(len) => bytes = bytes.get(len..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(&*to, PollFlags::OUT)];
                let _ = rustix::event::poll(&mut fds, None);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}
