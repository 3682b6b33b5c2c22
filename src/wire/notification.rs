//! What the runtime tells without being asked.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Blocks, Decode, DecodeError, Expected, Problem, SessionEvent, SurfaceOp};
use crate::json::{Foreseen, Json, JsonBuf, JsonStr, JsonString, Kind};

/// A notification of the runtime, as a view of its frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Notification<'a> {
    /// The method.
    pub method: JsonStr<'a>,
    /// The params as they came: members that no type here knows are in them.
    pub params: Json<'a>,
    /// What it says.
    pub body: NotificationBody<'a>,
}

/// What a [`Notification`] says.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum NotificationBody<'a> {
    /// `session.event`: a session has appended an event to its log.
    SessionEvent(SessionEventParams<'a>),
    /// `session.status`: a session has begun or ceased to run. Not before 0.1.1.
    SessionStatus(SessionStatusParams<'a>),
    /// `subagent.started`: a session has a new sub-agent.
    SubagentStarted(SubagentStartedParams<'a>),
    /// `subagent.finished`: a sub-agent has finished.
    SubagentFinished(SubagentFinishedParams<'a>),
    /// `session.finished`: a prompt has been dealt with. Before 0.1.1.
    SessionFinished(SessionFinishedParams<'a>),
    /// A method that this version does not know.
    Unknown,
}

impl<'a> Notification<'a> {
    /// Reads method and params of a notification. Nothing is copied, and the data of an event is not looked into.
    ///
    /// # Errors
    /// Params of a known method that are not as they must be; method and params are still with the caller.
    #[inline]
    pub fn decode(method: JsonStr<'a>, params: Json<'a>) -> Result<Self, DecodeError> {
        match Self::usual(method, params) {
            Some(notification) => Ok(notification),
            None => Self::decode_any(method, params),
        }
    }

    /// As [`decode`](Self::decode), but whatever the params are: where not as they must be, as of an unknown method, and
    /// `malformed` is called.
    #[inline(always)]
    pub(crate) fn read(method: JsonStr<'a>, params: Json<'a>, malformed: impl FnOnce()) -> Self {
        let any = || {
            Self::decode_any(method, params).unwrap_or_else(|_| {
                malformed();
                Self { method, params, body: NotificationBody::Unknown }
            })
        };
        Self::usual(method, params).unwrap_or_else(any)
    }

    /// Those that come in numbers; see [`SessionEventParams::in_order`].
    #[inline(always)]
    fn usual(method: JsonStr<'a>, params: Json<'a>) -> Option<Self> {
        if method.get() != "\"session.event\"" {
            return None;
        }
        SessionEventParams::in_order(params).map(|event| Self {
            method,
            params,
            body: NotificationBody::SessionEvent(event),
        })
    }

    #[inline(never)]
    fn decode_any(method: JsonStr<'a>, params: Json<'a>) -> Result<Self, DecodeError> {
        let body = match &*method.to_string_lossy() {
            SessionEventParams::METHOD => NotificationBody::SessionEvent(SessionEventParams::in_any_order(params)?),
            SessionStatusParams::METHOD => NotificationBody::SessionStatus(Decode::decode(params)?),
            SubagentStartedParams::METHOD => NotificationBody::SubagentStarted(Decode::decode(params)?),
            SubagentFinishedParams::METHOD => NotificationBody::SubagentFinished(Decode::decode(params)?),
            SessionFinishedParams::METHOD => NotificationBody::SessionFinished(Decode::decode(params)?),
            _ => NotificationBody::Unknown,
        };
        Ok(Self { method, params, body })
    }

    /// The session that it is about: for sub-agents the one above, for unknown methods the `sessionId` of the params.
    #[must_use]
    pub fn session_id(&self) -> Option<JsonStr<'a>> {
        match &self.body {
            NotificationBody::SessionEvent(params) => Some(params.session_id),
            NotificationBody::SessionStatus(params) => Some(params.session_id),
            NotificationBody::SubagentStarted(params) => Some(params.parent_session_id),
            NotificationBody::SubagentFinished(params) => Some(params.parent_session_id),
            NotificationBody::SessionFinished(params) => Some(params.session_id),
            NotificationBody::Unknown => self.params.member("sessionId").and_then(Json::as_str),
        }
    }

    /// The event, where it is one.
    #[must_use]
    pub const fn event(&self) -> Option<&SessionEvent<'a>> {
        match &self.body {
            NotificationBody::SessionEvent(params) => Some(&params.event),
            _ => None,
        }
    }

    /// The status, where it tells one.
    #[must_use]
    pub const fn status(&self) -> Option<Status<'a>> {
        match &self.body {
            NotificationBody::SessionStatus(params) => Some(params.status),
            _ => None,
        }
    }

    /// Copies method and params, all members included.
    #[must_use]
    pub fn to_buf(&self) -> NotificationBuf {
        NotificationBuf { method: self.method.to_buf(), params: self.params.to_buf() }
    }
}

/// Writes the params, through their type where there is one.
impl Serialize for NotificationBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::SessionEvent(params) => params.serialize(serializer),
            Self::SessionStatus(params) => params.serialize(serializer),
            Self::SubagentStarted(params) => params.serialize(serializer),
            Self::SubagentFinished(params) => params.serialize(serializer),
            Self::SessionFinished(params) => params.serialize(serializer),
            Self::Unknown => Err(serde::ser::Error::custom("an unknown notification has no typed params")),
        }
    }
}

