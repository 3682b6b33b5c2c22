//! A turn, from its first step to its end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dsh_wire::json::{Json, JsonString, Kind};
use dsh_wire::server::NewEvent;

use super::event::{self, Answer, Message};
use super::model::{self, Fault, Reply, ToolUse};
use super::session::{Shared, State};
use super::value::{Value, object};
use super::{shell, text};

/// Retries of a model call before it counts as failed, and the pause before the first, in milliseconds; each next one
/// is twice as long. It is a fraction, as the official runtime's are.
const RETRIES: u32 = 5;
const FIRST_PAUSE: f64 = 511.7;

/// What begins the texts that the runtime adds by itself.
const NOTES: [&str; 2] = ["Current runtime context", "The working directory "];

/// Takes turns until no prompt waits.
pub(super) fn run(session: &Shared, first: Vec<Message>) {
    let mut next = Some(first);
    while let Some(messages) = next {
        let number = session.lock().turn;
        let reason = Turn { session, number, step: 0, through: 0 }.take(messages);
        next = session.lock().end_turn(reason);
    }
}

struct Turn<'s> {
    session: &'s Shared,
    number: u64,
    /// The number of the step, from 1.
    step: u64,
    /// The last event that the model call takes in.
    through: u64,
}

/// Why a turn does not go on.
enum Stop {
    /// The model call failed.
    Failed(Value),
    /// The session is released.
    Released,
}

