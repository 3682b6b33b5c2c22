//! The members that make a frame, and where they lie in its line.

use core::ops::Range;

use super::NotAFrame;
use crate::json::{self, EventHead, Foreseen, Json, JsonStr, Kind, SyntaxError};

/// The byte ranges of the members that make a frame; empty where there is none.
#[derive(Default)]
pub(super) struct Envelope {
    pub(super) id: Range<usize>,
    pub(super) method: Range<usize>,
    pub(super) params: Range<usize>,
    pub(super) result: Range<usize>,
    pub(super) error: Range<usize>,
}

impl Envelope {
    /// Reads any text.
    pub(super) fn read(line: &str, text: &str) -> Result<Self, NotAFrame> {
        let mut envelope = Self::default();
        let whole = json::validate(text, |name, value| envelope.note(text, name, value))
            .map_err(|error| why_not_json(line, text, error))?;
        let whole = Json::from_proved(text.get(whole).unwrap_or_default());
        if whole.kind() == Kind::Object { Ok(envelope) } else { Err(NotAFrame::NotAnObject(whole.kind())) }
    }

    /// Reads a text as both ends of this protocol write it, `{"jsonrpc":"2.0"`, id, method, and last the object that is
    /// the bulk of it: only that has to be proved token by token. Of an event, finds its parts by the way. `None` where
    /// the text is another, or no JSON.
    #[inline]
    pub(super) fn foreseen(text: &str) -> Option<(Self, Option<EventHead>)> {
        let mut envelope = Self::default();
        let mut rest = Foreseen::new(text);
        rest.pass(br#"{"jsonrpc":"2.0","#)?;
        let last = if rest.pass(br#""id":"#).is_none() {
            if let Some(method) = Self::pass_event(&mut rest) {
                envelope.method = method;
                let params = rest.at();
                envelope.params = params..text.len() - 1;
                if let Some(head) = Self::event(text, params, rest.clone()) {
                    return Some((envelope, Some(head)));
                }
                &mut envelope.params
            } else {
                envelope.pass_method(&mut rest)?
            }
        } else {
            envelope.id = rest.pass_string().or_else(|| rest.pass_digits())?;
            if rest.pass(br#","result":"#).is_some() {
                &mut envelope.result
            } else if rest.pass(br#","error":"#).is_some() {
                &mut envelope.error
            } else {
                rest.pass(b",")?;
                envelope.pass_method(&mut rest)?
            }
        };
        let inside = text.strip_suffix('}')?;
        *last = rest.at()..inside.len();
        json::is_container(inside, rest.at()).then_some((envelope, None))
    }

    /// Passes over any method; the params come next.
    #[inline(always)]
    fn pass_method(&mut self, rest: &mut Foreseen<'_>) -> Option<&mut Range<usize>> {
        rest.pass(br#""method":"#)?;
        self.method = rest.pass_string()?;
        rest.pass(br#","params":"#)?;
        Some(&mut self.params)
    }

    /// Passes over the method of nearly all lines, whose length need not be waited for.
    #[inline(always)]
    fn pass_event(rest: &mut Foreseen<'_>) -> Option<Range<usize>> {
        let mut ahead = rest.clone();
        ahead.pass(br#""method":"session.event""#)?;
        let end = ahead.at();
        ahead.pass(br#","params":"#)?;
        let start = rest.at() + br#""method":"#.len();
        *rest = ahead;
        Some(start..end)
    }

    /// Proves an event whose params begin at `params`.
    #[inline(always)]
    fn event(text: &str, params: usize, mut rest: Foreseen<'_>) -> Option<EventHead> {
        let head = EventHead::pass(&mut rest)?;
        let data = text.strip_suffix(r#","surfaceOp":"append"}}}"#).or_else(|| text.strip_suffix("}}}"))?;
        json::is_container(data, rest.at()).then(|| head.with_data_to(data.len() - params))?
    }

    #[inline]
    pub(super) fn note(&mut self, text: &str, name: Range<usize>, value: Range<usize>) {
        let name = text.as_bytes().get(name).unwrap_or_default();
        // One after the other: a `match` would compare byte by byte.
        let slot = if name == br#""params""# {
            &mut self.params
        } else if name == br#""method""# {
            &mut self.method
        } else if name == br#""id""# {
            &mut self.id
        } else if name == br#""result""# {
            &mut self.result
        } else if name == br#""error""# {
            &mut self.error
        } else if name == br#""jsonrpc""# {
            return;
        } else {
            return self.note_escaped(name, value);
        };
        *slot = value;
    }

    /// Another member, or one whose name is written with escapes.
    #[cold]
    fn note_escaped(&mut self, name: &[u8], value: Range<usize>) {
        let Some(name) = core::str::from_utf8(name).ok().filter(|name| name.contains('\\')) else { return };
        let slot = match &*JsonStr::from_proved(name).to_string_lossy() {
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => return,
        };
        *slot = value;
    }
}

/// The value that lies in this range of a text that has been proved; `None` where the range is empty.
pub(super) fn piece(text: &str, range: Range<usize>) -> Option<Json<'_>> {
    text.get(range).filter(|piece| !piece.is_empty()).map(Json::from_proved)
}

/// Names the fault of a line that is not JSON, with the offset moved to where the line began.
#[cold]
fn why_not_json(line: &str, text: &str, error: SyntaxError) -> NotAFrame {
    const HEADER: &str = "content-length:";
    if text.is_empty() {
        NotAFrame::Blank
    } else if text.get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER)) {
        NotAFrame::HeaderFraming
    } else {
        let cut = text.as_ptr().addr() - line.as_ptr().addr();
        NotAFrame::Syntax(SyntaxError { at: error.at + cut, ..error })
    }
}
