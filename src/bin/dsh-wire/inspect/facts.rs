//! What is known of a line: the method, the session, the event, and how long the answer took.

use std::borrow::Cow;
use std::time::Duration;

use dsh_wire::frame::{Frame, Params};
use dsh_wire::json::{Json, JsonStr};
use dsh_wire::recording::Calls;
use dsh_wire::wire::{Notification, NotificationBody};

use super::input::{Content, Item};

/// Text of the peer's, or a copy of it.
pub(crate) type Text<'a> = Cow<'a, str>;

#[derive(Default)]
pub(crate) struct Facts<'a> {
    /// Of a response, the one of its request.
    pub(crate) method: Option<Text<'a>>,
    pub(crate) session: Option<Text<'a>>,
    /// The session below, where one begins or ends.
    pub(crate) child: Option<Text<'a>>,
    pub(crate) event: Option<Event<'a>>,
    /// From the request to this response.
    pub(crate) latency: Option<Duration>,
}

/// An event of a session.
pub(crate) struct Event<'a> {
    pub(crate) kind: Text<'a>,
    pub(crate) data: Json<'a>,
}

/// A request that waits for its answer.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) session: Option<String>,
    pub(crate) at: Duration,
}

impl<'a> Facts<'a> {
    /// Reads them, and notes requests and answers in `calls`.
    pub(crate) fn of(item: &Item<'a>, calls: &mut Calls<Call>) -> Self {
        let Content::Frame(frame) = item.content else { return Self::default() };
        match frame {
            Frame::Notification { method, params } => Self::of_notification(method, params),
            Frame::Request { id, method, params } => {
                let facts = Self::of_params(method, params);
                if let Some(origin) = item.origin {
                    let (method, session) =
                        (method.to_string_lossy().into(), facts.session.as_deref().map(str::to_owned));
                    calls.asked(origin.direction, id, Call { method, session, at: origin.at });
                }
                facts
            }
            Frame::Response { id, .. } => {
                let Some(origin) = item.origin else { return Self::default() };
                let Some(call) = calls.answered(origin.direction, id) else { return Self::default() };
                Self {
                    method: Some(call.method.into()),
                    session: call.session.map(Cow::Owned),
                    latency: Some(origin.at.saturating_sub(call.at)),
                    ..Self::default()
                }
            }
        }
    }

    fn of_notification(method: JsonStr<'a>, params: Params<'a>) -> Self {
        // Nearly all of the traffic.
        if let Ok(Notification { body: NotificationBody::SessionEvent(params), .. }) =
            Notification::decode(method, params)
        {
            let event = Event { kind: params.event.kind.to_string_lossy(), data: params.event.data };
            let (method, session) = (method.to_string_lossy(), params.session_id.to_string_lossy());
            return Self { method: Some(method), session: Some(session), event: Some(event), ..Self::default() };
        }
        Self::of_params(method, params)
    }

    /// By the names of members, whatever the method is.
    fn of_params(method: JsonStr<'a>, params: Params<'a>) -> Self {
        let text = |json: Option<Json<'a>>| json?.as_str().map(JsonStr::to_string_lossy);
        let event = params.member("event").and_then(|event| {
            Some(Event { kind: text(event.member("type"))?, data: event.member("data").unwrap_or(Json::NULL) })
        });
        Self {
            method: Some(method.to_string_lossy()),
            session: text(params.member("sessionId")).or_else(|| text(params.member("parentSessionId"))),
            child: text(params.member("childSessionId")),
            event,
            latency: None,
        }
    }
}
