//! The requests of the runtime that wait to be taken.

use alloc::collections::VecDeque;

use crate::json::{Json, JsonBuf, JsonStr, JsonString};
use crate::peer::Reply;

/// A request of the runtime, to be answered with [`Client::answer`](super::Client::answer) or
/// [`Client::refuse`](super::Client::refuse) at any later time.
#[derive(Debug, PartialEq, Eq)]
pub struct RuntimeRequest {
    /// What it wants.
    pub method: JsonString,
    /// An object.
    pub params: JsonBuf,
    /// The right to answer.
    pub reply: Reply,
}

impl RuntimeRequest {
    fn size(&self) -> usize {
        self.method.as_json_str().get().len() + self.params.as_json().get().len()
    }
}

/// Requests in the order in which they came; none unless they are wanted.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) wanted: bool,
    waiting: VecDeque<RuntimeRequest>,
    /// Of `waiting`.
    bytes: usize,
    /// The most that `bytes` ever was.
    most: usize,
}

impl Requests {
    pub(super) fn keep(&mut self, method: JsonStr<'_>, params: Json<'_>, reply: Reply) {
        let request = RuntimeRequest { method: method.to_buf(), params: params.to_buf(), reply };
        self.bytes += request.size();
        self.most = self.most.max(self.bytes);
        self.waiting.push_back(request);
    }

    pub(super) fn next(&mut self) -> Option<RuntimeRequest> {
        let request = self.waiting.pop_front()?;
        self.bytes -= request.size();
        Some(request)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }
}
