//! Writing a value as JSON at the end of a buffer.

use alloc::vec::Vec;

use serde::Serialize;

/// Appends the value; on an error the buffer may hold a part of it.
pub(super) fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), serde_json::Error> {
    value.serialize(&mut serde_json::Serializer::new(out))
}
