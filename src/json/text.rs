//! Text as JavaScript sees it: what `trim` strips, how broken UTF-8 is read, what an escaped string says.

use alloc::string::String;

use super::fast::utf8;

/// Strips what JavaScript's `String.prototype.trim` strips (ECMA-262: WhiteSpace and LineTerminator), which is not
/// what Rust's does: U+FEFF goes, U+0085 stays.
#[must_use]
pub fn trim(text: &str) -> &str {
    if let [b'!'..=b'~', .., b'!'..=b'~'] = text.as_bytes() {
        return text;
    }
    text.trim_matches(is_white)
}

pub(crate) fn is_white(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}'
    )
}

/// Whether nothing of the line is left after [`trim`].
pub(crate) fn is_blank(line: &[u8]) -> bool {
    if let [b'!'..=b'~', ..] = line {
        return false;
    }
    // Broken UTF-8 is never white space.
    line.utf8_chunks().all(|chunk| chunk.invalid().is_empty() && chunk.valid().chars().all(is_white))
}

/// Reads bytes as UTF-8 the way a WHATWG decoder does: each maximal broken part becomes one U+FFFD. Borrows the
/// bytes where they are whole, else fills `scratch`.
pub fn repair<'a>(bytes: &'a [u8], scratch: &'a mut String) -> &'a str {
    match utf8(bytes) {
        Some(text) => text,
        None => {
            scratch.clear();
            for chunk in bytes.utf8_chunks() {
                scratch.push_str(chunk.valid());
                if !chunk.invalid().is_empty() {
                    scratch.push(char::REPLACEMENT_CHARACTER);
                }
            }
            scratch
        }
    }
}

/// The code points of the inside of a JSON string, as JavaScript would iterate over them: an escaped surrogate pair
/// is one, a lone surrogate is one of its own.
#[derive(Debug, Clone)]
pub(crate) struct CodePoints<'a>(pub(crate) core::str::Chars<'a>);

impl CodePoints<'_> {
    /// Reads one `uXXXX` behind a backslash that has been consumed.
    fn hex(chars: &mut core::str::Chars<'_>) -> u32 {
        let mut unit = 0;
        for _ in 0..4 {
            unit = unit << 4 | chars.next().and_then(|c| c.to_digit(16)).unwrap_or_default();
        }
        unit
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let c = self.0.next()?;
        if c != '\\' {
            return Some(c.into());
        }
        Some(match self.0.next()? {
            'b' => 8,
            't' => 9,
            'n' => 10,
            'f' => 12,
            'r' => 13,
            'u' => {
                let unit = Self::hex(&mut self.0);
                if let 0xd800..0xdc00 = unit {
                    let mut ahead = self.0.clone();
                    if ahead.next() == Some('\\') && ahead.next() == Some('u') {
                        let low = Self::hex(&mut ahead);
                        if let 0xdc00..0xe000 = low {
                            self.0 = ahead;
                            return Some(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
                        }
                    }
                }
                unit
            }
            other => other.into(),
        })
    }
}

/// Appends a code point to a JSON text (inside quotes) the way `JSON.stringify` writes it.
pub(crate) fn push_escaped(out: &mut String, code: u32) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match char::from_u32(code) {
        Some('"') => out.push_str("\\\""),
        Some('\\') => out.push_str("\\\\"),
        Some('\u{8}') => out.push_str("\\b"),
        Some('\t') => out.push_str("\\t"),
        Some('\n') => out.push_str("\\n"),
        Some('\u{c}') => out.push_str("\\f"),
        Some('\r') => out.push_str("\\r"),
        Some(c) if c >= ' ' => out.push(c),
        // Other control characters and lone surrogates.
        _ => {
            out.push_str("\\u");
            for shift in [12, 8, 4, 0] {
                out.extend(HEX.get((code >> shift & 15) as usize).map(|digit| char::from(*digit)));
            }
        }
    }
}