impl Turn<'_> {
    /// Takes the turn; returns the reason for its end.
    fn take(mut self, mut messages: Vec<Message>) -> Value {
        // What the model answers, and how often it has done so.
        let (mut prompt, mut answered) = (JsonString::from(""), 0);
        loop {
            self.step += 1;
            let new = self.open_step(&mut messages);
            if let Some(new) = new {
                (prompt, answered) = (new, 0);
            }
            let outcome = self.call(&prompt, answered).and_then(|reply| self.use_tools(&reply).map(|()| reply));
            answered += 1;
            let mut state = self.session.lock();
            state.log.event("step/end", &event::step(self.number, self.step));
            let reply = match outcome {
                Ok(reply) => reply,
                Err(Stop::Failed(failure)) => return object! { "kind" => "error", "error" => failure },
                Err(Stop::Released) => {
                    return object! { "kind" => "aborted", "reason" => object! { "kind" => "disposed" } };
                }
            };
            if reply.max_tokens {
                return object! { "kind" => "max-tokens" };
            }
            messages = state.take_notes();
            if reply.tools.is_empty() && messages.is_empty() {
                return object! { "kind" => "completed" };
            }
        }
    }

    fn id(&self) -> (u64, u64) {
        (self.number, self.step)
    }

    /// Tells the messages of the step and what goes with the first request. Returns what the model will answer, if
    /// there is anything new.
    fn open_step(&mut self, messages: &mut Vec<Message>) -> Option<JsonString> {
        let mut state = self.session.lock();
        let state = &mut *state;
        let (turn, step) = self.id();
        state.log.event("step/start", &event::step(turn, step));
        if !std::mem::replace(&mut state.told.system, true) {
            state.log.message("system/message", &event::system(turn, step));
        }
        let own = messages.len();
        state.unsupported = state.unsupported.take().or_else(|| messages.iter_mut().find_map(|m| m.unsupported.take()));
        let cwd = state.cwd().to_string_lossy().into_owned();
        if own > 0 && state.told.context.as_ref() != Some(&cwd) {
            messages.push(event::context(&cwd));
            state.told.context = Some(cwd);
        }
        let numbers: Vec<_> =
            messages.iter().map(|message| state.log.message("user/message", &message.value)).collect();
        let first_request = state.told.header == Some("initial");
        if let Some(reason) = state.told.header.take() {
            state.log.event("request/header", &event::header(&self.session.route, reason));
        }
        if first_request {
            state.log.event("request/context", &event::request_context(&self.session.route));
        }
        if step == 1 && !state.told.title {
            // The prompt comes last of those that waited.
            let prompt = own.checked_sub(1).and_then(|at| messages.get(at).zip(numbers.get(at)));
            let title = prompt.and_then(|(message, seq)| Some((title_of(message)?, seq)));
            if let Some((title, seq)) = title {
                state.log.event("session/title", &event::title(&title, *seq));
                state.told.title = true;
            }
        }
        self.through = state.log.last();
        newest(messages)
    }

    /// One answer of the model, retries included.
    fn call(&mut self, prompt: &JsonString, answered: usize) -> Result<Reply, Stop> {
        self.check_content()?;
        let reply = model::answer(prompt.as_json_str(), answered);
        let retry_id = event::new_id();
        let mut retries = 0;
        loop {
            self.pause(reply.delay)?;
            let mut state = self.session.lock();
            let Some(status) = http_error(&mut state, &reply, prompt, answered) else {
                drop(state);
                return self.receive(reply);
            };
            let (code, passes) = code_of(status);
            let failure = event::failure(&format!("fake error {status}"), code, Some(status));
            state.log.event("assistant/attempt", &Answer::new(now()).attempt(self.id(), &failure));
            if !passes || retries == RETRIES {
                return Err(Stop::Failed(failure));
            }
            let delay = FIRST_PAUSE * f64::from(1 << retries);
            retries += 1;
            let retry = event::retry(&retry_id, self.id(), &self.session.route, retries, delay, &failure);
            state.log.event("llm/retry", &retry);
            drop(state);
            self.pause(Duration::from_secs_f64(delay / 1000.0))?;
            let mut state = self.session.lock();
            self.through = state.log.event("llm/retry-started", &event::retry_started(&retry_id, self.id(), retries));
        }
    }

    /// Fails where the conversation cannot be put to a model.
    fn check_content(&self) -> Result<(), Stop> {
        let mut state = self.session.lock();
        let Some(kind) = &state.unsupported else { return Ok(()) };
        let message = format!("DeepSeek Messages cannot represent user/tool-result content {kind}");
        let failure = event::failure(&message, "UNSUPPORTED_CONTENT", None);
        state.log.event("assistant/attempt", &Answer::new(now()).attempt(self.id(), &failure));
        Err(Stop::Failed(failure))
    }

    /// Waits for the pieces of an answer, and tells it.
    fn receive(&self, reply: Reply) -> Result<Reply, Stop> {
        let mut answer = Answer::new(now());
        let pieces = text::pieces(reply.text.as_json_str(), reply.pieces).len() + usize::from(reply.thinking.is_some());
        let time = reply.piece_delay.saturating_mul(u32::try_from(pieces).unwrap_or(u32::MAX));
        self.pause(time)?;
        if let Some(thinking) = &reply.thinking {
            answer.thinking(thinking, reply.pieces);
        }
        if reply.text.as_json_str() != "" {
            answer.text(&reply);
        }
        let mut state = self.session.lock();
        state.calls += 1;
        for (place, tool) in reply.tools.iter().enumerate() {
            answer.tool(&call_id(state.calls, place), tool, reply.pieces);
        }
        let delivered = event::delivered(state.log.sink.session(), self.through);
        state.log.event("session-log-deepseek/delivery-accepted", &delivered);
        if let Some(fault) = reply.fault {
            let failure = failure_of(fault);
            state.log.event("assistant/attempt", &answer.attempt(self.id(), &failure));
            return Err(Stop::Failed(failure));
        }
        let finish = match (reply.max_tokens, reply.tools.is_empty()) {
            (true, _) => "max-tokens",
            (false, false) => "tool-calls",
            (false, true) => "stop",
        };
        let message = answer.message(self.id(), &self.session.route, finish);
        state.log.message("assistant/message", &message);
        Ok(reply)
    }

    /// Tells all calls, then runs one after the other.
    fn use_tools(&self, reply: &Reply) -> Result<(), Stop> {
        let mut state = self.session.lock();
        let calls: Vec<_> = reply
            .tools
            .iter()
            .enumerate()
            .map(|(place, tool)| {
                let id = call_id(state.calls, place);
                let seq = state.log.event("tool/call", &event::tool_call(self.id(), &id, tool));
                (id, seq, tool)
            })
            .collect();
        drop(state);
        for (id, seq, tool) in calls {
            let outcome = self.use_tool(tool);
            let mut state = self.session.lock();
            let (text, error) = match outcome {
                _ if state.releasing => ("Error: aborted".into(), Some(("AbortError", "ABORTED"))),
                Ok(text) => (text, None),
                Err((text, error)) => (text, Some(error)),
            };
            let result = event::tool_result(self.id(), &id, &text, error);
            let event = NewEvent { source_event_seqs: &[seq], ..NewEvent::new("tool/result", &result).append() };
            state.log.tell(&event);
            if state.releasing {
                return Err(Stop::Released);
            }
        }
        Ok(())
    }

    fn use_tool(&self, tool: &ToolUse) -> Result<String, (String, (&'static str, &'static str))> {
        let arguments = Json::new(&tool.arguments).unwrap_or(Json::EMPTY_OBJECT);
        if tool.name != "bash" {
            let text = format!("Error: unknown tool {}", JsonString::from(tool.name.as_str()).as_json_str().get());
            return Err((text, ("ToolNotFoundError", "UNKNOWN_TOOL")));
        }
        let Some(command) = arguments.member("command").filter(|command| command.kind() == Kind::String) else {
            let text = "Error: invalid arguments: \"command\" must be a string".into();
            return Err((text, ("ToolArgsError", "INVALID_ARGS")));
        };
        let command = command.as_str().map(|command| command.to_string_lossy().into_owned()).unwrap_or_default();
        let cwd = self.session.lock().cwd().to_owned();
        shell::run(&command, &cwd, |time| self.session.pause(time))
            .map_err(|error| (format!("Error: cannot run the command: {error}"), ("Error", "UNKNOWN")))
    }

    fn pause(&self, time: Duration) -> Result<(), Stop> {
        if self.session.pause(time) { Ok(()) } else { Err(Stop::Released) }
    }
}

