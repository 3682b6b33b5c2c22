//! The rules: what each request and each outcome does.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::session::{Finished, NewEvent, Opened, Session, Stamp, Waiting};
use super::{Opening, Refusal, RouteReply, Task, Unanswered, answer, refuse, request};
use crate::frame::{EncodeError, LineWriter};
use crate::json::{Json, JsonBuf, JsonStr, JsonString};
use crate::peer::{CallId, Event, Outgoing, Reply, SendError};
use crate::wire::{
    Empty, FinishStatus, Initialize, InitializeParams, InitializeResult, Method, Prompt, PromptResult, Resume,
    ServerInfo, SessionEventParams, SessionStatusParams, Shutdown, Status, StopReason, SubagentFinishedParams,
    SubagentStartedParams, Wait, WorkingDirectoryGet, WorkingDirectorySet,
};

/// How far a connection is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Requests are served.
    Serving,
    /// The input has ended; answers are owed.
    Draining,
    /// The sessions are being released.
    Releasing,
    /// All sessions have been released. What is left is to write the output.
    Released,
    /// All sessions have been released, some of them badly, and `shutdown` was answered with that.
    Failed,
}

/// What came that is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Lines that are no frame.
    pub dropped_lines: u64,
    /// Notifications; the protocol has none from the client.
    pub notifications: u64,
    /// Responses to nothing.
    pub unmatched_responses: u64,
}

#[derive(Debug)]
pub(super) struct State {
    /// The last good `initialize`; `None` before the first.
    route: Option<InitializeParams>,
    sessions: BTreeMap<JsonString, Session>,
    /// What the host has to be told, in wire order.
    pub(super) tasks: VecDeque<Task>,
    /// Requests to the client that wait for their end; none once the release has begun.
    pub(super) calls: BTreeSet<CallId>,
    pub(super) max_tokens_as_success: bool,
    pub(super) counters: Counters,
    end: End,
}

#[derive(Debug)]
enum End {
    No,
    Draining,
    Releasing {
        /// Requests `shutdown` that wait.
        shutdowns: Vec<Reply>,
        /// Sessions that are being opened or released.
        left: usize,
        failures: Vec<String>,
    },
    Over(Result<(), Refusal>),
}

impl Default for State {
    fn default() -> Self {
        Self {
            route: None,
            sessions: BTreeMap::new(),
            tasks: VecDeque::new(),
            calls: BTreeSet::new(),
            max_tokens_as_success: true,
            counters: Counters::default(),
            end: End::No,
        }
    }
}

impl State {
    pub(super) fn phase(&self) -> Phase {
        match self.end {
            End::No => Phase::Serving,
            End::Draining => Phase::Draining,
            End::Releasing { .. } => Phase::Releasing,
            End::Over(Ok(())) => Phase::Released,
            End::Over(Err(_)) => Phase::Failed,
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        matches!(self.end, End::Draining)
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.end, End::Releasing { .. } | End::Over(_))
    }

    pub(super) fn session(&mut self, session: &JsonString) -> &mut Session {
        // The id is copied for a new session only: every event comes by here.
        if !self.sessions.contains_key(session) {
            self.sessions.insert(session.clone(), Session::default());
        }
        self.sessions.get_mut(session).expect("it is there now")
    }

    pub(super) fn event(&mut self, out: &mut Outgoing<'_>, event: Event<'_, ()>) {
        match event {
            Event::Request { method, params, reply } => self.request(out, method, params, reply),
            // It fails only where the output has ended, and then nobody waits for the answer.
            Event::RequestTooLong { reply, limit, .. } => drop(out.refuse_too_long(reply, limit)),
            Event::Notification { .. } => self.counters.notifications += 1,
            Event::Unmatched { .. } => self.counters.unmatched_responses += 1,
            Event::Dropped(_) => self.counters.dropped_lines += 1,
            Event::Response { call, outcome, .. } => {
                let outcome = outcome.map(|result| result.to_buf()).map_err(|error| Unanswered::Refused(error.into()));
                self.answered(call, outcome);
            }
            Event::Lost { call, why, .. } => self.answered(call, Err(Unanswered::Lost(why))),
            // Requests have no tokens.
            Event::Aborted { .. } => {}
        }
    }

    fn answered(&mut self, call: CallId, outcome: Result<JsonBuf, Unanswered>) {
        if self.calls.remove(&call) {
            self.tasks.push_back(Task::Answered { call, outcome });
        }
    }

    pub(super) fn next_seq(&self, session: &JsonString) -> u64 {
        self.sessions.get(session).map_or(0, |entry| entry.next_stamp(0).seq)
    }

