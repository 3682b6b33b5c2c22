//! Structured input for fuzzers of programs that speak this protocol, by the crate `arbitrary`.
//!
//! Bytes at random hardly ever make a frame, so a fuzzer that has only them tests the refusal of noise. [`AnyLine`]
//! is a line that a peer could send: mostly a frame of this protocol, sometimes one of another, sometimes damaged.
//! [`Traffic`] is a stream of them in pieces as reads would bring them. [`JsonBuf`] and [`JsonString`] are
//! [`Arbitrary`] too. A fuzz target for a server is as short as this (`examples/fuzz_server.rs` is a whole one):
//!
//! ```
//! use arbitrary::{Arbitrary, Unstructured};
//! use dsh_wire::fuzz::Traffic;
//! use dsh_wire::server::Server;
//!
//! fn target(traffic: Traffic) {
//!     let mut server = Server::with_seed(7);
//!     for piece in traffic.pieces() {
//!         server.push(piece);
//!         while let Some(task) = server.next_task() {
//!             // What the host does.
//!             drop(task);
//!         }
//!     }
//! }
//!
//! // With cargo-fuzz this line is `fuzz_target!(|traffic: Traffic| target(traffic));`.
//! target(Traffic::arbitrary(&mut Unstructured::new(b"the bytes of the fuzzer"))?);
//! # Ok::<(), arbitrary::Error>(())
//! ```

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::frame::{ErrorObject, Frame, Id};
use crate::json::{JsonBuf, JsonString, push_escaped};
use crate::wire::{
    Initialize, Method, Prompt, Resume, SessionEventParams, SessionFinishedParams, SessionStatusParams, Shutdown,
    SubagentFinishedParams, SubagentStartedParams, Wait, WorkingDirectoryGet, WorkingDirectorySet,
};

/// One line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyLine {
    /// A request.
    Request {
        /// A string or a number.
        id: JsonBuf,
        /// Mostly one of the protocol's.
        method: JsonString,
        /// An object, mostly with members that the protocol knows.
        params: JsonBuf,
    },
    /// A notification.
    Notification {
        /// Mostly one of the protocol's.
        method: JsonString,
        /// An object, mostly with members that the protocol knows.
        params: JsonBuf,
    },
    /// A response with a result.
    Result {
        /// A string or a number.
        id: JsonBuf,
        /// Anything.
        result: JsonBuf,
    },
    /// A response with an error.
    Error {
        /// A string or a number.
        id: JsonBuf,
        /// An object or an array.
        error: JsonBuf,
    },
    /// Anything else, without its line end: noise, a damaged frame, one that is written in an unusual way.
    Odd(Vec<u8>),
}

impl AnyLine {
    /// The frame that it is; `None` for an odd one, which may be a frame all the same.
    #[must_use]
    pub fn frame(&self) -> Option<Frame<'_>> {
        match self {
            Self::Request { id, method, params } => Some(Frame::Request {
                id: Id::new(id.as_json())?,
                method: method.as_json_str(),
                params: params.as_json(),
            }),
            Self::Notification { method, params } => {
                Some(Frame::Notification { method: method.as_json_str(), params: params.as_json() })
            }
            Self::Result { id, result } => {
                Some(Frame::Response { id: Id::new(id.as_json())?, outcome: Ok(result.as_json()) })
            }
            Self::Error { id, error } => {
                Some(Frame::Response { id: Id::new(id.as_json())?, outcome: Err(ErrorObject::new(error.as_json())?) })
            }
            Self::Odd(_) => None,
        }
    }

    /// Appends the line with its `\n`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match (self, self.frame()) {
            (Self::Odd(bytes), _) => out.extend(bytes.iter().chain(b"\n")),
            (_, Some(frame)) => frame.encode(out),
            // An id or an error of another kind than it says.
            (_, None) => out.push(b'\n'),
        }
    }
}

