//! What went by, on its way to threads that may be slow.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dsh_wire::line::DEFAULT_LIMIT;
use dsh_wire::recording::{Direction, What};

/// How much waits for one thread, in bytes.
const LIMIT: usize = 16 << 20;

/// What a piece costs beside its bytes.
const OVERHEAD: usize = 64;

/// What came within this time is taken at once: the fewer wakes, the less the conversation feels of us.
const NAP: Duration = Duration::from_millis(2);

/// A part of one stream.
pub(super) struct Piece {
    /// Since the recording began.
    pub(super) at: Duration,
    pub(super) direction: Direction,
    pub(super) what: Part,
}

pub(super) enum Part {
    Bytes(Vec<u8>),
    /// Bytes that found no room; whether a line ended with the last of them.
    Lost {
        bytes: u64,
        whole: bool,
    },
    /// The end of the stream.
    End,
}

/// A bounded queue of pieces. Who puts one in never waits for who takes it out.
#[derive(Default)]
pub(super) struct Spool {
    state: Mutex<State>,
    changed: Condvar,
    /// The taker sleeps and there is something for it.
    wanted: AtomicBool,
    /// How much the taker has done, in pieces of any size.
    done: AtomicU64,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Piece>,
    /// What they weigh; at most [`LIMIT`], losses and ends aside.
    weight: usize,
    asleep: bool,
    finished: bool,
}

impl Spool {
    fn push(&self, at: Duration, direction: Direction, bytes: &[u8]) {
        let mut state = self.lock();
        let weight = bytes.len() + OVERHEAD;
        if state.weight + weight > LIMIT {
            state.lose(at, direction, bytes);
        } else {
            state.weight += weight;
            state.pieces.push_back(Piece { at, direction, what: Part::Bytes(bytes.to_vec()) });
        }
        self.want(&mut state);
    }

    fn end(&self, at: Duration, direction: Direction) {
        let mut state = self.lock();
        state.pieces.push_back(Piece { at, direction, what: Part::End });
        self.want(&mut state);
    }

    fn want(&self, state: &mut State) {
        if std::mem::take(&mut state.asleep) {
            self.wanted.store(true, Ordering::Release);
        }
    }

    fn wake(&self) {
        if self.wanted.swap(false, Ordering::AcqRel) {
            self.changed.notify_one();
        }
    }

    /// Nothing will come any more.
    pub(super) fn finish(&self) {
        self.lock().finished = true;
        self.changed.notify_one();
    }

