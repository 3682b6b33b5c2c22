//! [`Foreseen`]: a value that is read by the shape it most likely has.

use super::scan;
use super::value::{Json, JsonStr};
use super::walk::LongItem;

/// Reads a value whose text is known but for the values in it. Each method answers `None` where the text is not as
/// foreseen; what it is instead is for a walk over the members to find out.
///
/// The caller has to ask for a value, a string or a count only where the text it [passed](Self::pass) leads up to one.
///
/// Everything is inlined, so that what is read stays in registers until it is stored where it belongs.
pub(crate) struct Foreseen<'a> {
    /// Known to be JSON.
    text: &'a str,
    /// Where it has been read to. Where an item of `long` begins, it is one of the depth that `long` is about.
    at: usize,
    long: LongItem,
}

impl<'a> Foreseen<'a> {
    #[inline]
    pub(crate) fn new(json: Json<'a>) -> Self {
        Self { text: json.get(), at: 0, long: json.long_item() }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Passes over this text.
    #[inline(always)]
    pub(crate) fn pass(&mut self, text: &[u8]) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    /// Whether nothing is left.
    #[inline]
    pub(crate) fn done(&self) -> bool {
        self.at == self.text.len()
    }

    /// A string.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Option<JsonStr<'a>> {
        if self.rest().first() != Some(&b'"') {
            return None;
        }
        let end = scan::string_end(self.text.as_bytes(), self.at);
        let string = self.text.get(self.at..end)?;
        self.at = end;
        Some(JsonStr::from_proved(string))
    }

    /// The leading digits of a number, of which there may be up to 15.
    #[inline(always)]
    pub(crate) fn count(&mut self) -> Option<u64> {
        let (high, low) = self.rest().first_chunk::<16>()?.split_first_chunk::<8>()?;
        let (count, len) = match leading_digits(*high) {
            (_, 0) => return None,
            (count, len @ ..8) => (count, len),
            (high, _) => match leading_digits(*low.first_chunk()?) {
                (low, len @ ..8) => (high * POWERS.get(len)? + low, 8 + len),
                _ => return None,
            },
        };
        self.at += len;
        Some(count)
    }

    /// A value of any kind.
    #[inline(always)]
    pub(crate) fn value(&mut self) -> Option<Json<'a>> {
        let end = self.long.end_from(self.at).unwrap_or_else(|| scan::value_end(self.text.as_bytes(), self.at));
        let value = self.text.get(self.at..end)?;
        self.at = end;
        Some(Json::from_proved(value))
    }
}

const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The number that the leading digits of eight bytes make, and how many they are. All at once, because a loop that adds
/// digit by digit waits for each multiplication.
#[inline]
fn leading_digits(bytes: [u8; 8]) -> (u64, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The first digit is in the lowest byte. A digit becomes its value; anything else has a bit of 0xf0, or is above 9.
    let values = u64::from_le_bytes(bytes) ^ (ONES * b'0' as u64);
    let other = (values | ((values & (ONES * 0x7f)) + ONES * (0x80 - 10))) & (ONES * 0x80);
    let len = other.trailing_zeros() / 8;
    // The digits move to the top; the zeros that come in below are leading ones.
    let digits = values.checked_shl(64 - 8 * len).unwrap_or(0);
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    ((fours * 10_000 + (fours >> 32)) & 0xffff_ffff, len as usize)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn counts_are_as_std_reads_them() {
        for digits in 1..=20 {
            for lead in 1..=9_u64 {
                let text: alloc::string::String =
                    (0..digits).map(|at| char::from(b'0' + ((lead + at * 7) % 10) as u8)).collect();
                for behind in [",", "}", ".", "e", "/", ":", "\u{7f}", "\u{b0}", "-"] {
                    let padded = format!("{text}{behind}behind of sixteen");
                    let mut foreseen = Foreseen { text: &padded, at: 0, long: LongItem::NONE };
                    let expected = if digits <= 15 { text.parse().ok() } else { None };
                    assert_eq!(foreseen.count(), expected, "{padded}");
                    assert_eq!(foreseen.at, if digits <= 15 { text.len() } else { 0 }, "{padded}");
                }
            }
        }
        for other in ["-1 and more than that", "", "1,"] {
            assert_eq!(Foreseen { text: other, at: 0, long: LongItem::NONE }.count(), None);
        }
    }
}
