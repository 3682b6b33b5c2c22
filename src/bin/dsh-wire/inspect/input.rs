//! Where the lines come from: a byte stream of one direction, or a recording of both.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dsh_wire::frame::Frame;
use dsh_wire::json;
use dsh_wire::line::{Line, LineBuffer};
use dsh_wire::peer::DropReason;
use dsh_wire::recording::{Direction, Entry, NotAnEntry, What};

use crate::failure::Failure;

/// How the conversation is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// The bytes of one direction, as they are on the pipe
    Raw,
    /// Both directions with times, as `tap` writes them
    Recording,
}

/// A conversation, read while it comes.
pub(crate) struct Input {
    name: Named,
    source: Box<dyn Read>,
    /// Bytes in the source, where that is known beforehand.
    size: Option<u64>,
    read: u64,
    lines: LineBuffer,
    format: Format,
    limit: usize,
    scratch: String,
    /// Blank lines inside a recording.
    blank: u64,
    over: bool,
}

/// One line and what it was taken for.
pub(crate) struct Item<'a> {
    /// Which line of the file.
    pub(crate) number: u64,
    /// Bytes of the line on the pipe, without its `\n`.
    pub(crate) len: u64,
    /// The line, or as much of it as was kept.
    pub(crate) bytes: &'a [u8],
    /// Where it came from; recordings only.
    pub(crate) origin: Option<Origin>,
    pub(crate) content: Content<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// Since the recording began.
    pub(crate) at: Duration,
    pub(crate) direction: Direction,
}

pub(crate) enum Content<'a> {
    Frame(Frame<'a>),
    Dropped(DropReason),
    /// A line of the runtime's stderr.
    Stderr,
    /// Bytes that the recorder could not keep, as many as the length says.
    Lost,
    /// A line of the file that is no entry of a recording.
    Damaged(NotAnEntry),
}

/// How much is looked at to find out the format.
const LOOK: usize = 64 << 10;

impl Input {
    /// Opens it, and reads as much as it takes to find out the format.
    pub(crate) fn open(file: Option<&Path>, format: Option<Format>, limit: usize) -> Result<Self, Failure> {
        let file = file.filter(|path| path.as_os_str() != "-");
        let name = Named(file.map(Path::to_owned));
        let (mut source, size): (Box<dyn Read>, _) = match file {
            Some(path) => {
                let file = File::open(path).map_err(|error| Failure::usage(format!("cannot open {name}: {error}")))?;
                let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
                (Box::new(file), size)
            }
            None => (Box::new(io::stdin().lock()), None),
        };
        let beginning = first_line(&mut source).map_err(|error| name.cannot_read(&error))?;
        let format = format.unwrap_or_else(|| Format::of(&beginning));
        let mut lines = LineBuffer::with_limit(match format {
            Format::Raw => limit,
            // Every byte of a frame may be written as an escape, and there is more on the line.
            Format::Recording => limit.saturating_mul(6).saturating_add(1024),
        });
        lines.push(&beginning);
        let read = beginning.len() as u64;
        Ok(Self { name, source, size, read, lines, format, limit, scratch: String::new(), blank: 0, over: false })
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.read
    }

