//! Recordings: a conversation as it went over the pipes, line by line, with its times. JSON lines, one an [`Entry`]:
//!
//! ```json
//! {"t": 0.014846, "dir": "c2s", "frame": "{\"id\":\"a\",\"method\":\"initialize\"}"}
//! ```
//!
//! | member | |
//! |---|---|
//! | `t` | seconds since the recording began; microseconds are kept |
//! | `dir` | `c2s` from the client, `s2c` from the runtime, `err` for the runtime's stderr |
//! | `frame` | the line without its `\n`, whether it is a frame or not |
//! | `frame_b64` | in its place for a line that is not UTF-8: canonical base64 |
//! | `eol` | `false` where no `\n` followed, as at the end of a stream |
//! | `lost` | in place of a line: so many bytes of whole lines are missing here, their `\n` counted |
//!
//! Other members are passed over. Entries stand in the order in which whoever recorded them saw them: the three streams
//! are three pipes, so a request before a notification does not prove that the runtime had read it.
//!
//! [`EntryBuffer`] makes entries of bytes, [`Pieces`] lines of entries; `Reader` and `Writer` (feature `std`) are streams
//! of entries.

mod buffer;
mod calls;
mod own;
mod redact;
#[cfg(feature = "std")]
mod stream;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::time::Duration;

use crate::base64;
use crate::json::{self, Json, JsonStr, Kind, SyntaxError, push_escaped};

pub use buffer::{EntryBuffer, Found, Pieces};
pub use calls::Calls;
pub(crate) use calls::Key;
pub use redact::redact;
#[cfg(feature = "std")]
pub use stream::{ReadError, Reader, Writer};

/// Which way a line went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the client to the runtime.
    ClientToServer,
    /// From the runtime to the client.
    ServerToClient,
    /// The runtime's stderr.
    Stderr,
}

impl Direction {
    /// As a recording names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientToServer => "c2s",
            Self::ServerToClient => "s2c",
            Self::Stderr => "err",
        }
    }

    fn named(name: JsonStr<'_>) -> Option<Self> {
        [Self::ClientToServer, Self::ServerToClient, Self::Stderr].into_iter().find(|way| name == way.name())
    }
}

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Since the recording began.
    pub at: Duration,
    /// Which way it went.
    pub direction: Direction,
    /// What went.
    pub what: What,
}

/// What an [`Entry`] tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A line.
    Line {
        /// Without its `\n`, and holding none.
        bytes: Vec<u8>,
        /// Whether it ended in `\n`. If not, the next line of the stream goes on with it; mostly there is none.
        eol: bool,
    },
    /// Lines are missing here: so many bytes of them, each `\n` counted.
    Lost(u64),
}

impl Entry {
    /// Reads one line of a recording.
    ///
    /// ```
    /// use dsh_wire::recording::{Direction, Entry, What};
    ///
    /// let entry = Entry::parse(r#"{"t": 1.5, "dir": "s2c", "frame": "{\"id\":1,\"result\":{}}"}"#)?;
    /// assert_eq!(entry.direction, Direction::ServerToClient);
    /// assert_eq!(entry.wire_bytes(), b"{\"id\":1,\"result\":{}}\n");
    /// # Ok::<(), dsh_wire::recording::NotAnEntry>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn parse(line: &str) -> Result<Self, NotAnEntry> {
        own::read(line).map_or_else(|| Self::parse_any(line), Ok)
    }

    fn parse_any(line: &str) -> Result<Self, NotAnEntry> {
        // A byte order mark counts as white space.
        let json = Json::new(json::trim(line)).map_err(NotAnEntry::Syntax)?;
        if json.kind() != Kind::Object {
            return Err(NotAnEntry::NotAnObject(json.kind()));
        }
        let (mut time, mut way, mut line, mut eol) = (None, None, None, true);
        for (name, value) in json.members() {
            match name.as_plain() {
                Some("t") => time = value.as_f64(),
                Some("dir") => way = value.as_str(),
                Some("frame") => line = value.as_str().map(Recorded::Text),
                Some("frame_b64") => line = value.as_str().map(Recorded::Base64),
                Some("lost") => line = value.as_u64().map(Recorded::Lost),
                Some("eol") => eol = value.as_bool().unwrap_or(true),
                _ => {}
            }
        }
        let what = match line.ok_or(NotAnEntry::NoLine)? {
            Recorded::Text(text) => What::Line { bytes: unescaped(text).into_bytes(), eol },
            Recorded::Base64(text) => {
                What::Line { bytes: base64::decode(&text.to_string_lossy()).ok_or(NotAnEntry::Base64)?, eol }
            }
            Recorded::Lost(bytes) => What::Lost(bytes),
        };
        if matches!(&what, What::Line { bytes, .. } if bytes.contains(&b'\n')) {
            return Err(NotAnEntry::LineFeed);
        }
        Ok(Self {
            at: time.and_then(|time| Duration::try_from_secs_f64(time).ok()).ok_or(NotAnEntry::NoTime)?,
            direction: way.and_then(Direction::named).ok_or(NotAnEntry::NoDirection)?,
            what,
        })
    }

    /// The same for a line that need not be UTF-8.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn decode(line: &[u8]) -> Result<Self, NotAnEntry> {
        core::str::from_utf8(line).map_err(|_| NotAnEntry::Utf8).and_then(Self::parse)
    }

    /// Appends the line that [`parse`](Self::parse) reads, with its `\n`. Of the time, microseconds are kept.
    pub fn encode(&self, out: &mut String) {
        match &self.what {
            What::Line { bytes, eol } => encode_line(out, self.at, self.direction, bytes, *eol),
            What::Lost(bytes) => encode_lost(out, self.at, self.direction, *bytes),
        }
    }

    /// The line and the `\n` that it had; nothing where it was lost.
    #[must_use]
    pub fn wire_bytes(&self) -> Vec<u8> {
        match &self.what {
            What::Line { bytes, eol } => [&**bytes, if *eol { b"\n" } else { b"" }].concat(),
            What::Lost(_) => Vec::new(),
        }
    }
}

