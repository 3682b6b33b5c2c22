//! Bytes in, lines out.
//!
//! [`LineBuffer`] splits a byte stream at `\n` and nothing else. What it yields does not depend on how the stream
//! was cut into reads. A line over the limit costs constant memory and does not end the connection.

use alloc::vec::Vec;

use crate::json::{self, is_blank};

/// The longest line that is kept unless the caller says otherwise: 64 MiB.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// How much of a line that is not kept is shown.
pub(crate) const PREFIX: usize = 256;

/// How much room one read is given.
#[cfg(feature = "std")]
pub(crate) const READ: usize = 64 << 10;

/// How much more room is made ready at once than a short piece of the stream needs.
const SLACK: usize = 4 << 10;

/// An empty buffer larger than this is given back.
const KEEP: usize = 4 << 20;

/// One item of a stream of lines. Numbers count every line of the stream from 1, blank ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line within the limit that holds more than white space. `bytes` is without its `\n`.
    Whole {
        /// Which line of the stream.
        number: u64,
        /// The line.
        bytes: &'a [u8],
    },
    /// The line being received has just passed the limit. Comes once for such a line, before its [`Line::TooLong`].
    Overflowing {
        /// Which line of the stream.
        number: u64,
        /// Its first bytes: 256, or as many as the limit.
        prefix: &'a [u8],
    },
    /// The end of a line over the limit, of which only the prefix was kept.
    TooLong {
        /// Which line of the stream.
        number: u64,
        /// Bytes in the line, without its `\n`.
        len: u64,
        /// Its first bytes: 256, or as many as the limit.
        prefix: &'a [u8],
    },
    /// The stream ended without a `\n` here. By the protocol this is no line, even if it looks like a whole frame.
    Unterminated {
        /// Which line of the stream.
        number: u64,
        /// Bytes received of it.
        len: u64,
        /// Its first bytes, at most 256.
        prefix: &'a [u8],
    },
}

/// A buffer for one direction of a connection: bytes go in with [`push`](Self::push) (or `read_from`, with std),
/// lines come out of [`next_line`](Self::next_line), which changes its answer only when bytes went in or the input
/// ended.
///
/// ```
/// use dsh_wire::line::{Line, LineBuffer};
///
/// let mut lines = LineBuffer::new();
/// lines.push(b"{\"a\":1}\n\n{\"b\"");
/// assert_eq!(lines.next_line(), Some(Line::Whole { number: 1, bytes: b"{\"a\":1}" }));
/// assert_eq!(lines.next_line(), None);
/// lines.push(b":2}\n");
/// assert_eq!(lines.next_line(), Some(Line::Whole { number: 3, bytes: b"{\"b\":2}" }));
/// ```
#[derive(Debug)]
pub struct LineBuffer {
    /// `start ≤ searched ≤ end ≤ buf.len()`; the bytes from `end` on are room for the next read. While every line is
    /// taken as it comes, `buf` never holds more than `limit` and one read.
    buf: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// `buf[start..searched]` holds no `\n`.
    searched: usize,
    /// Where the bytes received end.
    end: usize,
    /// The longest line that is kept.
    limit: usize,
    /// Lines that have ended.
    number: u64,
    /// Of those, the ones that held only white space.
    blank: u64,
    /// Bytes that were searched for `\n`, for the proof that each is searched once.
    examined: u64,
    /// A line over the limit that has not been given out yet. Until its `\n` has come, nothing else is in `buf`.
    overflow: Option<Overflow>,
    /// The first bytes of the last line over the limit.
    prefix: Vec<u8>,
    ended: bool,
}

#[derive(Debug)]
struct Overflow {
    /// Bytes received of the line.
    len: u64,
    /// Whether [`Line::Overflowing`] has been given out.
    told: bool,
    /// Whether the line's `\n` has been seen.
    complete: bool,
}

/// What to lend next: decided by ranges, so that lines which nobody sees can be passed over in a loop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    Whole { number: u64, from: usize, to: usize },
    Overflowing,
    TooLong { len: u64 },
    Unterminated { len: u64, prefix: Option<(usize, usize)> },
}

