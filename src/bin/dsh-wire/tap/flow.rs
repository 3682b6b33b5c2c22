//! One direction: bytes as they come, and the ends of the stream.
//!
//! While the runtime runs, a stream ends when either side closes it. Once the runtime has ended:
//!
//! 1. What it had written is passed on. Its stdout waits for the client as long as it takes; its stderr, which clients may
//!    never read, until the client has taken nothing for [`PATIENCE`], and so does its stdout where a signal to us had
//!    asked for the end: whoever waits for us then may not be reading.
//! 2. Then whoever was left behind with the stream is listened to until he is quiet for [`QUIET`], for [`LEFT_BEHIND`] at
//!    most.
//! 3. A signal to us ends both at once.
//!
//! What there is then and was not passed on goes to the log. [`End`] says how much that was, and whether more may come.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dsh_wire::recording::Direction;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

use super::PATIENCE;
use super::spool::Recorder;
use crate::output::pipe_again;

/// What a pipe holds.
const PIECE: usize = 64 << 10;

const QUIET: Duration = Duration::from_millis(250);

const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// Something that happens once, and that `poll` sees.
pub(super) struct Flag {
    /// Closed when it has happened.
    pending: Mutex<Option<PipeWriter>>,
    seen: PipeReader,
}

impl Flag {
    fn new() -> io::Result<Self> {
        let (seen, pending) = io::pipe()?;
        Ok(Self { pending: Mutex::new(Some(pending)), seen })
    }

    /// Returns whether it had happened before.
    pub(super) fn raise(&self) -> bool {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).take().is_none()
    }
}

/// What all flows look at beside their streams.
pub(super) struct Life {
    /// The runtime has ended.
    pub(super) ended: Flag,
    /// Nobody is to be waited for any more.
    pub(super) hurry: Flag,
    /// A signal had asked the runtime to end.
    pub(super) asked: AtomicBool,
}

impl Life {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { ended: Flag::new()?, hurry: Flag::new()?, asked: AtomicBool::new(false) })
    }
}

/// The threads that carry.
pub(super) struct Flows {
    life: Arc<Life>,
    ended: Receiver<End>,
    end: Sender<End>,
}

/// How a stream has ended.
pub(super) struct End {
    pub(super) direction: Direction,
    /// Bytes that were not passed on.
    pub(super) unread: u64,
    /// Somebody whom the runtime has left behind may still write.
    pub(super) open: bool,
}

impl Flows {
    pub(super) fn new(life: Arc<Life>) -> Self {
        let (end, ended) = mpsc::channel();
        Self { life, ended, end }
    }

    /// From now on what comes from one goes to the other. When one of them ends, so does the other.
    pub(super) fn start(
        &self,
        from: impl Into<OwnedFd>,
        to: impl Into<OwnedFd>,
        direction: Direction,
        recorder: &Arc<Recorder>,
    ) -> io::Result<()> {
        let (end, recorder) = (self.end.clone(), Arc::clone(recorder));
        let watch = Watch { direction, life: Arc::clone(&self.life), rest: None };
        let to = File::from(to.into());
        let again = pipe_again(to.as_fd());
        let (to_never_waits, to) = (again.is_some(), again.unwrap_or(to));
        let flow = Flow { from: File::from(from.into()), to, to_never_waits, watch, recorder: Arc::clone(&recorder) };
        thread::Builder::new().name(direction.name().into()).spawn(move || {
            let ended = flow.carry();
            recorder.end(direction);
            let _ = end.send(ended);
        })?;
        Ok(())
    }

    /// The runtime has ended: waits for the ends of its two streams.
    pub(super) fn drain(self) -> impl Iterator<Item = End> {
        let Self { life, ended, end } = self;
        // Only those who carry can tell of an end now: it does not hang on one that has panicked.
        drop(end);
        life.ended.raise();
        ended.into_iter().filter(|end| end.direction != Direction::ClientToServer).take(2)
    }
}

struct Flow {
    from: File,
    to: File,
    /// A write that finds no room says so.
    to_never_waits: bool,
    watch: Watch,
    recorder: Arc<Recorder>,
}

impl Flow {
    /// Carries until either end is gone, and closes both then.
    fn carry(mut self) -> End {
        let mut buf = vec![0; PIECE];
        loop {
            match self.wait_for_input() {
                Wait::Ready => {}
                Wait::Over => return self.end(0, false),
                Wait::TimedOut | Wait::Hurry => return self.give_up(0, &mut buf),
            }
            let bytes = match self.from.read(&mut buf) {
                Ok(0) => return self.end(0, false),
                Ok(len) => buf.get(..len).unwrap_or_default(),
                Err(error) if is_passing(&error) => continue,
                // A terminal that has hung up, for one.
                Err(_) => return self.end(0, false),
            };
            // Before they are passed on, so that no answer is recorded before its question. It is a copy into memory.
            self.recorder.push(self.watch.direction, bytes);
            self.watch.settle(bytes.len());
            let (wait, left) = self.pass(bytes);
            self.recorder.wake();
            match wait {
                Wait::Ready => {}
                Wait::Over => return self.end(0, false),
                Wait::TimedOut | Wait::Hurry => return self.give_up(left, &mut buf),
            }
        }
    }

