//! One direction: bytes as they come, and the ends of the stream.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use dsh_wire::recording::Direction;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::spool::Recorder;

/// What a pipe holds.
const PIECE: usize = 64 << 10;

/// The threads that carry what comes out of the runtime.
pub(super) struct Flows {
    /// One number a flow: odd while it carries a piece, and more with each.
    steps: Vec<Arc<AtomicU64>>,
    /// One word a flow, at its end.
    ended: Receiver<()>,
    end: Sender<()>,
}

impl Flows {
    pub(super) fn new() -> Self {
        let (end, ended) = mpsc::channel();
        Self { steps: Vec::new(), ended, end }
    }

    /// From now on what comes from one goes to the other. When one of them ends, so does the other.
    pub(super) fn start(
        &mut self,
        from: impl Into<OwnedFd>,
        to: impl Into<OwnedFd>,
        direction: Direction,
        recorder: &Arc<Recorder>,
    ) -> io::Result<()> {
        let steps = Arc::new(AtomicU64::new(0));
        self.steps.push(Arc::clone(&steps));
        let (from, to, end) = (File::from(from.into()), File::from(to.into()), self.end.clone());
        let recorder = Arc::clone(recorder);
        thread::Builder::new().name(direction.name().into()).spawn(move || {
            carry(from, to, direction, &recorder, &steps);
            recorder.end(direction);
            let _ = end.send(());
        })?;
        Ok(())
    }

    /// Waits for the end of all, or until none has carried anything for a time: somebody whom the runtime has left behind
    /// may hold the pipes open. A flow that waits for its reader is waited for.
    pub(super) fn drain(&self, quiet: Duration) {
        let look = || -> Vec<u64> { self.steps.iter().map(|steps| steps.load(Ordering::Acquire)).collect() };
        let (mut left, mut before) = (self.steps.len(), look());
        while left > 0 {
            if self.ended.recv_timeout(quiet).is_ok() {
                left -= 1;
                continue;
            }
            let now = look();
            if now == before && now.iter().all(|steps| steps % 2 == 0) {
                return;
            }
            before = now;
        }
    }
}

/// Carries until either end is gone, and closes both then.
fn carry(mut from: File, mut to: File, direction: Direction, recorder: &Recorder, steps: &AtomicU64) {
    let mut buf = vec![0; PIECE];
    while wait_for_either(&from, &to).is_ok_and(|gone| !gone) {
        let bytes = match from.read(&mut buf) {
            Ok(0) => return,
            Ok(len) => buf.get(..len).unwrap_or_default(),
            Err(error) if is_passing(&error) => continue,
            // A terminal that has hung up, for one.
            Err(_) => return,
        };
        steps.fetch_add(1, Ordering::AcqRel);
        // Before they are passed on, so that no answer is recorded before its question. It is a copy into memory.
        recorder.push(direction, bytes);
        let outcome = write_all(&mut to, bytes);
        recorder.wake();
        steps.fetch_add(1, Ordering::AcqRel);
        if outcome.is_err() {
            return;
        }
    }
}

/// Waits until there is something to read. Whether the reader of the other side has gone meanwhile: then the writer of
/// this side is to learn it at once, as it would without us.
fn wait_for_either(from: &File, to: &File) -> io::Result<bool> {
    let mut fds = [PollFd::new(from, PollFlags::IN), PollFd::new(to, PollFlags::empty())];
    loop {
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let [_, to] = fds;
    Ok(to.revents().intersects(PollFlags::ERR | PollFlags::HUP))
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
