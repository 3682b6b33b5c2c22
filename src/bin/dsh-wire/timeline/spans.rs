//! From a beginning to an end: requests, turns, steps and tool calls.

use std::collections::HashMap;

use dsh_wire::json::{Json, JsonStr, JsonString};

use super::model::Names;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SpanKind {
    Request,
    Turn,
    Step,
    Tool,
}

/// How a span has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Well,
    /// With an error.
    Failed,
    /// Cut short, or never in this recording.
    Open,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) kind: SpanKind,
    pub(crate) lane: usize,
    /// Which of the names.
    pub(crate) name: usize,
    /// The line that it begins with.
    pub(crate) first: usize,
    /// The line that it ends with, if any does.
    pub(crate) last: Option<usize>,
    pub(crate) end: End,
    /// Its row among the spans of its kind in its lane.
    pub(crate) track: usize,
}

/// What tells an open turn, step or tool call from others in its lane.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Turn(u64),
    Step(u64, u64),
    Tool(JsonString),
}

#[derive(Default)]
pub(crate) struct Spans {
    all: Vec<Span>,
    /// Of each lane, with the turn that they are in.
    open: HashMap<usize, HashMap<Key, (usize, Option<u64>)>>,
}

impl Spans {
    pub(crate) fn begin(&mut self, kind: SpanKind, lane: usize, name: usize, line: usize) -> usize {
        self.all.push(Span { kind, lane, name, first: line, last: None, end: End::Open, track: 0 });
        self.all.len() - 1
    }

    pub(crate) fn end(&mut self, span: usize, line: usize, failed: bool) {
        self.close(span, line, if failed { End::Failed } else { End::Well });
    }

    fn close(&mut self, span: usize, line: usize, end: End) {
        if let Some(span) = self.all.get_mut(span) {
            span.last = Some(line);
            span.end = end;
        }
    }

    pub(crate) fn name(&self, span: usize) -> usize {
        self.all.get(span).map_or(0, |span| span.name)
    }

    /// An event of the session of that lane.
    pub(crate) fn event(&mut self, lane: usize, kind: &str, data: Json<'_>, line: usize, names: &mut Names) {
        let number = |name| data.member(name).and_then(Json::as_u64);
        let turn = number("turn");
        let step = turn.zip(number("step")).map(|(turn, step)| Key::Step(turn, step));
        match kind {
            "turn/start" => self.open(lane, SpanKind::Turn, turn.map(Key::Turn), turn, line, |turn| {
                names.of(&format!("turn {}", turn.unwrap_or(0)))
            }),
            "step/start" => self.open(lane, SpanKind::Step, step, turn, line, |_| {
                names.of(&format!("step {}", number("step").unwrap_or(0)))
            }),
            "tool/call" => {
                let name = data.member("name").and_then(Json::as_str).map(JsonStr::to_string_lossy).unwrap_or_default();
                let key = data.member("callId").and_then(Json::as_str).map(|id| Key::Tool(id.to_buf()));
                self.open(lane, SpanKind::Tool, key, turn, line, |_| names.of(&name));
            }
            "step/end" => self.shut(lane, step, line, false),
            "turn/end" => {
                let reason = data.member("reason").and_then(|reason| reason.member("kind")).and_then(Json::as_str);
                self.shut(lane, turn.map(Key::Turn), line, reason.is_some_and(|reason| reason == "error"));
                self.cut_short(lane, turn, line);
            }
            "tool/result" => {
                let message = data.member("message").unwrap_or(Json::NULL);
                let key = result_of(data, message).map(|id| Key::Tool(id.to_buf()));
                let failed = message.member("isError").and_then(Json::as_bool) == Some(true)
                    || data.member("error").is_some_and(|error| !error.is_null());
                self.shut(lane, key, line, failed);
            }
            _ => {}
        }
    }

    fn open(
        &mut self,
        lane: usize,
        kind: SpanKind,
        key: Option<Key>,
        turn: Option<u64>,
        line: usize,
        name: impl FnOnce(Option<u64>) -> usize,
    ) {
        let Some(key) = key else { return };
        let span = self.begin(kind, lane, name(turn), line);
        self.open.entry(lane).or_default().insert(key, (span, turn));
    }

    fn shut(&mut self, lane: usize, key: Option<Key>, line: usize, failed: bool) {
        let open = key.and_then(|key| self.open.get_mut(&lane)?.remove(&key));
        if let Some((span, _)) = open {
            self.end(span, line, failed);
        }
    }

    /// What is still open in a turn that has ended will not go on.
    fn cut_short(&mut self, lane: usize, turn: Option<u64>, line: usize) {
        let Some(open) = self.open.get_mut(&lane).filter(|_| turn.is_some()) else { return };
        let spans: Vec<_> = open.extract_if(|_, (_, of)| *of == turn).map(|(_, (span, _))| span).collect();
        spans.into_iter().for_each(|span| self.close(span, line, End::Open));
    }

    pub(crate) fn finish(self) -> Vec<Span> {
        self.all
    }
}

/// The call that a result belongs to; before 0.2.1 it stands in a block of the message.
fn result_of<'a>(data: Json<'a>, message: Json<'a>) -> Option<JsonStr<'a>> {
    let id = |json: Json<'a>, name| json.member(name).and_then(Json::as_str);
    id(message, "toolCallId")
        .or_else(|| message.member("source").and_then(|source| id(source, "callId")))
        .or_else(|| id(data, "callId"))
        .or_else(|| message.member("content")?.elements().find_map(|block| id(block, "toolCallId")))
}