    fn request(&mut self, out: &mut Outgoing<'_>, method: JsonStr<'_>, params: Json<'_>, reply: Reply) {
        let done = match &*method.to_string_lossy() {
            Initialize::NAME => self.initialize(params, reply),
            Prompt::NAME => self.prompt(params, reply),
            Resume::NAME => self.resume(params, reply),
            Wait::NAME => self.wait(out, params, reply),
            WorkingDirectoryGet::NAME => self.directory(params, reply, |_| Ok(None)),
            WorkingDirectorySet::NAME => {
                self.directory(params, reply, |params| request::directory_path(params).map(Some))
            }
            Shutdown::NAME => {
                self.shutdown(out, reply);
                Ok(())
            }
            _ => Err((reply, format!("unknown DeepSeek Harness SDK runtime method: {method}").into())),
        };
        if let Err((reply, refusal)) = done {
            refuse(out, reply, &refusal);
        }
    }

    fn initialize(&mut self, params: Json<'_>, reply: Reply) -> Result<(), (Reply, Refusal)> {
        let (route, reply) = or_refuse(request::initialize(params), reply)?;
        self.tasks.push_back(Task::Route { route: route.clone(), reply: RouteReply(reply, route) });
        Ok(())
    }

    pub(super) fn routed(
        &mut self,
        out: &mut Outgoing<'_>,
        reply: Reply,
        route: InitializeParams,
        outcome: Result<(), Refusal>,
    ) {
        if outcome.is_ok() {
            self.route = Some(route);
        }
        let server = ServerInfo { name: Some("deepseek-harness-sdk-runtime".into()), version: Some("0.0.1".into()) };
        answer(out, reply, outcome.map(|()| InitializeResult { server_info: Some(server) }));
    }

    fn prompt(&mut self, params: Json<'_>, reply: Reply) -> Result<(), (Reply, Refusal)> {
        let (route, reply) = or_refuse(self.route_of_new_work(), reply)?;
        let (session, reply) = or_refuse(request::prompt_session(params), reply)?;
        self.when_open(session, route, Waiting::Prompt(request::content_blocks(params), reply))
    }

    fn resume(&mut self, params: Json<'_>, reply: Reply) -> Result<(), (Reply, Refusal)> {
        let (session, reply) = or_refuse(request::resume_session(params), reply)?;
        let (route, reply) = or_refuse(self.route_of_new_work(), reply)?;
        let entry = self.session(&session);
        if !matches!(entry.opened, Opened::No) {
            return Err((reply, format!("SDK session is already open or opening: {session}").into()));
        }
        entry.opened = Opened::Opening([Waiting::Resume(reply)].into());
        self.tasks.push_back(Task::Open { session, how: Opening::Resume, route });
        Ok(())
    }

    fn wait(&mut self, out: &mut Outgoing<'_>, params: Json<'_>, reply: Reply) -> Result<(), (Reply, Refusal)> {
        let (session, reply) = or_refuse(request::wait_session(params), reply)?;
        let ((), reply) = or_refuse(self.route.as_ref().map(|_| ()).ok_or_else(not_initialized), reply)?;
        let closing = self.is_closing();
        match self.sessions.get_mut(&session).filter(|entry| entry.is_known()) {
            None => return Err((reply, format!("unknown SDK session: {session}").into())),
            Some(entry) if entry.is_at_rest() || closing => answer(out, reply, Ok(Empty)),
            Some(entry) => entry.wait(reply),
        }
        Ok(())
    }

