//! The scanner: one iterative pass over one text, with the grammar of RFC 8259 (what `JSON.parse` accepts).
//!
//! [`validate`] proves a text and reports where the members of its top-level object lie. The functions under
//! "text that is known to be JSON" walk a piece that has been proved, so they only look for its ends.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::JsonStr;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// Offset in bytes of the first byte that no JSON text could have there.
    pub at: usize,
    /// What is wrong with it.
    pub kind: SyntaxErrorKind,
}

/// The kinds of [`SyntaxError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntaxErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// No value begins with this byte.
    ExpectedValue,
    /// A member name in double quotes belongs here.
    ExpectedName,
    /// A `:` belongs here.
    ExpectedColon,
    /// A `,` or the end of the object or array belongs here.
    ExpectedCommaOrEnd,
    /// A raw control character inside a string.
    ControlInString,
    /// A `\` that no escape follows.
    BadEscape,
    /// A number that breaks off or has a leading zero.
    BadNumber,
    /// The value is complete but the text goes on, as with two frames on one line.
    TrailingText,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            SyntaxErrorKind::UnexpectedEnd => "the text ends inside a value",
            SyntaxErrorKind::ExpectedValue => "no value begins like this",
            SyntaxErrorKind::ExpectedName => "a member name in double quotes belongs here",
            SyntaxErrorKind::ExpectedColon => "a ':' belongs here",
            SyntaxErrorKind::ExpectedCommaOrEnd => "a ',' or the end of the object or array belongs here",
            SyntaxErrorKind::ControlInString => "a raw control character inside a string",
            SyntaxErrorKind::BadEscape => "no such escape",
            SyntaxErrorKind::BadNumber => "malformed number",
            SyntaxErrorKind::TrailingText => "more text after the value",
        };
        write!(f, "not JSON at byte {}: {what}", self.at)
    }
}

impl core::error::Error for SyntaxError {}

/// The containers around the current position, one bit each: 1 is an object. Depth is bounded by memory only, at
/// one bit a level, and nothing is allocated for the first 63 levels.
#[derive(Clone, Copy)]
pub(super) struct Nesting {
    /// A 1 that stands for the outside, then the innermost levels; the lowest bit is the current container.
    pub(super) bits: u64,
}

/// The words of [`Nesting`] that are full. Apart from it, so that the compiler can keep `bits` in a register.
pub(super) type Outer = Vec<u64>;

impl Nesting {
    pub(super) const fn new() -> Self {
        Self { bits: 1 }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, object: bool, outer: &mut Outer) {
        if self.bits >> 63 != 0 {
            self.spill(outer);
        }
        self.bits = self.bits << 1 | u64::from(object);
    }

    /// Leaves the current container; only where there is one.
    #[inline(always)]
    pub(super) fn pop(&mut self, outer: &mut Outer) {
        self.bits >>= 1;
        if self.bits == 1 {
            self.unspill(outer);
        }
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self, outer: &mut Outer) {
        outer.push(self.bits);
        self.bits = 1;
    }

    #[cold]
    #[inline(never)]
    fn unspill(&mut self, outer: &mut Outer) {
        self.bits = outer.pop().unwrap_or(1);
    }

    /// Whether there is no container. (With full words there always is: the last bit of a word is popped with it.)
    #[inline(always)]
    pub(super) fn is_outside(self) -> bool {
        self.bits == 1
    }

    /// Whether the current container, which there has to be, is an object.
    #[inline(always)]
    pub(super) fn in_object(self) -> bool {
        self.bits & 1 == 1
    }

    /// Whether the current container is the outermost, and an object.
    #[inline(always)]
    pub(super) fn in_outermost_object(self, outer: &Outer) -> bool {
        self.bits == 0b11 && outer.is_empty()
    }
}

