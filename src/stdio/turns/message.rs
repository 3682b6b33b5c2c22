//! Messages to the agent: prompts and notes.

use std::string::String;
use std::vec::Vec;

use serde::Serialize;

use crate::json::{Json, JsonBuf, JsonStr, JsonString};
use crate::wire::{Blocks, Decode};

/// A message of role `user`: a prompt, or a note that the runtime adds.
#[derive(Debug, Clone)]
pub struct Message {
    id: String,
    /// An array.
    content: JsonBuf,
    /// The whole of it, as it is told.
    json: JsonBuf,
    /// Whether a user made it.
    prompt: bool,
}

/// In the order of the official runtime.
#[derive(Serialize)]
struct Whole<'a, S> {
    content: Json<'a>,
    source: S,
    role: &'static str,
    id: &'a str,
}

#[derive(Serialize)]
struct Kind<'a> {
    kind: &'a str,
}

impl Message {
    /// A prompt of a user's. Anything may be in the array of its blocks.
    pub(super) fn prompt(id: String, content: Json<'_>) -> Self {
        Self { prompt: true, ..Self::new(id, content, &Kind { kind: "user" }) }
    }

    /// A note: texts, and where they come from, which is an object with a `kind`.
    #[must_use]
    pub fn note(id: String, texts: &[&str], source: &impl Serialize) -> Self {
        let blocks: Vec<_> = texts.iter().map(|text| TextBlock::new((*text).into())).collect();
        // A text always has a JSON form.
        let content = JsonBuf::from_serialize(&blocks).unwrap_or_else(|_| Json::EMPTY_ARRAY.to_buf());
        Self::new(id, content.as_json(), source)
    }

    fn new(id: String, content: Json<'_>, source: &impl Serialize) -> Self {
        let json = JsonBuf::from_serialize(&Whole { content, source, role: "user", id: &id });
        // What has no JSON form is left out; the message is told all the same.
        let json = json.or_else(|_| {
            JsonBuf::from_serialize(&Whole { content, source: Kind { kind: "unknown" }, role: "user", id: &id })
        });
        Self {
            content: content.to_buf(),
            json: json.unwrap_or_else(|_| Json::EMPTY_OBJECT.to_buf()),
            id,
            prompt: false,
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether a user wrote it; otherwise it is a note.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.prompt
    }

    /// The content blocks: an array.
    #[must_use]
    pub fn content(&self) -> Json<'_> {
        self.content.as_json()
    }

    /// What its text blocks say.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = JsonStr<'_>> {
        let texts: Vec<_> = self.blocks().map(|blocks| blocks.texts().collect()).unwrap_or_default();
        texts.into_iter()
    }

    /// What its text blocks say, in one.
    #[must_use]
    pub fn text(&self) -> JsonString {
        self.blocks().map_or_else(|| "".into(), |blocks| blocks.text())
    }

    /// The whole message, as events hold it.
    #[must_use]
    pub fn json(&self) -> Json<'_> {
        self.json.as_json()
    }

    fn blocks(&self) -> Option<Blocks<'_>> {
        Blocks::decode(self.content.as_json()).ok()
    }
}

#[derive(Serialize)]
pub(super) struct TextBlock<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    text: JsonString,
}

impl TextBlock<'_> {
    pub(super) fn new(text: JsonString) -> Self {
        Self { kind: "text", text }
    }
}