    fn directory(
        &mut self,
        params: Json<'_>,
        reply: Reply,
        change: impl FnOnce(Json<'_>) -> Result<Option<JsonString>, Refusal>,
    ) -> Result<(), (Reply, Refusal)> {
        let (session, reply) = or_refuse(request::directory_session(params), reply)?;
        let (change, reply) = or_refuse(change(params), reply)?;
        let (route, reply) = or_refuse(self.route_of_new_work(), reply)?;
        self.when_open(session, route, Waiting::WorkingDirectory(change, reply))
    }

    /// The route in force, for requests that need a session and are not taken any more once shutdown has begun.
    fn route_of_new_work(&self) -> Result<InitializeParams, Refusal> {
        if self.is_closing() {
            return Err(shutting_down());
        }
        self.route.clone().ok_or_else(not_initialized)
    }

    /// Makes a task of the request, now or when its session is open; creates the session if need be.
    fn when_open(
        &mut self,
        session: JsonString,
        route: InitializeParams,
        request: Waiting,
    ) -> Result<(), (Reply, Refusal)> {
        let entry = self.session(&session);
        match &mut entry.opened {
            Opened::Opening(waiting) => waiting.push(request),
            Opened::Yes => match request.into_task(&session) {
                Ok(task) => self.give(&session, task),
                Err((reply, Err(refusal))) => return Err((reply, refusal)),
                Err((reply, Ok(()))) => return Err((reply, shutting_down())),
            },
            Opened::Releasing => return Err((request.into_reply(), shutting_down())),
            Opened::No => {
                entry.opened = Opened::Opening([request].into());
                self.tasks.push_back(Task::Open { session, how: Opening::Create, route });
            }
        }
        Ok(())
    }

    /// Gives the host something to do in an open session.
    fn give(&mut self, session: &JsonString, task: Task) {
        if let Task::Prompt { .. } = task {
            self.session(session).prompt_given();
        }
        self.tasks.push_back(task);
    }

    pub(super) fn prompted(
        &mut self,
        out: &mut Outgoing<'_>,
        reply: Reply,
        session: &JsonString,
        outcome: Result<JsonString, Refusal>,
    ) {
        answer(out, reply, outcome.map(|message_id| PromptResult::Enqueued { message_id }));
        let entry = self.session(session);
        entry.prompt_answered();
        for reply in entry.take_waits_at_rest() {
            answer(out, reply, Ok(Empty));
        }
    }

    pub(super) fn opened(&mut self, out: &mut Outgoing<'_>, session: &JsonString, outcome: Result<(), Refusal>) {
        let Some(entry) = self.sessions.get_mut(session) else { return };
        let Opened::Opening(waiting) = &mut entry.opened else { return };
        let waiting = core::mem::take(waiting);
        entry.opened = if outcome.is_ok() { Opened::Yes } else { Opened::No };
        if let End::Releasing { left, .. } = &mut self.end {
            *left -= 1;
            waiting.into_iter().for_each(|request| refuse(out, request.into_reply(), &shutting_down()));
            self.release(session);
            return self.finish_release(out);
        }
        for request in waiting {
            match &outcome {
                Err(refusal) => refuse(out, request.into_reply(), refusal),
                Ok(()) => match request.into_task(session) {
                    Ok(task) => self.give(session, task),
                    Err((reply, outcome)) => answer(out, reply, outcome.map(|()| Empty)),
                },
            }
        }
        if self.sessions.get(session).is_some_and(Session::is_as_new) {
            self.sessions.remove(session);
        }
    }

    fn shutdown(&mut self, out: &mut Outgoing<'_>, reply: Reply) {
        self.begin_release(out);
        match &mut self.end {
            End::Releasing { shutdowns, .. } => shutdowns.push(reply),
            End::Over(outcome) => answer(out, reply, outcome.clone().map(|()| Empty)),
            // Not once the release has begun.
            End::No | End::Draining => answer(out, reply, Ok(Empty)),
        }
        self.finish_release(out);
    }

    pub(super) fn input_ended(&mut self, out: &mut Outgoing<'_>) {
        if let End::No = self.end {
            self.end = End::Draining;
            self.end_waits(out);
        }
    }

    /// Releases all sessions, unless that has begun.
    pub(super) fn close(&mut self, out: &mut Outgoing<'_>) {
        self.begin_release(out);
        self.finish_release(out);
    }

    fn begin_release(&mut self, out: &mut Outgoing<'_>) {
        if self.is_closing() {
            return;
        }
        self.end_waits(out);
        let opening = self.sessions.values().filter(|entry| matches!(entry.opened, Opened::Opening(_))).count();
        self.end = End::Releasing { shutdowns: Vec::new(), left: opening, failures: Vec::new() };
        let open: Vec<_> =
            self.sessions.iter().filter(|(_, entry)| entry.is_known()).map(|(id, _)| id.clone()).collect();
        open.iter().for_each(|session| self.release(session));
    }

    fn end_waits(&mut self, out: &mut Outgoing<'_>) {
        for reply in self.sessions.values_mut().flat_map(Session::take_waits) {
            answer(out, reply, Ok(Empty));
        }
    }

    fn release(&mut self, session: &JsonString) {
        let Some(entry) = self.sessions.get_mut(session) else { return };
        if let (Opened::Yes, End::Releasing { left, .. }) = (&entry.opened, &mut self.end) {
            entry.opened = Opened::Releasing;
            *left += 1;
            self.tasks.push_back(Task::Release { session: session.clone() });
        }
    }

    pub(super) fn released(&mut self, out: &mut Outgoing<'_>, session: &JsonString, outcome: Result<(), Refusal>) {
        let Some(entry) = self.sessions.get_mut(session) else { return };
        if let (Opened::Releasing, End::Releasing { left, failures, .. }) = (&entry.opened, &mut self.end) {
            // It stays known, so that a late `session/wait` is answered.
            entry.opened = Opened::Yes;
            *left -= 1;
            failures.extend(outcome.err().map(|refusal| refusal.message));
        }
        self.finish_release(out);
    }

    /// Answers `shutdown` when nothing is left to release.
    fn finish_release(&mut self, out: &mut Outgoing<'_>) {
        let End::Releasing { shutdowns, left: 0, failures } = &mut self.end else { return };
        let outcome = match failures.as_mut_slice() {
            [] => Ok(()),
            [only] => Err(Refusal::new(core::mem::take(only))),
            _ => Err(Refusal::new("SDK server teardown failed")),
        };
        for reply in core::mem::take(shutdowns) {
            answer(out, reply, outcome.clone().map(|()| Empty));
        }
        self.end = End::Over(outcome);
    }

    /// `data` writes the data of the event.
    pub(super) fn session_event<D: ?Sized>(
        &mut self,
        out: &mut Outgoing<'_>,
        session: &JsonString,
        event: &NewEvent<'_, D>,
        time: u64,
        data: impl FnOnce(&mut LineWriter<'_>) -> Result<(), EncodeError>,
    ) -> Result<Stamp, SendError> {
        let closing = self.is_closing();
        let entry = self.session(session);
        let stamp = entry.next_stamp(time);
        if !closing {
            let sent = out.notify_with(SessionEventParams::METHOD, |line| {
                line.text(r#"{"sessionId":"#).text(session.as_json_str().get()).text(r#","event":"#);
                event.write(line, stamp, data)?;
                line.text("}");
                Ok(())
            });
            even_if_unheard(sent)?;
        }
        entry.advance(stamp);
        Ok(stamp)
    }

    pub(super) fn set_running(&mut self, out: &mut Outgoing<'_>, session: &JsonString, running: bool) {
        let status = if running { Status::Running } else { Status::Idle };
        let closing = self.is_closing();
        let entry = self.session(session);
        if !entry.set_running(running) || closing {
            return;
        }
        let params = SessionStatusParams { session_id: session.as_json_str(), status };
        // It always has a JSON form, and where the output has ended nobody hears it.
        let _ = out.notify(SessionStatusParams::METHOD, &params);
        for reply in entry.take_waits_at_rest() {
            answer(out, reply, Ok(Empty));
        }
    }

    pub(super) fn subagent_started(&mut self, out: &mut Outgoing<'_>, parent: &JsonString, child: &JsonString) {
        let closing = self.is_closing();
        if self.session(parent).child_started(child) && !closing {
            let params = SubagentStartedParams {
                parent_session_id: parent.as_json_str(),
                child_session_id: child.as_json_str(),
            };
            let _ = out.notify(SubagentStartedParams::METHOD, &params);
        }
    }

    pub(super) fn subagent_finished(
        &mut self,
        out: &mut Outgoing<'_>,
        parent: &JsonString,
        child: &JsonString,
        end: &Finished<'_>,
    ) {
        let ok = match end.stop_reason {
            StopReason::Completed => true,
            StopReason::MaxTokens => self.max_tokens_as_success,
            _ => false,
        };
        let closing = self.is_closing();
        let entry = self.session(parent);
        if !entry.child_finished(child) || closing {
            return;
        }
        let provider = JsonString::from(end.provider);
        let params = SubagentFinishedParams {
            provider: provider.as_json_str(),
            agent_id: child.as_json_str(),
            parent_session_id: parent.as_json_str(),
            child_session_id: child.as_json_str(),
            status: if ok { FinishStatus::Ok } else { FinishStatus::Error },
            stop_reason: end.stop_reason,
            last_assistant_message: end.last_assistant_message,
        };
        let _ = out.notify(SubagentFinishedParams::METHOD, &params);
        for reply in entry.take_waits_at_rest() {
            answer(out, reply, Ok(Empty));
        }
    }
}

/// Where the output has ended, nobody hears it, which is no error of the one who tells.
fn even_if_unheard(sent: Result<(), SendError>) -> Result<(), SendError> {
    match sent {
        Err(SendError::Closed) => Ok(()),
        sent => sent,
    }
}

/// Goes on with the value, or gives the reply back to be refused.
fn or_refuse<T>(outcome: Result<T, Refusal>, reply: Reply) -> Result<(T, Reply), (Reply, Refusal)> {
    match outcome {
        Ok(value) => Ok((value, reply)),
        Err(refusal) => Err((reply, refusal)),
    }
}

fn not_initialized() -> Refusal {
    "SDK server is not initialized".into()
}

fn shutting_down() -> Refusal {
    "SDK server is shutting down".into()
}
