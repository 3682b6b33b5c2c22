//! [`Json`] and [`JsonStr`], and the forms that own.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::event_head::EventHead;
use super::fast::is_compact;
use super::scan::{self, SyntaxError};
use super::text::{CodePoints, push_escaped};
use super::walk::{Elements, Members};

/// One JSON value, as the text it has on the wire.
///
/// Reading never fails with a panic and never recurses; an accessor of another kind answers `None`.
///
/// ```
/// use dsh_wire::json::Json;
///
/// let json = Json::new(r#"{"seq": 7, "seq": 8.0, "tags": ["a", "b\ud83d"]}"#)?;
/// assert_eq!(json.member("seq").and_then(|seq| seq.as_u64()), Some(8));
/// let tags: Vec<_> = json.member("tags").into_iter().flat_map(|tags| tags.elements()).collect();
/// assert_eq!(tags[1].get(), r#""b\ud83d""#);
/// # Ok::<(), dsh_wire::json::SyntaxError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Json<'a> {
    /// One value by the grammar of RFC 8259, with no white space around it.
    text: &'a str,
    /// Of the params of an event; no part of the value.
    head: Option<EventHead>,
}

/// The kinds of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of RFC 8259")]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// With its article, for messages.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

impl<'a> Json<'a> {
    /// `null`, also what an absent `result` means.
    pub const NULL: Json<'static> = Json::from_proved("null");
    /// `{}`, also what params that are no object mean.
    pub const EMPTY_OBJECT: Json<'static> = Json::from_proved("{}");

    /// `[]`.
    pub const EMPTY_ARRAY: Json<'static> = Json::from_proved("[]");

    /// Proves a text to be one JSON value, white space around it allowed.
    ///
    /// # Errors
    /// The first place at which it is not.
    pub fn new(text: &'a str) -> Result<Self, SyntaxError> {
        if is_compact(text) {
            return Ok(Self::from_proved(text));
        }
        let range = scan::validate(text, |_, _| {})?;
        Ok(Self::from_proved(text.get(range).unwrap_or_default()))
    }

    /// A piece that the scanner has proved.
    pub(crate) const fn from_proved(text: &'a str) -> Self {
        Self { text, head: None }
    }

    /// The same, of which the parts have been found.
    pub(crate) const fn with_head(self, head: Option<EventHead>) -> Self {
        Self { text: self.text, head }
    }

    pub(super) const fn head(self) -> Option<EventHead> {
        self.head
    }

    /// The text, byte for byte as on the wire.
    #[must_use]
    pub const fn get(self) -> &'a str {
        self.text
    }

    /// What kind of value this is; looks at one byte.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The members of an object in wire order, duplicates included; nothing for other kinds.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members::new(self)
    }

    /// The elements of an array; nothing for other kinds.
    #[must_use]
    pub fn elements(self) -> Elements<'a> {
        Elements::new(self)
    }

    /// The member of an object with this name; of duplicates the last.
    #[must_use]
    pub fn member(self, name: &str) -> Option<Json<'a>> {
        self.members().filter(|(key, _)| *key == *name).last().map(|(_, value)| value)
    }

    /// The string, where this is one.
    #[must_use]
    pub fn as_str(self) -> Option<JsonStr<'a>> {
        (self.kind() == Kind::String).then_some(JsonStr { text: self.text })
    }

    /// The boolean, where this is one.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The number as JavaScript reads it: the nearest double, infinite where it is too large for one.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        if self.kind() == Kind::Number { self.text.parse().ok() } else { None }
    }

    /// The number, where it is a whole one in the range of `u64`, however it is written (`8`, `8.0`, `8e0`).
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        if self.kind() != Kind::Number {
            return None;
        }
        self.text.parse().ok().or_else(|| {
            // 2^64 as a double; `as` rounds nothing off a whole number below it.
            self.as_f64()
                .filter(|n| (0.0..18_446_744_073_709_551_616.0).contains(n) && n % 1.0 == 0.0)
                .map(|n| n as u64)
        })
    }

    /// The number, where it is a whole one in the range of `i64`, however it is written.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        if self.kind() != Kind::Number {
            return None;
        }
        self.text.parse().ok().or_else(|| {
            const LIMIT: f64 = 9_223_372_036_854_775_808.0;
            self.as_f64().filter(|n| (-LIMIT..LIMIT).contains(n) && n % 1.0 == 0.0).map(|n| n as i64)
        })
    }

    /// Decodes the value into a type of the caller's through serde_json, with serde_json's limits: no lone
    /// surrogates in strings, no duplicate members in structs, 128 levels.
    ///
    /// # Errors
    /// What serde_json reports.
    pub fn parse<T: Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text)
    }

    /// Copies the text.
    #[must_use]
    pub fn to_buf(self) -> JsonBuf {
        JsonBuf { text: self.text.into() }
    }
}

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Json<'_> {}

impl PartialOrd for Json<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Json<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(other.text)
    }
}

impl Hash for Json<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// Writes the text as it is, through serde_json's raw values; of use with serde_json only.
impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A string on the wire. It keeps its escapes; two are equal when they say the same to JavaScript, however written.
///
/// ```
/// use dsh_wire::json::Json;
///
/// let name = Json::new(r#""\u0069d""#)?.as_str().unwrap();
/// assert_eq!(name, "id");
/// let lone = Json::new(r#""cut \ud83d""#)?.as_str().unwrap();
/// assert_eq!(lone.to_string_lossy(), "cut \u{fffd}");
/// assert_eq!(lone.get(), r#""cut \ud83d""#);
/// # Ok::<(), dsh_wire::json::SyntaxError>(())
/// ```
#[derive(Clone, Copy)]
pub struct JsonStr<'a> {
    /// A string by the grammar of RFC 8259, quotes included.
    text: &'a str,
}

