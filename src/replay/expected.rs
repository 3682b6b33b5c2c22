//! The client's lines in a recording, and which line of the runtime waits for which of them.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::Matching;
use super::departure::Place;
use crate::frame::{Frame, Id, NotAFrame};
use crate::json::{Json, JsonStr, JsonString};
use crate::recording::{Calls, Direction, Key};

/// A line of the client.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) at: Duration,
    /// Which entry of the recording, from 1.
    number: u64,
    kind: Kind,
    pub(super) method: String,
    /// JSON text, as are the params.
    pub(super) id: Option<String>,
    pub(super) params: String,
    /// The id that it has now, once it has come, if that is another one.
    pub(super) met: Option<Option<String>>,
    /// The runtime's lines that wait for it.
    pub(super) followed_by: Vec<usize>,
    /// The recording has an answer to it.
    pub(super) answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request,
    Notification,
    /// An answer to a request of the runtime.
    Response,
    NoFrame,
}

impl Asked {
    /// `None` for a blank line.
    pub(super) fn read(line: &[u8], at: Duration, number: u64) -> Option<Self> {
        let mut scratch = String::new();
        let (kind, method, id, params) = match Frame::decode(line, &mut scratch) {
            Ok(Frame::Request { id, method, params }) => (Kind::Request, Some(method), Some(id), params.get()),
            Ok(Frame::Notification { method, params }) => (Kind::Notification, Some(method), None, params.get()),
            Ok(Frame::Response { id, .. }) => (Kind::Response, None, Some(id), ""),
            Err(NotAFrame::Blank) => return None,
            Err(_) => (Kind::NoFrame, None, None, ""),
        };
        Some(Self {
            at,
            number,
            kind,
            method: method.map(|method| method.to_string_lossy().into_owned()).unwrap_or_default(),
            id: id.map(|id| id.get().to_owned()),
            params: params.to_owned(),
            met: None,
            followed_by: Vec::new(),
            answered: false,
        })
    }

    pub(super) fn is_request(&self) -> bool {
        self.kind == Kind::Request
    }

    /// Its id, by value.
    pub(super) fn key(&self) -> Option<Key> {
        self.id.as_deref().and_then(id).map(Key::of)
    }

    /// Whether another one is of the same kind and method. The ids of answers are those that the runtime chose.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let answers_same = self.kind != Kind::Response || self.key() == other.key();
        self.kind == other.kind && self.method == other.method && answers_same
    }

    /// The session that it is about.
    pub(super) fn session(&self) -> Option<JsonString> {
        session(Json::new(&self.params).ok()?)
    }

    pub(super) fn what(&self) -> String {
        match self.kind {
            Kind::Request => format!("the request `{}`", self.method),
            Kind::Notification => format!("the notification `{}`", self.method),
            Kind::Response => format!("an answer to {}", self.id.as_deref().unwrap_or_default()),
            Kind::NoFrame => "a line that is no frame".into(),
        }
    }

    pub(super) fn place(&self) -> Place {
        Place { what: self.what(), line: self.number }
    }
}

/// An id out of its text.
pub(super) fn id(text: &str) -> Option<Id<'_>> {
    Json::new(text).ok().and_then(Id::new)
}

/// What is known of a recording up to some entry.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// Lines of the client.
    asked: usize,
    requests: Calls<usize>,
    /// The last line of the client about each session.
    last_about: BTreeMap<JsonString, usize>,
    /// Of sub-agents' sessions.
    parents: BTreeMap<JsonString, JsonString>,
}

impl Expected {
    /// The next line of the client.
    pub(super) fn asked(&mut self, line: &[u8], at: Duration, number: u64) -> Option<Asked> {
        let asked = Asked::read(line, at, number)?;
        let index = self.asked;
        if let Some(id) = asked.id.as_deref().filter(|_| asked.is_request()).and_then(id) {
            self.requests.asked(Direction::ClientToServer, id, index);
        }
        if let Some(session) = asked.session() {
            self.last_about.insert(session, index);
        }
        self.asked += 1;
        Some(asked)
    }

    /// The next line of the runtime: the line of the client that it waits for, and the request that it answers.
    pub(super) fn said(
        &mut self,
        line: &[u8],
        direction: Direction,
        matching: Matching,
    ) -> (Option<usize>, Option<usize>) {
        let last = self.asked.checked_sub(1);
        let mut scratch = String::new();
        let frame = match direction {
            Direction::Stderr => None,
            _ => Frame::decode(line, &mut scratch).ok(),
        };
        let answers = match frame {
            Some(Frame::Response { id, .. }) => self.requests.answered(direction, id),
            _ => None,
        };
        if let Some(Frame::Notification { params, .. }) = frame {
            self.note_parent(params);
        }
        let after = match (matching, frame) {
            // Who waits for an answer before it goes on would wait for ever if the answer waited for more.
            (_, Some(Frame::Response { .. })) => answers.or(last),
            (Matching::Strict, _) => last,
            (Matching::Loose, Some(Frame::Notification { params, .. } | Frame::Request { params, .. })) => {
                let last_about = |session| self.last_about.get(self.root(&session)).copied();
                session(params).and_then(last_about).or(last)
            }
            (Matching::Loose, None) => last,
        };
        (after, answers)
    }

    /// The first notification about a sub-agent names its parent.
    fn note_parent(&mut self, params: Json<'_>) {
        let text = |name| params.member(name).and_then(Json::as_str).map(JsonStr::to_buf);
        if let (Some(parent), Some(child)) = (text("parentSessionId"), text("childSessionId")) {
            let root = self.root(&parent).clone();
            if root != child {
                self.parents.insert(child, root);
            }
        }
    }

    /// The session of the client's that one belongs to. Parents are kept as roots, so one step is all.
    fn root<'a>(&'a self, session: &'a JsonString) -> &'a JsonString {
        self.parents.get(session).unwrap_or(session)
    }
}

fn session(params: Json<'_>) -> Option<JsonString> {
    params.member("sessionId").and_then(Json::as_str).map(JsonStr::to_buf)
}
