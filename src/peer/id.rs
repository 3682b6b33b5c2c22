//! The ids of the requests that we send.

use core::fmt;

use crate::frame::Id;
use crate::json::Json;

/// One call of ours: its number on this connection, from 0. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(super) u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}", self.0)
    }
}

/// Length of an id without its quotes: `req_` and 32 hex digits.
const LEN: usize = 36;

/// The version bits of a UUIDv8 (RFC 9562 §5.8) in the high half.
const VERSION: u64 = 0x8000;
const VERSION_MASK: u64 = 0xf000;
/// The variant bits in the low half; the 62 bits below them hold the call's number.
const VARIANT: u64 = 1 << 63;
const NUMBER_MASK: u64 = (1 << 62) - 1;

/// Makes ids and knows them again. An id is a UUIDv8 without dashes behind `req_`, as the reference client's are
/// UUIDv4: the high half is chosen once a connection, the low half is the call's number.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    high: u64,
    next: u64,
}

impl Ids {
    pub(super) fn new(seed: u64) -> Self {
        Self { high: seed & !VERSION_MASK | VERSION, next: 0 }
    }

    /// The call after the last one that was [taken](Self::take).
    pub(super) fn next(&self) -> CallId {
        CallId(self.next)
    }

    pub(super) fn take(&mut self) {
        self.next += 1;
    }

    /// Writes the id.
    pub(super) fn write<'b>(&self, call: CallId, buf: &'b mut [u8; LEN + 2]) -> Id<'b> {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let value = u128::from(self.high) << 64 | u128::from(VARIANT | call.0 & NUMBER_MASK);
        *buf = [b'"'; LEN + 2];
        if let Some(prefix) = buf.get_mut(1..5) {
            prefix.copy_from_slice(b"req_");
        }
        for (index, digit) in buf.iter_mut().skip(5).take(32).enumerate() {
            let nibble = (value >> (124 - 4 * index)) as usize & 15;
            *digit = HEX.get(nibble).copied().unwrap_or_default();
        }
        Id::from_proved(Json::from_proved(core::str::from_utf8(buf).unwrap_or_default()))
    }

    /// The call that an id (without quotes) belongs to, if we have made it.
    pub(super) fn read(&self, id: &str) -> Option<CallId> {
        let digits = id.strip_prefix("req_").filter(|digits| digits.len() == 32)?;
        if digits.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let value = u128::from_str_radix(digits, 16).ok()?;
        let (high, low) = ((value >> 64) as u64, value as u64);
        let number = low & NUMBER_MASK;
        (high == self.high && low & !NUMBER_MASK == VARIANT && number < self.next).then_some(CallId(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuid_v8_and_known_again() {
        let mut ids = Ids::new(0x0123_4567_89ab_cdef);
        for _ in 0..300 {
            ids.take();
        }
        let mut buf = [0; LEN + 2];
        let id = ids.write(CallId(255), &mut buf);
        assert_eq!(id.get(), r#""req_0123456789ab8def80000000000000ff""#);
        let plain = id.get().trim_matches('"');
        assert_eq!(ids.read(plain), Some(CallId(255)));
        assert_eq!(ids.read(&plain.to_uppercase()), None);
        assert_eq!(ids.read(&plain[1..]), None);
        assert_eq!(ids.read("req_0123456789ab8def800000000000012c"), None, "not sent yet");
        assert_eq!(ids.read("req_0123456789ab8dee80000000000000ff"), None, "of another connection");
        assert_eq!(ids.read("req_+123456789ab8def80000000000000ff"), None);
    }
}
