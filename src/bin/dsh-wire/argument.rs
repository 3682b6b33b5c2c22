//! What arguments name: the text on stdin, and files.

use std::io::{self, Read};

use crate::failure::Failure;
use crate::time::Time;

/// The most that is read, in bytes: what has no end, such as a device, is not read to it.
const LIMIT: u64 = 16 << 20;

/// Reads to the end, but not further than the limit; what is longer is an error.
pub(crate) fn read_bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        let error = format!("it is larger than {} MiB", LIMIT >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
    }
    Ok(bytes)
}

/// An argument of which `-` means what stdin holds, without its last line end.
pub(crate) fn text(argument: &str, time: Time) -> Result<String, Failure> {
    if argument != "-" {
        return Ok(argument.into());
    }
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("cannot read stdin: {error}"));
    let bytes = time.bound("read stdin", || read_bounded(io::stdin()))?.map_err(|error| failed(&error))?;
    let mut text = String::from_utf8(bytes).map_err(|_| failed(&"it is not UTF-8"))?;
    let len = text.strip_suffix('\n').map_or(text.len(), |text| text.strip_suffix('\r').unwrap_or(text).len());
    text.truncate(len);
    Ok(text)
}
