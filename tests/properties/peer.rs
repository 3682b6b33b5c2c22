//! One peer driven by a sequence of operations, beside a model that keeps everything and does each thing the slow way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dsh_wire::frame::{Frame, Outcome};
use dsh_wire::json::{self, Json};
use dsh_wire::peer::{AbortToken, CallId, DropReason, Event, LostReason, Mark, Peer, Reply, SendError};
use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};

use super::choices::Choices;
use super::lines::pieces;
use super::oracle;

/// Writes a part of itself and then fails.
pub(crate) struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        seq.serialize_element("a part that must not stay")?;
        Err(S::Error::custom("on purpose"))
    }
}

/// First byte the line limit, then operations until the bytes are used up.
pub(crate) fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let limit = [64 << 20, 100, 128, 300][choices.below(4)];
    let mut world = World::new(limit);
    for step in 1u32.. {
        if choices.is_empty() {
            break;
        }
        world.step(&mut choices);
        world.compare(step.is_multiple_of(8));
    }
    world.finish();
}

/// A call in the model, while it waits.
#[derive(Debug)]
struct Call {
    call: CallId,
    tag: u32,
    id: String,
    token: Option<usize>,
    /// Its index in `World::frames`.
    frame: usize,
}

/// A frame in the model's output.
#[derive(Debug)]
struct Sent {
    bytes: Vec<u8>,
    /// Bytes of it that were consumed.
    gone: usize,
    /// Withdrawn, or dropped at the end of output.
    withdrawn: bool,
}

impl Sent {
    fn is_done(&self) -> bool {
        self.withdrawn || self.gone == self.bytes.len()
    }
}

/// What the model expects next.
#[derive(Debug)]
enum Expected {
    Aborted { tag: u32, token: usize },
    InputEnded { tag: u32 },
    AnswerTooLong { tag: u32 },
    RequestTooLong { id: String, method: Vec<u16> },
    Line { number: u64, bytes: Vec<u8> },
    TooLong { number: u64, len: usize, prefix: Vec<u8> },
    Unterminated { number: u64, len: usize, prefix: Vec<u8> },
}

struct World {
    peer: Peer<u32>,
    limit: usize,

    pending: Vec<Call>,
    /// Calls that a token has ended and whose event has not come.
    aborted: VecDeque<(u32, usize)>,
    /// How often each call has ended, by tag; the length is the next tag.
    ends: Vec<u32>,
    ids: BTreeSet<String>,
    past: Vec<(CallId, String)>,
    tokens: Vec<(AbortToken, bool)>,

    /// All that was pushed before the end of input.
    stream: Vec<u8>,
    /// Where the next line begins.
    taken: usize,
    number: u64,
    /// Whether the limit of the line at `taken` has been seen to be passed.
    told: bool,
    input_ended: bool,

    /// In the order of sending.
    frames: Vec<Sent>,
    /// All bytes that were consumed.
    wire: Vec<u8>,
    output_ended: bool,
    /// With how many frames had been sent.
    marks: Vec<(Mark, usize)>,

    replies: Vec<Reply>,
    owed: u64,
}

