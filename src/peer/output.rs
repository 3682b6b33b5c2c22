//! Bytes on their way out, kept by frame so that one can be withdrawn before its first byte has left.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Frames that cannot be withdrawn share a segment up to this size.
const SEGMENT: usize = 64 << 10;

/// So many empty segments are not worth the work of closing the ranks.
const EMPTIED: usize = 16;

/// A point in the output: everything that was queued before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark(u64);

/// The frame of one call in the output: where its segment starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameId(u64);

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Strictly ascending by `start`. Only the front one may have had bytes consumed. An empty one is what a withdrawn
    /// frame left between two others; neither the first nor the last is empty, and no more than `EMPTIED` and a half of
    /// them are.
    segments: VecDeque<Segment>,
    /// How many of `segments` are empty.
    emptied: usize,
    /// Bytes of the front segment that have left; 0 unless there is one.
    head: usize,
    /// Bytes that were ever queued, withdrawn ones included: where the next frame starts.
    queued: u64,
    /// Bytes that have not left.
    len: usize,
    /// The allocation of a finished segment, to be used again.
    spare: Vec<u8>,
}

#[derive(Debug)]
struct Segment {
    /// How many bytes had been queued before its first one.
    start: u64,
    bytes: Vec<u8>,
    /// Holds the frame of one call and nothing else.
    withdrawable: bool,
    /// Is being written somewhere, so its first byte may have left.
    committed: bool,
}

impl Queue {
    /// The bytes to write next: whole frames or the rest of one.
    pub(super) fn front(&self) -> &[u8] {
        self.segments.front().and_then(|segment| segment.bytes.get(self.head..)).unwrap_or_default()
    }

    /// The segments in order, for a vectored write.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let head = self.head;
        self.segments
            .iter()
            .enumerate()
            .map(move |(index, segment)| segment.bytes.get(if index == 0 { head } else { 0 }..).unwrap_or_default())
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Declares that the first `n` bytes have left.
    pub(super) fn consume(&mut self, n: usize) {
        let mut left = n.min(self.len);
        self.len -= left;
        while let Some(front) = self.segments.front() {
            let rest = front.bytes.len() - self.head;
            if left < rest {
                self.head += left;
                return;
            }
            left -= rest;
            self.head = 0;
            if let Some(mut done) = self.segments.pop_front() {
                self.emptied -= usize::from(done.bytes.is_empty());
                done.bytes.clear();
                if done.bytes.capacity() <= SEGMENT * 2 {
                    self.spare = done.bytes;
                }
            }
        }
    }

    /// Where a frame that will not be withdrawn can be appended with `write`, which returns how much it appended.
    pub(super) fn append<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<usize, E>) -> Result<(), E> {
        // A frame that was withdrawn behind the last segment leaves a gap, which no segment may hold.
        let fits = |back: &&mut Segment| {
            !back.withdrawable
                && !back.committed
                && back.bytes.len() < SEGMENT
                && back.start + back.bytes.len() as u64 == self.queued
        };
        match self.segments.back_mut().filter(fits) {
            Some(back) => {
                let len = write(&mut back.bytes)?;
                self.len += len;
                self.queued += len as u64;
            }
            None => {
                self.append_segment(false, write)?;
            }
        }
        Ok(())
    }

    /// Appends the frame of a call, in a segment of its own.
    pub(super) fn append_withdrawable<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<usize, E>,
    ) -> Result<FrameId, E> {
        self.append_segment(true, write)
    }

    fn append_segment<E>(
        &mut self,
        withdrawable: bool,
        write: impl FnOnce(&mut Vec<u8>) -> Result<usize, E>,
    ) -> Result<FrameId, E> {
        let mut bytes = core::mem::take(&mut self.spare);
        match write(&mut bytes) {
            Ok(len) => {
                let start = self.queued;
                self.queued += len as u64;
                self.len += len;
                self.segments.push_back(Segment { start, bytes, withdrawable, committed: false });
                Ok(FrameId(start))
            }
            Err(error) => {
                self.spare = bytes;
                Err(error)
            }
        }
    }

    /// Takes a frame back if none of its bytes has left; says whether it did.
    pub(super) fn withdraw(&mut self, frame: FrameId) -> bool {
        let Ok(index) = self.segments.binary_search_by_key(&frame.0, |segment| segment.start) else { return false };
        if index == 0 && self.head > 0 {
            return false;
        }
        let Some(segment) = self.segments.get_mut(index).filter(|segment| !segment.committed) else { return false };
        self.len -= segment.bytes.len();
        segment.bytes = Vec::new();
        self.emptied += 1;
        // An emptied segment in the middle keeps its place until its neighbours have gone, or too many are empty: a peer
        // that does not read must not make calls that are given up add up.
        while self.segments.back().is_some_and(|back| back.bytes.is_empty()) {
            self.segments.pop_back();
            self.emptied -= 1;
        }
        while self.segments.front().is_some_and(|front| front.bytes.is_empty()) {
            self.segments.pop_front();
            self.emptied -= 1;
        }
        if self.emptied > EMPTIED && self.emptied > self.segments.len() / 2 {
            self.segments.retain(|segment| !segment.bytes.is_empty());
            self.emptied = 0;
        }
        true
    }

    /// Declares that the front frame is about to leave: it is not withdrawn any more.
    #[cfg(feature = "stdio")]
    fn commit(&mut self) -> &[u8] {
        if let Some(front) = self.segments.front_mut() {
            front.committed = true;
        }
        self.front()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.queued)
    }

    pub(super) fn is_flushed(&self, mark: Mark) -> bool {
        self.segments.front().is_none_or(|front| front.start + self.head as u64 >= mark.0)
    }

    /// Drops all that has not left.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.emptied = 0;
        self.head = 0;
        self.len = 0;
    }
}

/// The bytes that wait to be written, from [`Peer::outgoing`](super::Peer::outgoing): look, write, then
/// [`consume`](Self::consume) what was taken.
#[derive(Debug)]
pub struct Output<'a>(pub(super) &'a mut Queue);

impl Output<'_> {
    /// The bytes to write next. Empty only when there are none at all; there may be more behind them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.front()
    }

    /// All bytes to write, in pieces, for a vectored write.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.0.chunks().filter(|chunk| !chunk.is_empty())
    }

    /// As [`bytes`](Self::bytes), for a write elsewhere that ends with [`consume`](Self::consume) later: none of them
    /// is withdrawn in between.
    #[cfg(feature = "stdio")]
    pub(crate) fn commit(&mut self) -> &[u8] {
        self.0.commit()
    }

    /// How many bytes wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Declares that the first `n` bytes have been written; no more than there are.
    pub fn consume(self, n: usize) {
        self.0.consume(n);
    }
}
