//! [`Foreseen`]: a value that is read by the shape it most likely has.

use core::ops::Range;

use super::event_head::EventHead;
use super::scan::{self, ONES};
use super::value::{Json, JsonStr};

/// Reads a value whose text is known but for the values in it. Each method answers `None` where the text is not as
/// foreseen; what it is instead is for a walk over the members to find out.
///
/// What [passes](Self::pass) does so on any text. What reads a value needs JSON, and the text before to lead up to one.
///
/// Everything is inlined, so that what is read stays in registers until it is stored where it belongs.
#[derive(Clone)]
pub(crate) struct Foreseen<'a> {
    text: &'a str,
    /// Where it has been read to.
    at: usize,
}

impl<'a> Foreseen<'a> {
    #[inline]
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Behind the data of an event, with the parts before and the data.
    #[inline(always)]
    pub(crate) fn event(params: Json<'a>) -> Option<(EventHead, Json<'a>, Self)> {
        let mut text = Self::new(params.get());
        let head = match params.head() {
            Some(head) => head,
            None => EventHead::pass(&mut text)?,
        };
        let start = head.data();
        text.at = head.data_end().unwrap_or_else(|| scan::value_end(text.text.as_bytes(), start));
        let data = Json::from_proved(text.text.get(start..text.at)?);
        Some((head, data, text))
    }

    /// How far the text has been read.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Passes over this text.
    #[inline(always)]
    pub(crate) fn pass(&mut self, text: &[u8]) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    /// Passes over a string without escapes; where it lies, quotes included.
    #[inline(always)]
    pub(crate) fn pass_string(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        let end = scan::skip_plain(bytes, self.at + 1);
        if bytes.get(end) != Some(&b'"') {
            return None;
        }
        let string = self.at..end + 1;
        self.at = end + 1;
        Some(string)
    }

    /// Passes over a whole number of up to 15 digits, behind which there is more.
    #[inline(always)]
    pub(crate) fn pass_digits(&mut self) -> Option<Range<usize>> {
        let (high, low) = self.rest().first_chunk::<16>()?.split_first_chunk::<8>()?;
        let (high, low) = (others(values(*high)), others(values(*low.first_chunk()?)));
        let len = match (high, low) {
            // 13 digits, as a time in milliseconds has. A constant, so that the processor need not wait for the length.
            (0, low) if low & 0x80_80_80_80_80_80 == 0x80_00_00_00_00_00 => 13,
            (0, low) => 8 + low.trailing_zeros() / 8,
            (high, _) => high.trailing_zeros() / 8,
        };
        let leading_zero = len > 1 && self.rest().first() == Some(&b'0');
        if len == 0 || len == 16 || leading_zero {
            return None;
        }
        let digits = self.at..self.at + len as usize;
        self.at = digits.end;
        Some(digits)
    }

    /// Whether nothing is left.
    #[inline]
    pub(crate) fn done(&self) -> bool {
        self.at == self.text.len()
    }

    /// A string that lies here, quotes included.
    #[inline(always)]
    pub(crate) fn string(&self, at: Range<usize>) -> Option<JsonStr<'a>> {
        self.text.get(at).map(JsonStr::from_proved)
    }

    /// A whole number that has its digits here, up to 15 of them, and something behind them.
    #[inline(always)]
    pub(crate) fn count(&self, digits: Range<usize>) -> Option<u64> {
        let (high, low) = self.text.as_bytes().get(digits.start..)?.first_chunk::<16>()?.split_first_chunk::<8>()?;
        if digits.len() <= 8 {
            return Some(number(*high, digits.len()));
        }
        let len = digits.len() - 8;
        Some(number(*high, 8) * POWERS.get(len)? + number(*low.first_chunk()?, len))
    }
}

const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The first byte in the lowest byte: the value of a digit, and anything else.
fn values(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes) ^ (ONES * b'0' as u64)
}

/// The high bit of each of these values that is no digit's: it has a bit of 0xf0, or is above 9.
fn others(values: u64) -> u64 {
    (values | ((values & (ONES * 0x7f)) + ONES * (0x80 - 10))) & (ONES * 0x80)
}

/// The number that the first `len` of eight bytes make, which are digits. All at once, because a loop that adds digit by
/// digit waits for each multiplication.
#[inline]
fn number(bytes: [u8; 8], len: usize) -> u64 {
    // The digits move to the top; the zeros that come in below are leading ones.
    let digits = values(bytes).checked_shl(64 - 8 * len as u32).unwrap_or(0);
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours * 10_000 + (fours >> 32)) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn counts_are_as_std_reads_them() {
        for digits in 1..=20 {
            for lead in 0..=9_u64 {
                let text: alloc::string::String =
                    (0..digits).map(|at| char::from(b'0' + ((lead + at * 7) % 10) as u8)).collect();
                for behind in [",", "}", ".", "e", "/", ":", "\u{7f}", "\u{b0}", "-"] {
                    let padded = format!("{text}{behind}behind of sixteen");
                    let mut foreseen = Foreseen::new(&padded);
                    let passed = foreseen.pass_digits();
                    let is_json = digits == 1 || lead > 0;
                    assert_eq!(passed, (digits <= 15 && is_json).then_some(0..text.len()), "{padded}");
                    assert_eq!(foreseen.at, passed.as_ref().map_or(0, |digits| digits.end), "{padded}");
                    let count = passed.and_then(|digits| foreseen.count(digits));
                    assert_eq!(count, if digits <= 15 && is_json { text.parse().ok() } else { None }, "{padded}");
                }
            }
        }
        for other in ["-1 and more than that", "", "1,"] {
            assert_eq!(Foreseen::new(other).pass_digits(), None);
        }
    }
}
