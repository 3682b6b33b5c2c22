//! One JSON object for each line.

use std::fmt::{self, Display};
use std::io::{self, Write};

use dsh_wire::frame::{ErrorObject, Frame};
use dsh_wire::json::{JsonStr, JsonString};

use super::input::{Content, Item};
use crate::terminal::VisibleJson;

/// How much of a dropped line is shown, in bytes.
const PREFIX: usize = 256;

/// Of the wire's own text, only what a terminal would obey is written as an escape.
/// `row` is room for it.
pub(crate) fn write_row(out: &mut impl Write, item: &Item<'_>, row: &mut String) -> io::Result<()> {
    row.clear();
    // A string takes everything.
    let _ = write(row, item);
    write!(out, "{}", VisibleJson(row))
}

fn write(out: &mut impl fmt::Write, item: &Item<'_>) -> fmt::Result {
    write!(out, r#"{{"line":{},"#, item.number)?;
    if let Some(origin) = item.origin {
        let (seconds, micros) = (origin.at.as_secs(), origin.at.subsec_micros());
        write!(out, r#""t":{seconds}.{micros:06},"dir":"{}","#, origin.direction.name())?;
    }
    match &item.content {
        Content::Frame(Frame::Request { id, method, params }) => {
            write!(out, r#""kind":"request","id":{},"#, id.get())?;
            write!(out, r#""method":{},"params":{params}"#, Text(*method))?;
        }
        Content::Frame(Frame::Notification { method, params }) => {
            write!(out, r#""kind":"notification","method":{},"params":{params}"#, Text(*method))?;
        }
        Content::Frame(Frame::Response { id, outcome }) => {
            write!(out, r#""kind":"response","id":{},"#, id.get())?;
            match outcome {
                Ok(result) => write!(out, r#""result":{result}"#)?,
                Err(error) => write_error(out, *error)?,
            }
        }
        Content::Dropped(why) => write_other(out, "dropped", why, item)?,
        Content::Damaged(why) => write_other(out, "damaged", why, item)?,
        Content::Stderr => {
            let text = JsonString::from(&*String::from_utf8_lossy(item.bytes));
            write!(out, r#""kind":"stderr","text":{}"#, Text(text.as_json_str()))?;
        }
        Content::Lost => write!(out, r#""kind":"lost","bytes":{}"#, item.len)?,
    }
    out.write_str("}\n")
}

fn write_other(out: &mut impl fmt::Write, kind: &str, why: &dyn Display, item: &Item<'_>) -> fmt::Result {
    let (len, bytes) = (item.len, item.bytes);
    let prefix = JsonString::from(&*String::from_utf8_lossy(bytes.get(..PREFIX).unwrap_or(bytes)));
    let why = JsonString::from(&*why.to_string());
    write!(out, r#""kind":"{kind}","reason":{},"bytes":{len},"#, Text(why.as_json_str()))?;
    write!(out, r#""prefix":{}"#, Text(prefix.as_json_str()))
}

/// A string as `JSON.stringify` writes it, however it was written.
struct Text<'a>(JsonStr<'a>);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_buf().as_json_str().get())
    }
}

/// The members that count, as the reference reads them.
fn write_error(out: &mut impl fmt::Write, error: ErrorObject<'_>) -> fmt::Result {
    out.write_str(r#""error":{"#)?;
    if let Some(code) = error.code() {
        write!(out, r#""code":{code},"#)?;
    }
    match error.message() {
        Some(message) => write!(out, r#""message":{}"#, Text(message))?,
        None => out.write_str(r#""message":"JSON-RPC error""#)?,
    }
    if let Some(data) = error.data() {
        write!(out, r#","data":{data}"#)?;
    }
    out.write_str("}")
}
