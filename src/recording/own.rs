//! Entries as [`Entry::encode`] writes them, which nearly all are, in one pass.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Direction, Entry, What};
use crate::json::skip_plain;

/// `None` for any other line, whether it is an entry or not.
pub(super) fn read(line: &str) -> Option<Entry> {
    let rest = line.strip_prefix("{\"t\": ")?;
    let comma = rest.as_bytes().get(..32)?.iter().position(|byte| *byte == b',')?;
    let (time, rest) = rest.split_at_checked(comma)?;
    let rest = rest.strip_prefix(", \"dir\": \"")?;
    let ways = [Direction::ClientToServer, Direction::ServerToClient, Direction::Stderr];
    let (direction, rest) = ways.into_iter().find_map(|way| Some((way, rest.strip_prefix(way.name())?)))?;
    let (bytes, rest) = string(rest.strip_prefix("\", \"frame\": \"")?)?;
    let eol = match rest {
        "}" => true,
        ", \"eol\": false}" => false,
        _ => return None,
    };
    Some(Entry { at: duration(time)?, direction, what: What::Line { bytes, eol } })
}

/// Seconds with six decimals.
fn duration(time: &str) -> Option<Duration> {
    let (seconds, micros) = time.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits(seconds) && digits(micros) && micros.len() == 6 && (seconds == "0" || !seconds.starts_with('0'));
    plain.then(|| Some(Duration::new(seconds.parse().ok()?, micros.parse::<u32>().ok()? * 1000))).flatten()
}

/// What a string says whose opening quote has been passed, and what follows it. None that holds a line feed.
fn string(text: &str) -> Option<(Vec<u8>, &str)> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    loop {
        let end = skip_plain(bytes, at);
        out.extend_from_slice(bytes.get(at..end)?);
        match bytes.get(end)? {
            b'"' => return Some((out, text.get(end + 1..)?)),
            b'\\' => {}
            _ => return None,
        }
        at = end + 2;
        match bytes.get(end + 1)? {
            mark @ (b'"' | b'\\' | b'/') => out.push(*mark),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let digits =
                    text.get(at..at + 4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
                let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?).filter(|c| *c != '\n')?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                at += 4;
            }
            _ => return None,
        }
    }
}