    /// All that has come since; waits for it. `None` after the end.
    pub(super) fn take(&self) -> Option<VecDeque<Piece>> {
        let mut state = self.lock();
        if state.pieces.is_empty() && !state.finished {
            while state.pieces.is_empty() && !state.finished {
                state.asleep = true;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let nap = self.changed.wait_timeout_while(state, NAP, |state| !state.finished);
            state = nap.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.weight = 0;
        let pieces = std::mem::take(&mut state.pieces);
        (!pieces.is_empty()).then_some(pieces)
    }

    /// For the taker: it has done something.
    pub(super) fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// How much the taker has done.
    pub(super) fn progress(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is whole at any moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes a loss, with the one before it where nothing of that stream came between.
    fn lose(&mut self, at: Duration, direction: Direction, lost: &[u8]) {
        let (more, ends) = (lost.len() as u64, lost.ends_with(b"\n"));
        match self.pieces.iter_mut().rev().find(|piece| piece.direction == direction) {
            Some(Piece { what: Part::Lost { bytes, whole }, .. }) => {
                *bytes += more;
                *whole = ends;
            }
            _ => self.pieces.push_back(Piece { at, direction, what: Part::Lost { bytes: more, whole: ends } }),
        }
    }
}

/// The entrance to all spools.
pub(super) struct Recorder {
    start: Instant,
    spools: Vec<Arc<Spool>>,
}

impl Recorder {
    pub(super) fn new(spools: Vec<Arc<Spool>>) -> Self {
        Self { start: Instant::now(), spools }
    }

    /// In microseconds, as a recording keeps it: the view tells the same time as the log.
    fn now(&self) -> Duration {
        let at = self.start.elapsed();
        Duration::new(at.as_secs(), at.subsec_micros() * 1000)
    }

    /// Copies a piece. [`wake`](Self::wake) when there is time.
    pub(super) fn push(&self, direction: Direction, bytes: &[u8]) {
        let at = self.now();
        self.spools.iter().for_each(|spool| spool.push(at, direction, bytes));
    }

    /// Wakes whoever sleeps and has something to do.
    pub(super) fn wake(&self) {
        self.spools.iter().for_each(|spool| spool.wake());
    }

    /// A stream has ended.
    pub(super) fn end(&self, direction: Direction) {
        let at = self.now();
        self.spools.iter().for_each(|spool| spool.end(at, direction));
        self.wake();
    }
}

/// Lines of one stream, from pieces.
#[derive(Default)]
pub(super) struct Lines {
    /// The beginning of a line.
    partial: Vec<u8>,
    /// Bytes that are missing and have not been told.
    missing: u64,
    /// The line that comes now is one of those missing.
    torn: bool,
}

impl Lines {
    pub(super) fn push(&mut self, part: &Part, mut see: impl FnMut(What)) {
        match part {
            Part::Bytes(bytes) => self.push_bytes(bytes, &mut see),
            Part::Lost { bytes, whole } => {
                self.lose_partial();
                self.missing += bytes;
                self.torn = !whole;
            }
            Part::End => self.end(see),
        }
    }

    /// Tells of what is left at the end of the stream.
    pub(super) fn end(&mut self, mut see: impl FnMut(What)) {
        self.tell_missing(&mut see);
        if !self.partial.is_empty() {
            see(What::Line { bytes: std::mem::take(&mut self.partial), eol: false });
        }
    }

    fn push_bytes(&mut self, bytes: &[u8], see: &mut impl FnMut(What)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = piece.strip_suffix(b"\n");
            match line {
                _ if self.torn => {
                    self.missing += piece.len() as u64;
                    self.torn = line.is_none();
                }
                Some(line) => {
                    self.tell_missing(see);
                    self.partial.extend_from_slice(line);
                    see(What::Line { bytes: std::mem::take(&mut self.partial), eol: true });
                }
                None => {
                    self.partial.extend_from_slice(piece);
                    if self.partial.len() > DEFAULT_LIMIT {
                        self.lose_partial();
                        self.torn = true;
                    }
                }
            }
        }
    }

    fn lose_partial(&mut self) {
        self.missing += std::mem::take(&mut self.partial).len() as u64;
    }

    fn tell_missing(&mut self, see: &mut impl FnMut(What)) {
        if self.missing > 0 {
            see(What::Lost(std::mem::take(&mut self.missing)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_of_whole_lines() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let bytes = |text: &str| Part::Bytes(text.into());
        for part in [
            bytes("one\ntw"),
            bytes("o\nthr"),
            Part::Lost { bytes: 10, whole: false },
            bytes("ee\nfour\n"),
            Part::Lost { bytes: 5, whole: true },
            bytes("six\nsev"),
            Part::End,
        ] {
            lines.push(&part, |line| {
                seen.push(match line {
                    What::Line { bytes, eol } => {
                        format!("{}{}", String::from_utf8_lossy(&bytes), if eol { "$" } else { "" })
                    }
                    What::Lost(bytes) => format!("-{bytes}"),
                });
            });
        }
        assert_eq!(seen, ["one$", "two$", "-16", "four$", "-5", "six$", "sev"]);
    }

    #[test]
    fn what_finds_no_room_is_told_in_its_place() {
        let spool = Spool::default();
        let half = vec![b'x'; LIMIT / 2];
        let line = [&half[..], b"\n"].concat();
        let (ours, theirs) = (Direction::ClientToServer, Direction::ServerToClient);
        for (direction, bytes) in [(ours, &half[..]), (theirs, &half), (ours, b"1\n"), (theirs, &line), (ours, b"2")] {
            spool.push(Duration::ZERO, direction, bytes);
        }
        spool.finish();
        let pieces = spool.take().expect("there are pieces");
        let lost = pieces.iter().map(|piece| match piece.what {
            Part::Lost { bytes, whole } => Some((piece.direction, bytes, whole)),
            _ => None,
        });
        let loss = (theirs, LIMIT as u64 + 1, true);
        assert_eq!(lost.collect::<Vec<_>>(), [None, Some(loss), None, None]);
        assert!(spool.take().is_none());
    }
}
