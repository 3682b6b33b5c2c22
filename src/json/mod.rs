//! JSON as text: what is on the wire stays as it is until somebody asks.
//!
//! [`Json`] is a piece of text that has been proved to be one JSON value. It is `Copy`, lends from the line it came
//! from and keeps every byte: numbers are text, strings keep their escapes, duplicate members are all there (the
//! last one wins, as in JavaScript). [`JsonStr`] is a string value. [`JsonBuf`] and [`JsonString`] own.
//!
//! serde_json refuses lone surrogates, duplicate struct members and `1.0` as an integer, all of which this protocol
//! carries, so none of it stands between the wire and the reader; [`Json::parse`] uses it for the caller's own types.

#[cfg(feature = "simd")]
mod blocks;
mod event_head;
#[cfg(feature = "simd")]
mod fast;
#[cfg(not(feature = "simd"))]
#[path = "fast_unavailable.rs"]
mod fast;
mod foreseen;
mod scan;
mod text;
mod tokens;
mod value;
mod walk;
mod written;

pub use scan::{SyntaxError, SyntaxErrorKind};
pub use text::{repair, trim};
pub use value::{Json, JsonBuf, JsonStr, JsonString, Kind};
pub use walk::{Elements, Members};

pub(crate) use event_head::EventHead;
pub(crate) use fast::{UTF8_BLOCK, is_container, utf8};
pub(crate) use foreseen::Foreseen;
pub(crate) use scan::{leading_string, skip_plain, validate};
pub(crate) use text::{is_blank, is_white, push_escaped};
pub(crate) use tokens::{Token, TokenKind, Tokens};
pub(crate) use written::written;
