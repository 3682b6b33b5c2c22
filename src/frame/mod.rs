//! One line ↔ one frame, total and pure.
//!
//! [`Frame::parse`] accepts a line exactly when the reference transport would dispatch it, and takes it for the same
//! kind of frame. It looks only at the presence and the JSON kind of the top-level members:
//!
//! | `id` | `method` | taken as |
//! |---|---|---|
//! | string or number | string | request |
//! | string or number | absent or no string | response |
//! | absent or another kind | string | notification |
//! | anything else | | [`NotAFrame`] |
//!
//! `jsonrpc` and members that have no part in this are ignored; of duplicate members the last counts.

#[cfg(feature = "std")]
mod append;
#[cfg(not(feature = "std"))]
#[path = "append_no_std.rs"]
mod append;
mod encode;
mod envelope;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use encode::{EncodeError, encode_error, encode_notification, encode_request, encode_result};
pub(crate) use encode::{LineWriter, encode_notification_with};

use self::envelope::{Envelope, piece};
use crate::json::{self, Json, JsonBuf, JsonStr, Kind, SyntaxError, SyntaxErrorKind};

/// One JSON-RPC message, lent from its line.
///
/// ```
/// use dsh_wire::frame::Frame;
///
/// let frame = Frame::parse(r#"{"id":1.0,"method":"session/prompt","params":[7]}"#)?;
/// let Frame::Request { id, method, params } = frame else { panic!("{frame:?}") };
/// assert_eq!((id.get(), params.get()), ("1.0", "{}"));
/// assert_eq!(method, "session/prompt");
/// # Ok::<(), dsh_wire::frame::NotAFrame>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Wants an answer with its id.
    Request {
        /// To be echoed byte for byte.
        id: Id<'a>,
        /// May be empty.
        method: JsonStr<'a>,
        /// An object.
        params: Params<'a>,
    },
    /// Answers a request.
    Response {
        /// The id of that request, if the peer is right.
        id: Id<'a>,
        /// What it was answered.
        outcome: Outcome<'a>,
    },
    /// Wants no answer.
    Notification {
        /// May be empty.
        method: JsonStr<'a>,
        /// An object.
        params: Params<'a>,
    },
}

/// The answer in a response: the result (`null` where it is absent), or the error.
pub type Outcome<'a> = Result<Json<'a>, ErrorObject<'a>>;

/// Params as a handler sees them: always an object, [`Json::EMPTY_OBJECT`] where the wire had something else.
pub type Params<'a> = Json<'a>;

/// The id of a request: the JSON text of a string or a number. Compared and echoed as text, so that `1` and `1.0`
/// stay what they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<'a>(Json<'a>);

impl<'a> Id<'a> {
    /// An id of one's own choice; `None` where it is no string or number.
    #[must_use]
    pub fn new(json: Json<'a>) -> Option<Self> {
        matches!(json.kind(), Kind::String | Kind::Number).then_some(Self(json))
    }

    /// A string or number that the scanner has proved.
    pub(crate) fn from_proved(json: Json<'a>) -> Self {
        Self(json)
    }

    /// The text, byte for byte as on the wire.
    #[must_use]
    pub fn get(self) -> &'a str {
        self.0.get()
    }

    /// The same as a value.
    #[must_use]
    pub fn as_json(self) -> Json<'a> {
        self.0
    }
}

impl fmt::Debug for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// The error member of a response, read as the reference does: any object or array counts; `code` counts if it is a
/// number, `message` if it is a string. Of duplicates the last counts, also where its kind does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorObject<'a>(Json<'a>);

impl<'a> ErrorObject<'a> {
    /// An error of one's own choice; `None` where it is no object or array.
    #[must_use]
    pub fn new(raw: Json<'a>) -> Option<Self> {
        matches!(raw.kind(), Kind::Object | Kind::Array).then_some(Self(raw))
    }

    /// The whole member as on the wire.
    #[must_use]
    pub fn raw(&self) -> Json<'a> {
        self.0
    }

    /// The code, a number of any size.
    #[must_use]
    pub fn code(&self) -> Option<Json<'a>> {
        self.0.member("code").filter(|code| code.kind() == Kind::Number)
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> Option<JsonStr<'a>> {
        self.0.member("message")?.as_str()
    }

    /// The data, verbatim.
    #[must_use]
    pub fn data(&self) -> Option<Json<'a>> {
        self.0.member("data")
    }
}

impl fmt::Debug for ErrorObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What a peer answered instead of a result; owns it all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RpcError {
    /// The code; `None` where the peer sent none, or none that is a whole number of 64 bits.
    pub code: Option<i64>,
    /// The message, or `JSON-RPC error` where the peer sent none.
    pub message: String,
    /// The data, verbatim.
    pub data: Option<JsonBuf>,
    /// The whole error member as on the wire.
    pub raw: JsonBuf,
}

impl RpcError {
    /// An error of one's own choice.
    pub fn new(code: i64, message: impl Into<String>, data: Option<JsonBuf>) -> Self {
        struct Raw<'a> {
            code: i64,
            message: &'a str,
            data: Option<&'a JsonBuf>,
        }
        crate::json::written!(['a] Raw<'a> {
            code => "code",
            message => "message",
            data unless Option::is_none => "data",
        });
        let message = message.into();
        let raw = JsonBuf::from_serialize(&Raw { code, message: &message, data: data.as_ref() })
            .expect("a number, a text and what is JSON already can be written");
        Self { code: Some(code), message, data, raw }
    }
}