    /// Lines that have ended so far, whatever they held.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.lines()
    }

    /// Of those, the ones that held only white space.
    pub(crate) fn blank_lines(&self) -> u64 {
        self.lines.blank_lines() + self.blank
    }

    /// Whether all has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Waits for more, which the next [`each`](Self::each) hands out.
    pub(crate) fn more(&mut self) -> Result<(), Failure> {
        let len = loop {
            match self.lines.read_from(&mut self.source) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome.map_err(|error| self.name.cannot_read(&error))?,
            }
        };
        self.read += len as u64;
        if len == 0 {
            // The last entry of a recording is good without its `\n`.
            if self.format == Format::Recording && self.lines.buffered() > 0 {
                self.lines.push(b"\n");
            }
            self.lines.end_input();
            self.over = true;
        }
        Ok(())
    }

    /// Hands out what has been read, line by line.
    pub(crate) fn each(&mut self, mut take: impl FnMut(&Item<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        while let Some(line) = self.lines.next_line() {
            if self.format == Format::Raw {
                if let Some(item) = Item::raw(line, self.limit, &mut self.scratch) {
                    take(&item)?;
                }
                continue;
            }
            let (number, bytes, entry) = match line {
                Line::Whole { number, bytes } => (number, bytes, Entry::decode(bytes)),
                Line::TooLong { number, prefix, .. } => (number, prefix, Err(NotAnEntry::TooLong)),
                // The end of the one will be told, and there is none of the other.
                Line::Overflowing { .. } | Line::Unterminated { .. } => continue,
            };
            match &entry {
                Ok(Entry { what: What::Line { bytes, .. }, .. }) if is_blank(bytes) => self.blank += 1,
                Ok(entry) => take(&Item::recorded(number, entry, self.limit, &mut self.scratch))?,
                Err(why) => {
                    let (len, content) = (bytes.len() as u64, Content::Damaged(*why));
                    take(&Item { number, len, bytes, origin: None, content })?;
                }
            }
        }
        Ok(())
    }
}

/// The beginning of the source: the first line and what came with it, or [`LOOK`] bytes of it.
fn first_line(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while bytes.len() < LOOK && !bytes.contains(&b'\n') {
        match source.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => bytes.extend_from_slice(piece.get(..len).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

impl Format {
    /// No frame has the members of an entry, so one line is enough.
    fn of(beginning: &[u8]) -> Self {
        let line = beginning.split(|byte| *byte == b'\n').find(|line| !is_blank(line)).unwrap_or_default();
        if Entry::decode(line).is_ok() { Self::Recording } else { Self::Raw }
    }
}

impl<'a> Item<'a> {
    fn raw(line: Line<'a>, limit: usize, scratch: &'a mut String) -> Option<Self> {
        let (number, len, bytes, content) = match line {
            Line::Whole { number, bytes } => (number, bytes.len() as u64, bytes, Content::of(bytes, scratch)),
            Line::TooLong { number, len, prefix } => {
                (number, len, prefix, Content::Dropped(DropReason::TooLong { limit }))
            }
            Line::Unterminated { number, len, prefix } => {
                (number, len, prefix, Content::Dropped(DropReason::Unterminated))
            }
            // Its end will be told.
            Line::Overflowing { .. } => return None,
        };
        Some(Self { number, len, bytes, origin: None, content })
    }

    fn recorded(number: u64, entry: &'a Entry, limit: usize, scratch: &'a mut String) -> Self {
        let origin = Some(Origin { at: entry.at, direction: entry.direction });
        let (len, bytes, content) = match &entry.what {
            What::Lost(lost) => (*lost, &[][..], Content::Lost),
            What::Line { bytes, eol } => {
                let content = match (entry.direction, eol) {
                    (Direction::Stderr, _) => Content::Stderr,
                    (_, false) => Content::Dropped(DropReason::Unterminated),
                    (_, true) if bytes.len() > limit => Content::Dropped(DropReason::TooLong { limit }),
                    (_, true) => Content::of(bytes, scratch),
                };
                (bytes.len() as u64, &**bytes, content)
            }
        };
        Self { number, len, bytes, origin, content }
    }
}

impl<'a> Content<'a> {
    fn of(bytes: &'a [u8], scratch: &'a mut String) -> Self {
        Frame::decode(bytes, scratch).map_or_else(|why| Self::Dropped(DropReason::NotAFrame(why)), Self::Frame)
    }
}

/// Whether nothing is left of the line after the trim.
fn is_blank(line: &[u8]) -> bool {
    !matches!(line, [b'!'..=b'~', ..]) && std::str::from_utf8(line).is_ok_and(|text| json::trim(text).is_empty())
}

/// The input, as it is called in an error.
struct Named(Option<PathBuf>);

impl Named {
    fn cannot_read(&self, error: &io::Error) -> Failure {
        Failure::usage(format!("cannot read {self}: {error}"))
    }
}

impl Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => write!(f, "'{}'", path.display()),
            None => f.write_str("stdin"),
        }
    }
}
