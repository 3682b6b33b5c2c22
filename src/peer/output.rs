//! Bytes on their way out, kept by frame so that one can be withdrawn before its first byte has left.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The size of a segment that frames share which cannot be withdrawn.
const SEGMENT: usize = 64 << 10;

/// So much of it is used before the next one is begun: a small frame does not make it grow.
const FILLED: usize = SEGMENT - (8 << 10);

/// So many allocations of finished segments are kept: the next ones need not be asked of the system, nor cleared by it.
const SPARES: usize = 8;

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
    /// The allocations of finished segments, to be used again.
    spares: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Segment {
    /// How many bytes had been queued before its first one.
    start: u64,
    bytes: Vec<u8>,
    /// Holds the frame of one call and nothing else.
    withdrawable: bool,
    /// Is being written elsewhere, so its first byte may have left. Only the front one, and `bytes` is empty meanwhile.
    lent: bool,
}

impl Segment {
    /// Whether it is what a withdrawn frame left.
    fn is_emptied(&self) -> bool {
        self.bytes.is_empty() && !self.lent
    }
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
            if let Some(done) = self.segments.pop_front() {
                self.emptied -= usize::from(done.bytes.is_empty());
                self.keep(done.bytes);
            }
        }
    }

    /// Where a frame that will not be withdrawn can be appended with `write`, which returns how much it appended.
    pub(super) fn append<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<usize, E>) -> Result<(), E> {
        // A frame that was withdrawn behind the last segment leaves a gap, which no segment may hold.
        let fits = |back: &&mut Segment| {
            !back.withdrawable
                && !back.lent
                && back.bytes.len() < FILLED
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
        let mut bytes = self.spares.pop().unwrap_or_default();
        match write(&mut bytes) {
            Ok(len) => {
                let start = self.queued;
                self.queued += len as u64;
                self.len += len;
                self.segments.push_back(Segment { start, bytes, withdrawable, lent: false });
                Ok(FrameId(start))
            }
            Err(error) => {
                self.keep(bytes);
                Err(error)
            }
        }
    }

    /// Keeps the allocation of a segment that is done with, unless there are enough, or it is large.
    fn keep(&mut self, mut bytes: Vec<u8>) {
        if (1..=SEGMENT * 2).contains(&bytes.capacity()) && self.spares.len() < SPARES {
            bytes.clear();
            self.spares.push(bytes);
        }
    }

    /// Takes a frame back if none of its bytes has left; says whether it did.
    pub(super) fn withdraw(&mut self, frame: FrameId) -> bool {
        let Ok(index) = self.segments.binary_search_by_key(&frame.0, |segment| segment.start) else { return false };
        if index == 0 && self.head > 0 {
            return false;
        }
        let Some(segment) = self.segments.get_mut(index).filter(|segment| !segment.lent) else { return false };
        self.len -= segment.bytes.len();
        segment.bytes = Vec::new();
        self.emptied += 1;
        // An emptied segment in the middle keeps its place until its neighbours have gone, or too many are empty: a peer
        // that does not read must not make calls that are given up add up.
        while self.segments.back().is_some_and(Segment::is_emptied) {
            self.segments.pop_back();
            self.emptied -= 1;
        }
        while self.segments.front().is_some_and(Segment::is_emptied) {
            self.segments.pop_front();
            self.emptied -= 1;
        }
        if self.emptied > EMPTIED && self.emptied > self.segments.len() / 2 {
            self.segments.retain(|segment| !segment.is_emptied());
            self.emptied = 0;
        }
        true
    }

    /// Takes out the bytes of the front segment, to be written elsewhere. Until they are given back nothing is consumed.
    #[cfg(feature = "stdio")]
    fn lend(&mut self) -> Lent {
        let bytes = self.segments.front_mut().map(|front| {
            front.lent = true;
            core::mem::take(&mut front.bytes)
        });
        Lent { bytes: bytes.unwrap_or_default(), head: self.head }
    }

    /// Puts them back, and declares that the first `n` have left.
    #[cfg(feature = "stdio")]
    fn give_back(&mut self, lent: Lent, n: usize) {
        // It is gone where all was dropped meanwhile.
        if let Some(front) = self.segments.front_mut().filter(|front| front.lent) {
            front.bytes = lent.bytes;
            front.lent = false;
            self.consume(n);
        }
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

/// Bytes that are written elsewhere.
#[cfg(feature = "stdio")]
#[derive(Debug)]
pub(crate) struct Lent {
    bytes: Vec<u8>,
    head: usize,
}

#[cfg(feature = "stdio")]
impl Lent {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.head..).unwrap_or_default()
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

    /// Takes bytes to write next out, for a write elsewhere that ends with [`give_back`](Self::give_back): none of them
    /// is withdrawn in between. Until then [`bytes`](Self::bytes) has nothing to say.
    #[cfg(feature = "stdio")]
    pub(crate) fn lend(&mut self) -> Lent {
        self.0.lend()
    }

    /// Puts them back; the first `n` have been written.
    #[cfg(feature = "stdio")]
    pub(crate) fn give_back(self, lent: Lent, n: usize) {
        self.0.give_back(lent, n);
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

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn write(len: usize) -> impl FnOnce(&mut Vec<u8>) -> Result<usize, ()> {
        move |out| {
            out.extend(vec![b'x'; len]);
            Ok(len)
        }
    }

    /// Takes all bytes out; returns how many segments held them.
    fn drain(queue: &mut Queue) -> usize {
        let mut segments = 0;
        while queue.len() > 0 {
            segments += usize::from(!queue.front().is_empty());
            queue.consume(queue.front().len());
        }
        segments
    }

    #[test]
    fn buffers_are_used_again_unless_they_are_many_or_large() {
        let mut queue = Queue::default();
        for _ in 0..SPARES + 10 {
            while queue.segments.back().is_none_or(|back| back.bytes.len() < FILLED) {
                queue.append(write(500)).unwrap();
            }
            queue.append(write(500)).unwrap();
        }
        queue.append_withdrawable(write(SEGMENT * 4)).unwrap();
        assert!(drain(&mut queue) > SPARES + 10);
        assert_eq!(queue.spares.len(), SPARES);
        assert!(
            queue.spares.iter().all(|spare| spare.is_empty() && (FILLED..=SEGMENT * 2).contains(&spare.capacity()))
        );
        queue.append_withdrawable(write(1)).unwrap();
        assert_eq!(queue.spares.len(), SPARES - 1);
        drain(&mut queue);
        assert_eq!(queue.spares.len(), SPARES);
        let mut queue = Queue::default();
        queue.append_withdrawable(write(SEGMENT * 4)).unwrap();
        drain(&mut queue);
        assert!(queue.spares.is_empty(), "a large one is not kept");
    }

    #[test]
    fn frames_withdrawn_from_between_others_leave_little_and_take_nothing_along() {
        for kept_before in [1, 10, EMPTIED * 4] {
            let mut queue = Queue::default();
            for _ in 0..kept_before {
                queue.append_withdrawable(write(7)).unwrap();
            }
            for round in 1..=20 {
                let frames: Vec<_> = (0..100).map(|_| queue.append_withdrawable(write(1000)).unwrap()).collect();
                queue.append_withdrawable(write(7)).unwrap();
                for frame in frames {
                    assert!(queue.withdraw(frame));
                    let emptied = queue.segments.iter().filter(|segment| segment.is_emptied()).count();
                    assert_eq!(queue.emptied, emptied);
                    assert!(emptied <= EMPTIED.max(queue.segments.len() / 2), "{emptied} of {}", queue.segments.len());
                }
                assert_eq!(queue.len(), (kept_before + round) * 7);
            }
            assert_eq!(drain(&mut queue), kept_before + 20);
            assert_eq!((queue.segments.len(), queue.emptied), (0, 0));
        }
    }
}
