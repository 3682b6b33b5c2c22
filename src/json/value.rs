//! [`Json`] and [`JsonStr`], and the forms that own.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::fast::compact_object;
use super::scan::{self, SyntaxError};
use super::text::{CodePoints, push_escaped};

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
    /// What the scanner has seen in it; no part of the value.
    long: LongItem,
}

/// An item, long or not, of an object or array that is a member or element of a value: from the bracket or comma before
/// it to the one behind it. A walk that comes there need not look for its end. Offsets in the text of the value, which
/// has no white space between tokens; 0 and 0 where there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongItem {
    start: u32,
    end: u32,
}

impl LongItem {
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    /// From offsets in a text in which the value begins at `origin`.
    pub(crate) fn new(origin: usize, start: usize, end: usize) -> Self {
        let offset = |at: usize| at.checked_sub(origin).and_then(|at| u32::try_from(at).ok());
        match (offset(start), offset(end)) {
            (Some(start), Some(end)) => Self { start, end },
            _ => Self::NONE,
        }
    }

    /// The end of the item, if `at` is in it.
    fn end_from(self, at: usize) -> Option<usize> {
        (self.start as usize..self.end as usize).contains(&at).then_some(self.end as usize)
    }
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

impl<'a> Json<'a> {
    /// `null`, also what an absent `result` means.
    pub const NULL: Json<'static> = Json::from_proved("null");
    /// `{}`, also what params that are no object mean.
    pub const EMPTY_OBJECT: Json<'static> = Json::from_proved("{}");

    /// Proves a text to be one JSON value, white space around it allowed.
    ///
    /// # Errors
    /// The first place at which it is not.
    pub fn new(text: &'a str) -> Result<Self, SyntaxError> {
        if compact_object(text, &mut |_, _| {}).is_some() {
            return Ok(Self::from_proved(text));
        }
        let range = scan::validate(text, |_, _| {})?;
        Ok(Self::from_proved(text.get(range).unwrap_or_default()))
    }

    /// A piece that the scanner has proved.
    pub(crate) const fn from_proved(text: &'a str) -> Self {
        Self { text, long: LongItem::NONE }
    }

    /// The same, of which the scanner has seen where a long item lies.
    pub(crate) const fn with_long_item(self, long: LongItem) -> Self {
        Self { long, ..self }
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
        Members(Walk::new(self, Kind::Object))
    }

    /// The elements of an array; nothing for other kinds.
    #[must_use]
    pub fn elements(self) -> Elements<'a> {
        Elements(Walk::new(self, Kind::Array))
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

/// A walk over the inside of one container: item by item, with the punctuation between.
#[derive(Debug, Clone, Copy)]
struct Walk<'a> {
    /// Known to be JSON. More may follow the container.
    text: &'a str,
    /// Offset of the next item or of the closing bracket; `text.len()` where there is no container.
    at: usize,
    /// Of this container.
    long: LongItem,
    /// Of the containers in it.
    inner_long: LongItem,
}

impl<'a> Walk<'a> {
    fn new(json: Json<'a>, kind: Kind) -> Self {
        let Json { text, long } = json;
        let at = if json.kind() == kind { scan::skip_white(text.as_bytes(), 1) } else { text.len() };
        Self { text, at, long: LongItem::NONE, inner_long: long }
    }

    /// Whether the closing bracket has been reached.
    fn done(&self) -> bool {
        matches!(self.text.as_bytes().get(self.at), None | Some(b'}' | b']'))
    }

    /// Takes a name and stops behind its colon.
    fn take_name(&mut self) -> &'a str {
        let end = scan::string_end(self.text.as_bytes(), self.at);
        let name = self.text.get(self.at..end).unwrap_or_default();
        self.skip(end, b':');
        name
    }