/// A notification that owns its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationBuf {
    /// The method.
    pub method: JsonString,
    /// The params.
    pub params: JsonBuf,
}

impl NotificationBuf {
    /// Reads it.
    ///
    /// # Errors
    /// As [`Notification::decode`]; never where it was copied from a [`Notification`].
    pub fn view(&self) -> Result<Notification<'_>, DecodeError> {
        Notification::decode(self.method.as_json_str(), self.params.as_json())
    }
}

/// Params of `session.event`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionEventParams<'a> {
    /// The session.
    pub session_id: JsonStr<'a>,
    /// The event.
    pub event: SessionEvent<'a>,
}

/// By hand, because these make up nearly all of the traffic: the event is read where it stands, so that its data, the
/// bulk of the frame, is passed over once.
impl<'a> Decode<'a> for SessionEventParams<'a> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        match Self::in_order(json) {
            Some(params) => Ok(params),
            None => Self::in_any_order(json),
        }
    }
}

impl Serialize for SessionEventParams<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("sessionId", &self.session_id)?;
        map.serialize_entry("event", &self.event)?;
        map.end()
    }
}

impl<'a> SessionEventParams<'a> {
    /// The method that has these params.
    pub const METHOD: &'static str = "session.event";

    /// What [`Decode`] gives, for events as the official runtime writes them, which are all that come in numbers: with the
    /// usual [head](crate::json::EventHead), behind the data at most that it is appended, and no white space.
    #[inline(always)]
    fn in_order(json: Json<'a>) -> Option<Self> {
        let (head, data, mut text) = Foreseen::event(json)?;
        let (session_id, kind) = (text.string(head.session_id())?, text.string(head.kind())?);
        let (seq, time) = (text.count(head.seq())?, text.count(head.time())?);
        let surface_op = text.pass(b",\"surfaceOp\":\"append\"").map(|()| SurfaceOp::Append);
        text.pass(b"}}")?;
        let event = SessionEvent { kind, seq, time, data, source_event_seqs: None, surface_op, ignorable: None };
        text.done().then_some(Self { session_id, event })
    }

    fn in_any_order(json: Json<'a>) -> Result<Self, DecodeError> {
        const OF: &str = "SessionEventParams";
        if json.kind() != Kind::Object {
            return Err(DecodeError::unexpected(Expected::Object, json).within(OF, ""));
        }
        let (mut session_id, mut event) = (None, None);
        let mut members = json.members();
        while let Some(name) = members.next_name() {
            if name == "event" {
                let read = members.walk_value(SessionEvent::from_members);
                event = Some(read.unwrap_or_else(|| SessionEvent::decode(members.take_value())));
            } else {
                let value = members.take_value();
                if name == "sessionId" {
                    session_id = Some(value);
                }
            }
        }
        Ok(Self {
            session_id: Decode::decode_member(session_id).map_err(|error| error.within(OF, "sessionId"))?,
            event: event
                .unwrap_or(Err(DecodeError::new(Problem::Missing)))
                .map_err(|error| error.within(OF, "event"))?,
        })
    }
}

payload! {
    /// Params of `session.status`.
    pub struct SessionStatusParams<'a> {
        /// The session.
        session_id: JsonStr<'a> = "sessionId",
        /// What it does now.
        status: Status<'a> = "status",
    }
}

impl SessionStatusParams<'_> {
    /// The method that has these params.
    pub const METHOD: &'static str = "session.status";
}

open_enum! {
    /// What a session does. It begins idle, without a notification that says so.
    pub enum Status {
        Running = "running",
        Idle = "idle",
    }
}

