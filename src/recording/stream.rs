//! Recordings as streams: [`Reader`] and [`Writer`].

use std::error::Error;
use std::fmt;
use std::io::{self, Read, Write};
use std::string::String;
use std::time::Duration;

use super::{Direction, Entry, EntryBuffer, Found, NotAnEntry, encode_line, encode_lost};

/// Reads a recording entry by entry. What is wrong with one is an error of that line, and the next ones follow; an error
/// of the source is the last item. The last line may lack its `\n`; where it breaks off, the error says so
/// ([`ReadError::is_cut_off`]).
///
/// ```
/// use dsh_wire::recording::Reader;
///
/// let recording = &br#"{"t": 0.5, "dir": "c2s", "frame": "hello"}
/// {"t": 1.0, "dir": "s2c", "fra"#[..];
/// let mut entries = Reader::new(recording);
/// assert_eq!(entries.next().unwrap()?.wire_bytes(), b"hello\n");
/// assert_eq!(entries.next().unwrap().unwrap_err().line(), Some(2));
/// assert!(entries.next().is_none());
/// # Ok::<(), dsh_wire::recording::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    entries: EntryBuffer,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads in large pieces, so the source needs no buffer.
    pub fn new(source: R) -> Self {
        Self { source, entries: EntryBuffer::new(), ended: false }
    }

    /// The source, for what can be asked of it, such as how far it has been read.
    pub fn get_ref(&self) -> &R {
        &self.source
    }

    fn fill(&mut self) -> io::Result<()> {
        loop {
            match self.entries.read_from(&mut self.source) {
                Ok(0) => {
                    self.ended = true;
                    self.entries.end_input();
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.entries = EntryBuffer::new();
                    return Err(error);
                }
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(Found { number, entry, .. }) = self.entries.next_entry() {
                return Some(entry.map_err(|why| ReadError::Line { number, why }));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.fill() {
                return Some(Err(ReadError::Source(error)));
            }
        }
    }
}

/// Why a recording cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The source failed.
    Source(io::Error),
    /// A line is no entry.
    Line {
        /// Counted from 1.
        number: u64,
        /// What is wrong with it.
        why: NotAnEntry,
    },
}

impl ReadError {
    /// Whether the last line breaks off, and nothing else is wrong: the recorder was killed, or is still at work.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::Line { why: NotAnEntry::CutOff, .. })
    }

    /// The number of the line, counted from 1, where it is about one.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Source(_) => None,
            Self::Line { number, .. } => Some(*number),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => error.fmt(f),
            Self::Line { number, why } => write!(f, "line {number} is no entry of a recording: {why}"),
        }
    }
}

impl Error for ReadError {}

/// Writes a recording. Every entry is one write, so the sink is worth a buffer, and a recording that breaks off ends
/// within one entry at most.
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
    /// One entry.
    text: String,
}

impl<W: Write> Writer<W> {
    /// Begins at the end of what the sink holds; a recording has no header.
    pub fn new(sink: W) -> Self {
        Self { sink, text: String::new() }
    }

    /// Writes one entry.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.write(|text| entry.encode(text))
    }

    /// Writes the entry of a line, given without its `\n`.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn line(&mut self, at: Duration, direction: Direction, bytes: &[u8], eol: bool) -> io::Result<()> {
        self.write(|text| encode_line(text, at, direction, bytes, eol))
    }

    /// Writes that lines are missing here, so many bytes of them.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn lost(&mut self, at: Duration, direction: Direction, bytes: u64) -> io::Result<()> {
        self.write(|text| encode_lost(text, at, direction, bytes))
    }

    /// Flushes the sink.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// The sink, as it is.
    pub fn into_inner(self) -> W {
        self.sink
    }

    fn write(&mut self, encode: impl FnOnce(&mut String)) -> io::Result<()> {
        self.text.clear();
        encode(&mut self.text);
        self.sink.write_all(self.text.as_bytes())
    }
}
