//! The last words of a process.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::string::String;
use std::vec::Vec;

/// Lines that are kept.
const LINES: usize = 400;

/// Bytes that are kept, whatever the lines.
const BYTES: usize = 128 << 10;

/// The last 400 lines of a stream, and no more than 128 KiB of them.
#[derive(Clone, Default)]
pub struct Tail {
    /// Holds at most `LINES` whole lines and one unfinished one, and at most `BYTES`.
    bytes: VecDeque<u8>,
    /// How many `\n` are in `bytes`.
    lines: usize,
    cut: bool,
}

impl Tail {
    /// Takes the next piece of the stream.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let skip = piece.len().saturating_sub(BYTES);
        self.cut |= skip > 0;
        let piece = piece.get(skip..).unwrap_or_default();
        self.lines += count(piece);
        self.bytes.extend(piece);
        self.drop_front(self.bytes.len().saturating_sub(BYTES));
        while self.lines > LINES {
            let line = self.bytes.iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |end| end + 1);
            self.drop_front(line);
        }
    }

    fn drop_front(&mut self, len: usize) {
        if len > 0 {
            self.lines -= self.bytes.drain(..len).filter(|byte| *byte == b'\n').count();
            self.cut = true;
        }
    }

    /// Whether there was more before it.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether nothing ever came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.cut
    }

    /// The text, with U+FFFD for what is not UTF-8; its first line says so where it was cut.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        if self.cut { std::format!("[earlier output is not kept]\n{text}") } else { text.into_owned() }
    }

    /// The last line that is not blank, at most 200 characters of it.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        self.last_lines(1).pop()
    }

    /// So many of the last lines that are not blank, at most 200 characters of each.
    #[must_use]
    pub fn last_lines(&self, most: usize) -> Vec<String> {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text: Cow<'_, str> = String::from_utf8_lossy(&bytes);
        let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let mut lines: Vec<String> = lines.take(most).map(|line| line.chars().take(200).collect()).collect();
        lines.reverse();
        lines
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

fn count(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    #[test]
    fn it_keeps_400_lines() {
        let mut tail = Tail::default();
        for n in 0..1000 {
            tail.push(format!("line {n}\n").as_bytes());
        }
        assert_eq!(tail.text().lines().count(), 401);
        assert_eq!(tail.text().lines().nth(1), Some("line 600"));
        assert_eq!(tail.last_line().unwrap(), "line 999");
        tail.push(b"\n  at last \n\n");
        assert_eq!(tail.last_lines(3), ["line 998", "line 999", "at last"]);
        assert!(tail.is_cut());
    }

    #[test]
    fn one_endless_line_is_bounded_in_bytes() {
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push(&[b'x'; 10_000]);
        }
        tail.push(&[b'y'; 300_000]);
        assert_eq!(tail.bytes.len(), BYTES);
        assert_eq!(tail.last_line().unwrap(), "y".repeat(200));
        let mut whole = Tail::default();
        whole.push(b"bad \xff utf-8\n\n");
        assert_eq!((whole.text().as_str(), whole.is_cut()), ("bad \u{fffd} utf-8\n\n", false));
    }
}