payload! {
    /// Params of `subagent.started`.
    pub struct SubagentStartedParams<'a> {
        /// The session that has started it.
        parent_session_id: JsonStr<'a> = "parentSessionId",
        /// Its own session.
        child_session_id: JsonStr<'a> = "childSessionId",
    }
}

impl SubagentStartedParams<'_> {
    /// The method that has these params.
    pub const METHOD: &'static str = "subagent.started";
}

payload! {
    /// Params of `subagent.finished`.
    pub struct SubagentFinishedParams<'a> {
        /// What made it: `spawn` or `fork`.
        provider: JsonStr<'a> = "provider",
        /// Its id, which is also the id of its session.
        agent_id: JsonStr<'a> = "agentId",
        /// The session that has started it.
        parent_session_id: JsonStr<'a> = "parentSessionId",
        /// Its own session.
        child_session_id: JsonStr<'a> = "childSessionId",
        /// Whether that counts as success.
        status: FinishStatus<'a> = "status",
        /// Why it stopped.
        stop_reason: StopReason<'a> = "stopReason",
        /// The content of the last message of its model.
        last_assistant_message: Option<Blocks<'a>> = "lastAssistantMessage",
    }
}

impl SubagentFinishedParams<'_> {
    /// The method that has these params.
    pub const METHOD: &'static str = "subagent.finished";
}

payload! {
    /// Params of `session.finished`, before 0.1.1: one for each prompt that was accepted.
    pub struct SessionFinishedParams<'a> {
        /// The session.
        session_id: JsonStr<'a> = "sessionId",
        /// Whether the turn went well.
        status: FinishStatus<'a> = "status",
        /// Why not.
        reason: Option<JsonStr<'a>> = "reason",
    }
}

impl SessionFinishedParams<'_> {
    /// The method that has these params.
    pub const METHOD: &'static str = "session.finished";
}

open_enum! {
    /// How something has ended.
    pub enum FinishStatus {
        Ok = "ok",
        Error = "error",
    }
}

open_enum! {
    /// Why a sub-agent has stopped.
    pub enum StopReason {
        Completed = "completed",
        MaxTokens = "max-tokens",
        Error = "error",
        Aborted = "aborted",
        Refusal = "refusal",
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn the_usual_order_is_read_as_any_order() {
        let check = |text: &str, usual: bool| {
            let json = Json::new(text).unwrap();
            let params = SessionEventParams::in_order(json);
            assert_eq!(params.is_some(), usual, "{text}");
            if usual {
                assert_eq!(params, SessionEventParams::in_any_order(json).ok(), "{text}");
            }
        };
        check(r#"{"sessionId":"s","event":{"type":"t","seq":1,"time":20,"data":{"a":[1]}}}"#, true);
        check(r#"{"sessionId":"s","event":{"type":"","seq":0,"time":2,"data":null,"surfaceOp":"append"}}"#, true);
        check(r#"{"sessionId":"s\ud83d","event":{"type":"t","seq":0,"time":2,"data":null}}"#, false);
        // A head has room for so many bytes of each.
        for (session_id, kind, usual) in [(32765, 253, true), (32766, 1, false), (1, 254, false)] {
            let (session_id, kind) = ("s".repeat(session_id), "t".repeat(kind));
            let event = format!(r#"{{"type":"{kind}","seq":0,"time":1796028532123,"data":1}}"#);
            check(&format!(r#"{{"sessionId":"{session_id}","event":{event}}}"#), usual);
        }
        check(r#"{"sessionId": "s","event":{"type":"t", "seq":1,"time":2 ,"data":"\""}}"#, false);
        check(r#"{"sessionId": "s" , "event": {"type": "t","seq":1,"time":2,"data":"\"" } }"#, false);
        for other in [
            r#"{}"#,
            r#"[]"#,
            r#"{"sessionId":7,"event":{"type":"t","seq":1,"time":2,"data":{}}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":1,"time":2,"data":{}},"event":null}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":1,"time":2,"data":{},"type":"u"}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":1.0,"time":2,"data":{}}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":-1,"time":2,"data":{}}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":1e2,"time":2,"data":{}}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":12345678901234567890,"time":2,"data":{}}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":1,"time":2}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":1,"time":2,"data":{},"surfaceOp":{"op":"replace"}}}"#,
            r#"{"sessionId":"s","event":{"type":"t","seq":1,"time":2,"data":{},"ignorable":true}}"#,
            r#"{"event":{"type":"t","seq":1,"time":2,"data":{}},"sessionId":"s"}"#,
            r#"{"sessionId":"s","event":[]}"#,
        ] {
            check(other, false);
        }
    }
}
