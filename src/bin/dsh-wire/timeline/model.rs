//! What the picture shows: lanes, spans and lines, collected entry by entry.

use std::collections::HashMap;

use dsh_wire::frame::{Frame, RpcError};
use dsh_wire::json::{Json, JsonStr, JsonString};
use dsh_wire::recording::{Calls, Direction};

use super::spans::{Span, SpanKind, Spans};
use super::tracks;
use crate::inspect::filter::Kind;
use crate::inspect::input::{Content, Item};
use crate::terminal::Count;

/// A recording on its way into a picture.
pub(crate) struct Timeline {
    title: String,
    /// How much of a line is kept.
    line_bytes: usize,
    names: Names,
    lanes: Lanes,
    lines: Vec<Line>,
    spans: Spans,
    /// Requests that wait for their answer: their lane and span.
    calls: Calls<(usize, usize)>,
    /// When the last line went, in microseconds.
    now: u64,
}

/// A picture that is complete.
pub(crate) struct Finished {
    pub(crate) title: String,
    pub(crate) names: Vec<String>,
    /// In the order in which they are drawn.
    pub(crate) lanes: Vec<Lane>,
    pub(crate) lines: Vec<Line>,
    pub(crate) spans: Vec<Span>,
}

pub(crate) struct Lane {
    /// The session; of the first lane, nothing.
    pub(crate) name: String,
    /// How many sessions are above it.
    pub(crate) depth: usize,
}

/// One line of the recording.
pub(crate) struct Line {
    /// In the file.
    pub(crate) number: u64,
    /// Microseconds since the recording began.
    pub(crate) at: u64,
    pub(crate) direction: Option<Direction>,
    pub(crate) kind: Kind,
    pub(crate) lane: usize,
    /// Which of the names.
    pub(crate) name: usize,
    /// On the pipe.
    pub(crate) bytes: u64,
    /// As much as is kept.
    pub(crate) text: String,
}

/// The lane of all that belongs to no session.
const CONNECTION: usize = 0;

impl Timeline {
    pub(crate) fn new(title: String, line_bytes: usize) -> Self {
        Self {
            title,
            line_bytes,
            names: Names::default(),
            lanes: Lanes::new(),
            lines: Vec::new(),
            spans: Spans::default(),
            calls: Calls::default(),
            now: 0,
        }
    }

    pub(crate) fn add(&mut self, item: &Item<'_>) {
        if let Some(origin) = item.origin {
            self.now = u64::try_from(origin.at.as_micros()).unwrap_or(u64::MAX);
        }
        let line = self.lines.len();
        let (lane, name) = match &item.content {
            Content::Frame(frame) => self.add_frame(item, *frame, line),
            Content::Dropped(why) => (CONNECTION, why.to_string()),
            Content::Damaged(why) => (CONNECTION, format!("no entry of a recording: {why}")),
            Content::Stderr => (CONNECTION, "stderr".into()),
            Content::Lost => (CONNECTION, format!("{} that the recorder could not keep", Count(item.len, "byte"))),
        };
        self.lines.push(Line {
            number: item.number,
            at: self.now,
            direction: item.origin.map(|origin| origin.direction),
            kind: Kind::of(&item.content),
            lane,
            name: self.names.of(&name),
            bytes: item.len,
            text: kept(item.bytes, self.line_bytes),
        });
    }

    /// Returns the lane and the name of the line.
    fn add_frame(&mut self, item: &Item<'_>, frame: Frame<'_>, line: usize) -> (usize, String) {
        let way = item.origin.map_or(Direction::Stderr, |origin| origin.direction);
        match frame {
            Frame::Request { id, method, params } => {
                let lane = self.lane_of(params, "sessionId");
                let name = method.to_string_lossy().into_owned();
                let span = self.spans.begin(SpanKind::Request, lane, self.names.of(&name), line);
                self.calls.asked(way, id, (lane, span));
                (lane, name)
            }
            Frame::Response { id, outcome } => {
                let call = self.calls.answered(way, id);
                if let Some((_, span)) = call {
                    self.spans.end(span, line, outcome.is_err());
                }
                let asked = call.and_then(|(_, span)| self.names.get(self.spans.name(span)));
                let name = match (asked, outcome) {
                    (Some(method), Ok(_)) => method.to_owned(),
                    (None, Ok(_)) => "response to no request".into(),
                    (Some(method), Err(error)) => format!("{method}: {}", RpcError::from(error)),
                    (None, Err(error)) => format!("response to no request: {}", RpcError::from(error)),
                };
                (call.map_or(CONNECTION, |(lane, _)| lane), name)
            }
            Frame::Notification { method, params } => self.add_notification(method, params, line),
        }
    }