impl<'a> Arbitrary<'a> for AnyLine {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=9)? {
            0..=3 => Self::Request { id: id(u)?, method: method(u)?, params: params(u)? },
            4..=5 => Self::Notification { method: method(u)?, params: params(u)? },
            6 => Self::Result { id: id(u)?, result: u.arbitrary()? },
            7 => {
                let (code, message) = (number(u)?, quoted(u)?);
                let error = match u.int_in_range(0..=2)? {
                    0 => format!(r#"{{"code":{code},"message":{message}}}"#),
                    1 => format!(r#"{{"code":{code},"message":{message},"data":{}}}"#, text(u)?),
                    _ => String::from("[]"),
                };
                Self::Error { id: id(u)?, error: proved(&error) }
            }
            _ => Self::Odd(odd(u)?),
        })
    }
}

/// A stream of lines, cut anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    bytes: Vec<u8>,
    /// Ascending; none beyond `bytes`.
    cuts: Vec<usize>,
}

impl Traffic {
    /// The whole stream.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The stream in the pieces in which it comes; none is empty.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.cuts.iter().copied().chain([self.bytes.len()]);
        let starts = core::iter::once(0).chain(self.cuts.iter().copied());
        starts.zip(ends).filter_map(|(from, to)| self.bytes.get(from..to)).filter(|piece| !piece.is_empty())
    }
}

impl<'a> Arbitrary<'a> for Traffic {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let count = u.int_in_range(0..=15)?;
        let mut cuts = (0..count).map(|_| u.arbitrary::<u16>()).collect::<Result<Vec<_>>>()?;
        let mut bytes = Vec::new();
        while !u.is_empty() {
            AnyLine::arbitrary(u)?.write(&mut bytes);
        }
        cuts.sort_unstable();
        // In shares of the whole, so that they fall anywhere.
        let cuts = cuts.iter().map(|cut| bytes.len() * usize::from(*cut) / usize::from(u16::MAX)).collect();
        Ok(Self { bytes, cuts })
    }
}

/// Any value, of a few levels.
impl<'a> Arbitrary<'a> for JsonBuf {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(proved(&text(u)?))
    }
}

/// Any string, also one that is no Unicode.
impl<'a> Arbitrary<'a> for JsonString {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(proved(&quoted(u)?).as_json().as_str().expect("it is written in quotes here").into())
    }
}

fn proved(text: &str) -> JsonBuf {
    JsonBuf::new(text).expect("it is written as JSON here")
}

fn method(u: &mut Unstructured<'_>) -> Result<JsonString> {
    const METHODS: [&str; 13] = [
        Initialize::NAME,
        Prompt::NAME,
        Resume::NAME,
        Wait::NAME,
        WorkingDirectoryGet::NAME,
        WorkingDirectorySet::NAME,
        Shutdown::NAME,
        SessionEventParams::METHOD,
        SessionStatusParams::METHOD,
        SessionFinishedParams::METHOD,
        SubagentStartedParams::METHOD,
        SubagentFinishedParams::METHOD,
        "",
    ];
    if u.ratio(1, 8)? { u.arbitrary() } else { Ok((*u.choose(&METHODS)?).into()) }
}

/// Few different ones, so that they meet again.
fn id(u: &mut Unstructured<'_>) -> Result<JsonBuf> {
    Ok(proved(&match u.int_in_range(0..=9)? {
        0 => number(u)?,
        1 => quoted(u)?,
        2 => (*u.choose(&["1.0", "-0", "1e400", "\"\"", "\"1\"", "12345678901234567890"])?).into(),
        n => format!("{}", n - 3),
    }))
}

