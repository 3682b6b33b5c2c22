//! Writing a value as JSON at the end of a buffer, where serde_json only writes into a buffer of its own.

use alloc::vec::Vec;

use serde::Serialize;

/// Appends the value; on an error the buffer is as before.
pub(super) fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), serde_json::Error> {
    out.extend_from_slice(&serde_json::to_vec(value)?);
    Ok(())
}