    fn add_notification(&mut self, method: JsonStr<'_>, params: Json<'_>, line: usize) -> (usize, String) {
        let name = method.to_string_lossy().into_owned();
        if name == "subagent.started" || name == "subagent.finished" {
            let parent = self.lane_of(params, "parentSessionId");
            let child = self.lane_of(params, "childSessionId");
            self.lanes.put_below(child, parent);
            return (if name == "subagent.started" { parent } else { child }, name);
        }
        let lane = self.lane_of(params, "sessionId");
        let Some(event) = params.member("event") else {
            let status = params.member("status").and_then(Json::as_str).map(JsonStr::to_string_lossy);
            return (lane, status.map_or(name.clone(), |status| format!("{name}: {status}")));
        };
        let kind = event.member("type").and_then(Json::as_str).map_or_else(|| name.into(), JsonStr::to_string_lossy);
        self.spans.event(lane, &kind, event.member("data").unwrap_or(Json::NULL), line, &mut self.names);
        (lane, kind.into_owned())
    }

    fn lane_of(&mut self, params: Json<'_>, member: &str) -> usize {
        params.member(member).and_then(Json::as_str).map_or(CONNECTION, |session| self.lanes.of(session))
    }

    pub(crate) fn finish(self) -> Finished {
        let (lanes, place_of) = self.lanes.in_order();
        let place = |lane: usize| place_of.get(lane).copied().unwrap_or(CONNECTION);
        let mut lines = self.lines;
        lines.iter_mut().for_each(|line| line.lane = place(line.lane));
        let mut spans = self.spans.finish();
        spans.iter_mut().for_each(|span| span.lane = place(span.lane));
        tracks::lay(&mut spans, &lines);
        Finished { title: self.title, names: self.names.all, lanes, lines, spans }
    }
}

/// The text of a line, and how much is missing.
fn kept(bytes: &[u8], limit: usize) -> String {
    let start = bytes.get(..limit).unwrap_or(bytes);
    let mut text = String::from_utf8_lossy(start).into_owned();
    if start.len() < bytes.len() {
        text.push_str(&format!("… {}", Count((bytes.len() - start.len()) as u64, "more byte")));
    }
    text
}

/// Texts that many lines and spans share, by number.
#[derive(Default)]
pub(crate) struct Names {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Names {
    pub(crate) fn of(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.all.len();
        self.all.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn get(&self, number: usize) -> Option<&str> {
        self.all.get(number).map(String::as_str)
    }
}

/// The sessions, and which has started which.
struct Lanes {
    all: Vec<(String, Option<usize>)>,
    numbers: HashMap<JsonString, usize>,
}

impl Lanes {
    fn new() -> Self {
        Self { all: vec![(String::new(), None)], numbers: HashMap::new() }
    }

    fn of(&mut self, session: JsonStr<'_>) -> usize {
        let next = self.all.len();
        let lane = *self.numbers.entry(session.to_buf()).or_insert(next);
        if lane == next {
            self.all.push((session.to_string_lossy().into_owned(), None));
        }
        lane
    }

    /// The first parent counts, and none that is below the child.
    fn put_below(&mut self, child: usize, parent: usize) {
        let mut above = Some(parent);
        while let Some(lane) = above {
            if lane == child {
                return;
            }
            above = self.all.get(lane).and_then(|(_, parent)| *parent);
        }
        if let Some((_, slot @ None)) = self.all.get_mut(child) {
            *slot = Some(parent).filter(|_| child != CONNECTION && parent != CONNECTION);
        }
    }

    /// Each lane behind the one above it, and where each has come to stand.
    fn in_order(self) -> (Vec<Lane>, Vec<usize>) {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.all.len()];
        let mut waiting = Vec::new();
        for (lane, (_, parent)) in self.all.iter().enumerate() {
            match parent.and_then(|parent| below.get_mut(parent)) {
                Some(children) => children.push(lane),
                None => waiting.push((lane, 0)),
            }
        }
        waiting.reverse();
        let mut lanes = Vec::new();
        let mut place_of = vec![CONNECTION; self.all.len()];
        while let Some((lane, depth)) = waiting.pop() {
            if let (Some(place), Some((name, _))) = (place_of.get_mut(lane), self.all.get(lane)) {
                *place = lanes.len();
                lanes.push(Lane { name: name.clone(), depth });
            }
            waiting.extend(below.get(lane).into_iter().flatten().rev().map(|child| (*child, depth + 1)));
        }
        (lanes, place_of)
    }
}
