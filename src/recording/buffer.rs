//! Recordings without input and output: [`EntryBuffer`], and lines from [`Pieces`].

use alloc::vec::Vec;

use super::{Entry, NotAnEntry, What};
use crate::line::{DEFAULT_LIMIT, Line, LineBuffer, Next};

/// A buffer for a recording: bytes go in with [`push`](Self::push) (or `read_from`, with std), entries come out of
/// [`next_entry`](Self::next_entry), one for each line that is not blank. The last line may lack its `\n`; where it is no
/// entry then, it is told as [`NotAnEntry::CutOff`].
///
/// ```
/// use dsh_wire::recording::{EntryBuffer, NotAnEntry};
///
/// let mut entries = EntryBuffer::new();
/// entries.push(b"{\"t\": 0.5, \"dir\": \"c2s\", \"frame\": \"hello\"}\n{\"t\": 0.6, \"dir");
/// assert_eq!(entries.next_entry().unwrap().entry?.wire_bytes(), b"hello\n");
/// assert!(entries.next_entry().is_none());
/// entries.end_input();
/// assert_eq!(entries.next_entry().unwrap().entry, Err(NotAnEntry::CutOff));
/// # Ok::<(), NotAnEntry>(())
/// ```
#[derive(Debug)]
pub struct EntryBuffer {
    lines: LineBuffer,
    /// The last line has no `\n` but ours.
    cut: bool,
}

/// A line of a recording.
#[derive(Debug)]
pub struct Found<'a> {
    /// Which line, from 1, blank ones counted.
    pub number: u64,
    /// The line, or the beginning of one that is too long.
    pub line: &'a [u8],
    /// What it says.
    pub entry: Result<Entry, NotAnEntry>,
}

impl EntryBuffer {
    /// For recorded lines up to the [default limit](DEFAULT_LIMIT).
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    /// For recorded lines of at most `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        // Every byte may be written as an escape, and there is more in an entry.
        Self { lines: LineBuffer::with_limit(limit.saturating_mul(6).saturating_add(1024)), cut: false }
    }

    /// The lines of the file, for what can be asked of them, such as how many there were.
    #[must_use]
    pub fn lines(&self) -> &LineBuffer {
        &self.lines
    }

    /// Takes bytes of the recording, however they are cut.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Reads once from a source, at most 64 KiB, and returns how much came; 0 is its end, which is left for the caller to
    /// declare.
    ///
    /// # Errors
    /// Those of the read; nothing has changed then.
    #[cfg(feature = "std")]
    pub fn read_from(&mut self, source: &mut impl std::io::Read) -> std::io::Result<usize> {
        self.lines.read_from(source)
    }

    /// Declares that all of the recording has come.
    pub fn end_input(&mut self) {
        if self.lines.buffered() > 0 {
            self.lines.push(b"\n");
            self.cut = true;
        }
        self.lines.end_input();
    }

    /// The next entry, or what a line is in place of one. Changes its answer when bytes came, or the end.
    pub fn next_entry(&mut self) -> Option<Found<'_>> {
        let mut next = self.lines.advance()?;
        while let Next::Overflowing = next {
            // Its end will be told.
            next = self.lines.advance()?;
        }
        let (number, line, entry) = match self.lines.lend(next) {
            Line::Whole { number, bytes } => (number, bytes, Entry::decode(bytes)),
            Line::TooLong { number, prefix, .. }
            | Line::Unterminated { number, prefix, .. }
            | Line::Overflowing { number, prefix } => (number, prefix, Err(NotAnEntry::TooLong)),
        };
        let last = self.cut && self.lines.buffered() == 0;
        Some(Found { number, line, entry: entry.map_err(|why| if last { NotAnEntry::CutOff } else { why }) })
    }
}

impl Default for EntryBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// Lines from pieces: an entry that has no line end goes on with the next one of its direction. Each entry has a number,
/// such as that of its line; a joined one has the number and the time of its last piece.
///
/// ```
/// use dsh_wire::recording::{Entry, Pieces};
///
/// let mut pieces = Pieces::default();
/// let half = Entry::parse(r#"{"t": 0.5, "dir": "c2s", "frame": "{\"id\":", "eol": false}"#)?;
/// assert_eq!(pieces.join(1, half).count(), 0);
/// let rest = Entry::parse(r#"{"t": 0.7, "dir": "c2s", "frame": "1}"}"#)?;
/// let (number, whole) = pieces.join(2, rest).next().unwrap();
/// assert_eq!((number, &*whole.wire_bytes()), (2, &b"{\"id\":1}\n"[..]));
/// # Ok::<(), dsh_wire::recording::NotAnEntry>(())
/// ```
#[derive(Debug, Default)]
pub struct Pieces {
    /// By direction: the beginning of a line.
    begun: [Option<(u64, Entry)>; 3],
}

impl Pieces {
    /// Takes the next entry, and hands out what nothing more belongs to.
    pub fn join(&mut self, number: u64, entry: Entry) -> impl Iterator<Item = (u64, Entry)> + use<> {
        let mut entry = entry;
        let mut slot = self.begun.get_mut(entry.direction as usize);
        let mut begun = slot.as_deref_mut().and_then(Option::take);
        if let (Some((_, Entry { what: What::Line { bytes, .. }, .. })), What::Line { bytes: more, .. }) =
            (&mut begun, &mut entry.what)
        {
            bytes.append(more);
            core::mem::swap(bytes, more);
            begun = None;
        }
        // Nobody writes lines that are longer than that.
        let goes_on = matches!(&entry.what, What::Line { bytes, eol: false } if bytes.len() <= DEFAULT_LIMIT);
        let mut out = Some((number, entry));
        if let Some(slot) = slot.filter(|_| goes_on) {
            *slot = out.take();
        }
        [begun, out].into_iter().flatten()
    }

    /// At the end of the recording: hands out the lines that never came to theirs.
    pub fn finish(&mut self) -> impl Iterator<Item = (u64, Entry)> + use<> {
        let mut left: Vec<_> = core::mem::take(&mut self.begun).into_iter().flatten().collect();
        left.sort_by_key(|(number, _)| *number);
        left.into_iter()
    }
}