impl LineBuffer {
    /// A buffer with the [default limit](DEFAULT_LIMIT).
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    /// A buffer for lines of at most `limit` bytes, the `\n` not counted. Nothing is allocated yet.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            searched: 0,
            end: 0,
            limit,
            number: 0,
            blank: 0,
            examined: 0,
            overflow: None,
            prefix: Vec::new(),
            ended: false,
        }
    }

    /// The longest line that is kept, in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Lines that have ended so far, whatever they held.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.number
    }

    /// Of those, lines that held nothing but white space and were passed over.
    #[must_use]
    pub fn blank_lines(&self) -> u64 {
        self.blank
    }

    /// Bytes received and not yet given out.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.end - self.start
    }

    /// Takes bytes of the stream. Bytes that come after [`end_input`](Self::end_input) are not part of it and are
    /// ignored.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.ended {
            let bytes = if self.overflow.is_some() { self.discard(bytes) } else { bytes };
            self.append(bytes);
        }
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        match (bytes, self.buf.get_mut(self.end)) {
            // A stream that comes byte by byte would pay more for the call than for the copy.
            ([byte], Some(room)) if self.start < self.end => *room = *byte,
            _ => self.copy(bytes),
        }
        self.end += bytes.len();
        if self.end - self.start > self.limit {
            self.check_limit();
        }
    }

    /// Puts bytes at the end. Where there was nothing before, they are not made zeros first.
    fn copy(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        let room = self.buf.get_mut(self.end..).unwrap_or_default();
        let (inside, behind) = bytes.split_at(bytes.len().min(room.len()));
        if let Some(room) = room.get_mut(..inside.len()) {
            room.copy_from_slice(inside);
        }
        self.buf.extend_from_slice(behind);
        if !behind.is_empty() && bytes.len() < SLACK {
            // Some room more, so that short pieces do not all come here.
            self.buf.resize(self.buf.capacity().min(self.buf.len() + SLACK), 0);
        }
    }

    /// Reads once from a stream, at most 64 KiB, and returns how much came; 0 is the end of the stream, which is
    /// left for the caller to declare.
    ///
    /// # Errors
    /// Those of the read; nothing has changed then.
    #[cfg(feature = "std")]
    pub fn read_from(&mut self, source: &mut impl std::io::Read) -> std::io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        self.make_room(READ);
        let end = self.end;
        if self.buf.len() < end + READ {
            self.buf.resize(end + READ, 0);
        }
        let room = self.buf.get_mut(end..end + READ).unwrap_or_default();
        let len = source.read(room)?.min(READ);
        if self.overflow.as_ref().is_some_and(|overflow| !overflow.complete) {
            let fresh = self.buf.get(end..end + len).unwrap_or_default();
            let kept = Self::discard_into(&mut self.overflow, &mut self.examined, fresh).len();
            self.start = end + len - kept;
            self.searched = self.start;
        }
        self.end = end + len;
        if self.end - self.start > self.limit {
            self.check_limit();
        }
        Ok(len)
    }

    /// Declares that the stream has ended: bytes without a `\n` behind them come out as [`Line::Unterminated`].
    pub fn end_input(&mut self) {
        self.ended = true;
    }

    /// The next line that is not blank, lent from the buffer.
    #[inline]
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        if self.waits() {
            return None;
        }
        let next = self.advance()?;
        Some(self.lend(next))
    }

    /// Whether nothing comes next, where a few fresh bytes can tell. So it mostly is with a stream in small pieces, which
    /// would pay more for the calls than for the search.
    #[inline]
    pub(crate) fn waits(&mut self) -> bool {
        let fresh = self.buf.get(self.searched..self.end).unwrap_or_default();
        let few = fresh.len() < 8 && fresh.iter().all(|byte| *byte != b'\n');
        let waits = few && !self.ended && self.overflow.is_none() && self.end - self.start <= self.limit;
        if waits {
            self.examined += fresh.len() as u64;
            self.searched = self.end;
        }
        waits
    }

    /// Lends what [`advance`](Self::advance) has just moved past.
    pub(crate) fn lend(&self, next: Next) -> Line<'_> {
        match next {
            Next::Whole { number, from, to } => {
                Line::Whole { number, bytes: self.buf.get(from..to).unwrap_or_default() }
            }
            Next::Overflowing => Line::Overflowing { number: self.number + 1, prefix: &self.prefix },
            Next::TooLong { len } => Line::TooLong { number: self.number, len, prefix: &self.prefix },
            Next::Unterminated { len, prefix: Some((from, to)) } => {
                Line::Unterminated { number: self.number, len, prefix: self.buf.get(from..to).unwrap_or_default() }
            }
            Next::Unterminated { len, prefix: None } => {
                Line::Unterminated { number: self.number, len, prefix: &self.prefix }
            }
        }
    }

    /// A whole line as text. `None` where it is not UTF-8, or, rarely, what lies behind it in the buffer is not: whole
    /// blocks are looked at in half the time of one that breaks off.
    #[inline]
    pub(crate) fn text(&self, next: Next) -> Option<&str> {
        let Next::Whole { from, to, .. } = next else { return None };
        let blocks = from + (to - from).next_multiple_of(json::UTF8_BLOCK);
        json::utf8(self.buf.get(from..blocks)?)?.get(..to - from)
    }

    /// Moves past what comes next and says what it was; passes over blank lines.
    pub(crate) fn advance(&mut self) -> Option<Next> {
        loop {
            if let Some(overflow) = &mut self.overflow {
                if !overflow.told {
                    overflow.told = true;
                    return Some(Next::Overflowing);
                }
                if !overflow.complete && !self.ended {
                    return None;
                }
                self.number += 1;
                return self.overflow.take().map(|Overflow { len, complete, .. }| {
                    if complete { Next::TooLong { len } } else { Next::Unterminated { len, prefix: None } }
                });
            }
            let from = self.start;
            if let Some(to) = self.find_newline() {
                self.start = to + 1;
                self.searched = self.start;
                self.examined += 1;
                if to - from > self.limit {
                    self.overflow(from, to, true);
                    continue;
                }
                self.number += 1;
                if is_blank(self.buf.get(from..to).unwrap_or_default()) {
                    self.blank += 1;
                    continue;
                }
                return Some(Next::Whole { number: self.number, from, to });
            }
            if self.end - from > self.limit {
                self.overflow(from, self.end, false);
                self.forget();
                continue;
            }
            if !self.ended || from == self.end {
                return None;
            }
            self.number += 1;
            let to = self.end;
            self.start = to;
            self.searched = to;
            if is_blank(self.buf.get(from..to).unwrap_or_default()) {
                self.blank += 1;
                return None;
            }
            let prefix = Some((from, to.min(from + PREFIX)));
            return Some(Next::Unterminated { len: (to - from) as u64, prefix });
        }
    }

    /// Looks for the next `\n` in the bytes not yet searched. `searched` stops on it, for the caller to move past.
    #[inline]
    fn find_newline(&mut self) -> Option<usize> {
        let fresh = self.buf.get(self.searched..self.end).unwrap_or_default();
        let found = memchr::memchr(b'\n', fresh);
        let len = found.unwrap_or(fresh.len());
        self.examined += len as u64;
        self.searched += len;
        found.map(|_| self.searched)
    }

    /// After bytes came in, and there are more than the limit: an unfinished line over it is not kept a moment longer,
    /// also if nobody takes lines out. Lines that wait before it are the caller's to take first.
    fn check_limit(&mut self) {
        if self.overflow.is_none() && self.find_newline().is_none() {
            self.overflow(self.start, self.end, false);
            self.forget();
        }
    }

    fn overflow(&mut self, from: usize, to: usize, complete: bool) {
        let kept = to.min(from + PREFIX.min(self.limit));
        self.prefix.clear();
        self.prefix.extend_from_slice(self.buf.get(from..kept).unwrap_or_default());
        self.overflow = Some(Overflow { len: (to - from) as u64, told: false, complete });
    }

    /// Passes fresh bytes through the line being discarded, if there is one; returns those behind its `\n`.
    fn discard<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        Self::discard_into(&mut self.overflow, &mut self.examined, bytes)
    }

    fn discard_into<'b>(overflow: &mut Option<Overflow>, examined: &mut u64, bytes: &'b [u8]) -> &'b [u8] {
        let Some(overflow) = overflow.as_mut().filter(|overflow| !overflow.complete) else { return bytes };
        match memchr::memchr(b'\n', bytes) {
            Some(len) => {
                overflow.len += len as u64;
                overflow.complete = true;
                *examined += len as u64 + 1;
                bytes.get(len + 1..).unwrap_or_default()
            }
            None => {
                overflow.len += bytes.len() as u64;
                *examined += bytes.len() as u64;
                &[]
            }
        }
    }

    /// Drops all bytes, and the buffer with them if it has grown large.
    fn forget(&mut self) {
        self.start = 0;
        self.searched = 0;
        self.end = 0;
        if self.buf.capacity() > KEEP {
            self.buf = Vec::new();
        }
    }

    /// Sees to it that `len` more bytes have room in the allocation. Bytes that have not been given out move to the front
    /// where they are few beside those that have, so that the same part of the buffer is used again while it is in the
    /// cache; and before the buffer grows, where that frees an eighth of their number. It grows by no less, so the cost of
    /// moving stays in proportion to that of receiving.
    fn make_room(&mut self, len: usize) {
        let held = self.end - self.start;
        if held == 0 {
            self.forget();
        } else if self.start >= 8 * held || self.end + len > self.buf.capacity() && self.start >= held / 8 {
            self.buf.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        let need = self.end + len;
        if need > self.buf.capacity() {
            // Doubling up to 1 MiB, then an eighth at a time: a long line should not cost twice its length.
            let grown = if need < 1 << 20 { need.next_power_of_two() } else { need + need / 8 };
            self.buf.reserve_exact(grown - self.buf.len());
        }
    }
}

impl Default for LineBuffer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
