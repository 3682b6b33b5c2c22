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
use dsh_wire::recording::{Direction, Entry, EntryBuffer, Found, NotAnEntry, Pieces, What};

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
    lines: Lines,
    limit: usize,
    scratch: String,
    /// Blank lines inside a recording.
    blank: u64,
    over: bool,
}

enum Lines {
    Raw(LineBuffer),
    Recording(EntryBuffer, Pieces),
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

/// What is read at a time to find out the format.
const PIECE: usize = 64 << 10;

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
        let (beginning, format) = match format {
            Some(format) => (Vec::new(), format),
            None => Format::find(&mut source, limit).map_err(|error| name.cannot_read(&error))?,
        };
        let mut lines = match format {
            Format::Raw => Lines::Raw(LineBuffer::with_limit(limit)),
            Format::Recording => Lines::Recording(EntryBuffer::with_limit(limit), Pieces::default()),
        };
        match &mut lines {
            Lines::Raw(lines) => lines.push(&beginning),
            Lines::Recording(entries, _) => entries.push(&beginning),
        }
        let read = beginning.len() as u64;
        Ok(Self { name, source, size, read, lines, limit, scratch: String::new(), blank: 0, over: false })
    }

    pub(crate) fn format(&self) -> Format {
        match self.lines {
            Lines::Raw(_) => Format::Raw,
            Lines::Recording(..) => Format::Recording,
        }
    }

    /// The lines of the file.
    fn file_lines(&self) -> &LineBuffer {
        match &self.lines {
            Lines::Raw(lines) => lines,
            Lines::Recording(entries, _) => entries.lines(),
        }
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
        self.file_lines().lines()
    }

    /// Of those, the ones that held only white space.
    pub(crate) fn blank_lines(&self) -> u64 {
        self.file_lines().blank_lines() + self.blank
    }

    /// Whether all has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Waits for more, which the next [`each`](Self::each) hands out.
    pub(crate) fn more(&mut self) -> Result<(), Failure> {
        let len = loop {
            let outcome = match &mut self.lines {
                Lines::Raw(lines) => lines.read_from(&mut self.source),
                Lines::Recording(entries, _) => entries.read_from(&mut self.source),
            };
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome.map_err(|error| self.name.cannot_read(&error))?,
            }
        };
        self.read += len as u64;
        if len == 0 {
            match &mut self.lines {
                Lines::Raw(lines) => lines.end_input(),
                Lines::Recording(entries, _) => entries.end_input(),
            }
            self.over = true;
        }
        Ok(())
    }

    /// Hands out what has been read, line by line.
    pub(crate) fn each(&mut self, mut take: impl FnMut(&Item<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        let (limit, scratch) = (self.limit, &mut self.scratch);
        let (entries, pieces) = match &mut self.lines {
            Lines::Recording(entries, pieces) => (entries, pieces),
            Lines::Raw(lines) => {
                while let Some(line) = lines.next_line() {
                    Item::raw(line, limit, scratch).map_or(Ok(()), |item| take(&item))?;
                }
                return Ok(());
            }
        };
        let blank = &mut self.blank;
        let mut take_entry = |take: &mut dyn FnMut(&Item<'_>) -> Result<(), Failure>, number, entry: &Entry| {
            let item = Item::recorded(number, entry, limit, scratch);
            *blank += u64::from(item.is_none());
            item.map_or(Ok(()), |item| take(&item))
        };
        while let Some(Found { number, line, entry }) = entries.next_entry() {
            match entry {
                Ok(entry) => {
                    for (number, entry) in pieces.join(number, entry) {
                        take_entry(&mut take, number, &entry)?;
                    }
                }
                Err(why) => {
                    // It may have been the rest of any of them.
                    for (number, entry) in pieces.finish() {
                        take_entry(&mut take, number, &entry)?;
                    }
                    let content = Content::Damaged(why);
                    take(&Item { number, len: line.len() as u64, bytes: line, origin: None, content })?;
                }
            }
        }
        if self.over {
            for (number, entry) in pieces.finish() {
                take_entry(&mut take, number, &entry)?;
            }
        }
        Ok(())
    }
}

impl Format {
    /// Reads up to the end of the first line that is not blank, or further than an entry of the longest line goes. No
    /// frame has the members of an entry, so one is enough.
    fn find(source: &mut impl Read, limit: usize) -> io::Result<(Vec<u8>, Self)> {
        let mut entries = EntryBuffer::with_limit(limit);
        let longest = entries.lines().limit();
        let (mut bytes, mut piece, mut blank) = (Vec::new(), vec![0; PIECE], 0);
        loop {
            let len = match source.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            };
            let came = piece.get(..len).unwrap_or_default();
            bytes.extend_from_slice(came);
            let fresh = bytes.get(blank..).unwrap_or_default();
            blank += fresh.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            // An entry is an object, perhaps behind a byte order mark.
            if bytes.get(blank).is_some_and(|first| !matches!(first, b'{' | b'\xef')) {
                return Ok((bytes, Self::Raw));
            }
            entries.push(came);
            if came.is_empty() {
                entries.end_input();
            }
            match entries.next_entry() {
                Some(Found { entry: Ok(_), .. }) => return Ok((bytes, Self::Recording)),
                None if !came.is_empty() && bytes.len() <= longest => {}
                _ => return Ok((bytes, Self::Raw)),
            }
        }
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

    /// `None` for a line that is blank.
    pub(crate) fn recorded(number: u64, entry: &'a Entry, limit: usize, scratch: &'a mut String) -> Option<Self> {
        let origin = Some(Origin { at: entry.at, direction: entry.direction });
        let (len, bytes, content) = match &entry.what {
            What::Lost(lost) => (*lost, &[][..], Content::Lost),
            What::Line { bytes, .. } if is_blank(bytes) => return None,
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
        Some(Self { number, len, bytes, origin, content })
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
