//! Which response answers which request, in a recording.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};

use super::Direction;
use crate::frame::Id;
use crate::json::JsonString;

/// More requests than this do not wait for an answer in any conversation; those beyond are not matched up.
const MOST: usize = 100_000;

/// Requests of a recording that wait for their answer, each with something of the caller's. Ids match by value: the
/// reference echoes `1.0` as `1`, and strings with escapes of its own.
#[derive(Debug)]
pub struct Calls<T> {
    /// By the direction of the request. The same id may be in use more than once; then the oldest is answered first.
    waiting: BTreeMap<(Direction, Key), VecDeque<T>>,
    len: usize,
}

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), len: 0 }
    }
}

impl<T> Calls<T> {
    /// Notes a request that went this way.
    pub fn asked(&mut self, way: Direction, id: Id<'_>, call: T) {
        if self.len < MOST {
            self.waiting.entry((way, Key::of(id))).or_default().push_back(call);
            self.len += 1;
        }
    }

    /// The request that a response which went this way answers.
    pub fn answered(&mut self, way: Direction, id: Id<'_>) -> Option<T> {
        let key = (opposite(way)?, Key::of(id));
        let queue = self.waiting.get_mut(&key)?;
        let call = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&key);
        }
        self.len -= usize::from(call.is_some());
        call
    }

    /// The ones that no answer has come for.
    pub fn unanswered(&self) -> impl Iterator<Item = &T> {
        self.waiting.values().flatten()
    }
}

fn opposite(way: Direction) -> Option<Direction> {
    match way {
        Direction::ClientToServer => Some(Direction::ServerToClient),
        Direction::ServerToClient => Some(Direction::ClientToServer),
        Direction::Stderr => None,
    }
}

/// An id by its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Text(JsonString),
    Number(String),
}

impl Key {
    pub(crate) fn of(id: Id<'_>) -> Self {
        match id.as_json().as_str() {
            Some(text) => Self::Text(text.to_buf()),
            // The sum makes 0 of -0.
            None => {
                Self::Number(id.as_json().as_f64().map_or_else(|| id.get().into(), |number| (number + 0.0).to_string()))
            }
        }
    }
}