/// An object with the members that the protocol's methods and notifications have.
fn params(u: &mut Unstructured<'_>) -> Result<JsonBuf> {
    if u.ratio(1, 8)? {
        return Ok(proved(&members(u, 2)?));
    }
    let session = |u: &mut Unstructured<'_>| u.choose(&["\"s\"", "\"t\"", "\"\\u0073\"", "\"\""]).copied();
    let mut out = format!(r#"{{"sessionId":{}"#, session(u)?);
    for _ in 0..u.int_in_range(0..=4)? {
        let member = match u.int_in_range(0..=9)? {
            0 => {
                format!(r#""contentBlocks":[{{"type":"text","text":{}}}]"#, quoted(u)?)
            }
            1 => format!(r#""contentBlocks":{}"#, text(u)?),
            2 => r#""cwd":"/","provider":"p","model":"m""#.into(),
            3 => format!(r#""maxTokens":{}"#, number(u)?),
            4 => format!(r#""path":{}"#, quoted(u)?),
            5 => {
                let kind = u.choose(&["agent/inbox/spliced", "assistant/message", "turn/end", "tool/call"])?;
                format!(r#""event":{{"type":"{kind}","seq":{},"time":{},"data":{}}}"#, number(u)?, number(u)?, text(u)?)
            }
            6 => format!(r#""status":"{}""#, u.choose(&["running", "idle", "ok", "error"])?),
            7 => format!(r#""parentSessionId":{},"childSessionId":{}"#, session(u)?, session(u)?),
            8 => format!(r#""agentId":"a","provider":"spawn","stopReason":{}"#, text(u)?),
            _ => format!(r#"{}:{}"#, quoted(u)?, text(u)?),
        };
        out.push(',');
        out.push_str(&member);
    }
    out.push('}');
    Ok(proved(&out))
}

fn odd(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    const NOISE: [&str; 10] = [
        "",
        "banner",
        "}",
        "null",
        "[{\"id\":1,\"method\":\"a\"}]",
        "Content-Length: 20",
        "{\"id\":1,\"method\":\"a\"}{}",
        "{\"id\":1,\"method\":\"a\",}",
        "\u{feff}{\"method\":\"a\"}\r",
        "{\"\\u0069d\":2,\"id\":null,\"method\":7,\"result\":0,\"error\":null,\"id\":3}",
    ];
    let mut line = match u.int_in_range(0..=3)? {
        0 => return Ok((*u.choose(&NOISE)?).into()),
        1 => {
            let depth = u.int_in_range(1..=300)?;
            return Ok(format!(
                r#"{{"id":1,"method":"deep","params":{{"a":{}{}}}}}"#,
                "[".repeat(depth),
                "]".repeat(depth)
            )
            .into());
        }
        2 => members(u, 0)?.into_bytes(),
        _ => {
            let (id, method, params) = (id(u)?, method(u)?, params(u)?);
            let (id, method, params) = (id.as_json(), method.as_json_str().get(), params.as_json());
            format!("{{\"params\" : {params} ,\t\"method\":{method},\"id\":{id}}}").into_bytes()
        }
    };
    for _ in 0..u.int_in_range(0..=2)? {
        let at = u.int_in_range(0..=line.len())?;
        match u.int_in_range(0..=2)? {
            0 => line.insert(at, u.arbitrary()?),
            1 => line.truncate(at),
            _ => drop(line.splice(
                at..at,
                u.choose(&[&b"\xff"[..], b"\xed\xa0\xbd", b"\\u", b"\"", b",", b"\xe2\x80\xa8"])?.iter().copied(),
            )),
        }
    }
    line.retain(|byte| *byte != b'\n');
    Ok(line)
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    let mut out = String::new();
    value(u, 0, &mut out)?;
    Ok(out)
}

fn value(u: &mut Unstructured<'_>, depth: u8, out: &mut String) -> Result<()> {
    match u.int_in_range(0..=if depth < 4 { 6 } else { 4 })? {
        0 => out.push_str(u.choose(&["null", "true", "false"])?),
        1 | 2 => out.push_str(&number(u)?),
        3 | 4 => string(u, out)?,
        5 => {
            out.push('[');
            for index in 0..u.int_in_range(0..=3)? {
                out.push_str(if index > 0 { "," } else { "" });
                value(u, depth + 1, out)?;
            }
            out.push(']');
        }
        _ => out.push_str(&members(u, depth + 1)?),
    }
    Ok(())
}

fn quoted(u: &mut Unstructured<'_>) -> Result<String> {
    let mut out = String::new();
    string(u, &mut out)?;
    Ok(out)
}

/// An object.
fn members(u: &mut Unstructured<'_>, depth: u8) -> Result<String> {
    const NAMES: [&str; 7] = ["id", "method", "params", "result", "error", "jsonrpc", "sessionId"];
    let mut out = String::from("{");
    for index in 0..u.int_in_range(0..=3)? {
        out.push_str(if index > 0 { "," } else { "" });
        match u.choose_index(NAMES.len() * 2)? {
            known @ ..7 => out.push_str(&format!("\"{}\"", NAMES.get(known).unwrap_or(&""))),
            _ => string(u, &mut out)?,
        }
        out.push(':');
        value(u, depth, &mut out)?;
    }
    out.push('}');
    Ok(out)
}

fn number(u: &mut Unstructured<'_>) -> Result<String> {
    const ODD: [&str; 8] = ["-0", "1.0", "1e3", "1E-7", "1e400", "9007199254740993", "0.1", "-12345678901234567890"];
    Ok(match u.int_in_range(0..=3)? {
        0 => (*u.choose(&ODD)?).into(),
        1 => format!("{}", u.arbitrary::<i64>()?),
        _ => format!("{}", u.arbitrary::<u8>()?),
    })
}

fn string(u: &mut Unstructured<'_>, out: &mut String) -> Result<()> {
    out.push('"');
    for _ in 0..u.int_in_range(0..=8)? {
        match u.int_in_range(0..=5)? {
            0 => push_escaped(out, u.arbitrary::<u16>()?.into()),
            1 => push_escaped(out, u.arbitrary::<char>()?.into()),
            2 => out.push_str(u.choose(&["\\ud83d\\ude00", "\\ud83d", "\\/", "\\u0000", "\\\"", "\\\\"])?),
            _ => push_escaped(out, u.int_in_range(0x20..=0x7e)?),
        }
    }
    out.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// Xorshift.
    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn a_line_is_the_frame_that_it_says_and_every_kind_comes() {
        let mut kinds = [0; 5];
        let (mut frames, mut known) = (0, 0);
        for seed in 0..4000 {
            let bytes = bytes(seed * 2 + 1, 300);
            let line = AnyLine::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
            let mut out = vec![];
            line.write(&mut out);
            assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
            let mut scratch = String::new();
            let parsed = Frame::decode(out.strip_suffix(b"\n").unwrap(), &mut scratch);
            let kind = match &line {
                AnyLine::Request { .. } => 0,
                AnyLine::Notification { .. } => 1,
                AnyLine::Result { .. } => 2,
                AnyLine::Error { .. } => 3,
                AnyLine::Odd(_) => 4,
            };
            kinds[kind] += 1;
            match line.frame() {
                Some(frame) => assert_eq!(parsed, Ok(frame)),
                None => frames += u32::from(parsed.is_ok()),
            }
            if let Ok(Frame::Notification { method, params }) = parsed {
                known += u32::from(crate::wire::Notification::decode(method, params).is_ok());
            }
        }
        assert!(kinds.iter().all(|count| *count > 100), "{kinds:?}");
        assert!(frames > 50 && known > 50, "{frames} odd lines are frames, {known} notifications are well-formed");
    }

    #[test]
    fn the_pieces_are_the_stream() {
        let mut pieces = 0;
        for seed in 0..500 {
            let bytes = bytes(seed * 2 + 1, 600);
            let traffic = Traffic::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
            assert_eq!(traffic.pieces().collect::<Vec<_>>().concat(), traffic.bytes());
            pieces += traffic.pieces().count();
        }
        assert!(pieces > 2000, "{pieces}");
    }
}
