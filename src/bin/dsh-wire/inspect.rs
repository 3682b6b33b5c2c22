//! `dsh-wire inspect`: what a byte stream holds, line by line, while it comes.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use clap::builder::styling::Style;
use dsh_wire::frame::{ErrorObject, Frame, NotAFrame, RpcError};
use dsh_wire::json::{Json, JsonStr, JsonString};
use dsh_wire::line::{DEFAULT_LIMIT, Line, LineBuffer};
use dsh_wire::peer::DropReason;

use crate::failure::Failure;
use crate::terminal::{Styles, shortened, without_middle};

/// Show what a byte stream of the protocol holds, line by line
///
/// Each line is taken as the reference implementation takes it: as a request, a response, a notification, or one that
/// is dropped. The exit code is 0 whatever the lines hold.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh --profile sdk < requests.jsonl | dsh-wire inspect
  dsh-wire inspect --json captured.bin | jq 'select(.kind == \"dropped\")'")]
pub(crate) struct Args {
    /// The bytes to read; `-` or nothing is stdin
    file: Option<PathBuf>,

    /// Print one JSON object for each line, and a summary at the end
    #[arg(long)]
    json: bool,

    /// The longest line that is kept
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
}

pub(crate) fn inspect(args: &Args) -> Result<(), Failure> {
    let mut input = open(args)?;
    let stdout = io::stdout().lock();
    let styles = Styles::of(&stdout);
    let mut out = BufWriter::new(stdout);
    let mut lines = LineBuffer::with_limit(args.limit);
    let mut scratch = String::new();
    let mut counts = Counts::default();
    if !args.json {
        let bold = styles.heading();
        writeln!(out, "{bold}{HEADING}{bold:#}").map_err(Failure::output)?;
    }
    loop {
        // Shown before more is waited for.
        out.flush().map_err(Failure::output)?;
        let len = read(&mut lines, &mut input)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", Named(args))))?;
        if len == 0 {
            lines.end_input();
        }
        counts.bytes += len as u64;
        while let Some(line) = lines.next_line() {
            let Some(row) = Row::new(line, args.limit, &mut scratch) else { continue };
            counts.add(&row.content);
            let written = if args.json { row.write_json(&mut out) } else { row.write_table(&mut out, styles) };
            written.map_err(Failure::output)?;
        }
        if len == 0 {
            break;
        }
    }
    counts.lines = lines.lines();
    counts.blank = lines.blank_lines();
    let written = if args.json { counts.write_json(&mut out) } else { counts.write_table(&mut out) };
    written.and_then(|()| out.flush()).map_err(Failure::output)
}

fn open(args: &Args) -> Result<Box<dyn Read>, Failure> {
    Ok(match &args.file {
        Some(path) if path.as_os_str() != "-" => {
            Box::new(File::open(path).map_err(|error| Failure::usage(format!("cannot open {}: {error}", Named(args))))?)
        }
        _ => Box::new(io::stdin().lock()),
    })
}

/// The input, as it is called in an error.
struct Named<'a>(&'a Args);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.file {
            Some(path) => write!(f, "'{}'", path.display()),
            None => f.write_str("stdin"),
        }
    }
}