/// The member that says what an entry tells of.
enum Recorded<'a> {
    Text(JsonStr<'a>),
    Base64(JsonStr<'a>),
    Lost(u64),
}

/// By runs, where serde_json can: lines are long, and no recorder writes lone surrogates.
fn unescaped(text: JsonStr<'_>) -> String {
    text.as_json().parse::<String>().unwrap_or_else(|_| text.to_string_lossy().into_owned())
}

fn encode_line(out: &mut String, at: Duration, direction: Direction, bytes: &[u8], eol: bool) {
    begin(out, at, direction);
    match core::str::from_utf8(bytes) {
        Ok(text) => {
            out.push_str("\"frame\": \"");
            escape(out, text);
        }
        Err(_) => {
            out.push_str("\"frame_b64\": \"");
            base64::encode(out, bytes);
        }
    }
    out.push_str(if eol { "\"}\n" } else { "\", \"eol\": false}\n" });
}

fn encode_lost(out: &mut String, at: Duration, direction: Direction, bytes: u64) {
    begin(out, at, direction);
    // A string takes everything.
    let _ = writeln!(out, "\"lost\": {bytes}}}");
}

fn begin(out: &mut String, at: Duration, direction: Direction) {
    let (seconds, micros) = (at.as_secs(), at.subsec_micros());
    let _ = write!(out, "{{\"t\": {seconds}.{micros:06}, \"dir\": \"{}\", ", direction.name());
}

/// By runs, as in [`unescaped`].
fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        let (run, from) = rest.split_at(at);
        out.push_str(run);
        let mut chars = from.chars();
        chars.next().into_iter().for_each(|c| push_escaped(out, c.into()));
        rest = chars.as_str();
    }
    out.push_str(rest);
}

/// Why a line is no entry of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAnEntry {
    /// It is not UTF-8.
    Utf8,
    /// It is not JSON.
    Syntax(SyntaxError),
    /// It is JSON, but no object.
    NotAnObject(Kind),
    /// `t` is missing, or no number of seconds that can be.
    NoTime,
    /// `dir` is missing, or none that is known.
    NoDirection,
    /// It has neither `frame` nor `frame_b64` nor `lost`.
    NoLine,
    /// `frame_b64` is not canonical base64.
    Base64,
    /// Its line holds a `\n`, and so is more than one.
    LineFeed,
    /// It is longer than what is kept of a line.
    TooLong,
    /// It is the last line, and breaks off: so does a recording whose recorder was killed.
    CutOff,
}

impl fmt::Display for NotAnEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf8 => f.write_str("not UTF-8"),
            Self::Syntax(error) => error.fmt(f),
            Self::NotAnObject(kind) => write!(f, "a JSON value of kind {kind:?}, where an entry is an object"),
            Self::NoTime => f.write_str("no time in `t`, a number of seconds from 0 up"),
            Self::NoDirection => f.write_str("no direction in `dir`: `c2s`, `s2c` or `err`"),
            Self::NoLine => f.write_str("none of `frame`, `frame_b64` and `lost`"),
            Self::Base64 => f.write_str("`frame_b64` is not base64"),
            Self::LineFeed => f.write_str("a line feed inside the line"),
            Self::TooLong => f.write_str("too long for a line of a recording"),
            Self::CutOff => f.write_str("the last line breaks off"),
        }
    }
}

impl core::error::Error for NotAnEntry {}

#[cfg(test)]
mod tests;
