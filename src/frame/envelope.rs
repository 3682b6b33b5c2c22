//! The members that make a frame, and where they lie in its line.

use core::ops::Range;

use super::NotAFrame;
use crate::json::{self, EventHead, Foreseen, Json, JsonStr, Kind, SyntaxError};

/// The byte ranges of the members that make a frame; empty where there is none.
#[derive(Debug, Default, PartialEq, Eq)]
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
        let mut rest = Foreseen::new(text);
        rest.pass(br#"{"jsonrpc":"2.0","#)?;
        if let Some((envelope, head)) = Self::event(text, rest.clone()) {
            return Some((envelope, Some(head)));
        }
        let mut envelope = Self::default();
        let last = envelope.pass(&mut rest)?;
        let inside = text.strip_suffix('}')?;
        *last = rest.at()..inside.len();
        json::is_container(inside, rest.at()).then_some((envelope, None))
    }

    /// An event as nearly all are, with nothing behind its data but that it is appended. (What is nearly one is read once
    /// more.)
    #[inline(always)]
    fn event(text: &str, mut rest: Foreseen<'_>) -> Option<(Self, EventHead)> {
        // Compared together with its name: its length need not be waited for.
        let start = rest.at() + br#""method":"#.len();
        rest.pass(br#""method":"session.event""#)?;
        let method = start..rest.at();
        rest.pass(br#","params":"#)?;
        let params = rest.at();
        let head = EventHead::pass(&mut rest)?;
        let data = text.strip_suffix(r#","surfaceOp":"append"}}}"#).or_else(|| text.strip_suffix("}}}"))?;
        if !json::is_container(data, rest.at()) {
            return None;
        }
        let head = head.with_data_to(data.len() - params)?;
        Some((Self { method, params: params..text.len() - 1, ..Self::default() }, head))
    }

    /// Passes over id and method, up to the value of the last member; where that belongs.
    #[inline(always)]
    fn pass(&mut self, rest: &mut Foreseen<'_>) -> Option<&mut Range<usize>> {
        if rest.pass(br#""id":"#).is_some() {
            self.id = rest.pass_string().or_else(|| rest.pass_digits())?;
            if rest.pass(br#","result":"#).is_some() {
                return Some(&mut self.result);
            }
            if rest.pass(br#","error":"#).is_some() {
                return Some(&mut self.error);
            }
            rest.pass(b",")?;
        }
        rest.pass(br#""method":"#)?;
        self.method = rest.pass_string()?;
        rest.pass(br#","params":"#)?;
        Some(&mut self.params)
    }

    /// Takes a member of the outermost object, of which the last of a name counts.
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

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    /// What is foreseen is what is read, and nothing else is foreseen.
    #[track_caller]
    fn check(text: &str, foreseen: bool, is_event: bool) {
        let found = Envelope::foreseen(text);
        assert_eq!(found.is_some(), foreseen, "{text}");
        assert_eq!(found.as_ref().is_some_and(|(_, head)| head.is_some()), is_event, "{text}");
        if let Some((envelope, _)) = found {
            assert_eq!(envelope, Envelope::read(text, text).unwrap(), "{text}");
        }
    }

    #[test]
    fn what_both_ends_write_is_foreseen() {
        for value in ["{}", r#"{"a":[1,{"b":"}"}]}"#, "[]"] {
            for id in [r#""req_1""#, r#""""#, r#""é""#, "7", "123456789012345"] {
                for rest in [r#""method":"m","params""#, r#""result""#, r#""error""#] {
                    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}:{value}}}"#);
                    // The digits of a number are looked at 16 bytes at once.
                    check(&text, id.starts_with('"') || text.len() - 22 >= 16, false);
                }
            }
            check(&format!(r#"{{"jsonrpc":"2.0","method":"é","params":{value}}}"#), true, false);
        }
        let event = |data: &str, behind: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session.event","params":{{"sessionId":"s","event":{{"type":"t","seq":1,"time":1796028532123,"data":{data}{behind}}}}}}}"#
            )
        };
        for data in ["{}", r#"{"a":"}}}"}"#, r#"{"b":{"c":1,"surfaceOp":"append"}}"#, "[]"] {
            for text in [event(data, ""), event(data, r#","surfaceOp":"append""#)] {
                check(&text, true, true);
                // Where the data ends is known to whom the params go.
                let (envelope, head) = Envelope::foreseen(&text).unwrap();
                let params = piece(&text, envelope.params).unwrap().with_head(head);
                assert_eq!(Foreseen::event(params).map(|(_, found, _)| found.get()), Some(data));
            }
            check(&event(data, r#","sourceEventSeqs":[1],"surfaceOp":"append""#), true, false);
            check(&event(data, r#","surfaceOp":{"op":"replace"}"#), true, false);
        }
        check(&event("null", ""), true, false);
        check(&event("{}", r#","data":{}"#), true, false);
        for (from, to) in [("\"s\"", "\"\\n\""), ("1,", "01,"), ("1,", "1.5,"), ("1796028532123", "1796028532123456")] {
            let text = event("{}", "").replace(from, to);
            check(&text, from != "1," || to == "1.5,", false);
        }
    }

    #[test]
    fn what_only_begins_so_is_not() {
        for text in [
            "",
            "{",
            "{}",
            r#"{"jsonrpc":"2.0","id":"a","#,
            r#"{"jsonrpc":"2.0","method":"m"}"#,
            r#"{"jsonrpc": "2.0","method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{}} "#,
            r#"{"jsonrpc":"2.0","method":"m","params":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":1}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{},"params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{},"id":{}}"#,
            r#"{"jsonrpc":"2.0","method":"\u006d","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":-7,"result":{"a":12345678}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{},"error":{}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\u{1}\",\"result\":{}}",
        ] {
            check(text, false, false);
        }
        // White space in the object at the end is no matter of the plain path.
        check(r#"{"jsonrpc":"2.0","method":"m","params":{ }}"#, !cfg!(feature = "simd"), false);
    }
}
