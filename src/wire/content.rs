//! Content blocks: what a prompt is made of ([`ContentBlock`], owned) and what messages hold ([`Block`], a view).

use alloc::string::String;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Decode, DecodeError, List};
use crate::base64;
use crate::json::{Json, JsonBuf, JsonStr, JsonString};

/// A content block to send, as in the `contentBlocks` of a prompt.
///
/// ```
/// use dsh_wire::wire::ContentBlock;
///
/// let block = ContentBlock::text("hello");
/// assert_eq!(serde_json::to_string(&block)?, r#"{"type":"text","text":"hello"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentBlock(Repr);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Repr {
    Text(JsonString),
    Image { data: JsonString, mime_type: JsonString },
    Raw(JsonBuf),
}

impl ContentBlock {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<JsonString>) -> Self {
        Self(Repr::Text(text.into()))
    }

    /// An image: its bytes in canonical base64 and its type, such as `image/png`.
    #[must_use]
    pub fn image(base64: impl Into<JsonString>, mime_type: impl Into<JsonString>) -> Self {
        Self(Repr::Image { data: base64.into(), mime_type: mime_type.into() })
    }

    /// An image as it stands in a file, and its type.
    #[must_use]
    pub fn image_bytes(bytes: &[u8], mime_type: impl Into<JsonString>) -> Self {
        let mut text = String::new();
        base64::encode(&mut text, bytes);
        Self::image(&*text, mime_type)
    }

    /// Any other block; the runtime keeps members that it does not know.
    #[must_use]
    pub const fn raw(block: JsonBuf) -> Self {
        Self(Repr::Raw(block))
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// Keeps the block as it is, whatever it is.
impl Decode<'_> for ContentBlock {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        Ok(Self::raw(json.to_buf()))
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match &self.0 {
            Repr::Raw(block) => return block.serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        match &self.0 {
            Repr::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Repr::Image { data, mime_type } => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("data", data)?;
                map.serialize_entry("mimeType", mime_type)?;
            }
            Repr::Raw(_) => {}
        }
        map.end()
    }
}

tagged! {
    /// A content block of a message. A client may have put any JSON here; what is no block is [`Block::Other`].
    pub enum Block by "type" {
        /// Text, of the user or of the model.
        Text {
            /// The text.
            text: JsonStr<'a> = "text",
        } = "text",
        /// What the model thought before it answered.
        Reasoning {
            /// The text.
            text: JsonStr<'a> = "text",
        } = "reasoning",
        /// An image that the runtime has stored.
        Image {
            /// Where it is and what it is.
            attachment: ImageAttachment<'a> = "attachment",
            /// `true` where the image is no longer sent to the model.
            offloaded: Option<bool> = "offloaded",
        } = "image",
        /// A file that the runtime has stored.
        File {
            /// Where it is and what it is.
            attachment: FileAttachment<'a> = "attachment",
        } = "file",
        /// A tool call of the model.
        ToolCall {
            /// Id of the call.
            id: JsonStr<'a> = "id",
            /// Name of the tool.
            name: JsonStr<'a> = "name",
            /// The arguments: a JSON text inside a string, as the model wrote it.
            arguments: JsonStr<'a> = "arguments",
        } = "tool-call",
        /// What a tool answered; before 0.2.1, which has messages of role `tool` instead.
        ToolResult {
            /// Id of the call.
            tool_call_id: JsonStr<'a> = "toolCallId",
            /// The answer.
            content: Blocks<'a> = "content",
            /// Whether the call failed.
            is_error: Option<bool> = "isError",
        } = "tool-result",
        /// From here on the model may use one more tool.
        ToolAddition {
            /// Name of the tool.
            tool_name: JsonStr<'a> = "toolName",
        } = "tool-addition",
        /// From here on the model may no longer use a tool.
        ToolRemoval {
            /// Name of the tool.
            tool_name: JsonStr<'a> = "toolName",
        } = "tool-removal",
    }
}

payload! {
    /// A stored image.
    pub struct ImageAttachment<'a> {
        /// `sha256:` and the digest.
        attachment_id: JsonStr<'a> = "attachmentId",
        /// Such as `image/png`.
        media_type: JsonStr<'a> = "mediaType",
        /// In pixels.
        width: u64 = "width",
        /// In pixels.
        height: u64 = "height",
        /// Size in bytes.
        bytes: u64 = "bytes",
        /// Name of the file that it came from.
        name: Option<JsonStr<'a>> = "name",
        /// What it measured before it was scaled down.
        original_dimensions: Option<Dimensions> = "originalDimensions",
    }
}

payload! {
    /// The size of an image.
    #[derive(Copy, Eq)]
    pub struct Dimensions {
        /// In pixels.
        width: u64 = "width",
        /// In pixels.
        height: u64 = "height",
    }
}

payload! {
    /// A stored file.
    pub struct FileAttachment<'a> {
        /// `sha256:` and the digest.
        attachment_id: JsonStr<'a> = "attachmentId",
        /// Name of the file.
        name: JsonStr<'a> = "name",
        /// Size in bytes.
        bytes: u64 = "bytes",
    }
}

/// The content of a message.
pub type Blocks<'a> = List<'a, Block<'a>>;

impl<'a> List<'a, Block<'a>> {
    /// The texts of the `text` blocks; blocks of other kinds and malformed ones are passed over.
    pub fn texts(&self) -> impl Iterator<Item = JsonStr<'a>> {
        self.iter().filter_map(|block| match block {
            Ok(Block::Text { text }) => Some(text),
            _ => None,
        })
    }

    /// The texts of the `text` blocks in one, as the SDKs make the final response of a run.
    #[must_use]
    pub fn text(&self) -> JsonString {
        let mut text = String::from("\"");
        for piece in self.texts() {
            // Joined as escaped text, because halves of a surrogate pair may stand in different blocks.
            let piece = piece.get();
            text.push_str(piece.get(1..piece.len().saturating_sub(1)).unwrap_or_default());
        }
        text.push('"');
        JsonStr::from_proved(&text).to_buf()
    }
}
