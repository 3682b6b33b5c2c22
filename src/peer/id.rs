//! The ids of the requests that we send.

use core::fmt;

use crate::frame::Id;
use crate::json::Json;

/// One call of ours: its number on its connection, from 0, never used again. On another connection it names no call;
/// ids of two connections are never equal, and the order between them means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    number: u64,
    /// [`Ids::connection`].
    connection: u64,
}

impl CallId {
    /// What its connection is known by.
    pub(crate) fn connection(self) -> u64 {
        self.connection
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}", self.number)
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
    /// `req_` and the high half.
    head: [u8; 20],
    /// The bits of the high half: what tells connections apart.
    connection: u64,
    next: u64,
}

impl Ids {
    pub(super) fn new(seed: u64) -> Self {
        let connection = seed & !VERSION_MASK | VERSION;
        let mut head = *b"req_0000000000000000";
        if let Some(digits) = head.last_chunk_mut() {
            *digits = hex(connection);
        }
        Self { head, connection, next: 0 }
    }

    /// What calls of this connection say that theirs is.
    pub(super) fn connection(&self) -> u64 {
        self.connection
    }

    /// The call after the last one that was [taken](Self::take).
    pub(super) fn next(&self) -> CallId {
        self.call(self.next)
    }

    fn call(&self, number: u64) -> CallId {
        CallId { number, connection: self.connection }
    }

    pub(super) fn take(&mut self) {
        self.next += 1;
    }

    /// Writes the id.
    pub(super) fn write<'b>(&self, call: CallId, buf: &'b mut [u8; LEN + 2]) -> Id<'b> {
        *buf = [b'"'; LEN + 2];
        if let [_, inside @ .., _] = buf
            && let Some((head, low)) = inside.split_first_chunk_mut()
            && let Some(low) = low.first_chunk_mut()
        {
            *head = self.head;
            *low = hex(VARIANT | call.number & NUMBER_MASK);
        }
        Id::from_proved(Json::from_proved(core::str::from_utf8(buf).unwrap_or_default()))
    }

    /// The call that an id (without quotes) belongs to, if we have made it.
    pub(super) fn read(&self, id: &str) -> Option<CallId> {
        let digits: &[u8; 16] = id.as_bytes().strip_prefix(&self.head)?.try_into().ok()?;
        let mut low = 0;
        for digit in digits {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            low = low << 4 | u64::from(value);
        }
        let number = low & NUMBER_MASK;
        (low & !NUMBER_MASK == VARIANT && number < self.next).then(|| self.call(number))
    }
}

/// The digits of a number, lower case.
fn hex(value: u64) -> [u8; 16] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (index, digit) in digits.iter_mut().enumerate() {
        *digit = HEX.get((value >> (60 - 4 * index)) as usize & 15).copied().unwrap_or_default();
    }
    digits
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
        let id = ids.write(ids.call(255), &mut buf);
        assert_eq!(id.get(), r#""req_0123456789ab8def80000000000000ff""#);
        let plain = id.get().trim_matches('"');
        assert_eq!(ids.read(plain), Some(ids.call(255)));
        assert_eq!(ids.read(&plain.to_uppercase()), None);
        assert_eq!(ids.read(&plain[1..]), None);
        assert_eq!(ids.read("req_0123456789ab8def800000000000012c"), None, "not sent yet");
        assert_eq!(ids.read("req_0123456789ab8dee80000000000000ff"), None, "of another connection");
        assert_eq!(ids.read("req_+123456789ab8def80000000000000ff"), None);
    }
}