impl World {
    fn new(limit: usize) -> Self {
        Self {
            peer: Peer::with_seed_and_limit(7, limit),
            limit,
            pending: Vec::new(),
            aborted: VecDeque::new(),
            ends: Vec::new(),
            ids: BTreeSet::new(),
            past: Vec::new(),
            tokens: Vec::new(),
            stream: Vec::new(),
            taken: 0,
            number: 0,
            told: false,
            input_ended: false,
            frames: Vec::new(),
            wire: Vec::new(),
            output_ended: false,
            marks: Vec::new(),
            replies: Vec::new(),
            owed: 0,
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(20) {
            0..=3 => self.request(choices),
            4 => {
                let (method, value) = (method(choices), value(choices));
                let sent = self.peer.notify(method, &value);
                let bytes = format!(r#"{{"jsonrpc":"2.0","method":{}{}}}"#, quoted(method), params_member(&value));
                self.sent(sent, bytes);
            }
            5 => self.abort(choices),
            6 => {
                if choices.flag() || self.tokens.is_empty() {
                    self.tokens.push((AbortToken::new(format!("token {}", self.tokens.len())), false));
                } else {
                    let index = choices.below(self.tokens.len());
                    self.tokens[index].0.clone().abort();
                    self.tokens[index].1 = true;
                }
            }
            7 => self.poll_aborts(),
            8..=10 => {
                let bytes = self.plausible(choices);
                self.push(&bytes, choices);
            }
            11 => {
                let n = choices.below(40);
                let bytes = choices.take(n);
                self.push(bytes, choices);
            }
            12..=14 => {
                for _ in 0..=choices.below(4) {
                    self.next_event(choices.flag());
                }
            }
            15 => self.answer(choices),
            16 | 17 => {
                let n = match choices.below(4) {
                    0 => 1,
                    1 => choices.byte().into(),
                    2 => self.frames.iter().find(|sent| !sent.is_done()).map_or(0, |sent| sent.bytes.len() - sent.gone),
                    _ => choices.below(1 << 16),
                };
                self.consume(n);
            }
            18 => {
                if self.marks.len() == 8 {
                    self.marks.remove(choices.below(8));
                }
                self.marks.push((self.peer.sent_mark(), self.frames.len()));
            }
            _ => match choices.below(16) {
                0 => {
                    self.peer.end_input();
                    self.input_ended = true;
                }
                1 => {
                    self.peer.end_output();
                    self.output_ended = true;
                    self.frames.iter_mut().filter(|sent| !sent.is_done()).for_each(|sent| sent.withdrawn = true);
                }
                _ => self.failing_sends(),
            },
        }
    }

    /// Everything that the peer shows, beside the model; large outputs only where `all` is asked for.
    fn compare(&mut self, all: bool) {
        let len = self.waiting_len();
        let output = self.peer.outgoing();
        assert_eq!(output.len(), len, "bytes to go out");
        assert_eq!((output.is_empty(), output.bytes().is_empty()), (len == 0, len == 0));
        if all || len < 4096 {
            let shown = output.chunks().collect::<Vec<_>>().concat();
            assert!(shown.starts_with(output.bytes()));
            assert_eq!(shown, self.waiting(), "the bytes that wait are the frames that do");
        }
        assert_eq!(self.peer.pending(), self.pending.len());
        assert_eq!(self.peer.has_tokens(), self.pending.iter().any(|call| call.token.is_some()));
        assert_eq!(self.peer.replies_owed(), if self.output_ended { 0 } else { self.owed });
        assert_eq!(self.peer.input_ended(), self.input_ended);
        for (mark, sent) in &self.marks {
            let flushed = self.frames[..*sent].iter().all(Sent::is_done);
            assert_eq!(self.peer.is_flushed(*mark), flushed, "the mark behind {sent} frames");
        }
    }

    fn waiting_len(&self) -> usize {
        self.frames.iter().filter(|sent| !sent.is_done()).map(|sent| sent.bytes.len() - sent.gone).sum()
    }

    fn waiting(&self) -> Vec<u8> {
        self.frames.iter().filter(|sent| !sent.is_done()).flat_map(|sent| &sent.bytes[sent.gone..]).copied().collect()
    }

    fn request(&mut self, choices: &mut Choices<'_>) {
        let (method, value) = (method(choices), value(choices));
        let token =
            if self.tokens.is_empty() || choices.flag() { None } else { Some(choices.below(self.tokens.len())) };
        let tag = self.ends.len() as u32;
        let before = self.waiting_len();
        match self.peer.request(method, &value, tag, token.map(|index| &self.tokens[index].0)) {
            Ok(call) => {
                assert!(!self.output_ended && !self.input_ended && token.is_none_or(|index| !self.tokens[index].1));
                // A call has its frame in a chunk of its own.
                let written = self.peer.outgoing().chunks().last().unwrap().to_vec();
                assert_eq!(self.peer.outgoing().len(), before + written.len());
                let text = String::from_utf8(written.clone()).unwrap();
                let id = &text[r#"{"jsonrpc":"2.0","id":""#.len()..][..36];
                let hex = id.strip_prefix("req_").unwrap();
                assert!(hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)), "{id}");
                assert!(self.ids.insert(id.into()), "the id {id} is used twice");
                let (method, params) = (quoted(method), params_member(&value));
                assert_eq!(text, format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":{method}{params}}}\n"));
                self.pending.push(Call { call, tag, id: id.into(), token, frame: self.frames.len() });
                self.past.push((call, id.into()));
                self.frames.push(Sent { bytes: written, gone: 0, withdrawn: false });
                self.ends.push(0);
            }
            Err(SendError::Aborted(reason)) => {
                let (token, set) = &self.tokens[token.unwrap()];
                assert!(*set && token.reason() == reason);
            }
            Err(SendError::Closed) => assert!(self.input_ended || self.output_ended),
            Err(other) => panic!("{other}"),
        }
    }

