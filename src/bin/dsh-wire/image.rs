//! Images for a prompt.

use std::fmt::Display;
use std::fs::File;
use std::path::Path;

use dsh_wire::wire::ContentBlock;

use crate::argument::read_bounded;
use crate::failure::Failure;
use crate::time::Time;

/// Reads an image file as a content block. The type is told by the first bytes, not by the name.
pub(crate) fn read(path: &Path, time: Time) -> Result<ContentBlock, Failure> {
    let failed = |what: &dyn Display| Failure::usage(format!("cannot use the image '{}': {what}", path.display()));
    let file = path.to_owned();
    // It may be a pipe that nobody writes to.
    let open_and_read = move || File::open(file).and_then(read_bounded);
    let bytes = time.bound(&format!("read the image '{}'", path.display()), open_and_read)?;
    let bytes = bytes.map_err(|error| failed(&error))?;
    let mime_type = media_type(&bytes).ok_or_else(|| failed(&"it is neither PNG, JPEG, GIF nor WebP"))?;
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
