//! Canonical base64 (RFC 4648 §4), with padding.

use alloc::string::String;
use alloc::vec::Vec;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(out: &mut String, bytes: &[u8]) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = DIGITS.get((bits >> shift & 63) as usize).filter(|_| index <= chunk.len());
            out.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
}

/// `None` where the text is not what [`encode`] writes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.as_bytes().chunks(4) {
        let digits = chunk.strip_suffix(b"==").or_else(|| chunk.strip_suffix(b"=")).unwrap_or(chunk);
        // Only the last chunk may be padded, and no other has less than 4 digits.
        if chunk.len() != 4 || bytes.len() % 3 != 0 {
            return None;
        }
        let bits =
            digits.iter().try_fold(0, |bits, digit| Some(bits << 6 | value(*digit)?))? << (6 * (4 - digits.len()));
        let [_, decoded @ ..] = u32::to_be_bytes(bits);
        let (decoded, unused) = decoded.split_at_checked(digits.len() - 1)?;
        if unused.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(decoded);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut text = String::new();
        encode(&mut text, bytes);
        text
    }

    #[test]
    fn base64_as_in_rfc_4648() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(texts.map(|text| encoded(text.as_bytes())), expected);
        assert_eq!(encoded(&[0xfb, 0xff, 0xbf]), "+/+/");
        for (text, bytes) in expected.iter().zip(texts) {
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn it_is_canonical_or_nothing() {
        for text in ["Zg", "Zh==", "Zg=", "Z===", "====", "Zm9v\n", "Zm 9", "!!!!", "Zg==Zg=="] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
