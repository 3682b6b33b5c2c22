//! What comes: lines become events, and responses find their calls.

use alloc::string::String;

use super::call::{Calls, End};
use super::event::{DropReason, Dropped, Event, LostReason, Reply};
use super::id::CallId;
use crate::frame::{Beginning, Frame, Id};
use crate::json::{self, JsonBuf};
use crate::line::{Line, LineBuffer, Next, PREFIX};

#[derive(Debug)]
pub(super) struct Inbound<T> {
    pub(super) lines: LineBuffer,
    /// The repaired text of a line with broken UTF-8, while its event is lent.
    scratch: String,
    pub(super) calls: Calls<T>,
    /// Requests that have come.
    pub(super) requests: u64,
    pub(super) ended: bool,
}

impl<T> Inbound<T> {
    pub(super) fn new(seed: u64, line_limit: usize) -> Self {
        Self {
            lines: LineBuffer::with_limit(line_limit),
            scratch: String::new(),
            calls: Calls::new(seed),
            requests: 0,
            ended: false,
        }
    }

    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Event<'_, T>> {
        // So it mostly is with a stream in small pieces.
        if !self.calls.has_ended() && self.lines.waits() { None } else { self.advance() }
    }

    fn advance(&mut self) -> Option<Event<'_, T>> {
        if let Some(ended) = self.calls.next_ended() {
            return Some(without_response(ended));
        }
        let next = loop {
            match self.lines.advance() {
                Some(Next::Overflowing) => match self.overflowing() {
                    Some((id, true)) => {
                        if let Some((call, tag)) = self.calls.answered(Id::from_proved(id.as_json())) {
                            let why = LostReason::TooLong { limit: self.lines.limit() };
                            return Some(Event::Lost { call, tag, why });
                        }
                    }
                    Some((_, false)) => break Next::Overflowing,
                    None => {}
                },
                Some(next) => break next,
                None if self.ended => return self.calls.lose_next().map(without_response),
                None => return None,
            }
        };
        let (number, len, prefix, why) = match self.lines.lend(next) {
            Line::Whole { number, bytes } => {
                let text = self.lines.text(next).unwrap_or_else(|| json::repair(bytes, &mut self.scratch));
                match Frame::parse(text) {
                    Ok(frame) => return Some(dispatch(frame, &mut self.calls, &mut self.requests)),
                    Err(error) => (number, bytes.len() as u64, bytes, DropReason::NotAFrame(error)),
                }
            }
            Line::TooLong { number, len, prefix } => {
                (number, len, prefix, DropReason::TooLong { limit: self.lines.limit() })
            }
            Line::Unterminated { number, len, prefix } => (number, len, prefix, DropReason::Unterminated),
            Line::Overflowing { prefix, .. } => {
                let Beginning { id, method } = Beginning::of(prefix, &mut self.scratch)?;
                self.requests += 1;
                return Some(Event::RequestTooLong {
                    method: method?,
                    reply: Reply::new(id, self.calls.ids().connection()),
                    limit: self.lines.limit(),
                });
            }
        };
        Some(Event::Dropped(Dropped { number, len, prefix: prefix.get(..PREFIX).unwrap_or(prefix), why }))
    }

    /// The id of the frame that has just passed the limit, and whether it is a response.
    fn overflowing(&mut self) -> Option<(JsonBuf, bool)> {
        let Line::Overflowing { prefix, .. } = self.lines.lend(Next::Overflowing) else { return None };
        let Beginning { id, method } = Beginning::of(prefix, &mut self.scratch)?;
        Some((id.as_json().to_buf(), method.is_none()))
    }
}

fn dispatch<'a, T>(frame: Frame<'a>, calls: &mut Calls<T>, requests: &mut u64) -> Event<'a, T> {
    match frame {
        Frame::Request { id, method, params } => {
            *requests += 1;
            Event::Request { method, params, reply: Reply::new(id, calls.ids().connection()) }
        }
        Frame::Notification { method, params } => Event::Notification { method, params },
        Frame::Response { id, outcome } => match calls.answered(id) {
            Some((call, tag)) => Event::Response { call, tag, outcome },
            None => Event::Unmatched { id, outcome },
        },
    }
}

fn without_response<'a, T>((call, tag, end): (CallId, T, End)) -> Event<'a, T> {
    match end {
        End::Aborted(reason) => Event::Aborted { call, tag, reason },
        End::Lost(why) => Event::Lost { call, tag, why },
    }
}

/// The receiving half of a [`Peer`](super::Peer), from [`Peer::split`](super::Peer::split).
#[derive(Debug)]
pub struct Incoming<'p, T>(pub(super) &'p mut Inbound<T>);

impl<'p, T> Incoming<'p, T> {
    /// As [`Peer::next_event`](super::Peer::next_event).
    pub fn next_event(&mut self) -> Option<Event<'_, T>> {
        self.0.next_event()
    }

    /// One event, lent for as long as the peer itself is.
    #[must_use]
    pub fn into_next_event(self) -> Option<Event<'p, T>> {
        self.0.next_event()
    }
}