/// Checks that `text` is one JSON value, with white space around it at most, and calls `member` with the byte ranges
/// of name (quotes included) and value for each member of a top-level object, in order. Returns the value's range.
pub(crate) fn validate(
    text: &str,
    mut member: impl FnMut(Range<usize>, Range<usize>),
) -> Result<Range<usize>, SyntaxError> {
    let bytes = text.as_bytes();
    let mut nesting = Nesting::new();
    let mut outer = Outer::new();
    let mut at = skip_white(bytes, 0);
    let start = at;
    // The top-level member being read.
    let (mut name, mut value) = (0..0, 0);
    loop {
        // A value begins at `at`.
        let byte = byte_at(bytes, at)?;
        match byte {
            b'{' | b'[' => {
                at = skip_white(bytes, at + 1);
                nesting.push(byte == b'{', &mut outer);
                if byte == b'{' {
                    if byte_at(bytes, at)? != b'}' {
                        let end = member_name(bytes, at)?;
                        if nesting.in_outermost_object(&outer) {
                            name = at..end;
                        }
                        at = colon(bytes, end)?;
                        if nesting.in_outermost_object(&outer) {
                            value = at;
                        }
                        continue;
                    }
                } else if byte_at(bytes, at)? != b']' {
                    continue;
                }
                at += 1;
                nesting.pop(&mut outer);
            }
            b'"' => at = string(bytes, at + 1)?,
            _ => at = scalar(bytes, at)?,
        }
        // A value has ended before `at`: close what ends here, until another value begins.
        loop {
            if nesting.is_outside() {
                let end = at;
                at = skip_white(bytes, at);
                if at < bytes.len() {
                    return Err(SyntaxError { at, kind: SyntaxErrorKind::TrailingText });
                }
                return Ok(start..end);
            }
            if nesting.in_outermost_object(&outer) {
                member(name.clone(), value..at);
            }
            at = skip_white(bytes, at);
            match (byte_at(bytes, at)?, nesting.in_object()) {
                (b',', true) => {
                    at = skip_white(bytes, at + 1);
                    let end = member_name(bytes, at)?;
                    if nesting.in_outermost_object(&outer) {
                        name = at..end;
                    }
                    at = colon(bytes, end)?;
                    if nesting.in_outermost_object(&outer) {
                        value = at;
                    }
                    break;
                }
                (b',', false) => {
                    at = skip_white(bytes, at + 1);
                    break;
                }
                (b'}', true) | (b']', false) => {
                    at += 1;
                    nesting.pop(&mut outer);
                }
                _ => return Err(SyntaxError { at, kind: SyntaxErrorKind::ExpectedCommaOrEnd }),
            }
        }
    }
}

fn byte_at(bytes: &[u8], at: usize) -> Result<u8, SyntaxError> {
    bytes.get(at).copied().ok_or(SyntaxError { at, kind: SyntaxErrorKind::UnexpectedEnd })
}

/// JSON's white space: space, tab, line feed, carriage return.
pub(crate) fn skip_white(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Reads a member name that begins at `at`; returns the offset behind its closing quote.
fn member_name(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match byte_at(bytes, at)? {
        b'"' => string(bytes, at + 1),
        _ => Err(SyntaxError { at, kind: SyntaxErrorKind::ExpectedName }),
    }
}

/// Reads the colon after a name; returns the offset of the value.
fn colon(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let at = skip_white(bytes, at);
    match byte_at(bytes, at)? {
        b':' => Ok(skip_white(bytes, at + 1)),
        _ => Err(SyntaxError { at, kind: SyntaxErrorKind::ExpectedColon }),
    }
}

/// Reads a string whose first content byte is at `at`; returns the offset behind its closing quote.
fn string(bytes: &[u8], mut at: usize) -> Result<usize, SyntaxError> {
    loop {
        at = skip_plain(bytes, at);
        match byte_at(bytes, at)? {
            b'"' => return Ok(at + 1),
            b'\\' => at = escape(bytes, at)?,
            _ => return Err(SyntaxError { at, kind: SyntaxErrorKind::ControlInString }),
        }
    }
}

/// Skips bytes that stand for themselves in a string, a word at a time.
pub(crate) fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        // The last term is for bytes below 0x20; the reasoning is that of `zero_bytes`.
        let hit = zero_bytes(word ^ (ONES * b'"' as u64))
            | zero_bytes(word ^ (ONES * b'\\' as u64))
            | word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        if hit != 0 {
            return at + (hit.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        at += 1;
    }
    at
}

/// Reads the escape whose backslash is at `at`; returns the offset behind it.
fn escape(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match byte_at(bytes, at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 2),
        b'u' => {
            for digit in at + 2..at + 6 {
                if !byte_at(bytes, digit)?.is_ascii_hexdigit() {
                    return Err(SyntaxError { at: digit, kind: SyntaxErrorKind::BadEscape });
                }
            }
            Ok(at + 6)
        }
        _ => Err(SyntaxError { at: at + 1, kind: SyntaxErrorKind::BadEscape }),
    }
}