fn read(lines: &mut LineBuffer, input: &mut impl Read) -> io::Result<usize> {
    loop {
        match lines.read_from(input) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// One line and what it was taken for.
struct Row<'a> {
    number: u64,
    len: u64,
    content: Content<'a>,
}

enum Content<'a> {
    Frame(Frame<'a>),
    /// With the line, or as much of it as was kept.
    Dropped(DropReason, &'a [u8]),
}

const HEADING: &str = "  line  kind              bytes  id                  what";

/// How much of a dropped line is shown, in bytes.
const PREFIX: usize = 256;

impl<'a> Row<'a> {
    fn new(line: Line<'a>, limit: usize, scratch: &'a mut String) -> Option<Self> {
        Some(match line {
            Line::Whole { number, bytes } => {
                let content = Frame::decode(bytes, scratch)
                    .map_or_else(|why| Content::Dropped(DropReason::NotAFrame(why), bytes), Content::Frame);
                Self { number, len: bytes.len() as u64, content }
            }
            Line::TooLong { number, len, prefix } => {
                Self { number, len, content: Content::Dropped(DropReason::TooLong { limit }, prefix) }
            }
            Line::Unterminated { number, len, prefix } => {
                Self { number, len, content: Content::Dropped(DropReason::Unterminated, prefix) }
            }
            // Its end will be told.
            Line::Overflowing { .. } => return None,
        })
    }

    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, r#"{{"line":{},"#, self.number)?;
        match self.content {
            Content::Frame(Frame::Request { id, method, params }) => {
                write!(out, r#""kind":"request","id":{},"#, id.get())?;
                write!(out, r#""method":{},"params":{params}"#, Text(method))?;
            }
            Content::Frame(Frame::Notification { method, params }) => {
                write!(out, r#""kind":"notification","method":{},"params":{params}"#, Text(method))?;
            }
            Content::Frame(Frame::Response { id, outcome }) => {
                write!(out, r#""kind":"response","id":{},"#, id.get())?;
                match outcome {
                    Ok(result) => write!(out, r#""result":{result}"#)?,
                    Err(error) => write_error(out, error)?,
                }
            }
            Content::Dropped(why, bytes) => {
                let prefix = String::from_utf8_lossy(bytes.get(..PREFIX).unwrap_or(bytes));
                let (reason, prefix) = (JsonString::from(&*why.to_string()), JsonString::from(&*prefix));
                write!(out, r#""kind":"dropped","reason":{},"bytes":{},"#, Text(reason.as_json_str()), self.len)?;
                write!(out, r#""prefix":{}"#, Text(prefix.as_json_str()))?;
            }
        }
        out.write_all(b"}\n")
    }

    fn write_table(&self, out: &mut impl Write, styles: Styles) -> io::Result<()> {
        let (kind, id, what) = match self.content {
            Content::Frame(Frame::Request { id, method, params }) => ("request", id.get(), about(method, params)),
            Content::Frame(Frame::Notification { method, params }) => ("notification", "", about(method, params)),
            Content::Frame(Frame::Response { id, outcome: Ok(_) }) => ("response", id.get(), "result".into()),
            Content::Frame(Frame::Response { id, outcome: Err(error) }) => {
                ("response", id.get(), format!("error: {}", RpcError::from(error)))
            }
            Content::Dropped(why, bytes) => ("dropped", "", format!("{why}  {}", excerpt(why, bytes))),
        };
        let style = if matches!(self.content, Content::Dropped(..)) { styles.bad() } else { Style::new() };
        write!(out, "{:>6}  {style}{kind:<12}{style:#}  {:>9}  ", self.number, self.len)?;
        writeln!(out, "{:<18}  {style}{}{style:#}", without_middle(id, 18), shortened(&what, 160))
    }
}

/// The method, and of the params what tells one from another: sessions, status, type of event.
fn about(method: JsonStr<'_>, params: Json<'_>) -> String {
    let mut text = method.to_string_lossy().into_owned();
    let event_type = params.member("event").and_then(|event| event.member("type"));
    let names = ["sessionId", "parentSessionId", "childSessionId", "status"];
    for value in names.into_iter().map(|name| params.member(name)).chain([event_type]).flatten() {
        text.push_str("  ");
        text.push_str(&value.as_str().map_or(value.get().into(), JsonStr::to_string_lossy));
    }
    text
}

/// The part of a dropped line that tells most: around the fault, else the start.
fn excerpt(why: DropReason, bytes: &[u8]) -> String {
    let fault = match why {
        DropReason::NotAFrame(NotAFrame::Syntax(error)) => error.at,
        _ => 0,
    };
    let from = if fault > 40 { fault - 30 } else { 0 };
    let part = bytes.get(from..).unwrap_or_default();
    let text = String::from_utf8_lossy(part.get(..PREFIX).unwrap_or(part));
    format!("{}{}", if from > 0 { "…" } else { "" }, shortened(&text, 60))
}

/// A string as `JSON.stringify` writes it, however it was written.
struct Text<'a>(JsonStr<'a>);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_buf().as_json_str().get())
    }
}

/// The members that count, as the reference reads them.
fn write_error(out: &mut impl Write, error: ErrorObject<'_>) -> io::Result<()> {
    out.write_all(br#""error":{"#)?;
    if let Some(code) = error.code() {
        write!(out, r#""code":{code},"#)?;
    }
    match error.message() {
        Some(message) => write!(out, r#""message":{}"#, Text(message))?,
        None => out.write_all(br#""message":"JSON-RPC error""#)?,
    }
    if let Some(data) = error.data() {
        write!(out, r#","data":{data}"#)?;
    }
    out.write_all(b"}")
}

#[derive(Default)]
struct Counts {
    bytes: u64,
    lines: u64,
    requests: u64,
    notifications: u64,
    responses: u64,
    dropped: u64,
    blank: u64,
}

impl Counts {
    fn add(&mut self, content: &Content<'_>) {
        let count = match content {
            Content::Frame(Frame::Request { .. }) => &mut self.requests,
            Content::Frame(Frame::Notification { .. }) => &mut self.notifications,
            Content::Frame(Frame::Response { .. }) => &mut self.responses,
            Content::Dropped(..) => &mut self.dropped,
        };
        *count += 1;
    }

    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { bytes, lines, requests, notifications, responses, dropped, blank } = self;
        write!(out, r#"{{"kind":"summary","bytes":{bytes},"lines":{lines},"requests":{requests},"#)?;
        write!(out, r#""notifications":{notifications},"responses":{responses},"#)?;
        writeln!(out, r#""dropped":{dropped},"blank":{blank}}}"#)
    }

    fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { bytes, lines, requests, notifications, responses, dropped, blank } = self;
        write!(out, "{lines} lines, {bytes} bytes: {requests} requests, {notifications} notifications, ")?;
        writeln!(out, "{responses} responses, {dropped} dropped, {blank} blank")
    }
}