fn call_id(call: u32, place: usize) -> String {
    format!("toolu_fake_{call:04}_{place}")
}

/// The newest text that a user wrote; where there is none, the newest note.
fn newest(messages: &[Message]) -> Option<JsonString> {
    let texts = || messages.iter().flat_map(|message| &message.texts).rev();
    let is_note = |text: &JsonString| {
        let text = text.as_json_str().to_string_lossy();
        NOTES.iter().any(|note| text.trim_start().starts_with(note))
    };
    texts().find(|text| !is_note(text)).or_else(|| texts().next()).cloned()
}

fn title_of(message: &Message) -> Option<JsonString> {
    text::title(text::join(&message.texts).as_json_str())
}

/// The status that the call fails with, if it does.
fn http_error(state: &mut State, reply: &Reply, prompt: &JsonString, answered: usize) -> Option<u16> {
    let (status, times) = reply.status.filter(|(status, _)| *status != 200)?;
    let played = state.failures.entry((prompt.clone(), answered)).or_default();
    *played += 1;
    times.is_none_or(|times| *played <= times).then_some(status)
}

/// The official code of an HTTP status, and whether a retry may help.
fn code_of(status: u16) -> (&'static str, bool) {
    match status {
        401 | 403 => ("AUTH", false),
        429 => ("RATE_LIMIT", true),
        500.. => ("SERVER", true),
        _ => ("INVALID_REQUEST", false),
    }
}

fn failure_of(fault: Fault) -> Value {
    match fault {
        Fault::Error => event::failure("fake stream error", "INVALID_REQUEST", None),
        Fault::Cut => event::failure("DeepSeek Messages stream ended before message_stop", "STREAM_CLOSED", None),
        Fault::Garbage => event::failure("DeepSeek Messages SSE contains invalid JSON", "MALFORMED_RESPONSE", None),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