impl From<ErrorObject<'_>> for RpcError {
    fn from(error: ErrorObject<'_>) -> Self {
        Self {
            code: error.code().and_then(Json::as_i64),
            message: error.message().map_or_else(|| "JSON-RPC error".into(), |text| text.to_string_lossy().into()),
            data: error.data().map(Json::to_buf),
            raw: error.raw().to_buf(),
        }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} (code {code})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl core::error::Error for RpcError {}

/// JSON-RPC 2.0 §5.1: the method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC 2.0 §5.1: internal error; the only code that the official runtime sends.
pub const INTERNAL_ERROR: i64 = -32603;

/// Why a line is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAFrame {
    /// Nothing is left after the trim.
    Blank,
    /// It is not JSON. The offset is one in the line as received, unless broken UTF-8 before it was repaired.
    Syntax(SyntaxError),
    /// It looks like the header of another framing, `Content-Length: …`; this protocol has one frame a line.
    HeaderFraming,
    /// It is JSON, but no object; batches (arrays) are not part of this protocol.
    NotAnObject(Kind),
    /// It is an object with neither a method that is a string nor an id that is a string or number.
    NoMethodNoId,
}

impl fmt::Display for NotAFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("a blank line"),
            Self::Syntax(error) => error.fmt(f),
            Self::HeaderFraming => f.write_str("a header of another framing; frames are lines of JSON here"),
            Self::NotAnObject(Kind::Array) => f.write_str("a JSON array; batches are not part of this protocol"),
            Self::NotAnObject(kind) => write!(f, "a JSON value of kind {kind:?}, where a frame is an object"),
            Self::NoMethodNoId => f.write_str("an object with neither a method nor an id that counts"),
        }
    }
}

impl core::error::Error for NotAFrame {}

impl<'a> Frame<'a> {
    /// Reads one line. JavaScript's white space around it is trimmed.
    ///
    /// # Errors
    /// Why the reference transport would drop the line.
    pub fn parse(line: &'a str) -> Result<Self, NotAFrame> {
        let text = json::trim(line);
        let (envelope, head) = match Envelope::foreseen(text) {
            Some(foreseen) => foreseen,
            None => (Envelope::read(line, text)?, None),
        };
        let id = piece(text, envelope.id).and_then(Id::new);
        let method = piece(text, envelope.method).and_then(Json::as_str);
        let params = piece(text, envelope.params).filter(|json| json.kind() == Kind::Object);
        let params = params.map_or(Json::EMPTY_OBJECT, |json| json.with_head(head));
        match (id, method) {
            (Some(id), Some(method)) => Ok(Self::Request { id, method, params }),
            (None, Some(method)) => Ok(Self::Notification { method, params }),
            (Some(id), None) => {
                let outcome = match piece(text, envelope.error).and_then(ErrorObject::new) {
                    Some(error) => Err(error),
                    None => Ok(piece(text, envelope.result).unwrap_or(Json::NULL)),
                };
                Ok(Self::Response { id, outcome })
            }
            (None, None) => Err(NotAFrame::NoMethodNoId),
        }
    }

    /// Reads one line as bytes: broken UTF-8 is repaired with U+FFFD first, into `scratch`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn decode(line: &'a [u8], scratch: &'a mut String) -> Result<Self, NotAFrame> {
        Self::parse(json::repair(line, scratch))
    }

    /// Appends the frame as one line. [`parse`](Self::parse) gives the same frame again.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut line = encode::LineWriter::new(out);
        match *self {
            Self::Request { id, method, params } => {
                line.text(r#"{"jsonrpc":"2.0","id":"#).text(id.get()).text(r#","method":"#).text(method.get());
                line.text(r#","params":"#).text(params.get());
            }
            Self::Notification { method, params } => {
                line.text(r#"{"jsonrpc":"2.0","method":"#).text(method.get()).text(r#","params":"#).text(params.get());
            }
            Self::Response { id, outcome } => {
                line.text(r#"{"jsonrpc":"2.0","id":"#).text(id.get());
                match outcome {
                    Ok(result) => line.text(r#","result":"#).text(result.get()),
                    Err(error) => line.text(r#","error":"#).text(error.raw().get()),
                };
            }
        }
        line.finish();
    }
}

/// What a line over the limit begins like, judged by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beginning<'a> {
    pub(crate) id: Id<'a>,
    /// `None` in a response.
    pub(crate) method: Option<JsonStr<'a>>,
}

impl<'a> Beginning<'a> {
    /// `None` unless the first bytes hold a whole `id` that counts, and either a whole `method` or none at all.
    pub(crate) fn of(prefix: &'a [u8], scratch: &'a mut String) -> Option<Self> {
        let text = json::repair(prefix, scratch).trim_start_matches(json::is_white);
        let mut envelope = Envelope::default();
        let mut behind = 1;
        let proved = json::validate(text, |name, value| {
            behind = value.end;
            envelope.note(text, name, value);
        });
        // A text that is whole goes on with white space behind the prefix.
        if proved.is_err_and(|error| error.kind != SyntaxErrorKind::UnexpectedEnd) {
            return None;
        }
        // The name of the member that the prefix ends in.
        let last = text.get(behind..)?.trim_start_matches([' ', '\t', '\r', ',']);
        if json::leading_string(last).is_some_and(|name| name == "method") {
            return None;
        }
        let id = Id::new(piece(text, envelope.id)?)?;
        Some(Self { id, method: piece(text, envelope.method).and_then(Json::as_str) })
    }
}