impl<'a> JsonStr<'a> {
    /// A string that the scanner has proved, quotes included.
    pub(crate) const fn from_proved(text: &'a str) -> Self {
        Self { text }
    }

    /// The text with quotes and escapes, byte for byte as on the wire.
    #[must_use]
    pub const fn get(self) -> &'a str {
        self.text
    }

    /// The same as a value.
    #[must_use]
    pub const fn as_json(self) -> Json<'a> {
        Json::from_proved(self.text)
    }

    pub(crate) fn inside(self) -> &'a str {
        self.text.get(1..self.text.len().saturating_sub(1)).unwrap_or_default()
    }

    /// The string without quotes, where it is written without escapes: nothing to decode.
    #[must_use]
    pub fn as_plain(self) -> Option<&'a str> {
        let inside = self.inside();
        (!scan::has_escape(inside.as_bytes())).then_some(inside)
    }

    fn code_points(self) -> CodePoints<'a> {
        CodePoints(self.inside().chars())
    }

    /// The string with its escapes resolved; a lone surrogate, which Rust's strings cannot hold, becomes U+FFFD.
    #[must_use]
    pub fn to_string_lossy(self) -> Cow<'a, str> {
        match self.as_plain() {
            Some(plain) => Cow::Borrowed(plain),
            None => Cow::Owned(
                self.code_points().map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)).collect(),
            ),
        }
    }

    /// Copies the string, in the one way `JSON.stringify` would write it.
    #[must_use]
    pub fn to_buf(self) -> JsonString {
        let mut text = String::with_capacity(self.text.len());
        text.push('"');
        match self.as_plain() {
            Some(plain) => text.push_str(plain),
            None => self.code_points().for_each(|code| push_escaped(&mut text, code)),
        }
        text.push('"');
        JsonString { text: text.into_boxed_str() }
    }
}

impl PartialEq for JsonStr<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text || self.code_points().eq(other.code_points())
    }
}

impl Eq for JsonStr<'_> {}

impl PartialEq<str> for JsonStr<'_> {
    fn eq(&self, other: &str) -> bool {
        let inside = self.inside();
        // Every escape is longer than what it stands for.
        match inside.len().cmp(&other.len()) {
            Ordering::Less => false,
            Ordering::Equal => inside == other && !other.contains('\\'),
            Ordering::Greater => self.code_points().eq(other.chars().map(u32::from)),
        }
    }
}

impl PartialEq<&str> for JsonStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl Ord for JsonStr<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.code_points().cmp(other.code_points())
    }
}

impl PartialOrd for JsonStr<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for JsonStr<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.code_points().for_each(|code| code.hash(state));
    }
}

impl fmt::Debug for JsonStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// What the string says, with U+FFFD for a lone surrogate.
impl fmt::Display for JsonStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_string_lossy())
    }
}

impl Serialize for JsonStr<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_plain() {
            Some(plain) => serializer.serialize_str(plain),
            None => self.as_json().serialize(serializer),
        }
    }
}

/// One JSON value that owns its text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonBuf {
    /// As in [`Json`].
    text: Box<str>,
}

impl JsonBuf {
    /// Proves a text and keeps it.
    ///
    /// # Errors
    /// The first place at which it is not JSON.
    pub fn new(text: &str) -> Result<Self, SyntaxError> {
        Json::new(text).map(Json::to_buf)
    }

    /// Writes a value of the caller's as JSON.
    ///
    /// # Errors
    /// What serde_json reports, such as a map whose keys are no strings.
    pub fn from_serialize(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self { text: text.into_boxed_str() })
    }

    /// Lends it.
    #[must_use]
    pub fn as_json(&self) -> Json<'_> {
        Json::from_proved(&self.text)
    }
}

impl fmt::Debug for JsonBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for JsonBuf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_json().serialize(serializer)
    }
}

/// A string that owns its text, in the one way `JSON.stringify` writes it, so that two that say the same are the
/// same bytes. Unlike a `String` it can hold lone surrogates, as session ids of this protocol may.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonString {
    /// As in [`JsonStr`]; canonical.
    text: Box<str>,
}

impl JsonString {
    /// Lends it.
    #[must_use]
    pub fn as_json_str(&self) -> JsonStr<'_> {
        JsonStr { text: &self.text }
    }
}

impl From<&str> for JsonString {
    fn from(plain: &str) -> Self {
        let mut text = String::with_capacity(plain.len() + 2);
        text.push('"');
        plain.chars().for_each(|c| push_escaped(&mut text, c.into()));
        text.push('"');
        Self { text: text.into_boxed_str() }
    }
}

impl From<String> for JsonString {
    fn from(plain: String) -> Self {
        plain.as_str().into()
    }
}

impl From<&String> for JsonString {
    fn from(plain: &String) -> Self {
        plain.as_str().into()
    }
}

impl From<JsonStr<'_>> for JsonString {
    fn from(string: JsonStr<'_>) -> Self {
        string.to_buf()
    }
}

impl fmt::Debug for JsonString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for JsonString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_json_str().fmt(f)
    }
}

impl Serialize for JsonString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_json_str().serialize(serializer)
    }
}