    /// Takes the item at `at` and stops behind the comma that may follow.
    fn take(&mut self) -> Json<'a> {
        let bytes = self.text.as_bytes();
        let end = self.long.end_from(self.at).unwrap_or_else(|| scan::value_end(bytes, self.at));
        let value = Json::from_proved(self.text.get(self.at..end).unwrap_or_default());
        self.skip(end, b',');
        value
    }

    /// Goes on behind a value that ends at `end`.
    fn skip(&mut self, end: usize, punctuation: u8) {
        let bytes = self.text.as_bytes();
        self.at = scan::skip_white(bytes, end);
        if bytes.get(self.at) == Some(&punctuation) {
            self.at = scan::skip_white(bytes, self.at + 1);
        }
    }
}

/// The members of an object, from [`Json::members`].
#[derive(Debug, Clone)]
pub struct Members<'a>(Walk<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (JsonStr<'a>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_name().map(|name| (name, self.take_value()))
    }
}

/// The same in halves, so that a member's own members can be read without a look for its end first.
impl<'a> Members<'a> {
    /// The name of the next member; [`Members::take_value`] or [`Members::walk_value`] must follow.
    pub(crate) fn next_name(&mut self) -> Option<JsonStr<'a>> {
        if self.0.done() { None } else { Some(JsonStr { text: self.0.take_name() }) }
    }

    /// The value of the next member, if the member begins with this text, which is a name with quotes and colon.
    #[inline]
    pub(crate) fn take_named(&mut self, name: &str) -> Option<Json<'a>> {
        self.pass(name).then(|| self.take_value())
    }

    /// The same for a number of few digits and nothing else.
    #[inline]
    pub(crate) fn take_count(&mut self, name: &str) -> Option<u64> {
        if !self.pass(name) {
            return None;
        }
        let digits = self.0.text.as_bytes().get(self.0.at..)?;
        let mut n = 0;
        // So few that they cannot overflow.
        for (len, byte) in digits.iter().enumerate().take(19) {
            match byte {
                b'0'..=b'9' => n = n * 10 + u64::from(byte - b'0'),
                b',' | b'}' if len > 0 => {
                    self.0.skip(self.0.at + len, b',');
                    return Some(n);
                }
                _ => break,
            }
        }
        None
    }

    /// The same for [`Members::walk_value`].
    #[inline]
    pub(crate) fn walk_named<T>(&mut self, name: &str, read: impl FnOnce(&mut Members<'a>) -> T) -> Option<T> {
        if self.pass(name) { self.walk_value(read) } else { None }
    }

    #[inline]
    fn pass(&mut self, name: &str) -> bool {
        let bytes = self.0.text.as_bytes();
        let is = bytes.get(self.0.at..).is_some_and(|rest| rest.starts_with(name.as_bytes()));
        if is {
            self.0.at = scan::skip_white(bytes, self.0.at + name.len());
        }
        is
    }

    /// Whether all have been read.
    pub(crate) fn done(&self) -> bool {
        self.0.done()
    }

    /// The value whose name was read.
    pub(crate) fn take_value(&mut self) -> Json<'a> {
        self.0.take()
    }

    /// Where the value whose name was read is an object, has `read` walk over its members.
    pub(crate) fn walk_value<T>(&mut self, read: impl FnOnce(&mut Members<'a>) -> T) -> Option<T> {
        let Walk { text, at, inner_long, .. } = self.0;
        let bytes = text.as_bytes();
        if bytes.get(at) != Some(&b'{') {
            return None;
        }
        let at = scan::skip_white(bytes, at + 1);
        let mut inner = Members(Walk { text, at, long: inner_long, inner_long: LongItem::NONE });
        let value = read(&mut inner);
        inner.by_ref().for_each(drop);
        self.0.skip(inner.0.at + 1, b',');
        Some(value)
    }
}

/// The elements of an array, from [`Json::elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a>(Walk<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.done() { None } else { Some(self.0.take()) }
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

    fn inside(self) -> &'a str {
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