/// Reads the number that begins at `at`; returns the offset behind it.
fn number(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let digits = |from: usize| {
        let mut at = from;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at > from {
            Ok(at)
        } else {
            byte_at(bytes, at).and(Err(SyntaxError { at, kind: SyntaxErrorKind::BadNumber }))
        }
    };
    let mut at = if bytes.get(at) == Some(&b'-') { at + 1 } else { at };
    if bytes.get(at) == Some(&b'0') {
        at += 1;
        if bytes.get(at).is_some_and(u8::is_ascii_digit) {
            return Err(SyntaxError { at, kind: SyntaxErrorKind::BadNumber });
        }
    } else {
        at = digits(at)?;
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(at)?;
    }
    Ok(at)
}

/// Reads the number or literal that begins at `at`; returns the offset behind it.
pub(super) fn scalar(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match byte_at(bytes, at)? {
        b'-' | b'0'..=b'9' => number(bytes, at),
        b't' => literal(bytes, at, b"true"),
        b'f' => literal(bytes, at, b"false"),
        b'n' => literal(bytes, at, b"null"),
        _ => Err(SyntaxError { at, kind: SyntaxErrorKind::ExpectedValue }),
    }
}

fn literal(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, SyntaxError> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.starts_with(word) {
        return Ok(at + word.len());
    }
    let at = at + rest.iter().zip(word).take_while(|(byte, expected)| byte == expected).count();
    byte_at(bytes, at).and(Err(SyntaxError { at, kind: SyntaxErrorKind::ExpectedValue }))
}

/// The string that a text begins with, if it is whole.
pub(crate) fn leading_string(text: &str) -> Option<JsonStr<'_>> {
    let end = member_name(text.as_bytes(), 0).ok()?;
    text.get(..end).map(JsonStr::from_proved)
}

// ---- text that is known to be JSON ----

/// The offset behind the value that begins at `at` in text that is known to be JSON.
pub(crate) fn value_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at),
        Some(b'{' | b'[') => container_end(bytes, at),
        _ => {
            let rest = bytes.get(at..).unwrap_or_default();
            let len = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
            at + len.unwrap_or(rest.len())
        }
    }
}

fn container_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// The offset behind the string whose opening quote is at `at` in text that is known to be JSON.
pub(crate) fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        at = delimiter(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(_) => at += 2,
            None => return bytes.len(),
        }
    }
}

/// The offset of the next quote or backslash, or the end. Most strings are shorter than what a call to memchr costs,
/// so the first words are looked at here.
fn delimiter(bytes: &[u8], mut at: usize) -> usize {
    for _ in 0..4 {
        let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { break };
        let word = u64::from_le_bytes(*chunk);
        let hit = zero_bytes(word ^ (ONES * b'"' as u64)) | zero_bytes(word ^ (ONES * b'\\' as u64));
        if hit != 0 {
            return at + (hit.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())
}

/// Whether a string has escapes; as in [`delimiter`], most are short.
pub(crate) fn has_escape(bytes: &[u8]) -> bool {
    if bytes.len() > 32 {
        return memchr::memchr(b'\\', bytes).is_some();
    }
    let (words, tail) = bytes.as_chunks::<8>();
    words.iter().any(|word| zero_bytes(u64::from_le_bytes(*word) ^ (ONES * b'\\' as u64)) != 0) || tail.contains(&b'\\')
}

/// One in each byte.
pub(super) const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bit of each byte that is zero. A borrow can set it wrongly only above a byte that is right, so whether
/// there is one and which is the lowest are right.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}
