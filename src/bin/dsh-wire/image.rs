//! Images for a prompt.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use dsh_wire::wire::ContentBlock;

use crate::failure::Failure;
use crate::time::Time;

/// The largest image, in bytes: what has no end, such as a device, is not read to it.
const LIMIT: u64 = 16 << 20;

/// Reads an image file as a content block. The type is told by the first bytes, not by the name.
pub(crate) fn read(path: &Path, time: Time) -> Result<ContentBlock, Failure> {
    let failed = |what: &dyn Display| Failure::usage(format!("cannot use the image '{}': {what}", path.display()));
    let file = path.to_owned();
    // It may be a pipe that nobody writes to.
    let bytes = time.bound(&format!("read the image '{}'", path.display()), move || {
        let mut bytes = Vec::new();
        File::open(file)?.take(LIMIT + 1).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    })?;
    let bytes = bytes.map_err(|error| failed(&error))?;
    let mime_type = media_type(&bytes).ok_or_else(|| failed(&"it is neither PNG, JPEG, GIF nor WebP"))?;
    if bytes.len() as u64 > LIMIT {
        return Err(failed(&format_args!("it is larger than {} MiB", LIMIT >> 20)));
    }
    Ok(ContentBlock::image_bytes(&bytes, mime_type))
}

/// The type that the first bytes tell.
pub(crate) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