    /// Enters what a send reported into the model.
    fn sent<E: std::fmt::Debug>(&mut self, sent: Result<(), E>, text: String) -> Option<E> {
        match sent {
            Ok(()) => {
                assert!(!self.output_ended);
                self.frames.push(Sent { bytes: (text + "\n").into(), gone: 0, withdrawn: false });
                None
            }
            Err(error) => {
                assert!(self.output_ended, "{error:?}");
                Some(error)
            }
        }
    }

    fn failing_sends(&mut self) {
        let mark = self.peer.sent_mark();
        let _ = self.peer.notify("lost", &Unwritable).unwrap_err();
        let _ = self.peer.request("lost", &Unwritable, u32::MAX, None).unwrap_err();
        if let Some(reply) = self.replies.pop() {
            let error = self.peer.answer(reply, &Unwritable).unwrap_err();
            let error = self.peer.refuse(error.reply, 1, "lost", Some(&Unwritable)).unwrap_err();
            self.replies.push(error.reply);
        }
        assert_eq!(self.peer.sent_mark(), mark);
    }

    fn answer(&mut self, choices: &mut Choices<'_>) {
        if self.replies.is_empty() {
            return;
        }
        let reply = self.replies.swap_remove(choices.below(self.replies.len()));
        let id = reply.id().get().to_owned();
        let value = value(choices);
        let (sent, text) = if choices.flag() {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, json_text(&value));
            (self.peer.answer(reply, &value), text)
        } else {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-5,"message":"no\n"}}}}"#);
            (self.peer.refuse(reply, -5, "no\n", None::<&()>), text)
        };
        match self.sent(sent, text) {
            None => self.owed -= 1,
            Some(error) => {
                assert_eq!(error.reply.id().get(), id, "the right to answer comes back");
                self.replies.push(error.reply);
            }
        }
    }

    fn abort(&mut self, choices: &mut Choices<'_>) {
        if self.past.is_empty() {
            return;
        }
        let call = self.past[choices.below(self.past.len())].0;
        let waiting = self.pending.iter().position(|pending| pending.call == call);
        let tag = self.peer.abort(call);
        assert_eq!(tag, waiting.map(|index| self.pending[index].tag));
        if let Some(index) = waiting {
            let Call { tag, frame, .. } = self.pending.remove(index);
            self.ends[tag as usize] += 1;
            self.withdraw(frame);
        }
    }

    fn withdraw(&mut self, frame: usize) {
        let sent = &mut self.frames[frame];
        sent.withdrawn |= sent.gone == 0;
    }

    fn poll_aborts(&mut self) {
        self.peer.poll_aborts();
        let tokens = &self.tokens;
        let set = |call: &mut Call| call.token.is_some_and(|token| tokens[token].1);
        for call in self.pending.extract_if(.., set).collect::<Vec<_>>() {
            self.aborted.extend(call.token.map(|token| (call.tag, token)));
            self.withdraw(call.frame);
        }
    }

    fn push(&mut self, bytes: &[u8], choices: &mut Choices<'_>) {
        let cuts = [choices.byte().into(), choices.byte().into()];
        for piece in pieces(bytes, &cuts) {
            self.peer.push(piece);
        }
        if !self.input_ended {
            self.stream.extend_from_slice(bytes);
        }
    }

    fn consume(&mut self, n: usize) {
        // A writer takes no more than it was shown, but the claim of one that did is cut.
        let mut left = n;
        self.peer.outgoing().consume(n);
        for sent in self.frames.iter_mut().filter(|sent| !sent.is_done()) {
            let now = left.min(sent.bytes.len() - sent.gone);
            self.wire.extend_from_slice(&sent.bytes[sent.gone..][..now]);
            sent.gone += now;
            left -= now;
        }
    }

    /// A frame that a peer could send, good or bad.
    fn plausible(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        let id = match choices.below(4) {
            0 | 1 if !self.pending.is_empty() => quoted(&self.pending[choices.below(self.pending.len())].id),
            2 if !self.past.is_empty() => quoted(&self.past[choices.below(self.past.len())].1),
            _ => ["7", "1.0", "\"\"", "\"x\"", "null", "[]", "\"\\ud83d\"", "1e400"][choices.below(8)].into(),
        };
        let id = if choices.below(8) == 0 { id.replace("req_", "r\\u0065q\\u005F") } else { id };
        let padding = ["", " ", "x", "\u{e9}", "\\ud83d"][choices.below(5)].repeat(choices.byte().into());
        let mut line = match choices.below(12) {
            0..=2 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{padding}"}}}}"#),
            3 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"m","data":"{padding}"}}}}"#),
            4 => format!(r#"{{"id":{id}}}"#),
            5 => format!(r#"{{"id":{id},"error":null,"result":"{padding}"}}"#),
            6 => format!(r#"{{"id":{id},"method":"steal","result":1,"params":["{padding}"]}}"#),
            7 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ask","params":{{"text":"{padding}"}}}}"#),
            8 => format!(r#"{{"jsonrpc":"2.0","method":"tell","params":{{"text":"{padding}"}}}}"#),
            9 => format!(r#"{{"result":"{padding}","id":"other","id":{id}}}"#),
            10 => "banner ".to_owned() + &padding,
            _ => padding,
        }
        .into_bytes();
        match choices.below(8) {
            0 => {
                // Broken UTF-8, or broken JSON.
                let at = choices.below(line.len() + 1);
                line.insert(at, choices.byte());
            }
            1 => line.truncate(choices.below(line.len() + 1)),
            _ => {}
        }
        if choices.below(16) > 0 {
            line.push(b'\n');
        }
        line
    }

    fn next_event(&mut self, split: bool) {
        let expected = self.expect();
        let mut incoming;
        let event = if split {
            incoming = self.peer.split().0;
            incoming.next_event()
        } else {
            self.peer.next_event()
        };
        let Some(expected) = expected else {
            // Lent from `self.peer`, so formatted before the panic.
            assert!(event.is_none(), "unexpected {event:?}");
            return;
        };
        let event = event.unwrap_or_else(|| panic!("no event, but {expected:?}"));
        let mut end = None;
        match (event, expected) {
            (Event::Aborted { tag, reason, .. }, Expected::Aborted { tag: ours, token }) => {
                assert_eq!((tag, reason.as_str()), (ours, self.tokens[token].0.reason().as_str()));
                end = Some(tag);
            }
            (Event::Lost { tag, why: LostReason::InputEnded, .. }, Expected::InputEnded { tag: ours }) => {
                assert_eq!(tag, ours);
                end = Some(tag);
            }
            (Event::Lost { tag, why: LostReason::TooLong { limit }, .. }, Expected::AnswerTooLong { tag: ours }) => {
                assert_eq!((tag, limit), (ours, self.limit));
                end = Some(tag);
            }
            (Event::RequestTooLong { method, reply, limit }, Expected::RequestTooLong { id, method: ours }) => {
                assert_eq!((reply.id().get(), limit), (&*id, self.limit));
                assert_eq!(method, Json::new(&oracle::quote(&ours)).unwrap().as_str().unwrap());
                self.replies.push(reply);
                self.owed += 1;
            }
            (Event::Dropped(dropped), Expected::TooLong { number, len, prefix }) => {
                assert_eq!((dropped.number, dropped.len, dropped.prefix), (number, len as u64, &*prefix));
                assert_eq!(dropped.why, DropReason::TooLong { limit: self.limit });
            }
            (Event::Dropped(dropped), Expected::Unterminated { number, len, prefix }) => {
                assert_eq!((dropped.number, dropped.len, dropped.prefix), (number, len as u64, &*prefix));
                assert_eq!(dropped.why, DropReason::Unterminated);
            }
            (event, Expected::Line { number, bytes }) => {
                let mut scratch = String::new();
                let line = json::repair(&bytes, &mut scratch);
                match (event, Frame::parse(line)) {
                    (Event::Dropped(dropped), Err(why)) => {
                        let prefix = &bytes[..bytes.len().min(256)];
                        assert_eq!((dropped.number, dropped.len), (number, bytes.len() as u64));
                        assert_eq!((dropped.prefix, dropped.why), (prefix, DropReason::NotAFrame(why)));
                    }
                    (Event::Request { method, params, reply }, Ok(frame)) => {
                        assert_eq!(Frame::Request { id: reply.id(), method, params }, frame);
                        self.replies.push(reply);
                        self.owed += 1;
                    }
                    (Event::Notification { method, params }, Ok(frame)) => {
                        assert_eq!(Frame::Notification { method, params }, frame);
                    }
                    (Event::Unmatched { id, outcome }, Ok(frame)) => {
                        assert_eq!(Frame::Response { id, outcome }, frame);
                        assert!(waiting_for(&self.pending, frame).is_none(), "a call waits for {frame:?}");
                    }
                    (Event::Response { call, tag, outcome }, Ok(frame @ Frame::Response { outcome: ours, .. })) => {
                        let index = waiting_for(&self.pending, frame).expect("a call waits for the response");
                        let pending = self.pending.remove(index);
                        assert_eq!((call, tag), (pending.call, pending.tag));
                        same_outcome(outcome, ours);
                        end = Some(tag);
                    }
                    (event, frame) => panic!("{event:?} from {frame:?}"),
                }
            }
            (event, expected) => panic!("{event:?}, but expected {expected:?}"),
        }
        if let Some(tag) = end {
            self.ends[tag as usize] += 1;
        }
    }

    /// What has to come next; the model goes on as if it had.
    fn expect(&mut self) -> Option<Expected> {
        if let Some((tag, token)) = self.aborted.pop_front() {
            return Some(Expected::Aborted { tag, token });
        }
        loop {
            let rest = &self.stream[self.taken..];
            let newline = rest.iter().position(|byte| *byte == b'\n');
            if newline.is_none() && rest.is_empty() {
                return (self.input_ended && !self.pending.is_empty())
                    .then(|| Expected::InputEnded { tag: self.pending.remove(0).tag });
            }
            let len = newline.unwrap_or(rest.len());
            let prefix = rest[..len.min(self.limit).min(256)].to_vec();
            if len > self.limit && !self.told {
                self.told = true;
                match oracle::beginning(&prefix) {
                    Some((id, Some(method))) => return Some(Expected::RequestTooLong { id, method }),
                    Some((id, None)) => {
                        let id = Json::new(&id).ok().and_then(Json::as_str);
                        let waits = |call: &Call| id.is_some_and(|id| id == *call.id);
                        if let Some(index) = self.pending.iter().position(waits) {
                            return Some(Expected::AnswerTooLong { tag: self.pending.remove(index).tag });
                        }
                    }
                    None => {}
                }
                continue;
            }
            if newline.is_none() && !self.input_ended {
                return None;
            }
            let bytes = rest[..len].to_vec();
            self.taken += len + usize::from(newline.is_some());
            self.number += 1;
            let number = self.number;
            let too_long = std::mem::take(&mut self.told);
            if !too_long && oracle::trim(&oracle::decode(&bytes)).1.is_empty() {
                continue;
            }
            return Some(match newline {
                None => Expected::Unterminated { number, len, prefix },
                Some(_) if too_long => Expected::TooLong { number, len, prefix },
                Some(_) => Expected::Line { number, bytes },
            });
        }
    }

    /// Lets everything run out: every event, every byte, the end of input.
    fn finish(mut self) {
        while self.peer.pending() > 0 || !self.input_ended {
            self.poll_aborts();
            self.next_event(true);
            if self.taken == self.stream.len() || !self.stream[self.taken..].contains(&b'\n') {
                self.peer.end_input();
                self.input_ended = true;
            }
        }
        for _ in 0..self.stream.iter().filter(|byte| **byte == b'\n').count() + self.aborted.len() + 3 {
            self.next_event(false);
        }
        assert!(self.peer.next_event().is_none() && self.peer.pending() == 0);
        self.compare(true);
        while !self.peer.outgoing().is_empty() {
            let n = self.peer.outgoing().bytes().len();
            self.consume(n.div_ceil(2));
        }
        self.compare(true);
        let marks = std::mem::take(&mut self.marks);
        assert!(
            marks.iter().all(|(mark, _)| self.peer.is_flushed(*mark)) && self.peer.is_flushed(self.peer.sent_mark())
        );
        let untold = self.ends.iter().position(|ends| *ends != 1);
        assert_eq!(untold, None, "every call ends once: {:?}", self.ends);

        // What went out is whole frames, those that were not withdrawn, in order.
        let whole = self.frames.iter().filter(|sent| sent.gone > 0).map(|sent| &*sent.bytes);
        let expected: Vec<&[u8]> = whole.collect();
        let got: Vec<&[u8]> = self.wire.split_inclusive(|byte| *byte == b'\n').collect();
        if self.output_ended {
            assert!(expected.concat().starts_with(&self.wire));
        } else {
            assert_eq!(got, expected);
        }
        for line in got.iter().filter(|line| line.ends_with(b"\n")) {
            Frame::parse(core::str::from_utf8(line).unwrap()).expect("every line that went out is a frame");
        }
    }
}

/// Which call a response belongs to.
fn waiting_for(pending: &[Call], frame: Frame<'_>) -> Option<usize> {
    let Frame::Response { id, .. } = frame else { return None };
    let id = id.as_json().as_str()?;
    pending.iter().position(|call| id == call.id.as_str())
}

fn same_outcome(ours: Outcome<'_>, theirs: Outcome<'_>) {
    assert_eq!(ours, theirs);
}

fn method(choices: &mut Choices<'_>) -> &'static str {
    ["session/prompt", "", "a\"b\n", "\u{4f60}\u{1f600}\u{2028}"][choices.below(4)]
}

/// Params of several shapes; `None` is left out of the frame.
fn value(choices: &mut Choices<'_>) -> Option<BTreeMap<&'static str, String>> {
    match choices.below(6) {
        0 => None,
        1 => Some(BTreeMap::new()),
        2 => Some([("text", "x".repeat(choices.below(256)))].into()),
        // Frames that fill a segment of the output, and those that do not fit one.
        3 if choices.below(8) == 0 => Some([("text", "x".repeat([60_000, 100_000][choices.below(2)]))].into()),
        _ => Some([("a", "\r\n\t\u{1}".into()), ("b", "\u{1f600}".repeat(choices.below(8)))].into()),
    }
}

fn json_text(value: &Option<BTreeMap<&str, String>>) -> String {
    let quote = |text: &str| oracle::quote(&text.encode_utf16().collect::<Vec<_>>());
    let Some(map) = value else { return "null".into() };
    let members: Vec<String> = map.iter().map(|(name, text)| quote(name) + ":" + &quote(text)).collect();
    format!("{{{}}}", members.join(","))
}

fn params_member(value: &Option<BTreeMap<&str, String>>) -> String {
    if value.is_none() { String::new() } else { format!(",\"params\":{}", json_text(value)) }
}

fn quoted(text: &str) -> String {
    oracle::quote(&text.encode_utf16().collect::<Vec<_>>())
}