    /// Waits for something to read. It is over when the reader of the other side has gone, too: then the writer of this
    /// side is to learn it at once, as it would without us.
    fn wait_for_input(&mut self) -> Wait {
        loop {
            let left = self.watch.time_left();
            let streams = [(&self.from, PollFlags::IN), (&self.to, PollFlags::empty())];
            let timeout = left.map(|left| left.min(QUIET));
            let Some((wait, [from, to])) = self.watch.poll(&self.from, streams, timeout) else { continue };
            return match wait {
                _ if to.intersects(PollFlags::ERR | PollFlags::HUP) => Wait::Over,
                // Whoever it is, he does not come to an end.
                Wait::Ready if left == Some(Duration::ZERO) && from.contains(PollFlags::IN) => Wait::TimedOut,
                wait => wait,
            };
        }
    }

    /// Passes bytes on; if not all of them, says how many are left. No write waits, so that whatever else there is to wait
    /// for is seen.
    fn pass(&mut self, mut bytes: &[u8]) -> (Wait, u64) {
        let mut ask = !self.to_never_waits;
        while !bytes.is_empty() {
            if ask {
                // It may take long, and that is when people look.
                self.recorder.wake();
                match self.watch.poll(&self.from, [(&self.to, PollFlags::OUT)], self.watch.patience()) {
                    None => continue,
                    Some((Wait::Ready, _)) => {}
                    Some((wait, _)) => return (wait, bytes.len() as u64),
                }
            }
            // Where there is room, it is for so much.
            let most = if self.to_never_waits { bytes.len() } else { PIPE_BUF };
            match self.to.write(bytes.get(..most).unwrap_or(bytes)) {
                Ok(len) => {
                    bytes = bytes.get(len..).unwrap_or_default();
                    ask = !self.to_never_waits;
                }
                Err(error) if is_passing(&error) => ask = true,
                Err(_) => return (Wait::Over, 0),
            }
        }
        (Wait::Ready, 0)
    }

    /// Waits for nobody any more: what there is goes to the log only.
    fn give_up(mut self, left: u64, buf: &mut [u8]) -> End {
        let mut owed = rustix::io::ioctl_fionread(&self.from).unwrap_or(0);
        let mut unread = left;
        while owed > 0 {
            let most = usize::try_from(owed).unwrap_or(usize::MAX).min(buf.len());
            let len = match self.from.read(buf.get_mut(..most).unwrap_or_default()) {
                Err(error) if is_passing(&error) => continue,
                Ok(0) | Err(_) => break,
                Ok(len) => len,
            };
            self.recorder.push(self.watch.direction, buf.get(..len).unwrap_or_default());
            owed = owed.saturating_sub(len as u64);
            unread += len as u64;
        }
        let mut fds = [PollFd::new(&self.from, PollFlags::empty())];
        let open = matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(0));
        self.end(unread, open)
    }

    fn end(self, unread: u64, open: bool) -> End {
        End { direction: self.watch.direction, unread, open }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

/// What a flow looks at beside its streams, and what it has seen.
struct Watch {
    direction: Direction,
    life: Arc<Life>,
    /// Once the runtime is known to have ended.
    rest: Option<Rest>,
}

/// What is left to do then.
struct Rest {
    /// What had been written and nobody has read, in bytes.
    owed: u64,
    /// Until when whoever was left behind is listened to. It counts from when nothing is owed any more.
    until: Option<Instant>,
}

/// What was waited for.
enum Wait {
    /// There is something to read, or room to write.
    Ready,
    /// It did not come in time.
    TimedOut,
    /// It will not come.
    Over,
    /// A signal came.
    Hurry,
}

impl Watch {
    /// Waits for one of these, and tells what was said of each. `None` where the runtime has just ended, or something else
    /// came between.
    fn poll<const N: usize>(
        &mut self,
        from: &File,
        streams: [(&File, PollFlags); N],
        timeout: Option<Duration>,
    ) -> Option<(Wait, [PollFlags; N])> {
        let mut fds: Vec<_> = streams.iter().map(|(file, events)| PollFd::new(*file, *events)).collect();
        fds.push(PollFd::new(&self.life.hurry.seen, PollFlags::empty()));
        if self.rest.is_none() {
            fds.push(PollFd::new(&self.life.ended.seen, PollFlags::empty()));
        }
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let ready = match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) => return None,
            outcome => outcome,
        };
        let said = |at: usize| fds.get(at).map_or(PollFlags::empty(), PollFd::revents);
        let (hurry, ended) = (!said(N).is_empty(), !said(N + 1).is_empty());
        let wait = match ready {
            Err(_) => Wait::Over,
            Ok(0) => Wait::TimedOut,
            // A runtime that has ended reads no more.
            Ok(_) if (hurry || ended) && self.direction == Direction::ClientToServer => Wait::Over,
            Ok(_) if hurry => Wait::Hurry,
            Ok(_) if ended => {
                self.rest = Some(Rest { owed: rustix::io::ioctl_fionread(from).unwrap_or(0), until: None });
                return None;
            }
            Ok(_) => Wait::Ready,
        };
        Some((wait, std::array::from_fn(said)))
    }

    /// How long whoever was left behind is still listened to, if it has come to that.
    fn time_left(&mut self) -> Option<Duration> {
        let rest = self.rest.as_mut().filter(|rest| rest.owed == 0)?;
        let now = Instant::now();
        Some(rest.until.get_or_insert(now + LEFT_BEHIND).saturating_duration_since(now))
    }

    /// How long the client may take nothing.
    fn patience(&self) -> Option<Duration> {
        let bounded = self.direction == Direction::Stderr || self.life.asked.load(Ordering::Acquire);
        (self.rest.is_some() && bounded).then_some(PATIENCE)
    }

    /// So many bytes have been read.
    fn settle(&mut self, len: usize) {
        if let Some(rest) = &mut self.rest {
            rest.owed = rest.owed.saturating_sub(len as u64);
        }
    }
}
