//! Images in prompts: looked at when they come in, and named by what they hold. The messages are the official
//! runtime's; it converts what it keeps, which this one does not, so its names, sizes and types may differ.

use dsh_wire::json::{Json, JsonBuf};
use dsh_wire::server::Refusal;

use super::value::object;
use super::{base64, sha256};
use crate::image::media_type;

/// The blocks of a prompt with a reference in the place of each image; `None` where there is none to be taken in.
pub(super) fn take_in(blocks: Json<'_>) -> Result<Option<JsonBuf>, Refusal> {
    let is_upload = |block: &Json<'_>| {
        block.member("type").and_then(Json::as_str).is_some_and(|kind| kind == "image")
            && block.member("data").is_some()
    };
    if !blocks.elements().any(|block| is_upload(&block)) {
        return Ok(None);
    }
    let blocks = blocks.elements().map(|block| if is_upload(&block) { refer(block) } else { Ok(block.to_buf()) });
    let blocks: Vec<JsonBuf> = blocks.collect::<Result<_, _>>()?;
    Ok(JsonBuf::from_serialize(&blocks).ok())
}

fn refer(block: Json<'_>) -> Result<JsonBuf, Refusal> {
    let data = block.member("data").unwrap_or(Json::EMPTY_OBJECT);
    let bytes = match data.as_str() {
        Some(text) => base64::decode(&text.to_string_lossy())
            .filter(|bytes| !bytes.is_empty())
            .ok_or("Image upload is not canonical base64.")?,
        None => return Err(format!("Image data must be a string, not {}.", data.kind()).into()),
    };
    let declared = block.member("mimeType");
    let named = declared.map_or_else(
        || "undefined".to_owned(),
        |name| match name.as_str() {
            Some(name) => name.to_string_lossy().into_owned(),
            None => name.get().to_owned(),
        },
    );
    if !["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&&*named) {
        return Err(format!("Image type {named} is not accepted by this deployment.").into());
    }
    let (width, height) = size(&bytes).ok_or("Unsupported or malformed image data.")?;
    if media_type(&bytes) != Some(&named) {
        return Err("Declared image type does not match its bytes.".into());
    }
    let attachment = object! {
        "attachmentId" => format!("sha256:{}", sha256::hex(&bytes)), "mediaType" => named,
        "width" => width, "height" => height, "bytes" => bytes.len() as u64,
    };
    JsonBuf::from_serialize(&object! { "type" => "image", "attachment" => attachment })
        .map_err(|error| Refusal::new(error.to_string()))
}

/// Width and height, where the image is whole as far as its frame tells.
fn size(bytes: &[u8]) -> Option<(u64, u64)> {
    match media_type(bytes)? {
        "image/png" => png(bytes),
        "image/jpeg" => jpeg(bytes),
        "image/gif" => bytes.ends_with(b";").then_some((number(bytes, 6, &[0, 1])?, number(bytes, 8, &[0, 1])?)),
        _ => webp(bytes),
    }
}

/// The bytes at these distances from a place, the least one first.
fn number(bytes: &[u8], at: usize, order: &[usize]) -> Option<u64> {
    order.iter().rev().try_fold(0, |number, place| Some(number << 8 | u64::from(*bytes.get(at + place)?)))
}

fn png(bytes: &[u8]) -> Option<(u64, u64)> {
    const WORD: [usize; 4] = [3, 2, 1, 0];
    let mut at = 8;
    // Each chunk: length, name, data, checksum.
    while bytes.get(at + 4..at + 8)? != b"IEND" {
        at += 12 + usize::try_from(number(bytes, at, &WORD)?).ok()?;
    }
    bytes.get(at + 8..at + 12)?;
    (bytes.get(12..16)? == b"IHDR").then_some((number(bytes, 16, &WORD)?, number(bytes, 20, &WORD)?))
}

fn jpeg(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut at = 2;
    loop {
        match bytes.get(at..at + 2)? {
            // A frame header, but for the codes that mean something else.
            [0xff, 0xc0..=0xcf] if ![0xc4, 0xc8, 0xcc].contains(bytes.get(at + 1)?) => {
                return Some((number(bytes, at + 7, &[1, 0])?, number(bytes, at + 5, &[1, 0])?));
            }
            [0xff, 0xff] => at += 1,
            [0xff, _] => at += 2 + usize::try_from(number(bytes, at + 2, &[1, 0])?).ok()?,
            _ => return None,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u64, u64)> {
    bytes.get(usize::try_from(number(bytes, 4, &[0, 1, 2, 3])?).ok()? + 7)?;
    match bytes.get(12..16)? {
        b"VP8X" => Some((number(bytes, 24, &[0, 1, 2])? + 1, number(bytes, 27, &[0, 1, 2])? + 1)),
        b"VP8 " => Some((number(bytes, 26, &[0, 1])? & 0x3fff, number(bytes, 28, &[0, 1])? & 0x3fff)),
        b"VP8L" => {
            let bits = number(bytes, 21, &[0, 1, 2, 3])?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_headers() {
        let gif = b"GIF89a\x03\x00\x02\x01\x80\x00\x00;";
        assert_eq!(size(gif), Some((3, 258)));
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x02\x01\x00";
        assert_eq!(size(jpeg), Some((256, 2)));
        let webp = b"RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x02\x00\x00";
        assert_eq!(size(webp), Some((2, 3)));
        for whole in [&gif[..], jpeg, webp] {
            for len in 0..whole.len() {
                assert_eq!(size(&whole[..len]), None, "{len} bytes");
            }
        }
    }
}
